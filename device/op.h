/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The operations of a program: schedule, modify, cancel, get
 */
#ifndef _HWT_DEVICE_OP_H
#define _HWT_DEVICE_OP_H

#include <linux/types.h>

struct hwt_context;
struct hwt_op;
struct hwt_prealloc;
struct io_uring_cmd;

int hwt_op_schedule(struct hwt_context *ctx, struct hwt_op *op, s64 offset,
		    struct hwt_prealloc *prealloc, struct io_uring_cmd *cmd);
int hwt_op_modify(struct hwt_context *ctx, struct hwt_op *op, s64 offset, u64 *remaining_ns);
int hwt_op_cancel(struct hwt_context *ctx, const struct hwt_op *op);
int hwt_op_get(struct hwt_context *ctx, struct hwt_op *op, s64 offset);
void hwt_op_run_sized(struct hwt_context *ctx, void *from, u32 size, s64 offset,
		      struct hwt_prealloc *prealloc);

#endif /* _HWT_DEVICE_OP_H */
