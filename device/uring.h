/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Timeouts that are commands of io_uring, on kernels that can cancel such commands
 */
#ifndef _HWT_DEVICE_URING_H
#define _HWT_DEVICE_URING_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "hwt_compat.h"
#include "hwt_uapi.h"

struct hwt_context;
struct hwt_entry;
struct io_uring_cmd;

/**
 * struct hwt_commands - the timeouts of a context that are commands of io_uring
 * @list:    the entries with a command; protected by entries.xa_lock
 * @lock:    protects @carrier, @pause_ns, and @carrying of struct hwt_uring_pdu of each command.
 *           Taken with interrupts disabled, because the interrupt of the context's timer takes it,
 *           too
 * @carrier: the first command of @list: the task that has submitted it runs a pass when a timeout
 *           is due. NULL if @list is empty. Changes under @lock and entries.xa_lock.
 * @pause_ns: how long the last carrier put the pass off, ns; 0 if it ran the pass
 */
struct hwt_commands {
	struct list_head	list;
	spinlock_t		lock;		/* taken after entries.xa_lock */
	struct io_uring_cmd	*carrier;
	u64			pause_ns;
};

static inline void hwt_commands_init(struct hwt_commands *commands)
{
	INIT_LIST_HEAD(&commands->list);
	spin_lock_init(&commands->lock);
}

#ifdef HWT_URING
#define HWT_URING_FEATURES	HWT_FEATURE_URING

void hwt_uring_carry(struct hwt_context *ctx);
void hwt_uring_attach(struct hwt_entry *entry, struct io_uring_cmd *cmd);
void hwt_uring_end(struct hwt_entry *entry, int res);
int hwt_uring_issue(struct io_uring_cmd *cmd, unsigned int issue_flags);
#else
#define HWT_URING_FEATURES	0

static inline void hwt_uring_carry(struct hwt_context *ctx) { }
static inline void hwt_uring_attach(struct hwt_entry *entry, struct io_uring_cmd *cmd) { }
static inline void hwt_uring_end(struct hwt_entry *entry, int res) { }
#define hwt_uring_issue	NULL
#endif

#endif /* _HWT_DEVICE_URING_H */
