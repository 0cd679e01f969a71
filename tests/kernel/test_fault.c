// SPDX-License-Identifier: GPL-2.0-only
/*
 * The interface for kernel code, with each allocation made to fail once.
 *
 * Creating a wheel or a timeout fails with -ENOMEM, leaks nothing, and succeeds afterwards. All
 * other calls allocate nothing. As in tests/user/fault.h, a call is repeated with its n-th
 * allocation failing, for n = 1, 2, ..., until it makes fewer than n allocations.
 *
 * hwt-test: only debug debug612
 * hwt-test: timeout 200
 */
#include <linux/cpumask.h>
#include <linux/kmod.h>
#include <linux/kprobes.h>
#include <linux/pid.h>
#include <linux/slab.h>
#include <linux/umh.h>

#include "hwt_ktest.h"
#include "hwt_ktest_probe.h"

#ifdef CONFIG_FAULT_INJECTION

/* More allocations than any call makes. */
#define MOST		20000
/* So many calls in a row without an n-th allocation end the test. */
#define MISSES		4
#define NAME		"fault"
#define WORKERS		3

static struct hwt_wheel *wheel;
static struct item {
	struct kt		kt;
	struct hwt_member	member;
} items[64];
static struct hwt_group group;
static struct hwt_periodic periodic;

/* -- The driver ------------------------------------------------------------ */

/* Let allocations that may sleep, and single pages, fail, too: by default they do not. */
static bool __init knobs(void)
{
	static char commands[] __initdata = "set -e; cd /sys/kernel/debug;"
		"echo N >failslab/ignore-gfp-wait; echo 0 >failslab/verbose;"
		"echo N >fail_page_alloc/ignore-gfp-wait; echo N >fail_page_alloc/ignore-gfp-highmem;"
		"echo 0 >fail_page_alloc/min-order; echo 0 >fail_page_alloc/verbose";
	char *argv[4] = { "/bin/sh", "-c", commands, NULL };
	char *envp[1] = { NULL };

	return !call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC);
}

struct count {
	unsigned int hit;	/* allocations that were made to fail */
	unsigned int failed;	/* calls that failed because of that */
};

/*
 * Make each allocation of @task in @call fail once. @call returns 0 or a negative error; @check,
 * called after it, returns false if something is wrong. Return true if all checks succeeded.
 */
static bool __init each_fault(struct task_struct *task, int (*call)(void),
			      bool (*check)(int ret), struct count *count)
{
	unsigned int n, misses = 0;
	bool hit;
	int ret;

	*count = (struct count) { };
	/* The number of allocations varies: a slab cache needs a new page now and then. */
	for (n = 1; misses < MISSES && n < MOST; n++) {
		WRITE_ONCE(task->fail_nth, n);
		ret = call();
		hit = !READ_ONCE(task->fail_nth);
		WRITE_ONCE(task->fail_nth, 0);
		count->hit += hit;
		count->failed += hit && ret;
		if (!check(ret) || (ret && !hit)) {
			pr_info("allocation %u made to fail (%d): result %d\n", n, hit, ret);
			return false;
		}
		misses = hit ? 0 : misses + 1;
	}
	return misses == MISSES;
}

/* -- Leaks ------------------------------------------------------------------ */

/* Count the threads of the test's wheels. */
static unsigned int threads(void)
{
	return kt_count_threads(NAME, (task->flags & PF_KTHREAD) && !task->exit_state);
}

/* Return the use count of hwt: one for each wheel, and one for this module. */
static int users(void)
{
	char text[16];
	int n;

	kt_read("/sys/module/hwt/refcnt", text, sizeof(text));
	return kstrtoint(strim(text), 0, &n) ? -1 : n;
}

static int users_before;

static bool nothing_left(void)
{
	return KT_WAIT(!threads()) && users() == users_before;
}

/* -- Creating wheels --------------------------------------------------------- */

static struct hwt_wheel_params params;
static bool shared;

static int make(void)
{
	wheel = shared ? hwt_wheel_get_shared(&params) : hwt_wheel_create(&params);
	return PTR_ERR_OR_ZERO(wheel);
}

static bool works(void)
{
	struct kt *kt = &items[0].kt;
	bool ok;

	kt_init(kt, wheel, &kt_ops);
	ok = !kt_schedule(kt, 0) && KT_WAIT(kt_expirations(kt) == 1);
	/* For a private wheel, the stop waits for the release, too. */
	hwt_shutdown_sync(&kt->timeout);
	return ok && kt_releases(kt) == 1 && !atomic_read(&kt->early);
}

static void unmake(void)
{
	if (shared)
		hwt_wheel_put(wheel);
	else
		hwt_wheel_destroy(wheel);
}

/* After a failure, create the wheel. Check that it works, destroy it, and look for leaks. */
static bool check_make(int ret)
{
	bool ok = true;
	unsigned int wanted = (1 + params.workers) * max(params.shards, 1U);

	/* -EAGAIN: no thread could be created. */
	if (ret)
		ok = (ret == -ENOMEM || ret == -EAGAIN) && nothing_left() && !make();
	if (!ok)
		return false;
	ok = threads() == wanted && users() == users_before + 1 && works();
	unmake();
	return ok && nothing_left();
}

