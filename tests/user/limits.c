// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits: timeouts of a context, pending ones of a private wheel, all of a user, and those of
 * a context on the wheel that all share. For memory see cgroup.c.
 *
 * hwt-test: load max_timeouts=500 max_user_timeouts=1000 max_user_wheels=3 max_shared=100
 * hwt-test: timeout 150
 */
#include "kselftest_harness.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "caps.h"
#include "fdinfo.h"
#include "hwt_ring.h"
#include "process.h"

#define TIMEOUTS	500
#define USER_TIMEOUTS	1000
#define USER_WHEELS	3
#define SHARED		100
#define SHOWN		1000	/* HWT_SHOWN_MAX */
#define CONTEXTS	"/sys/kernel/debug/hwt/contexts"

/* Two users who have nothing else. */
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

/* How many of so many could be made; the first error is stored. */
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

/* -- Timeouts of a user --------------------------------------------------- */

TEST_F(user, info)
{
	struct hwt_info_args info;

	ASSERT_EQ(0, hwt_info(OPEN_AS(ALICE), &info));
	EXPECT_EQ((__u64)SHARED, info.max_shared);
	EXPECT_EQ((__u64)USER_TIMEOUTS, info.max_user_timeouts);
	EXPECT_EQ((__u32)USER_WHEELS, info.max_user_wheels);
	/* Who may have any number of wheels is told so. */
	ASSERT_EQ(0, hwt_info(OPEN_AS(0), &info));
	EXPECT_EQ((__u64)USER_TIMEOUTS, info.max_user_timeouts);
	EXPECT_EQ(0U, info.max_user_wheels);
}

TEST_F(user, timeouts_of_all_contexts)
{
	int a = OPEN_AS(ALICE), b = OPEN_AS(ALICE), c = OPEN_AS(ALICE), other = OPEN_AS(BOB);
	struct hwt_event event;
	__u64 id;
	int ret;

	/* The limit of the context first; */
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(a, TIMEOUTS + 1, &ret));
	EXPECT_EQ(-EAGAIN, ret);
	EXPECT_EQ(400U, fill(b, 400, &ret));
	ASSERT_EQ(0, hwt_add(c, 0, HOUR, 0, &id));
	/* then that of the user. */
	EXPECT_EQ(99U, fill(c, TIMEOUTS, &ret));
	EXPECT_EQ(-EAGAIN, ret);
	EXPECT_EQ(-EAGAIN, hwt_add(b, 0, HOUR, 0, NULL));
	EXPECT_EQ(-EAGAIN, hwt_add_periodic(b, HWT_MODE_FIXED_RATE, 0, SEC, 0, NULL));
	EXPECT_EQ(400ULL, hwt_now(b).timeouts);
	EXPECT_EQ(2ULL, hwt_now(b).rejected);
	/* Nobody else is concerned. */
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(other, TIMEOUTS, &ret));

	/* What is there can be moved. A cancel makes room for one, in any context. */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(c, id, 0, 2 * HOUR));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(c, id));
	ASSERT_EQ(0, hwt_add(b, 0, 0, 0, NULL));
	EXPECT_EQ(-EAGAIN, hwt_add(c, 0, HOUR, 0, NULL));
	/* An event does when it has been read. */
	ASSERT_EQ(POLLIN, hwt_wait(b, PATIENCE_MS));
	EXPECT_EQ(-EAGAIN, hwt_add(c, 0, HOUR, 0, NULL));
	ASSERT_EQ(1, hwt_read(b, &event, 1));
	EXPECT_EQ(0, hwt_add(c, 0, HOUR, 0, NULL));
	EXPECT_EQ(-EAGAIN, hwt_add(c, 0, HOUR, 0, NULL));

	/* A stop makes no room, as long as its events are there; a close does. */
	EXPECT_EQ(400, hwt_stop(b));
	EXPECT_EQ(-EAGAIN, hwt_add(c, 0, HOUR, 0, NULL));
	close(b);
	self->fd[1] = open_as(BOB);
	EXPECT_EQ(400U, fill(c, 400, &ret));
	EXPECT_EQ(-EAGAIN, hwt_add(c, 0, HOUR, 0, NULL));
}

