// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits on the timeouts of a context and of a user. For memory, see cgroup.c.
 *
 * hwt-test: load max_timeouts=500 max_user_timeouts=1000
 * hwt-test: timeout 150
 */
#include "kselftest_harness.h"
#include <pthread.h>
#include <sys/stat.h>

#include "guest.h"
#include "hwt_ring.h"

#define TIMEOUTS	500
#define USER_TIMEOUTS	1000

/* Two users without other contexts */
#define ALICE		4001
#define BOB		4002

FIXTURE(user) {
	int fd[6];
	unsigned int n;
};

FIXTURE_SETUP(user)
{
	self->n = 0;
	ASSERT_EQ(0, chmod(HWT_DEV, 0666));
}

FIXTURE_TEARDOWN(user)
{
	while (self->n)
		close(self->fd[--self->n]);
	chmod(HWT_DEV, 0600);
}

#define OPEN_AS(_uid)						\
({								\
	ASSERT_GT(ARRAY_SIZE(self->fd), self->n);		\
	self->fd[self->n] = open_as(_uid);			\
	ASSERT_LE(0, self->fd[self->n]);			\
	self->fd[self->n++];					\
})

/* Create up to @count timeouts. Return their number, and store the first error. */
static unsigned int fill(int fd, unsigned int count, int *error)
{
	unsigned int n;

	*error = 0;
	for (n = 0; n < count; n++) {
		*error = hwt_add(fd, 0, HOUR, n, NULL);
		if (*error)
			break;
	}
	return n;
}

/* With a thread, a cancelled timeout counts until its memory is free, so room appears later. */
#define ADDED_SOON(_fd)		until(!hwt_add(_fd, 0, HOUR, 0, NULL))

TEST_F(user, timeouts_of_all_contexts)
{
	int a = OPEN_AS(ALICE), b = OPEN_AS(ALICE), c = OPEN_AS(ALICE), other = OPEN_AS(BOB);
	struct hwt_event event;
	int ret, i;
	__u64 id;

	/* The limit of the context */
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(a, TIMEOUTS + 1, &ret));
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(400U, fill(b, 400, &ret));
	ASSERT_EQ(0, hwt_add(c, 0, HOUR, 0, &id));
	/* The limit of the user */
	EXPECT_EQ(99U, fill(c, TIMEOUTS, &ret));
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(-ENOSPC, hwt_add(b, 0, HOUR, 0, NULL));
	EXPECT_EQ(-ENOSPC, hwt_add_periodic(b, HWT_MODE_FIXED_RATE, 0, SEC, 0, NULL));
	EXPECT_EQ(400ULL, hwt_now(b).timeouts);
	EXPECT_EQ(2ULL, hwt_now(b).rejected);
	EXPECT_EQ((__u32)HWT_LIMIT_TIMEOUTS, hwt_now(a).limit);
	EXPECT_EQ((__u32)HWT_LIMIT_USER_TIMEOUTS, hwt_now(b).limit);
	EXPECT_EQ(0U, hwt_now(other).limit);
	/* Other users are not affected. */
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(other, TIMEOUTS, &ret));

	/* A timeout can still be moved. A cancel makes room in any context of the user. */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(c, id, 0, 2 * HOUR));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(c, id));
	ASSERT_TRUE(until(!hwt_add(b, 0, 0, 0, NULL)));
	EXPECT_EQ(-ENOSPC, hwt_add(c, 0, HOUR, 0, NULL));
	/* An expiry makes room when the event has been read. */
	ASSERT_EQ(POLLIN, hwt_wait(b, PATIENCE_MS));
	EXPECT_EQ(-ENOSPC, hwt_add(c, 0, HOUR, 0, NULL));
	ASSERT_EQ(1, hwt_read(b, &event, 1));
	EXPECT_TRUE(ADDED_SOON(c));
	EXPECT_EQ(-ENOSPC, hwt_add(c, 0, HOUR, 0, NULL));

	/* A close makes room. */
	close(b);
	self->fd[1] = open_as(BOB);
	for (i = 0; i < 400; i++)
		ASSERT_TRUE(ADDED_SOON(c));
	EXPECT_EQ(-ENOSPC, hwt_add(c, 0, HOUR, 0, NULL));
}

/* Give a key another mode. */
#define REPEAT_KEY(_fd, _key)							\
	hwt_arm(_fd, NULL, .mode = HWT_MODE_FIXED_RATE, .time_ns = HOUR,	\
		.period_ns = HOUR, .id = _key)

