/* SPDX-License-Identifier: GPL-2.0-only */
/* The stop of a wheel */
#ifndef _HWT_CORE_STOP_H
#define _HWT_CORE_STOP_H

#include "core/wheel.h"

void hwt_stop_count(struct hwt_shard *shard, const struct hwt_timeout *timeout, u64 old);
void hwt_stop_threads(struct hwt_wheel *wheel);
long hwt_stop(struct hwt_wheel *wheel, hwt_handback_fn fn, void *arg);

#endif /* _HWT_CORE_STOP_H */
