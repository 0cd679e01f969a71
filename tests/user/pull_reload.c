// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module is loaded and unloaded again and again, while programs try to open and use the
 * device all the time, and another module that uses it comes and goes.
 *
 * In use, it is refused to go; else it goes, and whoever comes finds no device or one that
 * works. A program that has it open loses no timeout: each fires, none early, whatever is tried
 * meanwhile. Recovery: at once; the next open() after a load has it all.
 *
 * Rounds: HWT_ROUNDS on the kernel's command line; the seed is printed, HWT_SEED takes it.
 *
 * hwt-test: check stock debug
 * hwt-test: long
 * hwt-test: noload
 * hwt-test: timeout 1800
 */
#include "kselftest_harness.h"

#include "hwt_module.h"
#include "pull.h"

#define USERS		3

static bool stop;

/* -- Programs ------------------------------------------------------------------ */

struct user {
	pthread_t	thread;
	__u64		seed;
	__u64		opened;
	__u64		none;		/* open() found no device, or one that goes */
	__u64		made, read, early;
	__u64		wrong;
};

/* Each must come. */
static void use_timeouts(struct user *user, int fd)
{
	unsigned int i, n = next_random(&user->seed) % 8 + 1;
	__u64 due = now_ns() + next_random(&user->seed) % (4 * MSEC);
	struct hwt_event event;

	for (i = 0; i < n; i++) {
		if (hwt_add(fd, HWT_ABSOLUTE, due, i, NULL))
			user->wrong++;
		else
			user->made++;
	}
	while (n-- && hwt_next(fd, &event) == 1) {
		user->read++;
		user->early += now_ns() < due || event.fired_ns < due;
	}
}

/* Who has mapped them holds the context, and so the module, for longer than the descriptor. */
static void use_rings(struct user *user, int fd, struct ring *ring)
{
	__u64 due = now_ns() + MSEC;
	struct hwt_event event;

	if (ring_make(ring, fd, 0, 16, 16)) {
		user->wrong++;
		return;
	}
	ring_push(ring, (struct hwt_op) {
		.opcode = HWT_OP_SCHEDULE, .flags = HWT_ABSOLUTE, .time_ns = due,
	});
	user->wrong += ring_enter(ring, 1, 1, PATIENCE_MS * MSEC) != 1;
	user->made++;
	if (ring_pop(ring, &event)) {
		user->read++;
		user->early += now_ns() < due || event.fired_ns < due;
	}
}

static void use(struct user *user, int fd, struct ring *ring)
{
	struct hwt_setup_args setup = { .size = sizeof(setup), .clock = CLOCK_MONOTONIC };
	unsigned int i;

	switch (next_random(&user->seed) % 5) {
	case 0:
		user->wrong += hwt_call(fd, HWT_IOC_SETUP, &setup) != 0;
		use_timeouts(user, fd);
		break;
	case 1:
		use_rings(user, fd, ring);
		break;
	case 2:
		/* Those go with it. */
		for (i = 0; i < 50; i++)
			user->wrong += hwt_add(fd, 0, i % 2 ? HOUR : i * USEC, i, NULL) != 0;
		break;
	default:
		use_timeouts(user, fd);
	}
}

/* On average twice as long as it was used: there are moments when nobody does. */
static void use_nothing(__u64 *seed, __u64 since)
{
	sleep_ns(next_random(seed) % (4 * (now_ns() - since) + MSEC));
}

static void *user_main(void *arg)
{
	struct user *user = arg;
	struct ring ring;
	__u64 begin;
	int fd;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		begin = now_ns();
		fd = hwt_open(O_NONBLOCK);
		if (fd >= 0) {
			user->opened++;
			ring = (struct ring) {};
			use(user, fd, &ring);
			close(fd);
			if (ring.shared)
				sleep_ns(next_random(&user->seed) % MSEC);
			ring_unmap(&ring);
			use_nothing(&user->seed, begin);
		} else if (errno == ENOENT || errno == ENODEV || errno == ENXIO) {
			user->none++;
			/* Now and then at once: the moment when it comes is to be met. */
			if (next_random(&user->seed) % 4)
				sleep_ns(next_random(&user->seed) % (8 * MSEC));
		} else {
			user->wrong++;
		}
	}
	return NULL;
}

/* -- Modules --------------------------------------------------------------------- */

