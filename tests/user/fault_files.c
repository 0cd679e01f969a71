// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is done to an open /dev/hwt as to any file, with each allocation and user copy made to
 * fail once: read, poll, epoll, /proc, fork, sending it through a socket, io_uring; open() is in
 * fault_load.c. Whatever fails, the context is as before: no event is lost or read twice, no
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
#include <sys/uio.h>

#include "fault_each.h"
#include "process.h"

#define FDS	200

static struct hwt_event event;

/* -- Reading ----------------------------------------------------------------- */

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
static int call_pass(struct env *env)
{
	int sock[2], fd = -1, number, ret;
	struct hwt_info_args info;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		return hwt_errno();
	/* It may also be dropped on the way. */
	if (!send_fd(sock[0], env->fd))
		fd = receive_fd(sock[1], &number);
	ret = fd < 0 ? hwt_errno() : hwt_info(fd, &info);
	if (fd >= 0)
		close(fd);
	close(sock[0]);
	close(sock[1]);
	return ret;
}

/* -- io_uring -------------------------------------------------------------------- */

/* Carries one request out. Returns its result. */
static int uring_one(void (*prepare)(struct io_uring_sqe *sqe, struct env *env), struct env *env)
{
	struct io_uring_cqe *cqe;
	struct io_uring uring;
	int ret = io_uring_queue_init(4, &uring, 0);

	if (ret)
		return ret;
	prepare(io_uring_get_sqe(&uring), env);
	do {
		ret = io_uring_submit_and_wait(&uring, 1);
	} while (ret == -EINTR || ret == -EAGAIN || ret == -EBUSY);
	if (ret >= 0)
		ret = io_uring_peek_cqe(&uring, &cqe);
	if (!ret)
		ret = cqe->res;
	io_uring_queue_exit(&uring);
	return ret;
}

static void prepare_poll(struct io_uring_sqe *sqe, struct env *env)
{
	io_uring_prep_poll_add(sqe, env->fd, POLLIN);
}

static int call_uring_poll(struct env *env)
{
	int ret = uring_one(prepare_poll, env);

	return ret < 0 ? ret : ret & POLLIN ? 0 : -EPROTO;
}

static void prepare_read(struct io_uring_sqe *sqe, struct env *env)
{
	memset(&event, 0, sizeof(event));
	io_uring_prep_read(sqe, env->fd, &event, sizeof(event), 0);
}

static int call_uring_read(struct env *env)
{
	int ret = uring_one(prepare_read, env);

	return ret < 0 ? ret : ret == sizeof(event) ? 0 : -EPROTO;
}

/* -- All of them ------------------------------------------------------------------ */

/* read() tries again: no fault is seen in it. */
FIXTURE_VARIANT_ADD(scene, read) { 1, 0, { some, call_read, done_read, .any = false } };
FIXTURE_VARIANT_ADD(scene, readv) { 2, 0, { some, call_readv, done_read, .any = false } };
FIXTURE_VARIANT_ADD(scene, poll) { 3, 2, { some, call_poll, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, epoll) { 5, 4, { some, call_epoll, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, fdinfo) { 5, 5, { some, call_fdinfo, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, fork) { 20, 20, { some, call_fork, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, pass) { 10, 8, { some, call_pass, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, uring_poll) { 10, 5, { some, call_uring_poll, unchanged, .any = true } };
FIXTURE_VARIANT_ADD(scene, uring_read) { 10, 5, { some, call_uring_read, done_read, .any = true } };

TEST_HARNESS_MAIN
