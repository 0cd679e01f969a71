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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "hwt_dev.h"

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

/* Runs @fn as that user, in a child. Returns 0 if it came to its end. */
static int run_as(uid_t uid, bool member, void (*fn)(int arg), int arg)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (!become(uid, member))
			_exit(255);
		fn(arg);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

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
static void use_all(int unused)
{
	struct hwt_setup_args setup = {
		.size = sizeof(setup),
		.tick_ns = 2 * MSEC,
		.clock = CLOCK_BOOTTIME,
		.max_pending = 1000,
	};
	struct hwt_list_entry entries[4];
	struct hwt_list_args list = {
		.size = sizeof(list),
		.entries = (uintptr_t)entries,
		.count = ARRAY_SIZE(entries),
		.entry_size = sizeof(entries[0]),
	};
	struct hwt_op op = { .opcode = HWT_OP_SCHEDULE, .time_ns = HOUR };
	struct hwt_batch_args batch = {
		.size = sizeof(batch),
		.ops = (uintptr_t)&op,
		.count = 1,
		.op_size = sizeof(op),
	};
	struct hwt_rings_args args = {
		.size = sizeof(args),
		.op_entries = 8,
		.event_entries = 8,
	};
	struct hwt_enter_args enter = {
		.size = sizeof(enter),
		.submit = 1,
		.wait = 1,
		.timeout_ns = PATIENCE_MS * MSEC,
	};
	int fd = hwt_open(O_NONBLOCK), own = hwt_open(0), ringed = hwt_open(0);
	struct hwt_stats_args stats;
	struct hwt_rings *rings;
	struct hwt_info_args info;
	struct hwt_get_args get;
	struct hwt_event event;
	struct hwt_op *ops;
	__u64 id;

	(void)unused;
	CHECK(fd >= 0 && own >= 0 && ringed >= 0);
	CHECK(!hwt_info(fd, &info));
	CHECK(!hwt_call(own, HWT_IOC_SETUP, &setup));
	CHECK(!hwt_add(own, 0, MSEC, 4, &id));
	CHECK(hwt_next(own, &event) == 1 && event.id == id);

	CHECK(!hwt_add(fd, 0, HOUR, 1, &id));
	CHECK(hwt_move(fd, id, 0, 2 * HOUR) == HWT_STATE_PENDING);
	CHECK(!hwt_get(fd, id, &get) && get.user_data == 1);
	CHECK(!hwt_call(fd, HWT_IOC_LIST, &list) && list.count == 1);
	CHECK(hwt_del(fd, id) == HWT_STATE_PENDING);
	CHECK(!hwt_add_periodic(fd, HWT_MODE_FIXED_DELAY, 0, MSEC, 2, &id));
	CHECK(hwt_next(fd, &event) == 1 && event.id == id);
	CHECK(!hwt_call(fd, HWT_IOC_BATCH, &batch) && batch.count == 1 && !op.result);
	CHECK(!hwt_stats(fd, &stats) && stats.timeouts == 2);
	CHECK(hwt_stop(fd) >= 1);

	CHECK(!hwt_call(ringed, HWT_IOC_RINGS, &args));
	rings = mmap(NULL, args.map_size, PROT_READ | PROT_WRITE, MAP_SHARED, ringed, 0);
	CHECK(rings != MAP_FAILED);
	ops = (void *)((char *)rings + args.ops_offset);
	ops[0] = (struct hwt_op){ .opcode = HWT_OP_SCHEDULE, .time_ns = MSEC };
	__atomic_store_n(&rings->op_tail, 1, __ATOMIC_RELEASE);
	CHECK(!hwt_call(ringed, HWT_IOC_ENTER, &enter) && enter.submit == 1);
	CHECK(!ops[0].result);
	CHECK(__atomic_load_n(&rings->event_tail, __ATOMIC_ACQUIRE) == 1);
}

TEST_F(users, of_the_group)
{
	EXPECT_EQ(0, run_as(MEMBER, true, use_all, 0));
}

