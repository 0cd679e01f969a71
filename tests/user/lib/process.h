/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts of other users, child processes, passing of descriptors, time namespaces, signals.
 */
#ifndef HWT_PROCESS_H
#define HWT_PROCESS_H

#include "hwt_dev.h"

#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

/* Open a context that is charged to user @uid; this process stays root. */
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

/* Wait for the child. Return its exit status, or the negative signal that ended it. */
static inline int child_end(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1000;
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static inline int child_kill(pid_t pid)
{
	return kill(pid, SIGKILL) ? -1000 : child_end(pid);
}

/* Evaluate an expression in a child. Return its value, 0 to 127, or see child_end(). */
#define IN_CHILD(_expression)				\
({							\
	pid_t _pid = fork();				\
							\
	if (!_pid)					\
		_exit(_expression);			\
	child_end(_pid);				\
})

/* Send a descriptor, and its number in this process. */
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

/* Receive a descriptor, or -1. Store its number in the sender. */
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

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif

/* Set a clock of future children @ahead seconds ahead. Return 0 or an error. */
static inline int timens_for_children(clockid_t clock, long ahead)
{
	char text[64];
	int fd, len = snprintf(text, sizeof(text), "%d %ld 0\n", clock, ahead);
	bool done;

	if (unshare(CLONE_NEWTIME))
		return -errno;
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	done = write(fd, text, len) == len;
	close(fd);
	return done ? 0 : -EIO;
}

/* The number of signals of alarm_every(). */
static volatile sig_atomic_t alarms;

static inline void count_alarm(int sig)
{
	(void)sig;
	alarms++;
}

/* Send SIGALRM every @usec microseconds; 0: no more. @flags: SA_RESTART or 0. */
static inline int alarm_every(unsigned int usec, int flags)
{
	struct itimerval timer = {
		.it_interval.tv_usec = usec,
		.it_value.tv_usec = usec,
	};
	struct sigaction action = { .sa_handler = count_alarm, .sa_flags = flags };

	return sigaction(SIGALRM, &action, NULL) ?: setitimer(ITIMER_REAL, &timer, NULL);
}

#endif /* HWT_PROCESS_H */