/* The limit on timeouts holds for root as well. A key whose new mode is refused stays. */
TEST_F(user, timeouts_of_root)
{
	struct hwt_info_args info;
	int fd = OPEN_AS(0), keyed = OPEN_AS(0), ret, i;
	struct hwt_event event;
	struct hwt_get_args get;

	ASSERT_EQ(0, hwt_info(OPEN_AS(ALICE), &info));
	EXPECT_EQ((__u64)USER_TIMEOUTS, info.max_user_timeouts);
	ASSERT_EQ(0, hwt_info(fd, &info));
	EXPECT_EQ((__u64)TIMEOUTS, info.max_timeouts);
	EXPECT_EQ((__u64)USER_TIMEOUTS, info.max_user_timeouts);
	ASSERT_EQ(0, hwt_with(keyed, SETUP, setup, .flags = HWT_SETUP_KEYS));
	for (i = 0; i < TIMEOUTS; i++)
		ASSERT_EQ(0, hwt_key(keyed, 0, HOUR, i));
	EXPECT_EQ(0, REPEAT_KEY(keyed, 1));
	EXPECT_EQ(1ULL, hwt_now(keyed).cancelled);
	EXPECT_EQ((__u64)TIMEOUTS, hwt_timeouts(keyed));
	for (i = 0; i < TIMEOUTS; i++)
		ASSERT_TRUE(ADDED_SOON(fd));
	ASSERT_LT(0, hwt_key(keyed, 0, SEC, 2));
	EXPECT_EQ(-ENOSPC, REPEAT_KEY(keyed, 2));
	ASSERT_EQ(0, hwt_get(keyed, 2, &get));
	EXPECT_EQ((__u32)HWT_MODE_ONE_SHOT, get.mode);
	EXPECT_EQ(0U, fill(OPEN_AS(0), TIMEOUTS, &ret));
	EXPECT_EQ(-ENOSPC, ret);
	ASSERT_EQ(1, hwt_next(keyed, &event));
	EXPECT_EQ(2ULL, event.user_data);
}

/* Timeouts count for the user that opened the context, not for its present user. */
TEST_F(user, of_the_opener)
{
	int a = OPEN_AS(ALICE), b = OPEN_AS(ALICE), c = OPEN_AS(ALICE), own = OPEN_AS(BOB);
	int ret;

	ASSERT_EQ(0, setresuid(BOB, BOB, 0));
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(a, TIMEOUTS, &ret));
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(b, TIMEOUTS, &ret));
	EXPECT_EQ(-ENOSPC, hwt_add(c, 0, HOUR, 0, NULL));
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(own, TIMEOUTS, &ret));
	ASSERT_EQ(0, setresuid(0, 0, 0));
}

struct racer {
	pthread_t thread;
	int fd;
	unsigned int rounds;
	unsigned int made;
	unsigned int strange;
	__u64 ids[TIMEOUTS];
};

static bool race_add(struct racer *me)
{
	int ret;

	if (me->made == TIMEOUTS)
		return false;
	ret = hwt_add(me->fd, 0, HOUR, 0, &me->ids[me->made]);
	me->made += !ret;
	me->strange += ret && ret != -ENOSPC;
	return !ret;
}

static void *race(void *arg)
{
	struct racer *me = arg;
	__u64 seed = me->fd;
	unsigned int i;

	for (i = 0; i < me->rounds; i++) {
		if (me->made && next_random(&seed) % 4 == 0)
			me->strange += hwt_del(me->fd, me->ids[--me->made]) != HWT_STATE_PENDING;
		else
			race_add(me);
	}
	return NULL;
}

TEST_F_TIMEOUT(user, exact_in_a_race, 120)
{
	static struct racer racer[4];
	unsigned int i, sum = 0;

	for (i = 0; i < ARRAY_SIZE(racer); i++) {
		racer[i].fd = OPEN_AS(ALICE);
		racer[i].rounds = quick() ? 2000 : 10000;
	}
	for (i = 0; i < ARRAY_SIZE(racer); i++)
		ASSERT_EQ(0, pthread_create(&racer[i].thread, NULL, race, &racer[i]));
	for (i = 0; i < ARRAY_SIZE(racer); i++) {
		pthread_join(racer[i].thread, NULL);
		EXPECT_EQ(0U, racer[i].strange);
		EXPECT_EQ(racer[i].made, hwt_timeouts(racer[i].fd));
		sum += racer[i].made;
	}
	EXPECT_GE((unsigned int)USER_TIMEOUTS, sum);
	/* No count was lost: the user can still reach exactly its limit. */
	for (i = 0; i < ARRAY_SIZE(racer); i++)
		while (racer[i].made < TIMEOUTS && sum < USER_TIMEOUTS) {
			ASSERT_TRUE(until(race_add(&racer[i])));
			sum++;
		}
	EXPECT_EQ((unsigned int)USER_TIMEOUTS, sum);
	EXPECT_EQ(-ENOSPC, hwt_add(racer[0].fd, 0, HOUR, 0, NULL));
}

