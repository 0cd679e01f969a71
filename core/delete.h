/* SPDX-License-Identifier: GPL-2.0-only */
/* hwt_delete(): cancel a timeout and take it back at once */
#ifndef _HWT_CORE_DELETE_H
#define _HWT_CORE_DELETE_H

#include "core/shard.h"

int hwt_delete_held(struct hwt_shard *shard, struct hwt_timeout *timeout, u64 set, bool try,
		    bool *running);

#endif /* _HWT_CORE_DELETE_H */
