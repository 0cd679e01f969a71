/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers of the test modules: a timeout that records its callbacks, threads, and waits with
 * long time-outs (a guest may be emulated, with a debug kernel).
 */
#ifndef _HWT_KTEST_UTIL_H
#define _HWT_KTEST_UTIL_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/vmalloc.h>

#include "hwt.h"

#define KT_MS		((u64)NSEC_PER_MSEC)
#define KT_SECOND	((u64)NSEC_PER_SEC)
#define KT_HOUR		(3600 * KT_SECOND)

/* Convert ns to ms, on 32-bit kernels, too. */
static inline u64 kt_ms(u64 ns)
{
	return div_u64(ns, NSEC_PER_MSEC);
}

/* Round up to a tick of a wheel with ticks of 1 ms. */
static inline u64 kt_tick(u64 ns)
{
	return DIV64_U64_ROUND_UP(ns, KT_MS) * KT_MS;
}

#define KT_EARLIER_AT	(HWT_SCHEDULE_AT | HWT_SCHEDULE_EARLIER)

/* A kernel that checks each access or lock is several times slower. */
#define KT_SLOW		(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) ||	\
			 IS_ENABLED(CONFIG_PROVE_LOCKING))

/* A condition that does not become true within so many seconds never will. */
#define KT_PATIENCE	(KT_SLOW ? 60 : 20)

/* Wait until the condition holds. Return false after @seconds. Process context. */
#define KT_WAIT_FOR(cond, seconds)					\
({									\
	unsigned long __end = jiffies + (seconds) * HZ;			\
	bool __late, __done;						\
									\
	for (;;) {							\
		__late = time_after(jiffies, __end);			\
		__done = (cond);					\
		if (__done || __late)					\
			break;						\
		usleep_range(50, 500);					\
	}								\
	__done;								\
})

#define KT_WAIT(cond)	KT_WAIT_FOR(cond, KT_PATIENCE)

/* A timeout that records its callbacks. Times are on the wheel's clock, ns. */
struct kt {
	union {
		struct hwt_timeout	timeout;
		struct hwt_periodic	periodic;
	};
	u64			earliest;	/* it must not fire before this */
	atomic_t		expired;	/* calls of ->expire */
	atomic_t		cancelled;	/* calls of ->cancelled */
	atomic_t		released;	/* calls of ->release */
	atomic_t		early;		/* calls of ->expire before @earliest */
	u64			at;		/* when the latest ->expire began */
	struct task_struct	*task;		/* the thread of the latest ->expire */
};

static inline struct kt *kt_of(struct hwt_timeout *timeout)
{
	return container_of(timeout, struct kt, timeout);
}

/* The first part of every ->expire of a struct kt. */
static inline struct kt *kt_note_expired(struct hwt_timeout *timeout)
{
	struct kt *kt = kt_of(timeout);

	kt->at = hwt_wheel_now(hwt_timeout_wheel(timeout));
	kt->task = current;
	if (kt->at < READ_ONCE(kt->earliest))
		atomic_inc(&kt->early);
	return kt;
}

static void kt_expire(struct hwt_timeout *timeout)
{
	struct kt *kt = kt_note_expired(timeout);

	/* Last, with release: kt_expirations() returns this count and then sees @at and @task. */
	atomic_inc_return_release(&kt->expired);
}

static void __maybe_unused kt_cancelled(struct hwt_timeout *timeout)
{
	atomic_inc(&kt_of(timeout)->cancelled);
}

static void __maybe_unused kt_release(struct hwt_timeout *timeout)
{
	atomic_inc(&kt_of(timeout)->released);
}

static const struct hwt_timeout_ops kt_ops __maybe_unused = {
	.expire = kt_expire, .cancelled = kt_cancelled, .release = kt_release,
};

/* Without ->cancelled and ->release, so that the engine takes shorter paths. */
static const struct hwt_timeout_ops kt_plain_ops __maybe_unused = { .expire = kt_expire };

static void kt_nothing(struct hwt_timeout *timeout)
{
}

/* For timeouts whose callbacks need not be counted. */
static const struct hwt_timeout_ops kt_nothing_ops __maybe_unused = { .expire = kt_nothing };

static inline int kt_expirations(const struct kt *kt)
{
	return atomic_read_acquire(&kt->expired);
}

static inline int kt_releases(const struct kt *kt)
{
	return atomic_read(&kt->released);
}