/* Events at the limit of pending timeouts. For the wheel itself, see test_basics.c. */
TEST_F(user, max_pending)
{
	struct hwt_info_args info;
	struct hwt_get_args get;
	struct hwt_event event;
	__u64 id[2], third;
	int fd = OPEN_AS(0);

	ASSERT_EQ(0, hwt_with(fd, SETUP, setup, .max_pending = 2));
	ASSERT_EQ(0, hwt_info(fd, &info));
	EXPECT_EQ(2ULL, info.max_pending);
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 0, &id[0]));
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 1, &id[1]));
	EXPECT_EQ(-ENOSPC, hwt_add(fd, 0, HOUR, 2, NULL));
	EXPECT_EQ(-ENOSPC, hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, 0, 1, 0, NULL));
	EXPECT_EQ(2ULL, hwt_now(fd).timeouts);
	EXPECT_EQ(2ULL, hwt_now(fd).rejected);
	EXPECT_EQ((__u32)HWT_LIMIT_PENDING, hwt_now(fd).limit);
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(fd, id[0], 0, 2 * HOUR));

	/* An expired timeout is not pending, read or not, so there is room. */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(fd, id[1], 0, 0));
	ASSERT_EQ(POLLIN, hwt_wait(fd, PATIENCE_MS));
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 3, &third));
	EXPECT_EQ(-ENOSPC, hwt_add(fd, 0, HOUR, 4, NULL));
	/* Becoming pending again needs room; if refused, the timeout keeps its event. */
	EXPECT_EQ(-ENOSPC, hwt_move(fd, id[1], 0, HOUR));
	ASSERT_EQ(0, hwt_get(fd, id[1], &get));
	EXPECT_EQ((__u32)HWT_STATE_EVENT, get.state);
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(fd, third));
	EXPECT_EQ(HWT_STATE_EVENT, hwt_move(fd, id[1], 0, 0));
	ASSERT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(id[1], event.id);

	/* A key gets another mode if it is pending, else it keeps its event. */
	fd = OPEN_AS(0);
	ASSERT_EQ(0, hwt_with(fd, SETUP, setup, .flags = HWT_SETUP_KEYS, .max_pending = 1));
	ASSERT_EQ(0, hwt_key(fd, 0, 0, 1));
	ASSERT_EQ(POLLIN, hwt_wait(fd, PATIENCE_MS));
	ASSERT_EQ(0, hwt_key(fd, 0, HOUR, 2));
	EXPECT_EQ(0, REPEAT_KEY(fd, 2));
	EXPECT_EQ(-ENOSPC, REPEAT_KEY(fd, 1));
	EXPECT_EQ(HWT_STATE_EVENT, hwt_del(fd, 1));
}

/*
 * Let @maker create a user namespace with a map of ids, and call @run in it. Return the result,
 * or -EOPNOTSUPP without user namespaces.
 */
static int in_namespace(uid_t maker, const char *map, int (*run)(void))
{
	char path[64], byte = 0;
	int sock[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		return -errno;
	pid = fork();
	if (!pid) {
		close(sock[0]);
		if (setresuid(maker, maker, maker) || unshare(CLONE_NEWUSER))
			_exit(EOPNOTSUPP);
		if (write(sock[1], &byte, 1) != 1 || read(sock[1], &byte, 1) != 1)
			_exit(EPROTO);
		_exit(-run());
	}
	close(sock[1]);
	if (read(sock[0], &byte, 1) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
		if (!write_text(path, map) || write(sock[0], &byte, 1) != 1)
			kill(pid, SIGKILL);
	}
	status = child_end(pid);
	close(sock[0]);
	return status < 0 ? -EPROTO : -status;
}

/* Create a timeout as user 1 of the namespace. */
static int want_a_timeout(void)
{
	int fd;

	if (setresuid(1, 1, 1))
		return -EPROTO;
	fd = hwt_open(0);
	return fd < 0 ? fd : hwt_add(fd, 0, HOUR, 0, NULL);
}

/* As root of the namespace, use up the limit as each id: together they have that of one user. */
static int take_all(void)
{
	unsigned int timeouts = 0, n;
	int ret = 0;
	uid_t id;

	if (setresuid(0, 0, 0))
		return -EPROTO;
	for (id = 0; id < 8; id++) {
		n = fill(open_as(id), TIMEOUTS, &ret);
		timeouts += n;
	}
	return ret == -ENOSPC && timeouts == USER_TIMEOUTS ? 0 : -EPROTO;
}

/* Subordinate ids of a user do not multiply the user's limits. */
TEST_F(user, subordinate_ids)
{
	int i, ret;

	for (i = 0; i < USER_TIMEOUTS / TIMEOUTS; i++)
		ASSERT_EQ((unsigned int)TIMEOUTS, fill(OPEN_AS(ALICE), TIMEOUTS, &ret));
	ret = in_namespace(ALICE, "1 100001 1\n", want_a_timeout);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "no user namespaces");
	EXPECT_EQ(-ENOSPC, ret);
	/* Those of another user have that user's limits. */
	EXPECT_EQ(0, in_namespace(BOB, "1 100001 1\n", want_a_timeout));
	/* A namespace created by root counts as a user of its own, whatever its ids. */
	EXPECT_EQ(0, in_namespace(0, "1 100001 1\n", want_a_timeout));
	EXPECT_EQ(0, in_namespace(0, "1 4001 1\n", want_a_timeout));
	EXPECT_EQ(0, in_namespace(0, "0 100000 8\n", take_all));
}

TEST_HARNESS_MAIN