/* Root is a user like any other. */
TEST_F(user, timeouts_of_root)
{
	struct hwt_info_args info;
	int fd = OPEN_AS(0), ret;

	ASSERT_EQ(0, hwt_info(fd, &info));
	EXPECT_EQ((__u64)TIMEOUTS, info.max_timeouts);
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(fd, TIMEOUTS, &ret));
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(OPEN_AS(0), TIMEOUTS, &ret));
	EXPECT_EQ(0U, fill(OPEN_AS(0), TIMEOUTS, &ret));
	EXPECT_EQ(-EAGAIN, ret);
}

/* Who has opened it, and not who uses it. */
TEST_F(user, of_the_opener)
{
	int a = OPEN_AS(ALICE), b = OPEN_AS(ALICE), c = OPEN_AS(ALICE), own = OPEN_AS(BOB);
	int ret;

	ASSERT_EQ(0, setresuid(BOB, BOB, 0));
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(a, TIMEOUTS, &ret));
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(b, TIMEOUTS, &ret));
	EXPECT_EQ(-EAGAIN, hwt_add(c, 0, HOUR, 0, NULL));
	EXPECT_EQ((unsigned int)TIMEOUTS, fill(own, TIMEOUTS, &ret));
	ASSERT_EQ(0, setresuid(0, 0, 0));
}

/* Exact, also while all of a user's contexts are at it. */
struct racer {
	pthread_t thread;
	int fd;
	unsigned int rounds;
	unsigned int made;
	unsigned int strange;
	__u64 ids[TIMEOUTS];
};

static volatile bool over;

static bool race_add(struct racer *me)
{
	int ret;

	if (me->made == TIMEOUTS)
		return false;
	ret = hwt_add(me->fd, 0, HOUR, 0, &me->ids[me->made]);
	me->made += !ret;
	me->strange += ret && ret != -EAGAIN;
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
	/* There are as many as there may be: what one has given back is there for another. */
	for (i = 0; i < ARRAY_SIZE(racer); i++)
		while (race_add(&racer[i]))
			sum++;
	EXPECT_EQ((unsigned int)USER_TIMEOUTS, sum);
}

/* -- Pending timeouts of a private wheel --------------------------------- */

/* What a wheel does at its limit is in test_basics.c: here what becomes of events. */
TEST_F(user, max_pending)
{
	struct hwt_setup_args setup = {
		.size = sizeof(setup),
		.clock = CLOCK_MONOTONIC,
		.max_pending = 2,
	};
	struct hwt_info_args info;
	struct hwt_get_args get;
	struct hwt_event event;
	__u64 id[2], third;
	int fd = OPEN_AS(0);

	ASSERT_EQ(0, hwt_call(fd, HWT_IOC_SETUP, &setup));
	ASSERT_EQ(0, hwt_info(fd, &info));
	EXPECT_EQ(2ULL, info.max_pending);
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 0, &id[0]));
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 1, &id[1]));
	EXPECT_EQ(-EAGAIN, hwt_add(fd, 0, HOUR, 2, NULL));
	EXPECT_EQ(-EAGAIN, hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, 0, 1, 0, NULL));
	EXPECT_EQ(2ULL, hwt_now(fd).timeouts);
	EXPECT_EQ(2ULL, hwt_now(fd).rejected);
	/* The pending ones can be moved. */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(fd, id[0], 0, 2 * HOUR));

	/* After an expiry, read or not, there is a place: it is not pending any more. */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(fd, id[1], 0, 0));
	ASSERT_EQ(POLLIN, hwt_wait(fd, PATIENCE_MS));
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 3, &third));
	EXPECT_EQ(-EAGAIN, hwt_add(fd, 0, HOUR, 4, NULL));
	/* To be pending again it needs one; refused, it keeps its event. */
	EXPECT_EQ(-EAGAIN, hwt_move(fd, id[1], 0, HOUR));
	ASSERT_EQ(0, hwt_get(fd, id[1], &get));
	EXPECT_EQ((__u32)HWT_STATE_EVENT, get.state);
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(fd, third));
	EXPECT_EQ(HWT_STATE_EVENT, hwt_move(fd, id[1], 0, 0));
	ASSERT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(id[1], event.id);
}

