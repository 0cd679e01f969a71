/* SPDX-License-Identifier: GPL-2.0-only */
/* Waiting for callbacks */
#ifndef _HWT_CORE_SYNC_H
#define _HWT_CORE_SYNC_H

#include "hwt.h"

struct hwt_runner;
struct module;
struct hwt_shard;

int hwt_sync(struct hwt_timeout *timeout, u64 set);
bool hwt_in_callback(const struct hwt_wheel *wheel);
void hwt_runner_enter(struct hwt_shard *shard, struct hwt_runner *runner);
void hwt_runner_leave(struct hwt_shard *shard, struct hwt_runner *runner);
bool hwt_wheel_enter(struct hwt_wheel *wheel);
void hwt_wheel_leave(struct hwt_wheel *wheel);
void hwt_wait_callbacks(struct hwt_shard *shard, u64 call, const struct module *owner);
void hwt_wait_unused(struct hwt_shard *shard);
void hwt_shard_barrier(struct hwt_shard *shard, const struct module *owner);
int hwt_shard_flush(struct hwt_shard *shard);

#endif /* _HWT_CORE_SYNC_H */