static inline struct kt *kt_clear(struct kt *kt)
{
	memset(kt, 0, sizeof(*kt));
	return kt;
}

/* Macros, so that each use has a lockdep class of its own. */
#define kt_init(_kt, _wheel, _ops)					\
	hwt_timeout_init(&kt_clear(_kt)->timeout, (_wheel), (_ops))

#define kt_setup(_kt, _wheel, _expire)					\
	hwt_timeout_setup(&kt_clear(_kt)->timeout, (_wheel), (_expire))

#define kt_init_periodic(_kt, _wheel, _ops)				\
	hwt_periodic_init(&kt_clear(_kt)->periodic, (_wheel), (_ops))

/* Schedule after a delay, and record the earliest time at which it may fire. */
static inline int kt_schedule(struct kt *kt, u64 delay_ns)
{
	u64 now = hwt_wheel_now(hwt_timeout_wheel(&kt->timeout));

	WRITE_ONCE(kt->earliest, now + delay_ns < now ? U64_MAX : now + delay_ns);
	return hwt_schedule(&kt->timeout, delay_ns);
}

/* A timeout whose callback does not return until the test completes @out. */
struct kt_stay {
	struct kt		kt;
	struct completion	out;		/* lets the callback return */
	bool			inside;		/* the callback is executing */
};

static inline bool kt_inside(const struct kt_stay *stay)
{
	/* Pairs with kt_stay_here(): the caller sees the writes of the callback before it. */
	return smp_load_acquire(&stay->inside);
}

/* Wait inside a callback of a struct kt_stay, until the test completes @out. */
static inline void kt_stay_here(struct hwt_timeout *timeout)
{
	struct kt_stay *stay = container_of(timeout, struct kt_stay, kt.timeout);

	/* Pairs with kt_inside(), which sees the writes before this. */
	smp_store_release(&stay->inside, true);
	wait_for_completion_timeout(&stay->out, KT_PATIENCE * HZ);
	/* Pairs with kt_inside(), as above. */
	smp_store_release(&stay->inside, false);
}

static void kt_stay_expire(struct hwt_timeout *timeout)
{
	struct kt *kt = kt_note_expired(timeout);

	kt_stay_here(timeout);
	atomic_inc_return_release(&kt->expired);
}

static inline unsigned int kt_count_inside(const struct kt_stay *stay, unsigned int n)
{
	unsigned int count = 0;

	while (n--)
		count += kt_inside(&stay[n]);
	return count;
}

static void kt_stay_release(struct hwt_timeout *timeout)
{
	kt_stay_here(timeout);
	kt_release(timeout);
}

static const struct hwt_timeout_ops kt_stay_ops __maybe_unused = {
	.expire = kt_stay_expire, .release = kt_release,
};

static const struct hwt_timeout_ops kt_stay_release_ops __maybe_unused = {
	.expire = kt_expire, .release = kt_stay_release,
};

#define kt_stay_init(_stay, _wheel, _ops) do {				\
	struct kt_stay *__stay = (_stay);				\
									\
	WRITE_ONCE(__stay->inside, false);				\
	init_completion(&__stay->out);					\
	kt_init(&__stay->kt, (_wheel), (_ops));				\
} while (0)

/* Initialise and schedule a timeout. Return true when its callback is executing. */
#define kt_stay_begin(_stay, _wheel)					\
({									\
	struct kt_stay *__begun = (_stay);				\
									\
	kt_stay_init(__begun, _wheel, &kt_stay_ops);			\
	hwt_schedule(&__begun->kt.timeout, 0);				\
	KT_WAIT(kt_inside(__begun));					\
})

static inline void kt_stay_end(struct kt_stay *stay)
{
	complete_all(&stay->out);
	hwt_shutdown_sync(&stay->kt.timeout);
}

/* hwt_cancel_sync(), or -EBADE if it returned before the callback or the release did. */
static inline long kt_do_sync_stay(void *arg)
{
	struct kt_stay *stay = arg;
	int ret = hwt_cancel_sync(&stay->kt.timeout);

	return kt_inside(stay) || kt_releases(&stay->kt) != 1 ? -EBADE : ret;
}

/* Duration of a slow release, longer than most stalls of the machine. */
#define KT_RELEASE_MS	300

static void kt_slow_release(struct hwt_timeout *timeout)
{
	msleep(KT_RELEASE_MS);
	kt_release(timeout);
}

static const struct hwt_timeout_ops kt_slow_ops __maybe_unused = {
	.expire = kt_expire, .cancelled = kt_cancelled, .release = kt_slow_release,
};

