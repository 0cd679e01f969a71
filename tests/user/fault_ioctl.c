// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every ioctl of /dev/hwt, read() and mmap(), with each of the allocations and user copies made to
 * fail once; open() is in fault_load.c. In poll(), io_uring's reading and passing a descriptor on
 * all points are the kernel's.
 *
 * A call that fails says ENOMEM or EFAULT, has changed nothing but for what hwt_uapi.h says of
 * EFAULT, and works right afterwards. At the end the user can have as much as ever.
 *
 * hwt-test: long
 * hwt-test: only debug debug612
 * hwt-test: timeout 900
 * hwt-test: load max_user_timeouts=300 max_user_wheels=3
 */
#include "kselftest_harness.h"

#include "fault_scene.h"

#define MANY		64	/* as many as one node of the table has room for */
#define ENTRIES		64	/* of rings */
#define RING_OPS	20

/* A user with limits, who has as much as ever afterwards; and a scene. */
FIXTURE(limited) { };

FIXTURE_SETUP(limited)
{
	scene_begin(_metadata);
}

FIXTURE_TEARDOWN(limited)
{
	scene_end(_metadata);
}

FIXTURE(scene) { };

/* At least so many points of the call fail, and so many of them are noticed. */
FIXTURE_VARIANT(scene) {
	unsigned int hit, failed;
	struct scene scene;
};

FIXTURE_SETUP(scene)
{
	scene_begin(_metadata);
}

FIXTURE_TEARDOWN(scene)
{
	scene_end(_metadata);
}

TEST_F_TIMEOUT(scene, each_point, 400)
{
	scene_run(_metadata, &variant->scene, variant->scene.pid, variant->hit, variant->failed);
}

static struct hwt_schedule_args schedule;
static struct hwt_setup_args setup;
static struct hwt_rings_args rings;

/* The next one needs a new node of the table. */
static void a_full_node(struct __test_metadata *_metadata, struct env *env)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, hwt_add(env->fd, 0, HOUR, i, NULL));
}

/* -- The calls ------------------------------------------------------------- */

static int call_ask(struct env *env)
{
	struct hwt_get_args get = {};
	struct hwt_stats_args stats;
	struct hwt_info_args info;
	int ret;

	ret = hwt_info(env->fd, &info) ?: hwt_stats(env->fd, &stats) ?:
	      hwt_get(env->fd, env->periodic, &get);
	if (ret)
		return ret;
	return info.tick_ns == env->before.info.tick_ns &&
	       !memcmp(&stats, &env->before.stats, sizeof(stats)) &&
	       get.state == HWT_STATE_PENDING && get.user_data == 2 ? 0 : -EPROTO;
}

/* One that is cut short goes on with the next call. */
static int call_list(struct env *env)
{
	static struct hwt_list_entry list[MANY + 8];
	struct hwt_list_args args = { .size = sizeof(args), .entry_size = sizeof(list[0]) };
	unsigned int total = 0;
	int ret;

	do {
		args.entries = (uintptr_t)(list + total);
		args.count = MANY + 8 - total;
		ret = hwt_call(env->fd, HWT_IOC_LIST, &args);
		total += ret ? 0 : args.count;
	} while (!ret && args.count && total < MANY);
	return ret ? ret : total == MANY ? 0 : -EPROTO;
}

static int call_setup_with(struct env *env, __u32 flags, __u32 priority)
{
	setup = (struct hwt_setup_args) {
		.size = sizeof(setup),
		.flags = flags,
		.tick_ns = 2 * MSEC,
		.ticks_per_wheel = 4096,
		.levels = 6,
		.priority = priority,
	};
	return hwt_call(env->fd, HWT_IOC_SETUP, &setup);
}

static int call_setup(struct env *env)
{
	return call_setup_with(env, HWT_SETUP_BOOTTIME, HWT_PRIO_FIFO_LOW);
}

static int call_setup_tell(struct env *env)
{
	return call_setup_with(env, HWT_SETUP_REALTIME | HWT_SETUP_TELL_CLOCK_SET, 0);
}

