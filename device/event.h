/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events: their creation, read() and poll()
 */
#ifndef _HWT_DEVICE_EVENT_H
#define _HWT_DEVICE_EVENT_H

#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/types.h>

struct hwt_context;
struct hwt_entry;
struct hwt_event;
struct hwt_wheel;

bool hwt_event_add(struct hwt_entry *entry, u64 due_ns, u64 now_ns);
void hwt_event_drop(struct hwt_entry *entry);
void hwt_event_fill(const struct hwt_entry *entry, struct hwt_event *event, s64 offset);
void hwt_event_taken(struct hwt_entry *entry);
void hwt_event_wake(struct hwt_context *ctx);
void hwt_event_clock_set(struct hwt_context *ctx, u64 now_ns, s64 jump_ns);
void hwt_event_wheel_clock_set(struct hwt_wheel *wheel, s64 jump_ns, void *arg);
ssize_t hwt_read_iter(struct kiocb *iocb, struct iov_iter *to);
__poll_t hwt_poll(struct file *file, poll_table *wait);

#endif /* _HWT_DEVICE_EVENT_H */