/* -- Private wheels of a user --------------------------------------------- */

TEST_F(user, wheels)
{
	struct hwt_setup_args bad = {
		.size = sizeof(bad),
		.clock = CLOCK_MONOTONIC,
		.levels = 77,
	};
	int i, fd;

	/*
	 * What fails takes none; the log is told of what is wrong. One context stays open: with the
	 * last one a user is forgotten.
	 */
	fd = OPEN_AS(ALICE);
	for (i = 0; i < 2 * USER_WHEELS; i++)
		EXPECT_EQ(-EINVAL, hwt_call(fd, HWT_IOC_SETUP, &bad));
	ASSERT_EQ(0, hwt_setup(fd, CLOCK_MONOTONIC));
	for (i = 1; i < USER_WHEELS; i++)
		ASSERT_EQ(0, hwt_setup(OPEN_AS(ALICE), CLOCK_MONOTONIC));
	EXPECT_EQ(-EBUSY, hwt_setup(self->fd[0], CLOCK_MONOTONIC));
	fd = OPEN_AS(ALICE);
	EXPECT_EQ(-EAGAIN, hwt_setup(fd, CLOCK_MONOTONIC));
	EXPECT_EQ(0, fd_number(fd, "hwt-private"));
	EXPECT_EQ(0, hwt_setup(OPEN_AS(BOB), CLOCK_MONOTONIC));
	/* One goes, and there is room for one. */
	close(self->fd[0]);
	self->fd[0] = OPEN_AS(ALICE);
	self->n--;
	EXPECT_EQ(0, hwt_setup(fd, CLOCK_MONOTONIC));
	EXPECT_EQ(1, fd_number(fd, "hwt-private"));
	EXPECT_EQ(-EAGAIN, hwt_setup(self->fd[0], CLOCK_MONOTONIC));
	/* Refused, it is as it was: on the wheel that all share. */
	EXPECT_EQ(0, hwt_add(self->fd[0], 0, HOUR, 0, NULL));
	EXPECT_EQ(1, fd_number(self->fd[0], "hwt-shared"));
}

/*
 * @maker makes a user namespace, in which @uid (of this one) wants a wheel of its own.
 * Return: what came of it, or -EOPNOTSUPP: there are no user namespaces.
 */
static int setup_in_namespace(uid_t maker, uid_t uid)
{
	int sock[2], fd, status;
	char text[64], byte = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		return -errno;
	pid = fork();
	if (!pid) {
		close(sock[0]);
		if (setresuid(maker, maker, maker) || unshare(CLONE_NEWUSER))
			_exit(EOPNOTSUPP);
		if (write(sock[1], &byte, 1) != 1 || read(sock[1], &byte, 1) != 1 ||
		    setresuid(1, 1, 1))
			_exit(EPROTO);
		fd = hwt_open(0);
		_exit(fd < 0 ? -fd : -hwt_setup(fd, CLOCK_MONOTONIC));
	}
	close(sock[1]);
	if (read(sock[0], &byte, 1) == 1) {
		snprintf(text, sizeof(text), "/proc/%d/uid_map", pid);
		fd = open(text, O_WRONLY);
		snprintf(text, sizeof(text), "1 %u 1\n", uid);
		if (write(fd, text, strlen(text)) < 0 || write(sock[0], &byte, 1) != 1)
			kill(pid, SIGKILL);
		close(fd);
	}
	status = child_status(pid);
	close(sock[0]);
	return status < 0 ? -EPROTO : -status;
}