static bool done_setup(const struct env *env)
{
	const struct hwt_info_args *info = &env->after.info;

	return (info->clock == CLOCK_REALTIME) == !!(setup.flags & HWT_SETUP_REALTIME) &&
	       info->tick_ns == 2 * MSEC &&
	       info->ticks_per_wheel == 4096 && info->levels == 6 && env->after.private == 1 &&
	       changed(env, (struct change) { .private = true, .wheel = true });
}

static int call_schedule_with(struct env *env, __u32 flags, __u32 mode, __u64 period_ns)
{
	schedule = (struct hwt_schedule_args) {
		.size = sizeof(schedule),
		.flags = flags,
		.mode = mode,
		.time_ns = HOUR,
		.period_ns = period_ns,
		.user_data = 7,
	};
	if (flags & HWT_ARM_ABSOLUTE)
		schedule.time_ns += now_ns();
	return hwt_call(env->fd, HWT_IOC_SCHEDULE, &schedule);
}

static int call_schedule(struct env *env)
{
	return call_schedule_with(env, HWT_ARM_ABSOLUTE, HWT_MODE_ONE_SHOT, 0);
}

static int call_schedule_periodic(struct env *env)
{
	return call_schedule_with(env, 0, HWT_MODE_FIXED_DELAY, SEC);
}

static bool made(const struct env *env)
{
	const struct hwt_list_entry *new = state_find(&env->after, schedule.id);

	return new && new->user_data == 7 && new->mode == schedule.mode &&
	       new->state == HWT_STATE_PENDING && !state_find(&env->before, schedule.id);
}

static bool done_schedule(const struct env *env)
{
	return made(env) && kept(env) &&
	       changed(env, (struct change) { .timeouts = 1, .scheduled = 1 });
}

/* Nobody knows its id. */
static bool undone_schedule(const struct env *env)
{
	return changed(env, (struct change) { .scheduled = 1, .cancelled = 1 });
}

static int call_modify(struct env *env)
{
	struct hwt_modify_args modify = {
		.size = sizeof(modify),
		.flags = HWT_ARM_USER_DATA,
		.id = env->pending,
		.time_ns = 2 * HOUR,
		.user_data = 77,
	};

	return hwt_call(env->fd, HWT_IOC_MODIFY, &modify);
}

/* All of the others as they were, and nothing of it is half-done. */
static bool done_modify(const struct env *env)
{
	const struct hwt_list_entry *now = state_find(&env->after, env->pending);

	return now && now->user_data == 77 && now->state == HWT_STATE_PENDING &&
	       now->deadline_ns > now_ns() + HOUR && kept_but(env, env->pending) &&
	       changed(env, (struct change) { .modified = 1, .list = true });
}

static int call_cancel(struct env *env)
{
	struct hwt_cancel_args cancel = { .size = sizeof(cancel), .id = env->pending };

	return hwt_call(env->fd, HWT_IOC_CANCEL, &cancel);
}

static bool done_cancel(const struct env *env)
{
	return !state_find(&env->after, env->pending) && kept_but(env, env->pending) &&
	       changed(env, (struct change) { .timeouts = -1, .cancelled = 1 });
}

static int call_stop(struct env *env)
{
	return hwt_stop(env->fd) < 0 ? hwt_errno() : 0;
}

static bool done_stop(const struct env *env)
{
	return env->after.stopped && env->after.n == env->before.n &&
	       env->after.stats.stopped == 2 && env->after.stats.events == env->before.n;
}

static struct hwt_event event;

static bool done_read(const struct env *env)
{
	return event.id == env->fired && event.user_data == 3 && kept_but(env, env->fired) &&
	       changed(env, (struct change) { .timeouts = -1, .events = -1, .read = 1 });
}

static int call_read(struct env *env)
{
	int ret;

	memset(&event, 0, sizeof(event));
	ret = hwt_read(env->fd, &event, 1);
	return ret < 0 ? ret : ret == 1 ? 0 : -EPROTO;
}

/* The event of the one that has fired goes to the ring. */
static void mapped_rings(struct __test_metadata *_metadata, struct env *env)
{
	some(_metadata, env);
	ASSERT_EQ(0, hwt_rings(env->fd, 0, ENTRIES, ENTRIES, &rings));
	ASSERT_EQ(0, ring_map(&env->ring, env->fd, &rings));
	ASSERT_TRUE(ring_wait(&env->ring, 1));
}