TEST_F(users, of_no_group)
{
	EXPECT_EQ(0, run_as(OTHER, false, open_fails, EACCES));
}

/* Without a rule it is root's alone. */
TEST_F(users, by_default)
{
	struct stat st;

	ASSERT_EQ(0, chmod(HWT_DEV, 0600));
	ASSERT_EQ(0, chown(HWT_DEV, 0, 0));
	EXPECT_EQ(0, run_as(MEMBER, true, open_fails, EACCES));
	/* As the module makes it. */
	ASSERT_EQ(0, stat(HWT_DEV, &st));
	EXPECT_EQ(0U, st.st_mode & 0077);
}

/* -- What one sees of another ---------------------------------------------- */

/* And says its number here. */
static int send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { .iov_base = &fd, .iov_len = sizeof(fd) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	return sendmsg(sock, &msg, 0) == sizeof(fd) ? 0 : hwt_errno();
}

static int receive_fd(int sock, int *number)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = number, .iov_len = sizeof(*number) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	int fd;

	if (recvmsg(sock, &msg, 0) != sizeof(*number))
		return hwt_errno();
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg)
		return -ENODATA;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(int));
	return fd;
}

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

static char others_fdinfo[64];

static void look_around(int unused)
{
	struct hwt_list_entry entries[8];
	struct hwt_list_args list = {
		.size = sizeof(list),
		.entries = (uintptr_t)entries,
		.count = ARRAY_SIZE(entries),
		.entry_size = sizeof(entries[0]),
	};
	int fd = hwt_open(0), slot;
	struct hwt_stats_args stats;
	struct hwt_get_args get;
	char path[64], text[1024];
	__u64 id;
	size_t n;
	FILE *file;

	(void)unused;
	CHECK(fd >= 0);
	/* Nothing there, and no counter but its own. */
	CHECK(!hwt_stats(fd, &stats));
	CHECK(!stats.timeouts && !stats.events && !stats.scheduled && !stats.modified &&
	      !stats.cancelled && !stats.stopped && !stats.expired && !stats.overruns &&
	      !stats.read && !stats.rejected);
	CHECK(!hwt_call(fd, HWT_IOC_LIST, &list) && !list.count);
	/* Ids are the context's: those of others are none here. */
	for (slot = 0; slot < 8; slot++)
		CHECK(hwt_get(fd, (__u64)(slot + 1) << 32 | slot, &get) == -ENOENT &&
		      hwt_del(fd, (__u64)(slot + 1) << 32 | slot) == -ENOENT);
	CHECK(!hwt_add(fd, 0, HOUR, 5, &id));
	CHECK(!hwt_stats(fd, &stats) && stats.timeouts == 1 && stats.scheduled == 1);
	list.cursor = 0;
	list.count = ARRAY_SIZE(entries);
	CHECK(!hwt_call(fd, HWT_IOC_LIST, &list) && list.count == 1);
	CHECK(entries[0].id == id && entries[0].user_data == 5);

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "r");
	CHECK(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = 0;
	CHECK(strstr(text, "\nhwt-timeouts:\t1\n"));
	CHECK(strstr(text, "\nhwt-shared:\t1\n"));

	/* The other's descriptor is the other's. */
	CHECK(open(others_fdinfo, O_RDONLY) < 0 && errno == EACCES);
}

TEST_F(users, see_nothing_of_each_other)
{
	struct hwt_stats_args stats;
	int status, fd, number;
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
	EXPECT_EQ(0, run_as(THIRD, true, look_around, 0));
	EXPECT_EQ(1, write(self->sock[0], "", 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(fd);
}

/* -- Parameters of the module ---------------------------------------------- */

static void write_parameters(int unused)
{
	DIR *dir = opendir(PARAMETERS);
	struct dirent *entry;
	int n = 0;

	(void)unused;
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
	EXPECT_EQ(0, run_as(MEMBER, true, write_parameters, 0));
}

TEST_HARNESS_MAIN
