// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers that are pinged at a fixed rate, reconnected after a silence, and closed if they do not
 * answer after several reconnects.
 *
 * This shows a periodic timeout; a watchdog, which every sign of life pushes back, in hard
 * interrupt context; a throttle, so that many events cause few lines in the log; objects with
 * reference counts, freed by the last release; a private wheel, which is stopped before the module
 * is unloaded.
 *
 * There is no real network. A peer answers a ping by an interrupt (an irq_work), as a network card
 * would. The kind of a peer says when it falls silent. Peers have these kinds in turn:
 *
 *   steady   always answers
 *   flaky    falls silent after `answers` pings, and comes back when reconnected
 *   dead     falls silent after `answers` pings, for good
 *
 * State in debugfs, hwt_heartbeat/:
 *
 *   peers    a line per open peer
 *   totals   sums over all peers, and statistics of the wheel
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/time64.h>

#include "hwt.h"

#define BEAT_PEERS_MAX	100000
#define BEAT_MS_MAX	(24 * 60 * 60 * 1000)

static unsigned int peers = 6;
module_param(peers, uint, 0444);
MODULE_PARM_DESC(peers, "number of peers, 1 to 100000 (default 6)");

static unsigned int ping_ms = 100;
module_param(ping_ms, uint, 0444);
MODULE_PARM_DESC(ping_ms, "time between two pings (default 100)");

static unsigned int idle_ms = 350;
module_param(idle_ms, uint, 0444);
MODULE_PARM_DESC(idle_ms, "silence after which a peer is reconnected (default 350)");

static unsigned int reconnects = 2;
module_param(reconnects, uint, 0444);
MODULE_PARM_DESC(reconnects, "reconnects without an answer before a peer is closed (default 2)");

static unsigned int answers = 5;
module_param(answers, uint, 0444);
MODULE_PARM_DESC(answers, "pings that flaky and dead peers answer (default 5)");

enum beat_kind {
	BEAT_STEADY,
	BEAT_FLAKY,
	BEAT_DEAD,
	BEAT_KINDS,
};

static const char * const beat_kind_names[] = {
	[BEAT_STEADY]	= "steady",
	[BEAT_FLAKY]	= "flaky",
	[BEAT_DEAD]	= "dead",
};

/**
 * struct beat_peer - the other end of a connection
 * @ref:        one for being open, one for each timeout that is held
 * @link:       in beat_peers while it is open; protected by beat_lock
 * @id:         its number
 * @ping:       sends the next ping
 * @idle:       the watchdog: fires when the peer has been silent for too long
 * @answer:     the simulated interrupt: a packet from the peer has come
 * @heard_ns:   time of the last answer
 * @kind:       how it behaves, for the simulation
 * @left:       pings it will still answer, for the simulation
 * @pings:      pings sent
 * @answers:    answers received
 * @attempts:   reconnects since the last answer
 * @reconnects: reconnects, ever
 *
 * The wheel has one shard without workers, so its thread runs all callbacks one after the other,
 * and members that only callbacks write need no lock. The interrupt also writes @heard_ns, @answers
 * and @attempts.
 */
struct beat_peer {
	struct kref		ref;
	struct list_head	link;
	unsigned int		id;
	struct hwt_periodic	ping;
	struct hwt_timeout	idle;
	struct irq_work		answer;
	u64			heard_ns;
	enum beat_kind		kind;
	unsigned int		left;
	unsigned int		pings;
	unsigned int		answers;
	unsigned int		attempts;
	unsigned int		reconnects;
};

static struct hwt_wheel *beat_wheel;
static struct dentry *beat_dir;

static LIST_HEAD(beat_peers);
static DEFINE_MUTEX(beat_lock);

/* For "totals". */
static atomic_t beat_freed, beat_closed, beat_reconnects, beat_summaries;
static atomic64_t beat_pings, beat_answers, beat_pushed_back;

/* -- The log ------------------------------------------------------------- */

static void beat_summary_expire(struct hwt_timeout *timeout)
{
	atomic_inc(&beat_summaries);
	pr_info("%d reconnects so far, %d of %u peers closed\n",
		atomic_read(&beat_reconnects), atomic_read(&beat_closed), peers);
}

static const struct hwt_timeout_ops beat_summary_ops = { .expire = beat_summary_expire };

static struct hwt_timeout beat_summary =
	HWT_TIMEOUT_INIT(beat_summary, &beat_summary_ops);

/* A throttle: the first event schedules it, later events leave it as it is. */
static void beat_event(void)
{
	hwt_schedule_earlier(&beat_summary, NSEC_PER_SEC);
}

/* -- Life of a peer ------------------------------------------------------ */

static void beat_peer_free(struct kref *ref)
{
	struct beat_peer *peer = container_of(ref, struct beat_peer, ref);

	irq_work_sync(&peer->answer);
	atomic_inc(&beat_freed);
	kfree(peer);
}

/* Process context: the last put waits for the interrupt. */
static void beat_peer_put(struct beat_peer *peer)
{
	kref_put(&peer->ref, beat_peer_free);
}