static void some_and_rings(struct __test_metadata *_metadata, struct env *env)
{
	mapped_rings(_metadata, env);
	ring_unmap(&env->ring);
}

static int call_rings(struct env *env)
{
	return hwt_rings(env->fd, 0, ENTRIES, ENTRIES, &rings);
}

/* That may fail, too, but not again and again; what is mapped keeps the context. */
static int unmap(void *p)
{
	int ret = 0, tries;

	for (tries = 0; munmap(p, rings.map_size) && tries < 10; tries++)
		ret = hwt_errno();
	return ret;
}

static int call_mmap(struct env *env)
{
	struct ring ring;
	int ret = ring_map(&ring, env->fd, &rings);

	if (ret)
		return ret;
	if (ring_unread(&ring) != 1 || ring.events[0].id != env->fired)
		ret = -EPROTO;
	return unmap(ring.shared) ?: ret;
}

static __u32 first;

/* What a call before has left in the ring is carried out now. */
static void push_ops(struct env *env)
{
	struct ring *ring = &env->ring;
	struct hwt_op op;
	unsigned int i;

	if (ring_op_head(ring) != ring->shared->op_tail)
		return;
	first = ring->shared->op_tail;
	for (i = 0; i < RING_OPS; i++) {
		op = op_schedule(HOUR, 100 + i);
		op.result = UNTOUCHED;
		ring_push(ring, op);
	}
}

static int call_enter(struct env *env)
{
	long ret;

	push_ops(env);
	ret = ring_enter(&env->ring, RING_OPS, 0, 0);
	return ret < 0 ? ret : ret == RING_OPS ? 0 : -EPROTO;
}

/* All were carried out, and are there, but for those that had a fault. */
static bool done_ops(const struct env *env)
{
	const struct hwt_list_entry *now;
	unsigned int i, n = 0, no_memory = 0;
	const struct hwt_op *op;

	if (ring_op_head(&env->ring) != first + RING_OPS)
		return false;
	for (i = 0; i < RING_OPS; i++) {
		op = &env->ring.ops[(first + i) & env->ring.op_mask];
		if (op->result == -ENOMEM) {
			no_memory++;
			continue;
		}
		now = state_find(&env->after, op->id);
		if (op->result || !now || now->user_data != 100 + i)
			return false;
		n++;
	}
	return no_memory <= env->hit && env->after.n == env->before.n + n && kept(env) &&
	       env->after.stats.scheduled == env->before.stats.scheduled + n &&
	       env->after.stats.cancelled == env->before.stats.cancelled;
}

/* -- All of them ------------------------------------------------------------ */

/* A copy in, a copy out, three times. */
FIXTURE_VARIANT_ADD(scene, ask) { 6, 6, { some, call_ask, unchanged, .any = false } };
/* Two pages of entries: a fault with the second is no error, the call ends early. */
FIXTURE_VARIANT_ADD(scene, list) { 5, 3, { a_full_node, call_list, unchanged, .any = false } };
FIXTURE_VARIANT_ADD(scene, setup) { 10, 6, { empty, call_setup, done_setup, .again = -EBUSY } };
FIXTURE_VARIANT_ADD(scene, setup_tell) {
	11, 6, { empty, call_setup_tell, done_setup, .again = -EBUSY },
};

FIXTURE_VARIANT_ADD(scene, schedule) {
	3, 3, { some, call_schedule, done_schedule, .undone = undone_schedule },
};

FIXTURE_VARIANT_ADD(scene, schedule_periodic) {
	3, 3, { some, call_schedule_periodic, done_schedule, .undone = undone_schedule },
};

FIXTURE_VARIANT_ADD(scene, schedule_first) {
	3, 3, { empty, call_schedule, done_schedule, .undone = undone_schedule },
};

/* A node of the table. */
FIXTURE_VARIANT_ADD(scene, schedule_node) {
	4, 3, { a_full_node, call_schedule, done_schedule, .undone = undone_schedule },
};

FIXTURE_VARIANT_ADD(scene, modify) { 2, 2, { some, call_modify, done_modify, .any = false } };
FIXTURE_VARIANT_ADD(scene, cancel) { 2, 2, { some, call_cancel, done_cancel, .again = -ENOENT } };
FIXTURE_VARIANT_ADD(scene, stop) { 2, 2, { some, call_stop, done_stop, .any = false } };
/* read() tries again: no fault is seen in it. What readv() has besides is the kernel's. */
FIXTURE_VARIANT_ADD(scene, read) { 1, 0, { some, call_read, done_read, .any = false } };

