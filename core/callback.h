/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls of the clients' functions */
#ifndef _HWT_CORE_CALLBACK_H
#define _HWT_CORE_CALLBACK_H

#include <linux/module.h>

#include "core/shard.h"

/*
 * A call of a client's function. hwt_call_check() compares the members from @preempt to @irqs_off,
 * which have the values from before the call, with those after the call.
 */
struct hwt_call {
	const void	*fn;
	u64		began;		/* on CLOCK_MONOTONIC, ns; see hwt_call_time() */
	u64		cpu_ns;		/* CPU time of the task, as last updated by the scheduler */
	int		preempt;	/* preemption count */
	int		rcu;		/* number of nested RCU read-side sections */
	int		locks;		/* number of locks held, as counted by lockdep */
	int		migrate;	/* number of nested migrate_disable() sections */
	bool		irqs_off;
	bool		nested;		/* inside another callback: acquire hwt_inside_map only */
#ifdef CONFIG_LOCKDEP
	struct lockdep_map lockdep_map;	/* a copy: the timeout may be freed during the call */
#endif
};

/* Copy what a call needs at its end, when the timeout may have been freed. */
static inline void hwt_call_copy(struct hwt_call *call, const struct hwt_timeout *timeout)
{
#ifdef CONFIG_LOCKDEP
	lockdep_copy_map(&call->lockdep_map, (struct lockdep_map *)&timeout->lockdep_map);
#endif
}

/* Prepare a call of hwt_call_release(), while the timeout is still held and may be read. */
static inline void hwt_call_prepare(struct hwt_call *call, const struct hwt_timeout *timeout)
{
	call->fn = timeout->ops->release;
	if (call->fn)
		hwt_call_copy(call, timeout);
}

/* Return true if a held timeout, its ops or one of its functions is in the module's memory. */
static inline bool hwt_module_needs(const struct hwt_timeout *timeout, const struct module *module)
{
	const struct hwt_timeout_ops *ops = timeout->ops;

	return within_module((unsigned long)timeout, module) ||
	       within_module((unsigned long)ops, module) ||
	       within_module((unsigned long)ops->expire, module) ||
	       within_module((unsigned long)ops->cancelled, module) ||
	       within_module((unsigned long)ops->release, module);
}

/* hwt_call_begin() drops the lock, hwt_call_end() takes it, and hwt_call_release() does both. */
void hwt_call_begin(struct hwt_shard *shard, struct hwt_runner *runner,
		    struct hwt_timeout *timeout, const void *fn,
		    struct hwt_call *call);
void hwt_call_end(struct hwt_shard *shard, struct hwt_runner *runner, struct hwt_call *call);
void hwt_call_release(struct hwt_shard *shard, struct hwt_runner *runner,
		      struct hwt_timeout *timeout, struct hwt_call *call);
/* Called without the shard's lock. */
void hwt_runner_read_clock(struct hwt_runner *runner);
void hwt_call_unbalanced(const void *fn, int before);
u64 hwt_call_timed(struct hwt_shard *shard, const void *fn, u64 began);
#ifdef CONFIG_LOCKDEP
void hwt_lockdep_begin(struct hwt_shard *shard, struct hwt_runner *runner, struct hwt_call *call);
void hwt_lockdep_end(struct hwt_shard *shard, struct hwt_runner *runner, struct hwt_call *call);
void hwt_lockdep_sync(struct hwt_timeout *timeout);
void hwt_lockdep_shard(struct hwt_shard *shard);
#else
static inline void hwt_lockdep_begin(struct hwt_shard *shard, struct hwt_runner *runner,
				     struct hwt_call *call) { }
static inline void hwt_lockdep_end(struct hwt_shard *shard, struct hwt_runner *runner,
				   struct hwt_call *call) { }
static inline void hwt_lockdep_sync(struct hwt_timeout *timeout) { }
static inline void hwt_lockdep_shard(struct hwt_shard *shard) { }
#endif

#endif /* _HWT_CORE_CALLBACK_H */
