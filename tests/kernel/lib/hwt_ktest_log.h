/* SPDX-License-Identifier: GPL-2.0-only */
/* Included ahead of everything else by tests/kernel/Kbuild: the harness looks for this prefix. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
