/* SPDX-License-Identifier: GPL-2.0-only */
/* A wheel that kt_keeper.ko keeps for kt_leaver.ko. */
extern void *test_kept;
