// SPDX-License-Identifier: GPL-2.0-only
/*
 * 500,000 connections, each of which is closed after a silence.
 *
 * This shows a push-back with slack for each packet, which reads the clock once; the hold of the
 * timeout as the only reference to a connection, which ->release frees after an RCU grace period;
 * an unload that waits once for all timeouts, and not for each.
 *
 * There is no real network. A thread looks connections up under RCU, as a receive path would.
 * The log has a line when all silent connections are closed, and one at unload.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/time64.h>

#include "hwt.h"

#define CONN_MAX	10000000
/* Connections whose silences end within a second share a wake-up. */
#define CONN_SLACK_NS	NSEC_PER_SEC
/* Rounds of traffic in an idle time, and until the last connection falls silent. */
#define CONN_ROUNDS	8

static unsigned int connections = 500000;
module_param(connections, uint, 0444);
MODULE_PARM_DESC(connections, "number of connections, 1 to 10000000 (default 500000)");

static unsigned int idle_ms = 10000;
module_param(idle_ms, uint, 0444);
MODULE_PARM_DESC(idle_ms, "silence after which a connection is closed (default 10000)");

static unsigned int alive_pct = 50;
module_param(alive_pct, uint, 0444);
MODULE_PARM_DESC(alive_pct, "percentage of connections that never fall silent (default 50)");

struct conn {
	struct hwt_timeout	idle;		/* its only hold begins in conn_watch() */
	atomic64_t		heard_ns;	/* time of the last packet */
	unsigned int		number;		/* place in conn_table */
	spinlock_t		lock;		/* protects closed */
	bool			closed;		/* idle is not scheduled again */
	struct rcu_head		rcu;
};

static struct conn __rcu **conn_table;
static struct task_struct *conn_thread;
static unsigned int conn_hangups;	/* written by the thread only */
static atomic_t conn_expired, conn_freed;

/* Push the idle timeout to the end of the silence that begins at @heard_ns. Reads no clock. */
static void conn_schedule(struct conn *conn, u64 heard_ns, unsigned int flags)
{
	hwt_schedule_flags(&conn->idle, heard_ns + hwt_msecs(idle_ms), CONN_SLACK_NS,
			   HWT_SCHEDULE_AT | flags);
}

/*
 * Remove a connection from the table, and end its timeout. Process context or softirq, under
 * rcu_read_lock() or in the callback. Return false if it was closed already.
 */
static bool conn_close(struct conn *conn)
{
	bool was_closed;

	spin_lock_bh(&conn->lock);
	was_closed = conn->closed;
	if (!was_closed)
		RCU_INIT_POINTER(conn_table[conn->number], NULL);
	conn->closed = true;
	spin_unlock_bh(&conn->lock);
	/* In the callback there is nothing to cancel: the hold ends when the callback returns. */
	hwt_cancel(&conn->idle);
	return !was_closed;
}

/* A packet has come. Any context, under rcu_read_lock(). */
static void conn_alive(struct conn *conn)
{
	u64 now_ns = hwt_wheel_now(hwt_system_wheel);

	atomic64_set(&conn->heard_ns, now_ns);
	/* Only if it is pending: this begins no hold, and a closed connection stays closed. */
	conn_schedule(conn, now_ns, HWT_SCHEDULE_PENDING);
}

static void conn_expire(struct hwt_timeout *timeout)
{
	struct conn *conn = container_of(timeout, struct conn, idle);
	/* Read this before the clock: a packet may come now. */
	u64 heard_ns = atomic64_read(&conn->heard_ns);
	u64 silence_ns = hwt_wheel_now(hwt_system_wheel) - heard_ns;

	if (silence_ns >= hwt_msecs(idle_ms)) {
		if (conn_close(conn))
			atomic_inc(&conn_expired);
		return;
	}
	/* A packet has come just now, when this timeout was not pending. The hold goes on. */
	spin_lock_bh(&conn->lock);
	if (!conn->closed)
		conn_schedule(conn, heard_ns, 0);
	spin_unlock_bh(&conn->lock);
}

/* The hold has ended. A reader of the table may still use the connection. */
static void conn_release(struct hwt_timeout *timeout)
{
	atomic_inc(&conn_freed);
	kfree_rcu(container_of(timeout, struct conn, idle), rcu);
}

static const struct hwt_timeout_ops conn_ops = {
	.expire		= conn_expire,
	.release	= conn_release,
};

