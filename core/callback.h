/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of the clients' functions
 */
#ifndef _HWT_CORE_CALLBACK_H
#define _HWT_CORE_CALLBACK_H

#include "core/wheel.h"

/**
 * struct hwt_call - a call of a client's function
 * @fn:      the function; hwt_client_fn() names the client's
 * @began:   when the call began, on CLOCK_MONOTONIC, ns
 * @cpu_ns:  the task's CPU time then, as of the scheduler's last tick or switch
 * @preempt: preemption count. This and the members up to @irqs_off are from before the call, for
 *           hwt_call_check()
 * @rcu:     nested RCU read-side sections
 * @locks:   locks held, counted by lockdep
 * @migrate: nested migrate_disable() sections
 * @irqs_off: interrupts are off
 * @nested:  inside another callback, for lockdep
 * @lockdep_map: a copy of the timeout's map
 *
 * On the caller's stack.
 */
struct hwt_call {
	const void	*fn;
	u64		began;
	u64		cpu_ns;
	int		preempt;
	int		rcu;
	int		locks;
	int		migrate;
	bool		irqs_off;
	bool		nested;
#ifdef CONFIG_LOCKDEP
	struct lockdep_map lockdep_map;
#endif
};

/* Copy the members of a timeout that a call needs at its end: the timeout may be freed by then. */
static inline void hwt_call_copy(struct hwt_call *call, const struct hwt_timeout *timeout)
{
#ifdef CONFIG_LOCKDEP
	lockdep_copy_map(&call->lockdep_map, (struct lockdep_map *)&timeout->lockdep_map);
#endif
}

/* Prepare hwt_call_release() while the timeout is still held. */
static inline void hwt_call_prepare(struct hwt_call *call, const struct hwt_timeout *timeout)
{
	call->fn = timeout->ops->release;
	if (call->fn)
		hwt_call_copy(call, timeout);
}

/* The callbacks of a struct hwt_handle: these two call the client's. */
extern const struct hwt_timeout_ops hwt_handle_ops;
void hwt_handle_expire(struct hwt_timeout *timeout);
void hwt_handle_cancelled(struct hwt_timeout *timeout);

/**
 * hwt_client_fn() - return the client's function that a function of a timeout calls
 * @timeout: the timeout
 * @fn:      its ->expire, ->cancelled or ->release, or any other function that is called for it
 *
 * For reports, and for the checks of a module that is unloaded. The function of a handle is in the
 * handle, whose memory is valid before the first schedule, while the timeout is held, and for a
 * caller that has a reference. After a callback, the timeout is held until hwt_finish(). For a
 * ->release, which is called after the hold, this does not read the timeout.
 *
 * Return: the function of the handle, if @fn calls one; else @fn.
 */
static inline const void *hwt_client_fn(const struct hwt_timeout *timeout, const void *fn)
{
	const struct hwt_handle *handle = container_of(timeout, struct hwt_handle, timeout);

	if (unlikely(fn == hwt_handle_expire))
		return handle->fn;
	if (unlikely(fn == hwt_handle_cancelled && handle->cancelled))
		return handle->cancelled;
	return fn;
}

/* hwt_call_begin() releases the lock, hwt_call_end() takes it, hwt_call_release() does both. */
void hwt_call_begin(struct hwt_shard *shard, struct hwt_runner *runner,
		    struct hwt_timeout *timeout, const void *fn,
		    struct hwt_call *call);
void hwt_call_end(struct hwt_shard *shard, struct hwt_runner *runner, struct hwt_call *call);
void hwt_call_release(struct hwt_shard *shard, struct hwt_runner *runner,
		      struct hwt_timeout *timeout, struct hwt_call *call);
/* Without the lock. */
#ifdef CONFIG_LOCKDEP
void hwt_lockdep_sync(struct hwt_timeout *timeout);
void hwt_lockdep_shard(struct hwt_shard *shard);
#else
static inline void hwt_lockdep_sync(struct hwt_timeout *timeout) { }
static inline void hwt_lockdep_shard(struct hwt_shard *shard) { }
#endif

#endif /* _HWT_CORE_CALLBACK_H */
