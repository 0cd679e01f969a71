/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rings in memory that is shared with the program
 */
#ifndef _HWT_DEVICE_RING_H
#define _HWT_DEVICE_RING_H

#include <linux/ktime.h>
#include <linux/types.h>

struct file;
struct hwt_context;
struct hwt_enter_args;
struct hwt_rings_args;
struct hwt_rings_ctx;
struct vm_area_struct;

int hwt_ioctl_rings(struct hwt_context *ctx, void *arg);
void hwt_rings_tell(struct hwt_context *ctx);
void hwt_rings_due(struct hwt_context *ctx, bool due);
void hwt_rings_next(struct hwt_context *ctx, u64 ns);
void hwt_rings_fill(struct hwt_context *ctx);
/* Number of steps of hwt_rings_refill() in one poll(), to limit the time that it takes */
#define HWT_REFILL_STEPS	64

u32 hwt_rings_refill(struct hwt_context *ctx, u32 want, u32 steps, ktime_t end);
bool hwt_rings_pass_due(struct hwt_context *ctx);
bool hwt_rings_ready(const struct hwt_context *ctx);
int hwt_ioctl_enter(struct hwt_context *ctx, void *args);
int hwt_rings_mmap(struct file *file, struct vm_area_struct *vma);
void hwt_rings_free(struct hwt_rings_ctx *rings);

#endif /* _HWT_DEVICE_RING_H */