/*
 * @least: half of the calls that usually fail, because a new slab page shifts the numbers, and so
 * hides the failure of some allocations
 */
static void __init test_make(const char *what, unsigned int least)
{
	struct count count;

	params.name = NAME;
	users_before = users();
	KTEST(each_fault(current, make, check_make, &count),
	      "%s: %u allocations fail, each once, and %u calls", what, count.hit,
	      count.failed);
	KTEST(count.failed >= least, "%s: at least %u calls fail", what, least);
}

/* Return kthreadd, which creates the threads: it has PID 2. */
static struct task_struct * __init thread_maker(void)
{
	struct task_struct *task;

	rcu_read_lock();
	task = pid_task(find_vpid(2), PIDTYPE_PID);
	rcu_read_unlock();
	return task;
}

static void __init test_threads(void)
{
	struct task_struct *task = thread_maker();
	struct count count;
	bool ok;

	shared = false;
	params = (struct hwt_wheel_params) { .name = NAME, .workers = WORKERS, .shards = 2 };
	users_before = users();
	ok = task && !strcmp(task->comm, "kthreadd");
	/* The kernel reports a stack that cannot be allocated, unless it has a spare one. */
	pr_info("hwt-expect-begin: vmalloc error: size|a stack, perhaps\n");
	pr_info("a stack, perhaps\n");
	ok = ok && each_fault(task, make, check_make, &count);
	pr_info("hwt-expect-end\n");
	KTEST(ok, "creating %u threads: each allocation fails once", 2 * (WORKERS + 1));
	/* Allocations of memory checkers may fail, and the call succeeds. */
	KTEST(ok && count.failed > WORKERS && count.failed <= count.hit,
	      "%u allocations fail, and %u calls", count.hit, count.failed);
}

static void __init test_wheels(void)
{
	shared = false;
	params = (struct hwt_wheel_params) { };
	test_make("a wheel", 3);
	/* The shards themselves are created by other tasks. */
	params = (struct hwt_wheel_params) { .shards = 2 };
	test_make("a wheel of two shards", 2);
	params = (struct hwt_wheel_params) {
		.ticks_per_wheel	= 4096,
		.levels			= 6,
		.workers		= WORKERS,
		.cpus			= cpumask_of(0),
		.clock			= HWT_CLOCK_REALTIME,
		.priority		= HWT_PRIO_FIFO_LOW,
		.max_pending		= 10,
	};
	test_make("a large wheel with workers", 4);
	shared = true;
	params = (struct hwt_wheel_params) { .workers = WORKERS, .tick_ns = 7 * KT_MS };
	/* A shared wheel is not created on behalf of a program, so a failure is logged. */
	pr_info("hwt-expect-begin: vmalloc error: size\n");
	test_make("a shared wheel", 3);
	pr_info("hwt-expect-end\n");
}

/* -- Per-CPU memory --------------------------------------------------------------- */

#if defined(CONFIG_KPROBES) && defined(CONFIG_X86_64)

/* The thread whose per-CPU allocation fails, and the number of calls up to the one that fails. */
static struct task_struct *poor;
static unsigned int poor_after;

/* Return NULL from the probed function: fault injection does not cover per-CPU memory. */
static int percpu_probe(struct kprobe *probe, struct pt_regs *regs)
{
	if (READ_ONCE(poor) != current || --poor_after)
		return 0;
	WRITE_ONCE(poor, NULL);
	regs->ax = 0;
	regs->ip = *(unsigned long *)regs->sp;
	regs->sp += sizeof(unsigned long);
	return 1;
}

/* A post_handler keeps the probe from becoming a jump, which would ignore the new address. */
static struct kprobe percpu = { .pre_handler = percpu_probe, .post_handler = kt_after_probe };

static int __init percpu_begin(void)
{
	/* The names since 6.10, and before. */
	static const char * const names[] = { "pcpu_alloc_noprof", "__alloc_percpu_gfp" };
	unsigned int i;
	int ret = -ENOENT;

	for (i = 0; i < ARRAY_SIZE(names) && ret; i++) {
		percpu.addr = NULL;
		percpu.flags = 0;
		percpu.symbol_name = names[i];
		ret = register_kprobe(&percpu);
	}
	return ret;
}

/* Let each per-CPU allocation of make() fail in turn, with -ENOMEM and no leak, until none does. */
static bool __init percpu_fails(void)
{
	unsigned int n;
	int ret;

	for (n = 1; ; n++) {
		poor_after = n;
		WRITE_ONCE(poor, current);
		ret = make();
		/* The call makes fewer than n of these allocations. */
		if (cmpxchg(&poor, current, NULL) == current)
			return !ret && n > 1 && check_make(ret);
		if (ret != -ENOMEM || !check_make(ret))
			return false;
	}
}