/* How many contexts have a directory in debugfs. */
static unsigned int directories(void)
{
	DIR *dir = opendir(CONTEXTS);
	struct dirent *entry;
	unsigned int n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

/* Nobody is charged for them: a user has so many. Further contexts do without. */
TEST_F(user, directories_in_debugfs)
{
	struct rlimit limit = { SHOWN + 100, SHOWN + 100 };
	static int fd[SHOWN + 10];
	unsigned int i;
	__u64 id;

	ASSERT_EQ(0, access(CONTEXTS, X_OK));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ASSERT_EQ(0, directories());
	for (i = 0; i < SHOWN + 10; i++) {
		fd[i] = open_as(ALICE);
		ASSERT_LE(0, fd[i]);
	}
	EXPECT_EQ(SHOWN, directories());
	EXPECT_EQ(0, hwt_add(fd[SHOWN + 9], 0, HOUR, 1, &id));
	self->fd[self->n++] = open_as(BOB);
	EXPECT_EQ(SHOWN + 1, directories());
	/* One that goes without having had one makes no room; one that had does. */
	close(fd[--i]);
	EXPECT_EQ(SHOWN + 1, directories());
	close(fd[0]);
	EXPECT_EQ(SHOWN, directories());
	fd[0] = open_as(ALICE);
	EXPECT_EQ(SHOWN + 1, directories());
	while (i)
		close(fd[--i]);
	EXPECT_EQ(1, directories());
}

/* As many as may be mapped: they do not multiply what their user may have. */
TEST_F(user, subordinate_ids)
{
	int i, ret;

	for (i = 0; i < USER_WHEELS; i++)
		ASSERT_EQ(0, hwt_setup(OPEN_AS(ALICE), CLOCK_MONOTONIC));
	ret = setup_in_namespace(ALICE, 100001);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "no user namespaces");
	EXPECT_EQ(-EAGAIN, ret);
	/* Another's have what that one has left. */
	EXPECT_EQ(0, setup_in_namespace(BOB, 100001));
	/* A container that root has made: each id is a user. */
	EXPECT_EQ(0, setup_in_namespace(0, 100001));
	EXPECT_EQ(-EAGAIN, setup_in_namespace(0, ALICE));
}

/* The capability counts when the context is opened. */
TEST_F(user, wheels_without_limit)
{
	int fd[USER_WHEELS + 3], late, i;

	for (i = 0; i < (int)ARRAY_SIZE(fd); i++) {
		fd[i] = hwt_open(0);
		ASSERT_LE(0, fd[i]);
		EXPECT_EQ(0, hwt_setup(fd[i], CLOCK_MONOTONIC));
	}
	/* Those of before are not counted. */
	ASSERT_EQ(0, set_capability(CAP_SYS_RESOURCE, false));
	for (i = 0; i < USER_WHEELS; i++)
		EXPECT_EQ(0, hwt_setup(OPEN_AS(0), CLOCK_MONOTONIC));
	late = hwt_open(0);
	ASSERT_EQ(0, set_capability(CAP_SYS_RESOURCE, true));
	ASSERT_LE(0, late);
	EXPECT_EQ(-EAGAIN, hwt_setup(late, CLOCK_MONOTONIC));
	close(late);
	for (i = 0; i < (int)ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

/* -- What the wheel that all share takes from one context ----------------- */

TEST_F(user, so_many_on_the_shared_wheel)
{
	int fd = OPEN_AS(ALICE), ret, i;
	struct hwt_info_args before, after;
	__u64 ids[SHARED + 50];

	ASSERT_EQ(0, hwt_info(fd, &before));
	for (i = 0; i < SHARED; i++)
		ASSERT_EQ(0, hwt_add(fd, 0, HOUR, i, &ids[i]));
	EXPECT_EQ(SHARED, fd_number(fd, "hwt-shared"));
	EXPECT_EQ(0, fd_number(fd, "hwt-private"));
	/* A cancel makes room there, for now; */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(fd, ids[0]));
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 0, &ids[0]));
	EXPECT_EQ(0, fd_number(fd, "hwt-private"));
	for (; i < SHARED + 50; i++)
		ASSERT_EQ(0, hwt_add(fd, 0, HOUR, i, &ids[i]));
	EXPECT_EQ(SHARED, fd_number(fd, "hwt-shared"));
	EXPECT_EQ(1, fd_number(fd, "hwt-private"));
	EXPECT_EQ(SHARED + 50, fd_number(fd, "hwt-timeouts"));

	/* The program notices nothing. */
	ASSERT_EQ(0, hwt_info(fd, &after));
	before.now_ns = 0;
	after.now_ns = 0;
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	EXPECT_EQ(-EBUSY, hwt_setup(fd, CLOCK_MONOTONIC));
	for (i = 0; i < SHARED + 50; i++) {
		struct hwt_get_args get;

		ASSERT_EQ(0, hwt_get(fd, ids[i], &get));
		EXPECT_EQ((__u64)i, get.user_data);
		EXPECT_GE(HOUR, get.remaining_ns);
		EXPECT_LT(HOUR - 1000 * SEC, get.remaining_ns);
	}

	/* after that, none goes there any more. */
	for (i = 0; i < SHARED; i++)
		EXPECT_EQ(HWT_STATE_PENDING, hwt_del(fd, ids[i]));
	EXPECT_EQ(0, fd_number(fd, "hwt-shared"));
	EXPECT_EQ(50, fd_number(fd, "hwt-timeouts"));
	EXPECT_EQ((unsigned int)SHARED, fill(fd, SHARED, &ret));
	EXPECT_EQ(0, fd_number(fd, "hwt-shared"));

	/* It is one of the user's wheels. */
	for (i = 0; i < USER_WHEELS - 1; i++)
		EXPECT_EQ(0, hwt_setup(OPEN_AS(ALICE), CLOCK_MONOTONIC));
	EXPECT_EQ(-EAGAIN, hwt_setup(OPEN_AS(ALICE), CLOCK_MONOTONIC));
}

