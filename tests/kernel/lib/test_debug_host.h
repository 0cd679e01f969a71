/* SPDX-License-Identifier: GPL-2.0-only */
/* What test_debug_host.ko has for test_debug_leaver.ko. */
struct hwt_timeout_ops;
struct hwt_timeout;
struct hwt_wheel;

/* A shared one, and one of the host's own, which has a worker. */
extern struct hwt_wheel *test_debug_shared, *test_debug_own;
/* The host's, on its own wheel: keeps the worker for half a second. */
extern struct hwt_timeout test_debug_busy;
/* Functions of the host's. */
extern const struct hwt_timeout_ops test_debug_ops;
/* Freed by the host. */
extern void *test_debug_memory;
