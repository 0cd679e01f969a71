/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts of other users, work that a child does, descriptors on their way to another process.
 */
#ifndef HWT_PROCESS_H
#define HWT_PROCESS_H

#include <sys/socket.h>
#include <sys/wait.h>

#include "hwt_dev.h"

/* Open the device as another user, who counts for it; this process goes on as root. */
static inline int open_as(uid_t uid)
{
	int fd;

	if (setresuid(uid, uid, 0))
		return hwt_errno();
	fd = hwt_open(O_NONBLOCK);
	if (setresuid(0, 0, 0)) {
		close(fd);
		return hwt_errno();
	}
	return fd;
}

/* Return the exit status of a child, or -1. */
static inline int child_status(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Evaluate an expression in a child. Return its value, 0 to 127, or -1. */
#define IN_CHILD(_expression)				\
({							\
	pid_t _pid = fork();				\
							\
	if (!_pid)					\
		_exit(_expression);			\
	child_status(_pid);				\
})

/* Send a descriptor, and its number here. */
static inline int send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { .iov_base = &fd, .iov_len = sizeof(fd) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	return sendmsg(sock, &msg, 0) == sizeof(fd) ? 0 : -1;
}

/* Return a descriptor, or -1. Its number at the sender is stored. */
static inline int receive_fd(int sock, int *number)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = number, .iov_len = sizeof(*number) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(sock, &msg, 0) != sizeof(*number) || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

#endif /* HWT_PROCESS_H */
