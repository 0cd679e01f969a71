/* SPDX-License-Identifier: GPL-2.0-only */
/* What test_debug_host.ko has for test_debug_leaver.ko. */
struct hwt_wheel;

/* A shared one, and one of the host's own, which has a worker. */
extern struct hwt_wheel *test_debug_shared, *test_debug_own;
/* Freed by the host. */
extern void *test_debug_memory;
