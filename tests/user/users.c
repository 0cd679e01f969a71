// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users without privileges: those of the device's group may do everything with it, others
 * nothing, and none learns anything of another.
 *
 * hwt-test: timeout 120
 */
#include "kselftest_harness.h"
#include <dirent.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "fdinfo.h"
#include "hwt_ring.h"
#include "process.h"

#define GROUP	5000
#define MEMBER	5001	/* of that group */
#define OTHER	5002	/* not of it */
#define THIRD	5003	/* of it, too */

#define PARAMETERS	"/sys/module/hwt/parameters"

FIXTURE(users) {
	int sock[2];
};

FIXTURE_SETUP(users)
{
	/* As a udev rule does it. */
	ASSERT_EQ(0, chown(HWT_DEV, 0, GROUP));
	ASSERT_EQ(0, chmod(HWT_DEV, 0660));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, self->sock));
}

FIXTURE_TEARDOWN(users)
{
	close(self->sock[0]);
	close(self->sock[1]);
	chmod(HWT_DEV, 0600);
	chown(HWT_DEV, 0, 0);
}

/* For good, with nothing left of root. */
static bool become(uid_t uid, bool member)
{
	const gid_t group = GROUP;

	/* As if it had been started so: its files in /proc are its own. */
	return !setgroups(member, &group) && !setresgid(uid, uid, uid) &&
	       !setresuid(uid, uid, uid) && !prctl(PR_SET_DUMPABLE, 1);
}

/* Run a function as that user, in a child. Return 0 if it came to its end. */
#define RUN_AS(_uid, _member, _call)	IN_CHILD(become(_uid, _member) ? ((_call), 0) : 2)

static void __attribute__((noreturn)) give_up(int line, const char *text)
{
	printf("# %s:%d: not so: %s\n", __FILE__, line, text);
	fflush(stdout);
	_exit(1);
}

#define CHECK(_true)					\
do {							\
	if (!(_true))					\
		give_up(__LINE__, #_true);		\
} while (0)

static void open_fails(int error)
{
	static const int modes[] = { O_RDWR, O_RDONLY, O_WRONLY };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		CHECK(open(HWT_DEV, modes[i]) < 0);
		CHECK(errno == error);
	}
}

/* Everything that there is. */
static void use_all(void)
{
	struct hwt_setup_args setup = {
		.size = sizeof(setup),
		.tick_ns = 2 * MSEC,
		.clock = CLOCK_BOOTTIME,
		.max_pending = 1000,
	};
	struct hwt_op op = op_schedule(HOUR, 0);
	struct hwt_list_entry entries[4];
	int fd = hwt_open(O_NONBLOCK), own = hwt_open(0);
	struct hwt_stats_args stats;
	struct hwt_info_args info;
	struct hwt_get_args get;
	struct hwt_event event;
	__u64 id, cursor = 0;
	struct ring ring;
	__u32 count = 4;

	CHECK(fd >= 0 && own >= 0);
	CHECK(!hwt_info(fd, &info));
	CHECK(!hwt_call(own, HWT_IOC_SETUP, &setup));
	CHECK(!hwt_add(own, 0, MSEC, 4, &id));
	CHECK(hwt_next(own, &event) == 1 && event.id == id);

	CHECK(!hwt_add(fd, 0, HOUR, 1, &id));
	CHECK(hwt_move(fd, id, 0, 2 * HOUR) == HWT_STATE_PENDING);
	CHECK(!hwt_get(fd, id, &get) && get.user_data == 1);
	CHECK(!hwt_list(fd, &cursor, entries, &count) && count == 1);
	CHECK(hwt_del(fd, id) == HWT_STATE_PENDING);
	CHECK(!hwt_add_periodic(fd, HWT_MODE_FIXED_DELAY, 0, MSEC, 2, &id));
	CHECK(hwt_next(fd, &event) == 1 && event.id == id);
	CHECK(hwt_batch(fd, &op, 1) == 1 && !op.result);
	CHECK(!hwt_stats(fd, &stats) && stats.timeouts == 2);
	CHECK(hwt_stop(fd) >= 1);

	CHECK(ring_open(&ring, 8, 8) >= 0);
	CHECK(ring_push(&ring, op_schedule(MSEC, 0)));
	CHECK(ring_enter(&ring, 1, 1, PATIENCE_MS * MSEC) == 1);
	CHECK(!ring.ops[0].result && ring_unread(&ring) == 1);
}

TEST_F(users, of_the_group)
{
	EXPECT_EQ(0, RUN_AS(MEMBER, true, use_all()));
}

