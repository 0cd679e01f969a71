/* SPDX-License-Identifier: GPL-2.0-only */
/* All code that depends on the version of the kernel, which is 6.1 or later */
#ifndef _HWT_COMPAT_H
#define _HWT_COMPAT_H

#include <linux/version.h>

#include <linux/topology.h>
#ifdef CONFIG_X86
#include <asm/processor.h>
#endif

/* Return the id of a CPU's last-level cache or, on architectures other than x86, of its package. */
static inline unsigned int hwt_cpu_cache(unsigned int cpu)
{
#if !defined(CONFIG_X86)
	return topology_physical_package_id(cpu);
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	return cpu_data(cpu).topo.llc_id;
#else
	return get_llc_id(cpu);
#endif
}

/* Before Linux 6.2, timer_delete_sync() may not exist. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define hwt_timer_delete_sync(_timer)	timer_delete_sync(_timer)
#else
#define hwt_timer_delete_sync(_timer)	del_timer_sync(_timer)
#endif

/* Since Linux 6.13, hrtimer_setup() replaces hrtimer_init() and the assignment of the function. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define hwt_hrtimer_setup(_timer, _function, _clock, _mode)		\
	hrtimer_setup((_timer), (_function), (_clock), (_mode))
#else
#define hwt_hrtimer_setup(_timer, _function, _clock, _mode)		\
	do {								\
		struct hrtimer *__timer = (_timer);			\
									\
		hrtimer_init(__timer, (_clock), (_mode));		\
		__timer->function = (_function);			\
	} while (0)
#endif

/* Before Linux 6.17, system_dfl_wq has another name. Linux 7.2 warns of the use of that name. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define system_dfl_wq	system_unbound_wq
#endif

/* Since Linux 6.4, class_create() has no argument for the module. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
#define hwt_class_create(_name)	class_create(_name)
#else
#define hwt_class_create(_name)	class_create(THIS_MODULE, _name)
#endif

/*
 * HWT_URING is defined if the kernel can cancel pending commands of io_uring (6.7 and later). On
 * older kernels, a pending command would keep its file open even after its task has died.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

#if defined(CONFIG_IO_URING) && defined(IORING_URING_CMD_CANCELABLE)
#define HWT_URING

static inline void hwt_uring_done(struct io_uring_cmd *cmd, int res,
				  unsigned int issue_flags)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	io_uring_cmd_done(cmd, res, issue_flags);
#else
	io_uring_cmd_done(cmd, res, 0, issue_flags);
#endif
}

/*
 * Hide a command that is marked as cancelable from io_uring's cancellations, and return true.
 * Before Linux 6.10, task work may run without uring_lock, which protects the mark: do nothing.
 */
static inline bool hwt_uring_hide(struct io_uring_cmd *cmd)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
	cmd->flags &= ~IORING_URING_CMD_CANCELABLE;
	return true;
#else
	return false;
#endif
}

/* Undo hwt_uring_hide(), so that hwt_uring_done() takes the command off io_uring's list. */
static inline void hwt_uring_show(struct io_uring_cmd *cmd)
{
	cmd->flags |= IORING_URING_CMD_CANCELABLE;
}

/* Define _name(), a callback for io_uring_cmd_do_in_task_lazy(). It calls _fn(cmd, issue_flags). */
#ifdef IO_URING_CMD_TASK_WORK_ISSUE_FLAGS	/* 6.19 and later */
#define HWT_DEFINE_URING_WORK(_name, _fn)					\
	static void _name(struct io_tw_req req, io_tw_token_t tw)		\
	{									\
		_fn(io_uring_cmd_from_tw(req),					\
		    IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);			\
	}
#else
#define HWT_DEFINE_URING_WORK(_name, _fn)					\
	static void _name(struct io_uring_cmd *cmd, unsigned int issue_flags)	\
	{									\
		_fn(cmd, issue_flags);						\
	}
#endif
#endif /* HWT_URING */

#endif /* _HWT_COMPAT_H */
