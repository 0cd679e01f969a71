// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is done to an open /dev/hwt as to any file, with each allocation and user copy made to
 * fail once: open, read, poll, select, epoll, /proc, fork, exec, sending it through a socket,
 * io_uring. Whatever fails, the context is as before: no event is lost or read twice, no
 * reference is kept.
 *
 * hwt-test: long
 * hwt-test: only debug debug612
 * hwt-test: libs uring
 * hwt-test: timeout 900
 * hwt-test: load max_shared=64 max_user_timeouts=300 max_user_wheels=3
 */
#include "kselftest_harness.h"
#include <liburing.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "fault_each.h"

#define FDS	200

static struct hwt_event event;

/* -- Reading ----------------------------------------------------------------- */

static void change_read(struct state *old, const struct state *new)
{
	old->n--;
	old->timeouts--;
	old->shared--;
	old->events--;
	old->stats.timeouts--;
	old->stats.events--;
	old->stats.read++;
	memcpy(old->list, new->list, sizeof(old->list));
}

static bool done_read(const struct env *env)
{
	return event.id == env->fired && event.user_data == 3 && as_before(env, change_read) &&
	       state_find(&env->after, env->pending) && state_find(&env->after, env->periodic);
}

static int call_read(struct env *env)
{
	int ret;

	memset(&event, 0, sizeof(event));
	ret = hwt_read(env->fd, &event, 1);
	return ret < 0 ? ret : ret == 1 ? 0 : -EPROTO;
}

static int call_readv(struct env *env)
{
	struct iovec iov[] = {
		{ &event, 16 }, { (char *)&event + 16, 32 }, { (char *)&event + 48, 16 },
	};
	ssize_t ret;

	memset(&event, 0, sizeof(event));
	ret = readv(env->fd, iov, 3);
	return ret < 0 ? hwt_errno() : ret == sizeof(event) ? 0 : -EPROTO;
}

/* -- Waiting ----------------------------------------------------------------- */

static int call_poll(struct env *env)
{
	struct pollfd fds[FDS];
	int i, ret;

	for (i = 0; i < FDS; i++)
		fds[i] = (struct pollfd) { .fd = env->fd, .events = POLLIN };
	ret = poll(fds, FDS, 0);
	return ret < 0 ? hwt_errno() : ret == FDS ? 0 : -EPROTO;
}

static int call_select(struct env *env)
{
	struct timeval none = {};
	fd_set set;
	int ret;

	FD_ZERO(&set);
	FD_SET(env->fd, &set);
	ret = select(env->fd + 1, &set, NULL, NULL, &none);
	return ret < 0 ? hwt_errno() : ret == 1 ? 0 : -EPROTO;
}

static int call_epoll(struct env *env)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = env->fd };
	int epfd = epoll_create1(0), ret;

	if (epfd < 0)
		return hwt_errno();
	ret = epoll_ctl(epfd, EPOLL_CTL_ADD, env->fd, &ev) ? hwt_errno() : 0;
	if (!ret) {
		ev.data.fd = -1;
		ret = epoll_wait(epfd, &ev, 1, 0);
		ret = ret < 0 ? hwt_errno() : ret == 1 && ev.data.fd == env->fd ? 0 : -EPROTO;
	}
	/* What could not be told of is still there to be told. */
	if (ret == -EFAULT && epoll_wait(epfd, &ev, 1, 0) == 1 && ev.data.fd != env->fd)
		ret = -EPROTO;
	close(epfd);
	return ret;
}

/* Through an epoll instance in another one. */
static int call_epoll_nested(struct env *env)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int outer = epoll_create1(0), inner = epoll_create1(0), ret = 0;

	if (outer < 0 || inner < 0 || epoll_ctl(outer, EPOLL_CTL_ADD, inner, &ev) ||
	    epoll_ctl(inner, EPOLL_CTL_ADD, env->fd, &ev))
		ret = hwt_errno();
	if (!ret) {
		ret = epoll_wait(outer, &ev, 1, 0);
		ret = ret < 0 ? hwt_errno() : ret == 1 ? 0 : -EPROTO;
	}
	if (inner >= 0)
		close(inner);
	if (outer >= 0)
		close(outer);
	return ret;
}

/* -- Passing it on ------------------------------------------------------------- */

static int call_fdinfo(struct env *env)
{
	char path[64], text[1024] = "";
	ssize_t got = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", env->fd);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return hwt_errno();
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got < 0)
		return hwt_errno();
	return strstr(text, "hwt-timeouts:\t3\nhwt-events:\t1\n") ? 0 : -EPROTO;
}

