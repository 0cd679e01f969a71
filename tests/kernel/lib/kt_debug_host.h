/* SPDX-License-Identifier: GPL-2.0-only */
/* Exported by kt_debug_host.ko for kt_debug_leaver.ko. */
struct hwt_timeout_ops;
struct hwt_timeout;
struct hwt_wheel;

/* A shared wheel, and a private wheel with one worker. */
extern struct hwt_wheel *kt_debug_shared, *kt_debug_own;
/* A timeout of the host on the private wheel, which keeps the worker busy for half a second. */
extern struct hwt_timeout kt_debug_busy;
/* Callbacks whose functions are in the host. */
extern const struct hwt_timeout_ops kt_debug_ops;
/* Memory that the host frees. */
extern void *kt_debug_memory;
/* Called after hwt has reported the timeouts that the module leaves, and before it is gone. */
extern void (*kt_debug_mend)(void);