static void beat_peer_get(struct beat_peer *peer)
{
	kref_get(&peer->ref);
}

/* A hold of either timeout has a reference to the peer. */
static void beat_ping_release(struct hwt_timeout *timeout)
{
	beat_peer_put(container_of(timeout, struct beat_peer, ping.timeout));
}

static void beat_idle_release(struct hwt_timeout *timeout)
{
	beat_peer_put(container_of(timeout, struct beat_peer, idle));
}

static int beat_peer_watch(struct beat_peer *peer, u64 delay_ns)
{
	int ret;

	ret = hwt_schedule_ref(&peer->idle, delay_ns, 0, 0, beat_peer_get, beat_peer_put, peer);
	return ret < 0 ? ret : 0;
}

static int beat_peer_ping(struct beat_peer *peer)
{
	int ret;

	ret = hwt_schedule_periodic_ref(&peer->ping, hwt_msecs(ping_ms), hwt_msecs(ping_ms),
					HWT_MODE_FIXED_RATE, beat_peer_get, beat_peer_put, peer);
	return ret < 0 ? ret : 0;
}

/* Cancel the timeouts of a peer, which is freed when the last hold ends. */
static void beat_peer_close(struct beat_peer *peer)
{
	mutex_lock(&beat_lock);
	list_del(&peer->link);
	mutex_unlock(&beat_lock);
	hwt_cancel(&peer->ping.timeout);
	hwt_cancel(&peer->idle);
	beat_peer_put(peer);
}

/* -- Events of a peer ---------------------------------------------------- */

/* Hard interrupt: an answer of the peer has come. */
static void beat_answer(struct irq_work *work)
{
	struct beat_peer *peer = container_of(work, struct beat_peer, answer);

	WRITE_ONCE(peer->heard_ns, hwt_wheel_now(beat_wheel));
	WRITE_ONCE(peer->attempts, 0);
	WRITE_ONCE(peer->answers, peer->answers + 1);
	atomic64_inc(&beat_answers);
	/*
	 * Push the watchdog back only if it is pending: this begins no hold, which would need a
	 * reference, and does not watch a peer that was closed meanwhile.
	 */
	if (hwt_schedule_pending(&peer->idle, hwt_msecs(idle_ms)) > 0)
		atomic64_inc(&beat_pushed_back);
}

static void beat_ping_expire(struct hwt_timeout *timeout)
{
	struct beat_peer *peer = container_of(timeout, struct beat_peer,
					      ping.timeout);

	peer->pings++;
	atomic64_inc(&beat_pings);
	if (peer->kind != BEAT_STEADY) {
		if (!peer->left)
			return;
		peer->left--;
	}
	irq_work_queue(&peer->answer);
}

static void beat_idle_expire(struct hwt_timeout *timeout)
{
	struct beat_peer *peer = container_of(timeout, struct beat_peer, idle);
	u64 idle_ns = hwt_msecs(idle_ms);
	/* Read this before the clock: an answer may come now. */
	u64 heard_ns = READ_ONCE(peer->heard_ns);
	u64 silence_ns = hwt_wheel_now(beat_wheel) - heard_ns;

	if (silence_ns < idle_ns) {
		/* An answer has come just now, when this timeout was not pending. */
		beat_peer_watch(peer, idle_ns - silence_ns);
		return;
	}
	if (peer->attempts >= reconnects) {
		pr_info("peer %u: silent for %lld ms, closed after %u reconnects\n",
			peer->id, ktime_to_ms(silence_ns), peer->attempts);
		atomic_inc(&beat_closed);
		beat_event();
		beat_peer_close(peer);
		return;
	}
	WRITE_ONCE(peer->attempts, peer->attempts + 1);
	peer->reconnects++;
	atomic_inc(&beat_reconnects);
	beat_event();
	if (peer->kind == BEAT_FLAKY)
		peer->left = answers;
	beat_peer_watch(peer, idle_ns);
}

static const struct hwt_timeout_ops beat_ping_ops = {
	.expire		= beat_ping_expire,
	.release	= beat_ping_release,
};

static const struct hwt_timeout_ops beat_idle_ops = {
	.expire		= beat_idle_expire,
	.release	= beat_idle_release,
};

/* Open a peer. beat_peer_close() or beat_teardown() closes it. */
static int beat_peer_open(unsigned int id)
{
	struct beat_peer *peer;
	int err;

	peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	if (!peer)
		return -ENOMEM;
	kref_init(&peer->ref);
	peer->id = id;
	peer->kind = id % BEAT_KINDS;
	peer->left = answers;
	peer->heard_ns = hwt_wheel_now(beat_wheel);
	peer->answer = IRQ_WORK_INIT_HARD(beat_answer);
	hwt_periodic_init(&peer->ping, beat_wheel, &beat_ping_ops);
	hwt_timeout_init(&peer->idle, beat_wheel, &beat_idle_ops);

	mutex_lock(&beat_lock);
	list_add_tail(&peer->link, &beat_peers);
	mutex_unlock(&beat_lock);

	err = beat_peer_ping(peer);
	/* Do this last, because the peer may be closed as soon as it is watched. */
	if (!err)
		err = beat_peer_watch(peer, hwt_msecs(idle_ms));
	return err;
}