TEST_F(user, no_wheel_for_more)
{
	int fd, ret, i;
	__u64 id;

	for (i = 0; i < USER_WHEELS; i++)
		ASSERT_EQ(0, hwt_setup(OPEN_AS(ALICE), CLOCK_MONOTONIC));
	fd = OPEN_AS(ALICE);
	ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 0, &id));
	EXPECT_EQ(SHARED - 1U, fill(fd, TIMEOUTS, &ret));
	EXPECT_EQ(-EAGAIN, ret);
	EXPECT_EQ(-EAGAIN, hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, 0, SEC, 0, NULL));
	EXPECT_EQ((__u64)SHARED, hwt_now(fd).timeouts);
	EXPECT_EQ((__u64)SHARED, hwt_now(fd).scheduled);
	EXPECT_EQ(2ULL, hwt_now(fd).rejected);
	/* Those that it has work, and their places. */
	EXPECT_EQ(HWT_STATE_PENDING, hwt_move(fd, id, 0, 2 * HOUR));
	EXPECT_EQ(HWT_STATE_PENDING, hwt_del(fd, id));
	EXPECT_EQ(0, hwt_add(fd, 0, HOUR, 0, NULL));
	EXPECT_EQ(-EAGAIN, hwt_add(fd, 0, HOUR, 0, NULL));
	/* Once there is a wheel to be had, it gets one. */
	close(self->fd[0]);
	self->fd[0] = OPEN_AS(BOB);
	self->n--;
	EXPECT_EQ((unsigned int)(TIMEOUTS - SHARED), fill(fd, TIMEOUTS, &ret));
	EXPECT_EQ(SHARED, fd_number(fd, "hwt-shared"));
	EXPECT_EQ(1, fd_number(fd, "hwt-private"));
}

/* One on a wheel of its own from the beginning has none on the shared one. */
TEST_F(user, private_from_the_beginning)
{
	int fd = OPEN_AS(ALICE), ret;

	ASSERT_EQ(0, hwt_setup(fd, CLOCK_REALTIME));
	EXPECT_EQ(3U * SHARED, fill(fd, 3 * SHARED, &ret));
	EXPECT_EQ(0, fd_number(fd, "hwt-shared"));
	EXPECT_EQ(1, fd_number(fd, "hwt-private"));
}

/* All of one tick, on two wheels: each fires once, none early, told of as they fired. */
TEST_F(user, both_wheels_fire)
{
	static struct hwt_event events[3 * SHARED];
	__u64 deadline = now_ns() + 300 * MSEC, last = 0;
	int fd = OPEN_AS(ALICE), n = 0, ret, i;
	bool seen[3 * SHARED] = {};

	for (i = 0; i < 3 * SHARED; i++)
		ASSERT_EQ(0, hwt_add(fd, HWT_ABSOLUTE, deadline, i, NULL));
	EXPECT_EQ(SHARED, fd_number(fd, "hwt-shared"));
	while (n < 3 * SHARED) {
		ASSERT_EQ(POLLIN, hwt_wait(fd, PATIENCE_MS));
		ret = hwt_read(fd, events, ARRAY_SIZE(events));
		ASSERT_LT(0, ret);
		for (i = 0; i < ret; i++, n++) {
			ASSERT_FALSE(seen[events[i].user_data]);
			seen[events[i].user_data] = true;
			EXPECT_LE(deadline, events[i].fired_ns);
			EXPECT_LE(last, events[i].fired_ns);
			last = events[i].fired_ns;
		}
	}
	EXPECT_EQ(-EAGAIN, hwt_read(fd, events, 1));
	EXPECT_EQ(0, fd_number(fd, "hwt-shared"));
}