/* Create a connection, and start its idle timeout. */
static int conn_watch(unsigned int number)
{
	struct conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	u64 now_ns = hwt_wheel_now(hwt_system_wheel);

	if (!conn)
		return -ENOMEM;
	spin_lock_init(&conn->lock);
	conn->number = number;
	atomic64_set(&conn->heard_ns, now_ns);
	hwt_timeout_init(&conn->idle, hwt_system_wheel, &conn_ops);
	/* Under the lock, so that a close comes after the schedule, which cannot fail. */
	spin_lock_bh(&conn->lock);
	rcu_assign_pointer(conn_table[number], conn);
	conn_schedule(conn, now_ns, 0);
	spin_unlock_bh(&conn->lock);
	return 0;
}

/* -- The simulation -------------------------------------------------------- */

/*
 * Simulate packets: connections fall silent one after the other, unless they are kept alive, and
 * the peer of each hundredth one closes it. Return the number of silent connections.
 */
static unsigned int conn_round(unsigned int round, u64 *packets)
{
	unsigned int i, silent = 0;
	struct conn *conn;

	for (i = 0; i < connections; i++) {
		rcu_read_lock();
		conn = rcu_dereference(conn_table[i]);
		if (conn && i % 100 == 99) {
			conn_hangups += conn_close(conn);
		} else if (conn && (i % 100 < alive_pct || i % CONN_ROUNDS > round)) {
			conn_alive(conn);
			++*packets;
		} else if (conn) {
			silent++;
		}
		rcu_read_unlock();
		cond_resched();
	}
	return silent;
}

static int conn_traffic(void *unused)
{
	u64 begin_ns, spent_ns = 0, packets = 0;
	unsigned int round, silent;

	for (round = 0; !kthread_should_stop(); round++) {
		begin_ns = ktime_get_ns();
		silent = conn_round(round, &packets);
		spent_ns += ktime_get_ns() - begin_ns;
		if (round >= CONN_ROUNDS && !silent)
			pr_info_once("%d of %u connections closed after a silence, %u by their peers; %llu packets, %llu ns each\n",
				     atomic_read(&conn_expired), connections, conn_hangups,
				     packets, div64_u64(spent_ns, packets ?: 1));
		set_current_state(TASK_INTERRUPTIBLE);
		if (!kthread_should_stop())
			schedule_timeout(msecs_to_jiffies(idle_ms / CONN_ROUNDS));
		__set_current_state(TASK_RUNNING);
	}
	return 0;
}

/* -- Initialisation and exit ------------------------------------------------- */

/* Close all connections. Afterwards none of their callbacks is executing. */
static void conn_end(void)
{
	u64 begin_ns = ktime_get_ns();
	unsigned int i, open = 0;
	struct conn *conn;

	for (i = 0; i < connections; i++) {
		rcu_read_lock();
		conn = rcu_dereference(conn_table[i]);
		if (conn)
			open += conn_close(conn);
		rcu_read_unlock();
		cond_resched();
	}
	/* Wait for all callbacks and releases at once; hwt_shutdown_sync() waits for each. */
	hwt_wheel_barrier(hwt_system_wheel);
	kvfree(conn_table);
	pr_info("%u open connections closed in %llu ms, %d freed in all\n", open,
		div_u64(ktime_get_ns() - begin_ns, NSEC_PER_MSEC), atomic_read(&conn_freed));
}

static int __init conn_init(void)
{
	unsigned int i;
	int err = 0;

	if (connections < 1 || connections > CONN_MAX) {
		pr_err("connections=%u is not in 1..%u\n", connections, CONN_MAX);
		return -EINVAL;
	}
	if (idle_ms < CONN_ROUNDS) {
		pr_err("idle_ms=%u is less than %u\n", idle_ms, CONN_ROUNDS);
		return -EINVAL;
	}
	conn_table = kvcalloc(connections, sizeof(*conn_table), GFP_KERNEL);
	if (!conn_table)
		return -ENOMEM;
	for (i = 0; i < connections && !err; i++) {
		err = conn_watch(i);
		cond_resched();
	}
	if (!err) {
		conn_thread = kthread_run(conn_traffic, NULL, KBUILD_MODNAME);
		err = PTR_ERR_OR_ZERO(conn_thread);
	}
	if (err)
		conn_end();
	return err;
}
module_init(conn_init);

static void __exit conn_exit(void)
{
	kthread_stop(conn_thread);	/* no packet comes from here on */
	conn_end();
}
module_exit(conn_exit);

MODULE_AUTHOR("The hwt project");
MODULE_DESCRIPTION("hwt sample: many connections, closed after a silence");
MODULE_LICENSE("GPL");