struct modules {
	pthread_t	thread;
	__u64		seed;
	int		file;
	__u64		loaded;
	__u64		refused;	/* hwt was not there, or on its way */
	__u64		wrong;
};

static void *modules_main(void *arg)
{
	static const char * const params[] = {
		"armed=50 busy=10", "armed=50 busy=10 shared=1", "wheels=2 busy=5",
	};
	struct modules *modules = arg;
	__u64 begin = now_ns();

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		use_nothing(&modules->seed, begin);
		begin = now_ns();
		/* Each time that a symbol is not found is a line in the log. */
		if (access("/sys/module/hwt/refcnt", F_OK))
			continue;
		if (load_module(modules->file, params[next_random(&modules->seed) % 3])) {
			modules->refused++;
			continue;
		}
		modules->loaded++;
		sleep_ns(next_random(&modules->seed) % (5 * MSEC));
		modules->wrong += unload_module("test_client") != 0;
	}
	return NULL;
}

/* -- Loading and unloading ---------------------------------------------------------- */

FIXTURE(reload) {
	struct user user[USERS];
	struct modules modules;
	__u64 seed;
	__u64 in_use;		/* was refused to go */
	int file;
};

FIXTURE_SETUP(reload)
{
	unsigned int i;

	self->seed = first_seed();
	TH_LOG("seed %llu", (unsigned long long)self->seed);
	self->in_use = 0;
	self->file = open_module("hwt");
	ASSERT_LE(0, self->file);
	stop = false;
	self->modules = (struct modules) {
		.seed = self->seed + 1, .file = open_module("test_client"),
	};
	ASSERT_LE(0, self->modules.file);
	ASSERT_EQ(0, pthread_create(&self->modules.thread, NULL, modules_main, &self->modules));
	for (i = 0; i < USERS; i++) {
		self->user[i] = (struct user) { .seed = self->seed + 2 + i };
		ASSERT_EQ(0, pthread_create(&self->user[i].thread, NULL, user_main,
					    &self->user[i]));
	}
}

FIXTURE_TEARDOWN(reload)
{
}

/* Whenever nobody has it. */
static void go(struct __test_metadata *_metadata, __u64 *in_use)
{
	__u64 end = now_ns() + 2 * PATIENCE_MS * MSEC;
	int ret;

	while ((ret = unload_module("hwt")) == -EAGAIN && now_ns() < end) {
		++*in_use;
		sleep_ns(100 * USEC);
	}
	ASSERT_EQ(0, ret);
}

TEST_F_TIMEOUT(reload, under_attempted_use, 2500)
{
	unsigned int n = rounds(50, 10), i;
	struct user sum = {};
	int fd;

	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, load_module(self->file, ""));
		sleep_ns(next_random(&self->seed) % (10 * MSEC));
		go(_metadata, &self->in_use);
	}
	/* Who is at it when the end comes has a device still. */
	ASSERT_EQ(0, load_module(self->file, ""));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(self->modules.thread, NULL));
	for (i = 0; i < USERS; i++) {
		ASSERT_EQ(0, pthread_join(self->user[i].thread, NULL));
		sum.opened += self->user[i].opened;
		sum.none += self->user[i].none;
		sum.made += self->user[i].made;
		sum.read += self->user[i].read;
		sum.early += self->user[i].early;
		sum.wrong += self->user[i].wrong;
	}
	TH_LOG("%u rounds: opened %llu times, %llu times not there; %llu timeouts", n,
	       (unsigned long long)sum.opened, (unsigned long long)sum.none,
	       (unsigned long long)sum.made);
	TH_LOG("the other module: %llu times, %llu times not; refused to go %llu times",
	       (unsigned long long)self->modules.loaded,
	       (unsigned long long)self->modules.refused, (unsigned long long)self->in_use);
	EXPECT_LT(0, sum.opened);
	EXPECT_LT(0, sum.none);
	EXPECT_LT(0, sum.made);
	EXPECT_EQ(sum.made, sum.read);
	EXPECT_EQ(0, sum.early);
	EXPECT_EQ(0, sum.wrong);
	EXPECT_LT(0, self->modules.loaded);
	EXPECT_EQ(0, self->modules.wrong);
	EXPECT_LT(0, self->in_use);
	fd = hwt_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	close(fd);
	go(_metadata, &self->in_use);
}

TEST_HARNESS_MAIN