TEST_F(users, of_no_group)
{
	EXPECT_EQ(0, RUN_AS(OTHER, false, open_fails(EACCES)));
}

/* Without a rule it is root's alone; device.c has that it is made so. */
TEST_F(users, by_default)
{
	ASSERT_EQ(0, chmod(HWT_DEV, 0600));
	ASSERT_EQ(0, chown(HWT_DEV, 0, 0));
	EXPECT_EQ(0, RUN_AS(MEMBER, true, open_fails(EACCES)));
}

/* -- What one sees of another ---------------------------------------------- */

/* Says who it is, what it has, and waits until it has been looked at. */
static void have_something(int sock)
{
	int fd = hwt_open(0), i;
	char c;

	CHECK(fd >= 0);
	for (i = 0; i < 7; i++)
		CHECK(!hwt_add(fd, 0, HOUR, 0xa11ce, NULL));
	CHECK(!send_fd(sock, fd));
	CHECK(read(sock, &c, 1) == 1);
}

static void look_around(const char *others_fdinfo)
{
	struct hwt_list_entry entries[8];
	const struct hwt_stats_args none = { .size = sizeof(none) };
	int fd = hwt_open(0), slot;
	struct hwt_stats_args stats;
	struct hwt_get_args get;
	__u64 id, cursor = 0;
	__u32 count = 8;

	CHECK(fd >= 0);
	/* Nothing there, and no counter but its own. */
	CHECK(!hwt_stats(fd, &stats) && !memcmp(&stats, &none, sizeof(none)));
	CHECK(!hwt_list(fd, &cursor, entries, &count) && !count);
	/* Ids are the context's: those of others are none here. */
	for (slot = 0; slot < 8; slot++)
		CHECK(hwt_get(fd, (__u64)(slot + 1) << 32 | slot, &get) == -ENOENT &&
		      hwt_del(fd, (__u64)(slot + 1) << 32 | slot) == -ENOENT);
	CHECK(!hwt_add(fd, 0, HOUR, 5, &id));
	CHECK(!hwt_stats(fd, &stats) && stats.timeouts == 1 && stats.scheduled == 1);
	cursor = 0;
	count = 8;
	CHECK(!hwt_list(fd, &cursor, entries, &count) && count == 1);
	CHECK(entries[0].id == id && entries[0].user_data == 5);
	CHECK(fd_number(fd, "hwt-timeouts") == 1 && fd_number(fd, "hwt-shared") == 1);

	/* The other's descriptor is the other's. */
	CHECK(open(others_fdinfo, O_RDONLY) < 0 && errno == EACCES);
}

TEST_F(users, see_nothing_of_each_other)
{
	struct hwt_stats_args stats;
	char others_fdinfo[64];
	int fd, number;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (!become(MEMBER, true))
			_exit(255);
		have_something(self->sock[1]);
		_exit(0);
	}
	fd = receive_fd(self->sock[0], &number);
	ASSERT_LE(0, fd);
	/* A descriptor that was given is another matter: it is the same context. */
	ASSERT_EQ(0, hwt_stats(fd, &stats));
	EXPECT_EQ(7ULL, stats.timeouts);
	snprintf(others_fdinfo, sizeof(others_fdinfo), "/proc/%d/fdinfo/%d", pid, number);
	EXPECT_EQ(0, RUN_AS(THIRD, true, look_around(others_fdinfo)));
	EXPECT_EQ(1, write(self->sock[0], "", 1));
	EXPECT_EQ(0, child_status(pid));
	close(fd);
}

/* -- Parameters of the module ---------------------------------------------- */

static void write_parameters(void)
{
	DIR *dir = opendir(PARAMETERS);
	struct dirent *entry;
	int n = 0;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		CHECK(openat(dirfd(dir), entry->d_name, O_WRONLY) < 0);
		CHECK(errno == EACCES);
		n++;
	}
	closedir(dir);
	CHECK(n >= 10);
}

TEST_F(users, change_no_parameter)
{
	DIR *dir = opendir(PARAMETERS);
	struct dirent *entry;
	struct stat st;

	ASSERT_NE(NULL, dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		ASSERT_EQ(0, fstatat(dirfd(dir), entry->d_name, &st, 0));
		EXPECT_EQ(0U, st.st_uid);
		EXPECT_EQ(strcmp(entry->d_name, "slow_callback_us") ? 0444U : 0644U,
			  st.st_mode & 07777) {
			TH_LOG("%s", entry->d_name);
		}
	}
	closedir(dir);
	EXPECT_EQ(0, RUN_AS(MEMBER, true, write_parameters()));
}

TEST_HARNESS_MAIN
