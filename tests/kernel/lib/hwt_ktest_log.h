/* SPDX-License-Identifier: GPL-2.0-only */
/* Included first, by tests/kernel/Kbuild: the harness looks for this prefix in the log. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
