// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rings of /dev/hwt with each allocation and user copy made to fail once: HWT_IOC_RINGS,
 * mmap(), and HWT_IOC_ENTER. What must hold is said in fault_ioctl.c; of operations in a ring: one
 * for which there was no memory says so, alone. A thread that carries out operations by itself
 * gets no memory in cgroup.c.
 *
 * hwt-test: long
 * hwt-test: only debug debug612
 * hwt-test: timeout 600
 * hwt-test: load max_shared=64 max_user_timeouts=300 max_user_wheels=3
 */
#include "kselftest_harness.h"

#include "fault_each.h"

#define ENTRIES		64
#define OPS		20

static struct hwt_rings_args rings;

/* -- Before --------------------------------------------------------------- */

/* The event of the one that has fired goes to the ring. */
static void some_and_rings(struct __test_metadata *_metadata, struct env *env)
{
	some(_metadata, env);
	ASSERT_EQ(0, hwt_rings(env->fd, 0, ENTRIES, ENTRIES, &rings));
}

static void mapped_rings(struct __test_metadata *_metadata, struct env *env)
{
	some_and_rings(_metadata, env);
	ASSERT_EQ(0, ring_map(&env->ring, env->fd, &rings));
	ASSERT_EQ(1, ring_unread(&env->ring));
}

/* -- HWT_IOC_RINGS ---------------------------------------------------------- */

static int call_rings(struct env *env)
{
	return hwt_rings(env->fd, 0, ENTRIES, ENTRIES, &rings);
}

/* The event has moved, and its id has ended. */
static bool done_rings(const struct env *env)
{
	struct hwt_event event;

	return hwt_read(env->fd, &event, 1) == -EBUSY && kept_but(env, env->fired) &&
	       changed(env, (struct change) { .timeouts = -1, .events = -1, .read = 1 });
}

/* -- Mappings ---------------------------------------------------------------- */

/* That may fail, too, but not again and again; what is mapped keeps the context. */
static int unmap(void *p)
{
	int ret = 0, tries;

	for (tries = 0; munmap(p, rings.map_size) && tries < 10; tries++)
		ret = hwt_errno();
	return ret;
}

/* The same memory each time, with the event in it. */
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

/* -- HWT_IOC_ENTER ------------------------------------------------------------ */

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
	for (i = 0; i < OPS; i++) {
		op = op_schedule(HOUR, 100 + i);
		op.result = UNTOUCHED;
		ring_push(ring, op);
	}
}

static int call_enter(struct env *env)
{
	long ret;

	push_ops(env);
	ret = ring_enter(&env->ring, OPS, 0, 0);
	return ret < 0 ? ret : ret == OPS ? 0 : -EPROTO;
}

/* All were carried out, and are there, but for those that had a fault. */
static bool done_ops(const struct env *env)
{
	const struct hwt_list_entry *now;
	unsigned int i, n = 0, no_memory = 0;
	const struct hwt_op *op;

	if (ring_op_head(&env->ring) != first + OPS)
		return false;
	for (i = 0; i < OPS; i++) {
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

/* A modify, a cancel and a get allocate nothing; then wait for what has been moved. */
static int call_enter_wait(struct env *env)
{
	struct ring *ring = &env->ring;
	long ret;

	if (ring_op_head(ring) == ring->shared->op_tail) {
		first = ring->shared->op_tail;
		ring_push(ring, op_modify(env->pending, 0));
		ring_push(ring, op_get(env->periodic));
	}
	/* One was there before. */
	ret = ring_enter(ring, 2, 2, PATIENCE_MS * MSEC);
	return ret < 0 ? ret : ret == 2 ? 0 : -EPROTO;
}

static bool done_enter_wait(const struct env *env)
{
	const struct ring *ring = &env->ring;

	return ring_op_head(ring) == first + 2 &&
	       ring->ops[first & ring->op_mask].result == HWT_STATE_PENDING &&
	       ring->ops[(first + 1) & ring->op_mask].result == HWT_STATE_PENDING &&
	       ring_unread(ring) == 2 && ring->events[1].id == env->pending &&
	       !state_find(&env->after, env->pending) &&
	       env->after.stats.read == env->before.stats.read + 1;
}

/* -- All of them --------------------------------------------------------------- */

/* The array, each page, the kernel's mapping, two copies. */
FIXTURE_VARIANT_ADD(scene, create) { 8, 8, { some, call_rings, done_rings, .again = -EBUSY } };
FIXTURE_VARIANT_ADD(scene, mmap) { 2, 2, { some_and_rings, call_mmap, unchanged, .any = true } };
/*
 * The operations' memory is their own matter, and they do not want it as often each time: the
 * copy of the answer, behind them, is not always met.
 */
FIXTURE_VARIANT_ADD(scene, enter) { 5, 1, { mapped_rings, call_enter, done_ops, .any = false } };
FIXTURE_VARIANT_ADD(scene, enter_wait) {
	2, 2, { mapped_rings, call_enter_wait, done_enter_wait, .any = false },
};

/* -- Pages ---------------------------------------------------------------------------- */

#define GROUP		CGROUP "/hwt-fault"
#define MANY		1024
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
	return hwt_rings(env->fd, 0, MANY, MANY, &rings);
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
	static const struct scene scene = { .populate = empty, .call = call_many };
	const struct fault_call call = {
		.prepare = scene_prepare,
		.call = scene_call,
		.check = check_many,
	};
	struct fault_count count;
	long before;
	pid_t pid;
	int fd;

	ASSERT_TRUE(make_group(GROUP, "max"));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		env.fd = -1;
		env.scene = &scene;
		ASSERT_TRUE(write_text(GROUP "/cgroup.procs", "0"));
		count = each_fault(_metadata, &call, &env);
		scene_close(&env);
		/* That they are seen: rings of some hundred kilobytes. */
		before = plain_pages();
		fd = hwt_open(0);
		EXPECT_EQ(0, hwt_rings(fd, 0, MANY, MANY, &rings));
		EXPECT_LE(before + (long)rings.map_size / 2, plain_pages());
		EXPECT_LT(2U * MANY * sizeof(struct hwt_event) / 4096, count.failed);
		_exit(_metadata->passed ? 0 : 1);
	}
	EXPECT_EQ(0, child_end(pid));
	EXPECT_TRUE(until(plain_pages() < SLOP));
	TH_LOG("%ld bytes are left", plain_pages());
	rmdir(GROUP);
}

TEST_HARNESS_MAIN
