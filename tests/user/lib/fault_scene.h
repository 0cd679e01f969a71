/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scenes for each_fault(): a context in some state, a call on it, and the expected state.
 */
#ifndef HWT_FAULT_SCENE_H
#define HWT_FAULT_SCENE_H

#include "fault.h"

struct env {
	bool			keys;		/* ids are keys */
	const struct scene *scene;
	int fd;
	struct ring ring;	/* with mapped_rings() */
	__u64 pending;		/* id of a one-shot, in an hour */
	__u64 periodic;		/* id of a periodic timeout, in an hour */
	__u64 fired;		/* id of a one-shot with an event */
	struct state before, after;
	unsigned int hit;	/* faults in the last call */
};

/**
 * struct scene - a call and its expected effect
 * @populate: fills a new context
 * @call:     the call, with new arguments each time; returns 0 or a negative errno
 * @done:     returns whether env->after differs from env->before exactly by the call's effect
 * @undone:   returns whether the call was refused, or carried out and undone, so that only
 *            counters differ; NULL: this never happens
 * @again:    result of a repeated call, if the first failed only to store the answer
 * @any:      other parts of the kernel fail as well: any error is allowed but -EPROTO, which
 *            means a successful call with a wrong effect
 * @pid:      thread whose points count, see fault_open()
 * @check:    used instead of scene_check(), if not NULL
 */
struct scene {
	void	(*populate)(struct __test_metadata *_metadata, struct env *env);
	int	(*call)(struct env *env);
	bool	(*done)(const struct env *env);
	bool	(*undone)(const struct env *env);
	int	again;
	bool	any;
	pid_t	pid;
	void	(*check)(struct __test_metadata *_metadata, void *arg, int ret, unsigned int hit);
};

static struct env env;

/* A result that was not stored yet. */
#define UNTOUCHED	12345

/* -- Before --------------------------------------------------------------- */

static inline void empty(struct __test_metadata *_metadata, struct env *env)
{
	(void)_metadata;
	(void)env;
}

static inline void some(struct __test_metadata *_metadata, struct env *env)
{
	/* With keys, the key is the data. */
	const __u64 data = !env->keys, key = env->keys;

	ASSERT_EQ(0, hwt_arm(env->fd, &env->pending, .time_ns = HOUR, .user_data = data,
			     .id = key));
	ASSERT_EQ(0, hwt_arm(env->fd, &env->periodic, .mode = HWT_MODE_FIXED_RATE, .time_ns = HOUR,
			     .period_ns = HOUR, .user_data = 2 * data, .id = 2 * key));
	ASSERT_EQ(0, hwt_arm(env->fd, &env->fired, .flags = HWT_ARM_ABSOLUTE, .user_data = 3 * data,
			     .id = 3 * key));
	ASSERT_EQ(POLLIN, hwt_wait(env->fd, PATIENCE_MS));
}

static inline void scene_close(struct env *env)
{
	ring_unmap(&env->ring);
	if (env->fd >= 0)
		close(env->fd);
	env->fd = -1;
}

static inline void scene_prepare(struct __test_metadata *_metadata, void *arg)
{
	struct env *env = arg;

	scene_close(env);
	env->fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, env->fd);
	if (env->keys)
		ASSERT_EQ(0, hwt_with(env->fd, SETUP, setup, .flags = HWT_SETUP_KEYS));
	env->scene->populate(_metadata, env);
	state_take(_metadata, env->fd, &env->before);
}

/* -- After ---------------------------------------------------------------- */

static inline void scene_done(struct __test_metadata *_metadata, struct env *env)
{
	EXPECT_TRUE(env->scene->done(env)) {
		TH_LOG("the call did not have its full effect");
		state_differ(&env->before, &env->after);
	}
}

