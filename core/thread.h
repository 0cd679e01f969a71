/* SPDX-License-Identifier: GPL-2.0-only */
/* The threads of a shard */
#ifndef _HWT_CORE_THREAD_H
#define _HWT_CORE_THREAD_H

#include <linux/freezer.h>
#include <linux/kthread.h>

#include "core/shard.h"

/* Return true if the calling thread, which is one of the shard's, must freeze. */
static inline bool hwt_frozen(const struct hwt_shard *shard)
{
	return (shard->flags & HWT_FREEZABLE) && freezing(current);
}

/* Return true if the calling thread, which is one of the shard's, is to end. */
static inline bool hwt_thread_ends(const struct hwt_shard *shard)
{
	return READ_ONCE(shard->exiting) || kthread_should_stop();
}

/* Return the state in which the shard's threads sleep: they count neither as load nor as hung. */
static inline unsigned int hwt_idle_state(const struct hwt_shard *shard)
{
	return shard->flags & HWT_FREEZABLE ? TASK_IDLE | TASK_FREEZABLE : TASK_IDLE;
}

int hwt_threads_start(struct hwt_shard *shard, gfp_t gfp);
void hwt_threads_stop(struct hwt_shard *shard);
void hwt_threads_free(struct hwt_shard *shard);
void hwt_threads_pin(struct hwt_shard *shard);
bool hwt_engine_off_affinity(const struct hwt_shard *shard);

#endif /* _HWT_CORE_THREAD_H */
