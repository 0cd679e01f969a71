// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users without privileges: members of the device's group may use all of it, and no user learns
 * anything about another. For users outside the group, see hwtctl-options.sh.
 *
 * hwt-test: timeout 120
 */
#include "kselftest_harness.h"
#include <dirent.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "guest.h"
#include "ioctls.h"

#define GROUP	5000
#define MEMBER	5001	/* in that group */
#define THIRD	5003	/* in that group, too */

#define PARAMETERS	"/sys/module/hwt/parameters"

FIXTURE(users) { };

FIXTURE_SETUP(users)
{
	/* As by a udev rule */
	ASSERT_EQ(0, chown(HWT_DEV, 0, GROUP));
	ASSERT_EQ(0, chmod(HWT_DEV, 0660));
}

FIXTURE_TEARDOWN(users)
{
	chmod(HWT_DEV, 0600);
	chown(HWT_DEV, 0, 0);
}

/* Become a member of the group for good, without privileges. */
static bool become(uid_t uid)
{
	const gid_t group = GROUP;

	/* Dumpable, so that the process owns its files in /proc, as one started by that user. */
	return !setgroups(1, &group) && !setresgid(uid, uid, uid) &&
	       !setresuid(uid, uid, uid) && !prctl(PR_SET_DUMPABLE, 1);
}

/* Run checks as a user, in a child. Return 0 if they pass. */
#define RUN_AS(_uid, _checks)						\
	IN_CHILD(become(_uid) ? ((_checks), !_metadata->passed) : 2)

/* Call each ioctl, and use another clock. */
static void use_all(struct __test_metadata *_metadata)
{
	struct hwt_event event;
	union ioctl_args args;
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(ioctls); i++) {
		struct ring ring = {};

		fd = hwt_open(0);
		ioctl_prepare(_metadata, &ioctls[i], fd, &ring, &args);
		EXPECT_EQ(0, hwt_call(fd, ioctls[i].request, &args))
			TH_LOG("%s", ioctls[i].name);
		ring_unmap(&ring);
		close(fd);
	}
	fd = hwt_open_private(CLOCK_BOOTTIME);
	EXPECT_EQ(0, hwt_add_periodic(fd, HWT_MODE_FIXED_DELAY, 0, MSEC, 2, NULL));
	EXPECT_EQ(1, hwt_next(fd, &event));
	close(fd);
}

TEST_F(users, of_the_group)
{
	EXPECT_EQ(0, RUN_AS(MEMBER, use_all(_metadata)));
}

/* Look for another user's context, with seven timeouts and its fdinfo at @path. */
static void look_around(struct __test_metadata *_metadata, const char *path)
{
	const struct hwt_stats_args none = { .size = sizeof(none) };
	struct hwt_list_entry entries[8];
	int fd = hwt_open(0);
	struct hwt_stats_args stats;
	struct hwt_get_args get;
	__u64 id, slot;

	/* No timeouts, and all counters are 0. */
	EXPECT_EQ(0, hwt_stats(fd, &stats));
	EXPECT_EQ(0, memcmp(&stats, &none, sizeof(none)));
	EXPECT_EQ(0, hwt_entries(fd, entries, 8));
	/* Ids of the other context are unknown here. */
	for (slot = 0; slot < 8; slot++) {
		EXPECT_EQ(-ENOENT, hwt_get(fd, (slot + 1) << 32 | slot, &get));
		EXPECT_EQ(-ENOENT, hwt_del(fd, (slot + 1) << 32 | slot));
	}
	EXPECT_EQ(0, hwt_add(fd, 0, HOUR, 5, &id));
	EXPECT_EQ(0, hwt_stats(fd, &stats));
	EXPECT_EQ(1ULL, stats.timeouts);
	EXPECT_EQ(1ULL, stats.scheduled);
	EXPECT_EQ(1, hwt_entries(fd, entries, 8));
	EXPECT_EQ(id, entries[0].id);
	EXPECT_EQ(5ULL, entries[0].user_data);
	EXPECT_EQ(1, fd_number(fd, "hwt-timeouts"));

	EXPECT_EQ(-1, open(path, O_RDONLY));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(users, see_nothing_of_each_other)
{
	int fd, number, sock[2], i;
	char path[64], byte;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		EXPECT_TRUE(become(MEMBER));
		fd = hwt_open(0);
		for (i = 0; i < 7; i++)
			EXPECT_EQ(0, hwt_add(fd, 0, HOUR, 0xa11ce, NULL));
		EXPECT_EQ(0, send_fd(sock[1], fd));
		EXPECT_EQ(1, read(sock[1], &byte, 1));
		_exit(!_metadata->passed);
	}
	fd = receive_fd(sock[0], &number);
	ASSERT_LE(0, fd);
	/* A descriptor that was passed on refers to the same context. */
	EXPECT_EQ(7ULL, hwt_timeouts(fd));
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, number);
	EXPECT_EQ(0, RUN_AS(THIRD, look_around(_metadata, path)));
	EXPECT_EQ(1, write(sock[0], "", 1));
	EXPECT_EQ(0, child_end(pid));
	close(fd);
	close(sock[0]);
	close(sock[1]);
}

TEST_F(users, change_no_parameter)
{
	DIR *dir = opendir(PARAMETERS);
	struct dirent *entry;
	unsigned int n = 0;
	struct stat st;

	ASSERT_NE(NULL, dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		ASSERT_EQ(0, fstatat(dirfd(dir), entry->d_name, &st, 0));
		EXPECT_EQ(0U, st.st_uid);
		EXPECT_EQ(strcmp(entry->d_name, "slow_callback_us") ? 0444U : 0644U,
			  st.st_mode & 07777)
			TH_LOG("%s", entry->d_name);
		n++;
	}
	closedir(dir);
	EXPECT_LE(10U, n);
}

TEST_HARNESS_MAIN