static inline void scene_check(struct __test_metadata *_metadata, void *arg, int ret,
			       unsigned int hit)
{
	struct env *env = arg;
	const struct scene *scene = env->scene;
	bool same;

	env->hit = hit;
	state_take(_metadata, env->fd, &env->after);
	same = state_same(&env->before, &env->after);
	if (!ret) {
		scene_done(_metadata, env);
		return;
	}
	EXPECT_LT(0U, hit);
	EXPECT_TRUE(ret == -ENOMEM || ret == -EFAULT || (scene->any && ret != -EPROTO))
		TH_LOG("%d", ret);
	if (!same && ret == -EFAULT && scene->done(env)) {
		EXPECT_EQ(scene->again, scene->call(env));
		return;
	}
	if (!same && !((ret == -EFAULT || scene->any) && scene->undone && scene->undone(env))) {
		EXPECT_TRUE(same) {
			TH_LOG("the call failed, but changed the state");
			state_differ(&env->before, &env->after);
		}
		return;
	}
	env->hit = 0;
	env->before = env->after;
	EXPECT_EQ(0, scene->call(env));
	state_take(_metadata, env->fd, &env->after);
	scene_done(_metadata, env);
}

/**
 * struct change - differences between two states of a context
 * @timeouts: increase of the number of timeouts
 * @list:     entries of the list may differ; their number is the same
 * @wheel:    clock, tick and size of the wheel, and its thread, may differ
 * The others are increases of counters of HWT_IOC_STATS.
 */
struct change {
	int	timeouts, events, scheduled, modified, cancelled, expired, read, rejected;
	bool	list, wheel;
};

/* Return whether env->after is env->before with this change. */
static inline bool changed(const struct env *env, struct change by)
{
	const struct state *new = &env->after;
	static struct state old;

	old = env->before;
	old.n += by.timeouts;
	old.timeouts += by.timeouts;
	old.stats.timeouts += by.timeouts;
	old.events += by.events;
	old.stats.events += by.events;
	old.stats.scheduled += by.scheduled;
	old.stats.modified += by.modified;
	old.stats.cancelled += by.cancelled;
	old.stats.expired += by.expired;
	old.stats.read += by.read;
	old.stats.rejected += by.rejected;
	old.stats.pending = new->stats.pending;
	old.stats.limit = new->stats.limit;
	if (by.wheel) {
		old.info.clock = new->info.clock;
		old.info.tick_ns = new->info.tick_ns;
		old.info.ticks_per_wheel = new->info.ticks_per_wheel;
		old.info.levels = new->info.levels;
		old.info.thread = new->info.thread;
		old.thread = new->thread;
	}
	/* A new entry may be anywhere in the list; the callers of changed() look it up by id. */
	if (by.list || by.timeouts)
		memcpy(old.list, new->list, sizeof(old.list));
	return state_same(&old, new);
}

static inline bool unchanged(const struct env *env)
{
	return changed(env, (struct change) {});
}

/* Return whether all previous timeouts but @id are there, unchanged. */
static inline bool kept_but(const struct env *env, __u64 id)
{
	const struct hwt_list_entry *old, *now;
	unsigned int i;

	for (i = 0; i < env->before.n; i++) {
		old = &env->before.list[i];
		now = state_find(&env->after, old->id);
		if (old->id != id && (!now || memcmp(now, old, sizeof(*now))))
			return false;
	}
	return true;
}

static inline bool kept(const struct env *env)
{
	return kept_but(env, 0);
}

static int scene_call(void *arg)
{
	struct env *env = arg;

	return env->scene->call(env);
}

/* Submit to the user's limits; scene_end() checks that all resources were given back. */
static inline void scene_begin(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, set_capability(CAP_SYS_RESOURCE, false));
	ASSERT_EQ(0, mlockall(MCL_CURRENT));
	env.fd = -1;
}

static inline void scene_end(struct __test_metadata *_metadata)
{
	scene_close(&env);
	user_whole(_metadata);
	EXPECT_TRUE(until(!hwt_users()));
}

/* Run a scene at each point; @pid, @hit and @failed: see struct fault_call. */
static inline void scene_run(struct __test_metadata *_metadata, const struct scene *scene,
			     pid_t pid, unsigned int hit, unsigned int failed)
{
	const struct fault_call call = {
		.pid = pid,
		.hit = hit,
		.failed = failed,
		.prepare = scene_prepare,
		.call = scene_call,
		.check = scene->check ?: scene_check,
	};

	env.scene = scene;
	if (pid || scene->any)
		fault_expect_begin();
	each_fault(_metadata, &call, &env);
	if (pid || scene->any)
		fault_expect_end();
}

#endif /* HWT_FAULT_SCENE_H */
