/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Timeouts that are commands of io_uring, on kernels that can cancel such commands
 */
#ifndef _HWT_DEVICE_URING_H
#define _HWT_DEVICE_URING_H

#include <linux/types.h>

#include "hwt_compat.h"
#include "hwt_uapi.h"

struct hwt_entry;
struct io_uring_cmd;

#ifdef HWT_URING
#define HWT_URING_FEATURES	HWT_FEATURE_URING

void hwt_uring_attach(struct hwt_entry *entry, struct io_uring_cmd *cmd);
void hwt_uring_end(struct hwt_entry *entry, int res);
int hwt_uring_issue(struct io_uring_cmd *cmd, unsigned int issue_flags);
#else
#define HWT_URING_FEATURES	0

static inline void hwt_uring_attach(struct hwt_entry *entry, struct io_uring_cmd *cmd) { }
static inline void hwt_uring_end(struct hwt_entry *entry, int res) { }
#define hwt_uring_issue	NULL
#endif

#endif /* _HWT_DEVICE_URING_H */
