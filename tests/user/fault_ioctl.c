// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every ioctl of /dev/hwt, read() and mmap(), with each allocation and user copy made to fail once;
 * open() is in fault_load.c. All points of poll(), of io_uring's reads and of passing a descriptor
 * belong to other parts of the kernel.
 *
 * A call that fails returns ENOMEM or EFAULT, changes nothing except as hwt_uapi.h says of EFAULT,
 * and succeeds when repeated. At the end the user can create as much as before.
 *
 * hwt-test: long
 * hwt-test: only debug debug612
 * hwt-test: timeout 900
 * hwt-test: load max_user_timeouts=300
 */
#include "kselftest_harness.h"

#include "fault_scene.h"

#define MANY		64	/* entries of a node of the table */
#define ENTRIES		64	/* of rings */
#define RING_OPS	20

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

/* Minimum number of faults, and of calls that they make fail */
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

/* Fill a node of the table: the next timeout needs a new one. */
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

/* If a fault cuts a call short, the next call continues the list. */
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
	return call_setup_with(env, HWT_SETUP_BOOTTIME, 0);
}

static int call_setup_thread(struct env *env)
{
	return call_setup_with(env, HWT_SETUP_BOOTTIME | HWT_SETUP_THREAD, HWT_PRIO_FIFO_LOW);
}

static int call_setup_tell(struct env *env)
{
	return call_setup_with(env, HWT_SETUP_REALTIME | HWT_SETUP_TELL_CLOCK_SET, 0);
}

