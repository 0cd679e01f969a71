/* SPDX-License-Identifier: GPL-2.0-only */
/* A wheel that test_keeper.ko keeps for test_leaver.ko. */
extern void *test_kept;