/* Sends the descriptor, and receives it again. */
static int pass(int fd, int sock[2])
{
	char control[CMSG_SPACE(sizeof(int))] = "", byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	struct hwt_info_args info;
	int ret;

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	if (sendmsg(sock[0], &msg, 0) != 1)
		return hwt_errno();
	memset(control, 0, sizeof(control));
	msg.msg_controllen = sizeof(control);
	if (recvmsg(sock[1], &msg, MSG_CMSG_CLOEXEC) != 1)
		return hwt_errno();
	cmsg = CMSG_FIRSTHDR(&msg);
	/* It was dropped on the way. */
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS || cmsg->cmsg_len != CMSG_LEN(sizeof(int)))
		return -ENOMEM;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	ret = hwt_info(fd, &info);
	close(fd);
	return ret;
}

static int call_pass(struct env *env)
{
	int sock[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		return hwt_errno();
	ret = pass(env->fd, sock);
	close(sock[0]);
	close(sock[1]);
	return ret;
}

/* -- io_uring -------------------------------------------------------------------- */

static int uring_one(struct io_uring *uring, int *res)
{
	struct io_uring_cqe *cqe;
	int ret;

	do {
		ret = io_uring_submit_and_wait(uring, 1);
	} while (ret == -EINTR || ret == -EAGAIN || ret == -EBUSY);
	if (ret < 0)
		return ret;
	ret = io_uring_peek_cqe(uring, &cqe);
	if (ret)
		return ret;
	*res = cqe->res;
	io_uring_cqe_seen(uring, cqe);
	return 0;
}

static int call_uring_poll(struct env *env)
{
	struct io_uring uring;
	int ret, res = -EPROTO;

	ret = io_uring_queue_init(4, &uring, 0);
	if (ret)
		return ret;
	io_uring_prep_poll_add(io_uring_get_sqe(&uring), env->fd, POLLIN);
	ret = uring_one(&uring, &res);
	io_uring_queue_exit(&uring);
	return ret ? ret : res < 0 ? res : res & POLLIN ? 0 : -EPROTO;
}

static int call_uring_read(struct env *env)
{
	struct io_uring uring;
	int ret, res = -EPROTO;

	memset(&event, 0, sizeof(event));
	ret = io_uring_queue_init(4, &uring, 0);
	if (ret)
		return ret;
	io_uring_prep_read(io_uring_get_sqe(&uring), env->fd, &event, sizeof(event), 0);
	ret = uring_one(&uring, &res);
	io_uring_queue_exit(&uring);
	return ret ? ret : res < 0 ? res : res == sizeof(event) ? 0 : -EPROTO;
}

/* -- All of them ------------------------------------------------------------------ */

/* read() tries again: no fault is seen in it. */
FIXTURE_VARIANT_ADD(scene, read) { 1, 0, { some, call_read, done_read, .any = false } };
FIXTURE_VARIANT_ADD(scene, readv) { 2, 0, { some, call_readv, done_read, .any = false } };
FIXTURE_VARIANT_ADD(scene, poll) { 3, 2, { some, call_poll, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, select) { 2, 2, { some, call_select, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, epoll) { 5, 4, { some, call_epoll, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, epoll_nested) {
	8, 6, { some, call_epoll_nested, unchanged, .any = true },
};

FIXTURE_VARIANT_ADD(scene, fdinfo) { 5, 5, { some, call_fdinfo, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, fork) { 20, 20, { some, call_fork, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, pass) { 10, 8, { some, call_pass, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, uring_poll) { 10, 5, { some, call_uring_poll, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, uring_read) { 10, 5, { some, call_uring_read, done_read, .any = true } };

/* -- open() ----------------------------------------------------------------------- */

static int open_fd;

static int call_open(void *arg)
{
	(void)arg;
	open_fd = hwt_open(O_NONBLOCK);
	return open_fd < 0 ? hwt_errno() : 0;
}

/* A new user each time: that of the one before stays until a wheel has let go of its timeouts. */
static void prepare_open(struct __test_metadata *_metadata, void *arg)
{
	static uid_t uid = 5000;

	(void)arg;
	ASSERT_EQ(0, setresuid(++uid, -1, 0));
}

static void check_open(struct __test_metadata *_metadata, void *arg, int ret, unsigned int hit)
{
	static struct state state;

	/* The name is copied, too. */
	EXPECT_TRUE(!ret || (hit && (ret == -ENOMEM || ret == -EFAULT))) {
		TH_LOG("%d", ret);
	}
	if (ret) {
		EXPECT_EQ(0, hwt_users());
		ASSERT_EQ(0, call_open(arg));
	}
	EXPECT_EQ(1, hwt_users());
	state_take(_metadata, open_fd, &state);
	EXPECT_EQ(0, state.n);
	EXPECT_EQ(0, hwt_add(open_fd, HWT_ABSOLUTE, 0, 4, NULL));
	EXPECT_EQ(1, hwt_next(open_fd, &event));
	EXPECT_EQ(4, event.user_data);
	close(open_fd);
}

TEST_F_TIMEOUT(limited, open, 200)
{
	const struct fault_call call = {
		.prepare = prepare_open,
		.call = call_open,
		.check = check_open,
	};
	struct fault_count count;

	/* The first one, which makes the wheel, is in fault_load.c. */
	close(hwt_open(0));
	count = each_fault(_metadata, &call, NULL);
	ASSERT_EQ(0, setresuid(0, -1, 0));
	/*
	 * Name (which is copied, too), file, context; and the user, if that has been let go of
	 * since the time before. Of the directory in debugfs nobody hears.
	 */
	EXPECT_LE(6U, count.hit);
	EXPECT_LE(4U, count.failed);
}

/* -- A process that executes another program, and ends ------------------------------ */

#define EXEC_UNREADY	100
#define EXEC_FAILED	104

struct exec {
	const char *program;
	int given;		/* a context of the parent's */
	bool hit;
};

/* In the child: it has a context of its own, too, with timeouts, an event and mapped rings. */
static void exec_child(const struct exec *exec, unsigned int n)
{
	int nth = fault_open(0), fd = hwt_open(0), i;
	struct ring ring;
	int flags;

	for (i = 0; i < 10; i++)
		if (fd < 0 || hwt_add(fd, HWT_ABSOLUTE, i < 5 ? 0 : now_ns() + HOUR, i, NULL))
			_exit(EXEC_UNREADY);
	if (ring_make(&ring, fd, 0, 4, 4))
		_exit(EXEC_UNREADY + 1);
	/* The parent's goes along. */
	flags = fcntl(exec->given, F_GETFD);
	if (flags < 0 || fcntl(exec->given, F_SETFD, flags & ~FD_CLOEXEC))
		_exit(EXEC_UNREADY + 2);
	if (nth < 0 || !fault_arm(nth, n))
		_exit(EXEC_UNREADY + 3);
	execl(exec->program, exec->program, "true", NULL);
	_exit(EXEC_FAILED);
}

/* Returns its status; whether the point was met is asked of the dead. */
static int exec_one(struct __test_metadata *_metadata, struct exec *exec, unsigned int n)
{
	char path[64];
	int status;
	siginfo_t info;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		exec_child(exec, n);
	ASSERT_EQ(0, waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
	snprintf(path, sizeof(path), "/proc/%d/fail-nth", pid);
	exec->hit = read_number(path) == 0;
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	return status;
}

TEST_F_TIMEOUT(limited, executes_and_ends, 800)
{
	static const struct scene scene = { .populate = some };
	unsigned int n, misses = 0, hits = 0, failed = 0;
	struct exec exec = { .program = "/bin/busybox" };
	int status;

	env.scene = &scene;
	scene_prepare(_metadata, &env);
	exec.given = env.fd;
	for (n = 1; misses < FAULT_MISSES && n < FAULT_MOST && _metadata->passed; n++) {
		status = exec_one(_metadata, &exec, n);
		misses = exec.hit ? 0 : misses + 1;
		hits += exec.hit;
		failed += exec.hit && status;
		/* It did come to it; and what the program says of its fault is its own matter. */
		EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) >= EXEC_UNREADY &&
			     WEXITSTATUS(status) < EXEC_FAILED);
		EXPECT_TRUE(exec.hit || !status);
		state_take(_metadata, env.fd, &env.after);
		EXPECT_TRUE(state_same(&env.before, &env.after)) {
			TH_LOG("point %u", n);
			state_differ(&env.before, &env.after);
		}
		EXPECT_EQ(1, hwt_users());
	}
	TH_LOG("%u points, %u programs failed", hits, failed);
	EXPECT_LE(20U, hits);
	EXPECT_LE(10U, failed);
}

#include "fault_lost.h"

TEST_HARNESS_MAIN
