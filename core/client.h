/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of the core for a client that is in hwt.ko itself. Other clients have hwt.h only.
 */
#ifndef _HWT_CORE_CLIENT_H
#define _HWT_CORE_CLIENT_H

#include "hwt.h"

/* Set the shard of a timeout that is not held. */
static inline void hwt_timeout_set_shard(struct hwt_timeout *timeout, struct hwt_shard *shard)
{
	timeout->shard = shard;
}

struct hwt_shard *hwt_wheel_shard(const struct hwt_wheel *wheel);
int hwt_wheel_attach_cgroups(struct hwt_wheel *wheel);
void hwt_debugfs_run(void (*create)(void *of), void *of);

#endif /* _HWT_CORE_CLIENT_H */
