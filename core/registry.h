/* SPDX-License-Identifier: GPL-2.0-only */
/* The registry of live wheels */
#ifndef _HWT_CORE_REGISTRY_H
#define _HWT_CORE_REGISTRY_H

#include "core/wheel.h"

bool hwt_shard_exists(const struct hwt_shard *shard);
void hwt_wheel_register(struct hwt_wheel *wheel, const void *creator, struct module *owner);
void hwt_wheel_unregister(struct hwt_wheel *wheel);
struct hwt_wheel *hwt_shared_get(const struct hwt_wheel_params *params, struct module *owner,
				 struct hwt_wheel *created, const void *creator);
int hwt_shared_put(struct hwt_wheel *wheel, const struct module *owner);
int hwt_registry_init(void);
void hwt_registry_exit(void);

#endif /* _HWT_CORE_REGISTRY_H */