/* -- debugfs ------------------------------------------------------------- */

static int beat_peers_show(struct seq_file *seq, void *unused)
{
	struct beat_peer *peer;
	u64 now = hwt_wheel_now(beat_wheel);

	seq_puts(seq, "peer   kind    pings  answers  missed  reconnects  silent_ms\n");
	mutex_lock(&beat_lock);
	list_for_each_entry(peer, &beat_peers, link) {
		s64 silence_ns = now - READ_ONCE(peer->heard_ns);

		seq_printf(seq, "%-6u %-7s %-6u %-8u %-7llu %-11u %lld\n",
			   peer->id, beat_kind_names[peer->kind],
			   READ_ONCE(peer->pings), READ_ONCE(peer->answers),
			   hwt_overruns_total(&peer->ping),
			   READ_ONCE(peer->reconnects),
			   ktime_to_ms(max_t(s64, silence_ns, 0)));
	}
	mutex_unlock(&beat_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(beat_peers);

static int beat_totals_show(struct seq_file *seq, void *unused)
{
	struct hwt_wheel_stats stats;
	int closed = atomic_read(&beat_closed);

	hwt_wheel_get_stats(beat_wheel, &stats);
	seq_printf(seq, "open %d\n", (int)peers - closed);
	seq_printf(seq, "closed %d\n", closed);
	seq_printf(seq, "freed %d\n", atomic_read(&beat_freed));
	seq_printf(seq, "reconnects %d\n", atomic_read(&beat_reconnects));
	seq_printf(seq, "pings %lld\n", atomic64_read(&beat_pings));
	seq_printf(seq, "answers %lld\n", atomic64_read(&beat_answers));
	seq_printf(seq, "pushed_back %lld\n", atomic64_read(&beat_pushed_back));
	seq_printf(seq, "summaries %d\n", atomic_read(&beat_summaries));
	seq_printf(seq, "wheel_pending %llu\n", stats.pending);
	seq_printf(seq, "wheel_rearmed %llu\n", stats.rearmed);
	seq_printf(seq, "wheel_collected %llu\n", stats.collected);
	seq_printf(seq, "wheel_wakeups %llu\n", stats.wakeups);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(beat_totals);

/* -- Module -------------------------------------------------------------- */

static int __init beat_check(void)
{
	if (peers < 1 || peers > BEAT_PEERS_MAX) {
		pr_err("peers=%u is not in 1..%u\n", peers, BEAT_PEERS_MAX);
		return -EINVAL;
	}
	if (ping_ms < 1 || ping_ms > BEAT_MS_MAX) {
		pr_err("ping_ms=%u is not in 1..%u\n", ping_ms, BEAT_MS_MAX);
		return -EINVAL;
	}
	if (idle_ms <= ping_ms || idle_ms > BEAT_MS_MAX) {
		pr_err("idle_ms=%u is not in ping_ms+1..%u\n", idle_ms, BEAT_MS_MAX);
		return -EINVAL;
	}
	return 0;
}

/* Stop the wheel and put all peers that are open. */
static void beat_teardown(void)
{
	struct beat_peer *peer, *next;

	/*
	 * After the stop, no callback executes any more, and all holds have ended: the only
	 * reference to an open peer is that for being open.
	 */
	hwt_wheel_stop(beat_wheel, NULL, NULL);
	list_for_each_entry_safe(peer, next, &beat_peers, link) {
		list_del(&peer->link);
		beat_peer_put(peer);
	}
	/* beat_peer_free() has waited for the last interrupt that could use the wheel. */
	hwt_wheel_destroy(beat_wheel);
}

static int __init beat_init(void)
{
	/* One shard: the two callbacks of a peer do not run at the same time. */
	const struct hwt_wheel_params params = { .name = KBUILD_MODNAME, .shards = 1 };
	unsigned int id;
	int err;

	err = beat_check();
	if (err)
		return err;

	beat_wheel = hwt_wheel_create(&params);
	if (IS_ERR(beat_wheel))
		return PTR_ERR(beat_wheel);
	hwt_timeout_set_wheel(&beat_summary, beat_wheel);

	for (id = 0; id < peers; id++) {
		err = beat_peer_open(id);
		if (err) {
			beat_teardown();
			return err;
		}
	}

	/* Ignore errors: the module works without debugfs. */
	beat_dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("peers", 0444, beat_dir, NULL, &beat_peers_fops);
	debugfs_create_file("totals", 0444, beat_dir, NULL, &beat_totals_fops);
	return 0;
}
module_init(beat_init);

static void __exit beat_exit(void)
{
	debugfs_remove_recursive(beat_dir);
	beat_teardown();
	pr_info("%d peers freed of %u\n", atomic_read(&beat_freed), peers);
}
module_exit(beat_exit);

MODULE_AUTHOR("The hwt project");
MODULE_DESCRIPTION("hwt sample: heartbeats, and peers closed after a silence");
MODULE_LICENSE("GPL");