static void __init test_percpu(void)
{
	int ret = percpu_begin();

	KTEST(!ret, "per-CPU allocations can be probed: %d", ret);
	if (ret)
		return;
	shared = false;
	params = (struct hwt_wheel_params) { .name = NAME };
	users_before = users();
	KTEST(percpu_fails(), "a wheel without per-CPU memory is not created");
	unregister_kprobe(&percpu);
}

#else

static void __init test_percpu(void)
{
}

#endif

/* -- Calls that allocate nothing ------------------------------------------------- */

static bool get_member(struct hwt_timeout *timeout)
{
	return true;
}

static void put_member(struct hwt_timeout *timeout)
{
}

/* All operations on timeouts, except for firing. */
static int everything(void)
{
	unsigned int i;

	hwt_group_init(&group, get_member, put_member);
	for (i = 0; i < ARRAY_SIZE(items); i++) {
		kt_init(&items[i].kt, wheel, &kt_ops);
		hwt_group_join(&group, &items[i].member, &items[i].kt.timeout);
		kt_schedule(&items[i].kt, KT_HOUR * i);
	}
	hwt_schedule(&items[1].kt.timeout, 2 * KT_HOUR);
	hwt_schedule_at(&items[2].kt.timeout, 1ULL << 62);
	hwt_schedule_slack(&items[3].kt.timeout, KT_HOUR, KT_HOUR);
	hwt_schedule_earlier(&items[4].kt.timeout, KT_HOUR);
	hwt_schedule_pending(&items[5].kt.timeout, KT_HOUR);
	hwt_periodic_init(&periodic, wheel, &kt_nothing_ops);
	hwt_schedule_periodic(&periodic, KT_HOUR, KT_SECOND, HWT_MODE_FIXED_RATE);
	hwt_cancel(&items[8].kt.timeout);
	hwt_try_cancel(&items[9].kt.timeout);
	hwt_cancel_sync(&items[10].kt.timeout);
	hwt_shutdown_sync(&items[11].kt.timeout);
	hwt_wait(&items[12].kt.timeout, NSEC_PER_USEC);
	hwt_wheel_flush(wheel);
	kt_stats(wheel);
	hwt_shutdown_sync(&periodic.timeout);
	hwt_group_pending(&group);
	hwt_group_cancel(&group);
	hwt_group_cancel_sync(&group);
	hwt_group_shutdown_sync(&group);
	for (i = 0; i < ARRAY_SIZE(items); i++)
		hwt_group_leave(&group, &items[i].member);
	return 0;
}

static bool check_nothing(int ret)
{
	return !hwt_wheel_pending(wheel);
}

static int fire(void)
{
	unsigned int i;
	bool ok = true;

	for (i = 0; i < ARRAY_SIZE(items); i++) {
		kt_init(&items[i].kt, wheel, &kt_ops);
		ok &= !kt_schedule(&items[i].kt, i % 8 * KT_MS);
	}
	for (i = 0; i < ARRAY_SIZE(items); i++) {
		ok &= KT_WAIT(kt_expirations(&items[i].kt) == 1 &&
			      kt_releases(&items[i].kt) == 1);
		ok &= !atomic_read(&items[i].kt.early);
	}
	return ok ? 0 : -EIO;
}

/* Get another reference to the existing shared wheel. */
static int get_again(void)
{
	struct hwt_wheel *same = hwt_wheel_get_shared(&params);

	if (IS_ERR(same))
		return PTR_ERR(same);
	hwt_wheel_put(same);
	return same == wheel ? 0 : -EIO;
}

static int stop(void)
{
	return hwt_wheel_stop(wheel, NULL, NULL);
}

static bool __init allocates(struct task_struct *task, int (*call)(void))
{
	struct count count;

	return !each_fault(task, call, check_nothing, &count) || count.hit;
}

static void __init test_users(void)
{
	bool fired;

	shared = true;
	params = (struct hwt_wheel_params) { .name = NAME, .tick_ns = 7 * KT_MS };
	KTEST(!make(), "a shared wheel is created");
	KTEST(!allocates(current, everything), "operations on timeouts allocate nothing");
	KTEST(!allocates(current, get_again), "getting the same shared wheel allocates nothing");
	/* The first callback records the wheel's thread. */
	fired = !fire();
	KTEST(fired, "the timeouts fire");
	KTEST(fired && !allocates(items[0].kt.task, fire), "the wheel's thread allocates nothing");
	unmake();

	shared = false;
	params = (struct hwt_wheel_params) { .name = NAME, .workers = 1 };
	KTEST(!make(), "a wheel with a worker is created");
	KTEST(!fire() && !allocates(items[0].kt.task, fire), "a worker allocates nothing");
	KTEST(!allocates(current, stop), "a stop allocates nothing");
	unmake();
	KTEST(KT_WAIT(!threads()), "no thread is left");
}

static void __init selftest(void)
{
	KTEST(knobs(), "fault injection is set up");
	test_wheels();
	test_threads();
	test_users();
	test_percpu();
}

#else /* CONFIG_FAULT_INJECTION */

static void __init selftest(void)
{
	KTEST(false, "this kernel has fault injection");
}

#endif

KSTM_MODULE_LOADERS(test_fault);
