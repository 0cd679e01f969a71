// SPDX-License-Identifier: GPL-2.0-only
/*
 * A context with a kernel thread: its CPU, priority and busy waiting, and the capability that it
 * requires. For values out of range, see badinput.c.
 *
 * hwt-test: timeout 150
 */
#include "kselftest_harness.h"

#include "fixtures.h"
#include "guest.h"

#define place(_fd, _flags, _cpu, _priority)				\
	hwt_with(_fd, SETUP, setup, .flags = (_flags) | HWT_SETUP_THREAD,	\
		 .cpu = (_cpu), .priority = (_priority))

/* Return the thread of the context; 0: there is none. */
static pid_t find_thread(void)
{
	pid_t pid = 0;

	context_threads(&pid);
	return pid;
}

/* Wait until the thread has the CPU and the policy, which it sets itself. */
static bool placed(unsigned int cpu, int policy)
{
	pid_t pid = find_thread();
	cpu_set_t cpus;

	return pid && until(!sched_getaffinity(pid, sizeof(cpus), &cpus) &&
			    CPU_ISSET(cpu, &cpus) && CPU_COUNT(&cpus) == 1 &&
			    sched_getscheduler(pid) == policy);
}

static bool fires(int fd)
{
	struct hwt_event event;

	return !hwt_add(fd, 0, 5 * MSEC, 3, NULL) && hwt_next(fd, &event) == 1 &&
	       event.user_data == 3 && event.fired_ns >= event.deadline_ns;
}

TEST_F(ctx, priorities)
{
	struct sched_param param[2] = {};
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, place(self->fd, HWT_SETUP_CPU, 0, HWT_PRIO_FIFO_LOW + i));
		ASSERT_TRUE(placed(0, SCHED_FIFO));
		ASSERT_EQ(0, sched_getparam(find_thread(), &param[i]));
		EXPECT_TRUE(fires(self->fd));
		close(self->fd);
		self->fd = hwt_open(O_NONBLOCK);
	}
	EXPECT_LT(0, param[0].sched_priority);
	EXPECT_LT(param[0].sched_priority, param[1].sched_priority);
	ASSERT_EQ(0, place(self->fd, 0, 0, HWT_PRIO_FIFO_LOW));
	EXPECT_TRUE(fires(self->fd));
}

TEST_F_TIMEOUT(ctx, busy, 60)
{
	int i;

	ASSERT_EQ(0, place(self->fd, HWT_SETUP_BUSY_WAIT | HWT_SETUP_CPU, 0,
			   HWT_PRIO_NORMAL));
	EXPECT_TRUE(placed(0, SCHED_OTHER));
	for (i = 0; i < 5; i++)
		EXPECT_TRUE(fires(self->fd));
	EXPECT_EQ(-EBUSY, place(self->fd, 0, 0, 0));
}

TEST_F(ctx, cpu_that_is_offline)
{
	static const char online[] = "/sys/devices/system/cpu/cpu1/online";
	int ret;

	if (!write_text(online, "0"))
		SKIP(return, "no CPU to take offline");
	ret = place(self->fd, HWT_SETUP_CPU, 1, 0);
	EXPECT_TRUE(write_text(online, "1"));
	EXPECT_EQ(-EINVAL, ret);
	EXPECT_EQ(0, place(self->fd, HWT_SETUP_CPU, 1, 0));
}

/* The caller of SETUP needs the capability, not the opener of the context. */
TEST_F(ctx, without_the_capability)
{
	int fds[2] = { self->fd }, i;

	ASSERT_EQ(0, set_capability(CAP_SYS_NICE, false));
	fds[1] = hwt_open(0);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-EPERM, place(fds[i], 0, 0, 0));
		EXPECT_EQ(-EPERM, place(fds[i], HWT_SETUP_CPU, 0, 0));
		EXPECT_EQ(-EPERM, place(fds[i], HWT_SETUP_BUSY_WAIT | HWT_SETUP_CPU, 0, 0));
		EXPECT_EQ(-EPERM, place(fds[i], 0, 0, HWT_PRIO_FIFO_LOW));
		EXPECT_EQ(-EPERM, place(fds[i], 0, 0, HWT_PRIO_FIFO));
		EXPECT_EQ(-EPERM, place(fds[i], HWT_SETUP_CPU, 0, HWT_PRIO_FIFO));
		/* -EPERM, so that the error does not tell which CPUs exist. */
		EXPECT_EQ(-EPERM, place(fds[i], HWT_SETUP_CPU, ~0U, 0));
	}
	EXPECT_EQ(contexts_have_threads(), find_thread() != 0);
	ASSERT_EQ(0, set_capability(CAP_SYS_NICE, true));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, place(fds[i], HWT_SETUP_CPU, 0, HWT_PRIO_FIFO_LOW));
	close(fds[1]);
}

/* With the capability, the caller may choose CPUs outside of its own affinity. */
TEST_F(ctx, beyond_ones_own_cpus)
{
	cpu_set_t before;

	if (!last_cpu())
		SKIP(return, "one CPU");
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(before), &before));
	ASSERT_TRUE(stay_on_cpu(0));
	EXPECT_EQ(0, place(self->fd, HWT_SETUP_CPU, 1, 0));
	EXPECT_TRUE(placed(1, SCHED_OTHER));
	EXPECT_TRUE(fires(self->fd));
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(before), &before));
}

TEST_HARNESS_MAIN