/* The array, each page, the kernel's mapping, two copies. */
FIXTURE_VARIANT_ADD(scene, create) { 8, 8, { some, call_rings, unchanged, .any = false } };
FIXTURE_VARIANT_ADD(scene, mmap) { 2, 2, { some_and_rings, call_mmap, unchanged, .any = true } };
/*
 * The operations' memory is their own matter, and they do not want it as often each time: the
 * copy of the answer, behind them, is not always met.
 */
FIXTURE_VARIANT_ADD(scene, enter) { 5, 1, { mapped_rings, call_enter, done_ops, .any = false } };

#define KTHREADD	2

/* A stack may be one that was kept for the next thread: then fewer fail. */
FIXTURE_VARIANT_ADD(scene, thread_setup) {
	5, 3, { empty, call_setup, done_setup, .again = -EBUSY, .any = true, .pid = KTHREADD },
};

/* HWT_IOC_SETUP is only for a context that nothing has been asked of. */
static void check_first(struct __test_metadata *_metadata, void *arg, int ret, unsigned int hit)
{
	struct env *env = arg;
	bool nothing;

	(void)hit;
	state_take(_metadata, env->fd, &env->after);
	nothing = ret && !env->after.stats.scheduled;
	EXPECT_EQ(nothing ? 0 : -EBUSY, call_setup(env))
		TH_LOG("after %d", ret);
}

FIXTURE_VARIANT_ADD(scene, call_that_fails_is_none) {
	0, 2, { empty, call_schedule, .check = check_first },
};

#define GROUP		CGROUP "/hwt-fault"
#define MOST		1024
#define MOST_PAGES	(2 * MOST * sizeof(struct hwt_event) / 4096 + 1)
/* Charged in advance; each of the calls that fail has more pages than that, on average. */
#define SLOP		65536

static long stat_of(const char *name)
{
	long value = read_word(GROUP "/memory.stat", name);

	/* Not every kernel tells of each. */
	return value < 0 ? 0 : value;
}

/* Bytes of the kernel that are charged to the group and are no more than pages. */
static long plain_pages(void)
{
	return stat_of("kernel") - stat_of("slab") - stat_of("kernel_stack") -
	       stat_of("pagetables") - stat_of("percpu") - stat_of("vmalloc") -
	       stat_of("sec_pagetables");
}

static int call_many(struct env *env)
{
	return hwt_rings(env->fd, 0, MOST, MOST, &rings);
}

static void check_many(struct __test_metadata *_metadata, void *arg, int ret, unsigned int hit)
{
	struct env *env = arg;

	EXPECT_TRUE(!ret || hit);
	/* A call that has failed is none: this one is only for a new context. */
	if (ret == -ENOMEM)
		EXPECT_EQ(0, hwt_private(env->fd, CLOCK_MONOTONIC, 0));
}

/*
 * Nobody looks for pages that are lost. But they are charged to the group of who asked for them,
 * and when nobody is in there any more next to nothing else is.
 */
TEST_F_TIMEOUT(limited, pages_are_given_back, 300)
{
	static const struct scene scene = { empty, call_many, .check = check_many };
	long before;
	pid_t pid;
	int fd;

	ASSERT_TRUE(make_group(GROUP, "max"));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		env.fd = -1;
		ASSERT_TRUE(write_text(GROUP "/cgroup.procs", "0"));
		scene_run(_metadata, &scene, 0, 0, MOST_PAGES);
		scene_close(&env);
		/* That they are seen: rings of some hundred kilobytes. */
		before = plain_pages();
		fd = hwt_open(0);
		EXPECT_EQ(0, hwt_rings(fd, 0, MOST, MOST, &rings));
		EXPECT_LE(before + (long)rings.map_size / 2, plain_pages());
		_exit(_metadata->passed ? 0 : 1);
	}
	EXPECT_EQ(0, child_end(pid));
	EXPECT_TRUE(until(plain_pages() < SLOP));
	TH_LOG("%ld bytes are left", plain_pages());
	rmdir(GROUP);
}

TEST_HARNESS_MAIN