/* Create a wheel with the default parameters, except those given after the name. */
#define kt_wheel(_name, ...)						\
	hwt_wheel_create((&(const struct hwt_wheel_params) { .name = (_name), ##__VA_ARGS__ }))

/* Spend @ns in a callback, mostly asleep. */
static inline void kt_take_time(u64 ns)
{
	u64 end = ktime_get_ns() + ns;

	while (ktime_get_ns() < end)
		usleep_range(500, 1000);
}

static inline u64 kt_wheel_tick(const struct hwt_wheel *wheel)
{
	struct hwt_wheel_params params;

	hwt_wheel_get_params(wheel, &params);
	return div64_u64(hwt_wheel_now(wheel), params.tick_ns);
}

/* Return true if the wheel is stopped. Process context, but not from its callbacks. */
static inline bool kt_stopped(struct hwt_wheel *wheel)
{
	return hwt_wheel_flush(wheel) == -ESHUTDOWN;
}

static inline struct hwt_wheel_stats kt_stats(struct hwt_wheel *wheel)
{
	struct hwt_wheel_stats stats;

	hwt_wheel_get_stats(wheel, &stats);
	return stats;
}

/* Wait until the engine has been idle for @ms; false if it never is. */
static inline bool kt_asleep(struct hwt_wheel *wheel, unsigned int ms)
{
	struct hwt_wheel_stats before, after = kt_stats(wheel);
	unsigned long end = jiffies + 3 * KT_PATIENCE * HZ;

	do {
		before = after;
		msleep(ms);
		after = kt_stats(wheel);
		if (before.passes == after.passes && before.collected == after.collected)
			return true;
	} while (time_before(jiffies, end));
	return false;
}

/* Count the threads whose names begin with _name, and for which _cond on "task" is true. */
#define kt_count_threads(_name, _cond)					\
({									\
	const char *__name = (_name);					\
	struct task_struct *task;					\
	unsigned int __n = 0;						\
									\
	rcu_read_lock();						\
	for_each_process(task)						\
		__n += !strncmp(task->comm, __name, strlen(__name)) && (_cond); \
	rcu_read_unlock();						\
	__n;								\
})

/* Restrict the calling thread to the CPUs of @mask; NULL: allow all CPUs again. */
static inline void kt_stay_on(const struct cpumask *mask)
{
	set_cpus_allowed_ptr(current, mask ?: cpu_possible_mask);
}

/* Return another online CPU than @cpu, or @cpu if there is none. */
static inline unsigned int kt_other_cpu(unsigned int cpu)
{
	return cpumask_any_but(cpu_online_mask, cpu) < nr_cpu_ids ?
	       cpumask_any_but(cpu_online_mask, cpu) : cpu;
}

/* Return the thread of that name with a reference, or NULL. */
static inline struct task_struct *kt_task_get(const char *name)
{
	struct task_struct *task, *found = NULL;

	rcu_read_lock();
	for_each_process(task)
		if (!strcmp(task->comm, name))
			found = task;
	if (found)
		get_task_struct(found);
	rcu_read_unlock();
	return found;
}

/*
 * Threads. A thread function ends with kt_thread_end(), which waits for kt_thread_stop().
 * Thread n runs on CPU n modulo the number of online CPUs.
 */
struct kt_start {
	int			(*fn)(void *arg);
	void			*arg;
	struct completion	begun;
};

static inline int kt_thread_main(void *arg)
{
	struct kt_start *start = arg;
	/* A copy: @start is on the stack of kt_thread(), which returns after complete(). */
	int (*fn)(void *arg) = start->fn;
	void *data = start->arg;

	complete(&start->begun);
	return fn(data);
}

/* Return when the thread executes: kthread_stop() before that would keep @fn from running. */
static inline struct task_struct *kt_thread_begin(struct task_struct *task,
						  struct kt_start *start)
{
	if (IS_ERR(task))
		return task;
	wake_up_process(task);
	wait_for_completion(&start->begun);
	return task;
}

static inline struct task_struct *kt_thread(int (*fn)(void *arg), void *arg,
					    unsigned int n)
{
	struct kt_start start = { .fn = fn, .arg = arg };
	unsigned int cpu = n % num_online_cpus();
	struct task_struct *task;

	init_completion(&start.begun);
	task = kthread_create(kt_thread_main, &start, "kt/%u", n);
	if (!IS_ERR(task) && cpu_online(cpu))
		kthread_bind(task, cpu);
	return kt_thread_begin(task, &start);
}

static inline int kt_thread_end(int ret)
{
	while (!kthread_should_stop())
		usleep_range(500, 1000);
	return ret;
}

/* Return the return value of the thread. */
static inline int kt_thread_stop(struct task_struct *task)
{
	return IS_ERR_OR_NULL(task) ? -ENOMEM : kthread_stop(task);
}

/* A thread that makes one call, and the result of the call. */
struct kt_call {
	long			(*fn)(void *arg);
	void			*arg;
	struct task_struct	*thread;
	bool			ready;		/* about to call: SIGUSR1 is allowed from now on */
	bool			done;		/* the call has returned */
	long			ret;
	u64			took_ns;
	unsigned long		switches;	/* voluntary context switches before the call */
	unsigned long		slept;		/* voluntary context switches during the call */
};

static inline int kt_call_main(void *arg)
{
	struct kt_call *call = arg;
	u64 began = ktime_get_ns();

	allow_signal(SIGUSR1);
	call->switches = current->nvcsw;
	WRITE_ONCE(call->ready, true);
	call->ret = call->fn(call->arg);
	call->took_ns = ktime_get_ns() - began;
	call->slept = current->nvcsw - call->switches;
	/* Pairs with kt_call_done(), which then sees the result. */
	smp_store_release(&call->done, true);
	return kt_thread_end(0);
}

static inline bool kt_call_done(struct kt_call *call)
{
	/* Pairs with kt_call_main(): the caller sees the result. */
	return smp_load_acquire(&call->done);
}

static inline void kt_call_begin(struct kt_call *call, long (*fn)(void *arg), void *arg)
{
	static unsigned int n;

	*call = (struct kt_call) { .fn = fn, .arg = arg };
	call->thread = kt_thread(kt_call_main, call, n++);
	KT_WAIT(READ_ONCE(call->ready));
}

/* Return the result of the call, or -1 if the call does not return. */
static inline long kt_call_end(struct kt_call *call)
{
	bool done = KT_WAIT(kt_call_done(call));

	if (!done)
		send_sig(SIGUSR1, call->thread, 1);
	kt_thread_stop(call->thread);
	return done ? call->ret : -1;
}

/* Functions for kt_call_begin(). */
static inline long kt_do_cancel_sync(void *timeout)
{
	return hwt_cancel_sync(timeout);
}

static inline long kt_do_flush(void *wheel)
{
	return hwt_wheel_flush(wheel);
}

static inline long kt_do_barrier(void *wheel)
{
	return hwt_wheel_barrier(wheel);
}

static inline long kt_do_stop(void *wheel)
{
	return hwt_wheel_stop(wheel, NULL, NULL);
}

/* Move the wall clock by @seconds. */
static inline int kt_set_clock(s64 seconds)
{
	struct timespec64 now;

	ktime_get_real_ts64(&now);
	now.tv_sec += seconds;
	return do_settimeofday64(&now);
}

/* Allocate zeroed memory, to be freed by vfree(). Never fails. */
static inline void *kt_alloc(size_t n, size_t size)
{
	return __vmalloc(array_size(n, size), GFP_KERNEL | __GFP_ZERO | __GFP_NOFAIL);
}

/* Read a file into @text, which is empty after an error. */
static inline char *kt_read(const char *path, char *text, size_t size)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	ssize_t n = 0;
	loff_t pos = 0;

	if (!IS_ERR(file)) {
		n = kernel_read(file, text, size - 1, &pos);
		filp_close(file, NULL);
	}
	text[max_t(ssize_t, n, 0)] = 0;
	return text;
}

static inline int kt_write(const char *path, const char *text)
{
	struct file *file = filp_open(path, O_WRONLY, 0);
	loff_t pos = 0;
	ssize_t n;

	if (IS_ERR(file))
		return PTR_ERR(file);
	n = kernel_write(file, text, strlen(text), &pos);
	filp_close(file, NULL);
	return min_t(ssize_t, n, 0);
}

/* Return true if the kernel's command line, which informs the tests, contains @words. */
static inline bool kt_told(const char *words)
{
	static char line[2048];

	return strstr(kt_read("/proc/cmdline", line, sizeof(line)), words);
}

static inline bool kt_quick(void)
{
	return kt_told("HWT_QUICK=1");
}

#endif /* _HWT_KTEST_UTIL_H */
