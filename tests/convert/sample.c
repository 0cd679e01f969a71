// SPDX-License-Identifier: GPL-2.0-only
/*
 * A use of each kind of a timer, for tests/convert/convert.py, which converts this file only.
 */
#include <linux/module.h>
#include <linux/timer.h>

struct one {
	struct timer_list pinned;
	struct timer_list on_cpu;
	struct timer_list table;
	struct timer_list foreign;
	struct timer_list down;
	struct timer_list far;
	struct timer_list plain;
	struct timer_list slot[4];
	struct timer_list timer;
	struct delayed_work work, works[2];
	unsigned long when;
	int n;
};

struct sock *sk;

static DEFINE_TIMER(fixed, fixed_expire);
static void (*fns[2])(struct timer_list *);

static bool is_set(struct timer_list *t)
{
	return timer_pending(t);
}

static void expire(struct timer_list *t)
{
	struct one *one = from_timer(one, t, plain);

	mod_timer(t, jiffies + one->n - 1);
	one->plain.expires = one->when;
	add_timer(&one->plain);
	if (mod_timer_pending(&one->plain, jiffies + HZ / 2))
		return;
	one->n = timer_reduce(&one->plain, jiffies + msecs_to_jiffies(one->n));
	if (!timer_pending(&one->slot[one->n]))
		mod_timer(&one->slot[one->n], HZ + jiffies);
	if (del_timer(&one->plain) && try_to_del_timer_sync(&one->plain) < 0)
		one->when = one->plain.expires;
	if (try_to_del_timer_sync(t) == -1)
		mod_timer(t, jiffies + HZ * FACTOR);
	if (!timer_pending(t))
		mod_timer(t, jiffies + next(one));
	if (is_set(&one->timer) && !timer_pending(&one->works[one->n].timer))
		one->n = is_set(&one->work.timer);
}

static void other(struct timer_list *t)
{
}

static void setup(struct one *one, int i)
{
	struct timer_list local;

	timer_setup(&one->pinned, other, TIMER_PINNED);
	timer_setup(&one->on_cpu, other, 0);
	add_timer_on(&one->on_cpu, 1);
	timer_setup(&one->table, fns[i], 0);
	timer_setup(&one->foreign, other, 0);
	sk_reset_timer(sk, &one->foreign, jiffies);
	timer_setup(&one->down, other, 0);
	timer_shutdown(&one->down);
	one->far.expires = jiffies;
	timer_setup(&one->far, other, 0);
	add_timer(&one->far);
	timer_setup(&one->plain, expire, 0);
	timer_setup(&one->slot[i], expire, 0);
	timer_setup(&one->timer, expire, 0);
	timer_setup_on_stack(&local, other, 0);
}