/* Modify, cancel, periodic ones, list and stop, wherever the timeout is. */
TEST_F(user, both_wheels_in_use)
{
	static struct hwt_list_entry entries[3 * SHARED];
	int fd = OPEN_AS(ALICE), i, j;
	struct hwt_event event;
	__u64 id[2], periodic[2];

	for (j = 0; j < 2; j++) {
		ASSERT_EQ(0, hwt_add(fd, 0, HOUR, 1000 + j, &id[j]));
		ASSERT_EQ(0, hwt_add_periodic(fd, HWT_MODE_FIXED_RATE, 0, 20 * MSEC, 2000 + j,
					      &periodic[j]));
		for (i = 2; i < SHARED; i++)
			ASSERT_EQ(0, hwt_add(fd, 0, HOUR, i, NULL));
	}
	EXPECT_EQ(SHARED, fd_number(fd, "hwt-shared"));
	for (j = 0; j < 2; j++) {
		/* The periodic one goes on. */
		for (i = 0; i < 3; i++) {
			do {
				ASSERT_EQ(1, hwt_next(fd, &event));
			} while (event.id != periodic[j]);
			EXPECT_EQ(2000ULL + j, event.user_data);
		}
		EXPECT_EQ(HWT_STATE_PENDING, hwt_move(fd, id[j], 0, 0));
		do {
			ASSERT_EQ(1, hwt_next(fd, &event));
		} while (event.id != id[j]);
		EXPECT_EQ((__u32)HWT_EVENT_LAST, event.flags);
		EXPECT_LE(0, hwt_del(fd, periodic[j]));
	}
	EXPECT_EQ(2 * (SHARED - 2), hwt_entries(fd, entries, 3 * SHARED));
	EXPECT_EQ(2 * (SHARED - 2), hwt_stop(fd));
	for (i = 0; i < 2 * (SHARED - 2); i++) {
		ASSERT_EQ(1, hwt_next(fd, &event));
		ASSERT_EQ((__u32)HWT_EVENT_STOPPED, event.kind);
	}
	EXPECT_EQ(0, hwt_read(fd, &event, 1));
}

/* Threads that all come to need the wheel at the same time make one. */
static void *add_some(void *arg)
{
	int fd = *(int *)arg, ret;

	while (!over)
		;
	fill(fd, 3 * SHARED / 6, &ret);
	return (void *)(intptr_t)ret;
}

TEST_F_TIMEOUT(user, one_wheel_for_all_threads, 120)
{
	int rounds = quick() ? 5 : 20, round, i;
	pthread_t thread[6];
	void *ret;

	/* There is but one to be had. */
	for (i = 0; i < USER_WHEELS - 1; i++)
		ASSERT_EQ(0, hwt_setup(OPEN_AS(ALICE), CLOCK_MONOTONIC));
	for (round = 0; round < rounds; round++) {
		int fd = open_as(ALICE);

		ASSERT_LE(0, fd);
		over = false;
		for (i = 0; i < (int)ARRAY_SIZE(thread); i++)
			ASSERT_EQ(0, pthread_create(&thread[i], NULL, add_some, &fd));
		over = true;
		for (i = 0; i < (int)ARRAY_SIZE(thread); i++) {
			pthread_join(thread[i], &ret);
			EXPECT_EQ(NULL, ret);
		}
		EXPECT_EQ(SHARED, fd_number(fd, "hwt-shared"));
		EXPECT_EQ(1, fd_number(fd, "hwt-private"));
		EXPECT_EQ(3 * SHARED, fd_number(fd, "hwt-timeouts"));
		close(fd);
	}
}

TEST_HARNESS_MAIN
