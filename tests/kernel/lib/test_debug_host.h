/* SPDX-License-Identifier: GPL-2.0-only */
/* Exported by test_debug_host.ko for test_debug_leaver.ko. */
struct hwt_handle;
struct hwt_timeout_ops;
struct hwt_timeout;
struct hwt_wheel;

/* A shared wheel, and a private wheel with one worker. */
extern struct hwt_wheel *test_debug_shared, *test_debug_own;
/* A timeout of the host on the private wheel, which keeps the worker busy for half a second. */
extern struct hwt_timeout test_debug_busy;
/* Callbacks whose functions are in the host. */
extern const struct hwt_timeout_ops test_debug_ops;
/* A function of the host for a handle. */
void test_debug_fn(struct hwt_handle *handle);
/* Memory that the host frees. */
extern void *test_debug_memory;
/* Called after hwt has reported the timeouts that the module leaves, and before it is gone. */
extern void (*test_debug_mend)(void);