static bool done_setup(const struct env *env)
{
	const struct hwt_info_args *info = &env->after.info;

	return (info->clock == CLOCK_REALTIME) == !!(setup.flags & HWT_SETUP_REALTIME) &&
	       info->thread == !!(setup.flags & HWT_SETUP_THREAD) &&
	       (__u32)env->after.thread == info->thread && info->tick_ns == 2 * MSEC &&
	       info->ticks_per_wheel == 4096 && info->levels == 6 &&
	       changed(env, (struct change) { .wheel = true });
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

/* The id could not be stored, so the module has cancelled the new timeout. */
static bool undone_schedule(const struct env *env)
{
	return changed(env, (struct change) { .scheduled = 1, .cancelled = 1 });
}

static int call_modify(struct env *env)
{
	return hwt_with(env->fd, MODIFY, modify, .flags = HWT_ARM_USER_DATA, .id = env->pending,
			.time_ns = 2 * HOUR, .user_data = 77);
}

/* The timeout has all of its new values, and the others are unchanged. */
static bool done_modify(const struct env *env)
{
	const struct hwt_list_entry *now = state_find(&env->after, env->pending);

	return now && now->user_data == 77 && now->state == HWT_STATE_PENDING &&
	       now->deadline_ns > now_ns() + HOUR && kept_but(env, env->pending) &&
	       changed(env, (struct change) { .modified = 1, .list = true });
}

static int call_cancel(struct env *env)
{
	return hwt_with(env->fd, CANCEL, cancel, .id = env->pending);
}

static bool done_cancel(const struct env *env)
{
	return !state_find(&env->after, env->pending) && kept_but(env, env->pending) &&
	       changed(env, (struct change) { .timeouts = -1, .cancelled = 1 });
}

static int call_cancel_all(struct env *env)
{
	int ret = hwt_del_all(env->fd);

	return ret < 0 ? ret : 0;
}

static bool done_cancel_all(const struct env *env)
{
	const int n = env->before.n;

	return changed(env, (struct change) { .timeouts = -n, .events = -env->before.events,
					      .cancelled = n });
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

/* Map rings, and move the event to them. */
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

/* munmap() may hit a fault as well, but not repeatedly. A mapping that stays keeps the context. */
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

/* Queue operations, unless a failed call has left its operations in the ring. */
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

/* All operations were carried out and have timeouts, except those with a fault. */
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

/* -- The scenes ------------------------------------------------------------- */

/* Three ioctls, each with a copy in and a copy out */
FIXTURE_VARIANT_ADD(scene, ask) { 6, 6, { some, call_ask, unchanged, .any = false } };
/* Two pages of entries: after a fault at the second, the call ends early without an error. */
FIXTURE_VARIANT_ADD(scene, list) { 5, 3, { a_full_node, call_list, unchanged, .any = false } };
FIXTURE_VARIANT_ADD(scene, setup) { 3, 2, { empty, call_setup, done_setup, .again = -EBUSY } };
FIXTURE_VARIANT_ADD(scene, setup_tell) {
	4, 2, { empty, call_setup_tell, done_setup, .again = -EBUSY },
};

/* In all scenes, a new page of a slab has points, too: then one of the others is passed over. */
FIXTURE_VARIANT_ADD(scene, schedule) {
	3, 2, { some, call_schedule, done_schedule, .undone = undone_schedule },
};

FIXTURE_VARIANT_ADD(scene, schedule_periodic) {
	3, 2, { some, call_schedule_periodic, done_schedule, .undone = undone_schedule },
};

FIXTURE_VARIANT_ADD(scene, schedule_first) {
	3, 2, { empty, call_schedule, done_schedule, .undone = undone_schedule },
};

/* Also allocates a node of the table */
FIXTURE_VARIANT_ADD(scene, schedule_node) {
	4, 2, { a_full_node, call_schedule, done_schedule, .undone = undone_schedule },
};

FIXTURE_VARIANT_ADD(scene, modify) { 2, 2, { some, call_modify, done_modify, .any = false } };
FIXTURE_VARIANT_ADD(scene, cancel) { 2, 2, { some, call_cancel, done_cancel, .again = -ENOENT } };
FIXTURE_VARIANT_ADD(scene, cancel_all) {
	2, 2, { some, call_cancel_all, done_cancel_all, .any = false },
};

/* read() retries, so the caller sees no fault. Further points of readv() are the kernel's. */
FIXTURE_VARIANT_ADD(scene, read) { 1, 0, { some, call_read, done_read, .any = false } };

/* Points: the array, each page, the kernel's mapping, two copies */
FIXTURE_VARIANT_ADD(scene, create) { 8, 8, { some, call_rings, unchanged, .any = false } };
FIXTURE_VARIANT_ADD(scene, mmap) { 2, 2, { some_and_rings, call_mmap, unchanged, .any = true } };
/*
 * A failed allocation fails its operation, not the call. The number of allocations varies, so the
 * copy of the answer, which is the last point, is not always reached.
 */
FIXTURE_VARIANT_ADD(scene, enter) { 5, 1, { mapped_rings, call_enter, done_ops, .any = false } };

#define KTHREADD	2

/* The stack may be that of an ended thread, without an allocation. */
FIXTURE_VARIANT_ADD(scene, thread_setup) {
	5, 2, { empty, call_setup_thread, done_setup, .again = -EBUSY, .any = true,
		.pid = KTHREADD },
};

/* HWT_IOC_SETUP requires a new context: a call that has failed must not count as a use. */
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
/* Bytes charged in advance. On average, the pages of a failed call are more than that. */
#define SLOP		65536

static long stat_of(const char *name)
{
	long value = read_word(GROUP "/memory.stat", name);

	/* Some kernels lack some of the counters. */
	return value < 0 ? 0 : value;
}

/* Return the kernel memory that is charged to the group as plain pages, in bytes. */
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
	/* The context still counts as new, which HWT_IOC_SETUP requires. */
	if (ret == -ENOMEM)
		EXPECT_EQ(0, hwt_setup(env->fd, CLOCK_MONOTONIC, 0));
}

/*
 * No debugging option finds leaked pages. They stay charged to the memory cgroup of the caller,
 * though, and almost nothing else is charged to a cgroup without processes.
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
		/* Check that the counters show rings, of some hundred kilobytes. */
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
