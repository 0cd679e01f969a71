// SPDX-License-Identifier: GPL-2.0-only
/* The functions of shim.h, except those for memory, which are in alloc.c. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/engine.h"
#include "core/registry.h"
#include "core/wheel.h"
#include "core/submit.h"
#include "core/sync.h"
#include "core/thread.h"

__thread struct shim_cpu shim_cpu;
wait_queue_head_t shim_var_queue;
unsigned int nr_cpu_ids;
struct shim_place shim_place[SHIM_CPUS];
struct cpumask shim_online, shim_isolated;
unsigned long __per_cpu_offset[SHIM_CPUS] __aligned(64);
bool shim_on_demand;
unsigned long shim_wakeups;

void shim_printk(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

static void shim_die(const char *what)
{
	perror(what);
	exit(1);
}

/* -- Memory -------------------------------------------------------------- */

void *shim_alloc_percpu(size_t size)
{
	void *block;

	block = mmap(NULL, (size_t)nr_cpu_ids * SHIM_UNIT, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (size > SHIM_UNIT || block == MAP_FAILED)
		shim_die("per-CPU memory");
	return block;
}

void shim_free_percpu(void *block)
{
	if (block)
		munmap(block, (size_t)nr_cpu_ids * SHIM_UNIT);
}

/* -- RCU: as kernel/rcu/tree_plugin.h has it ----------------------------- */

noinline void __rcu_read_lock(void)
{
	WRITE_ONCE(current->rcu_read_lock_nesting,
		   READ_ONCE(current->rcu_read_lock_nesting) + 1);
	barrier();
}

noinline void __rcu_read_unlock(void)
{
	struct task_struct *task = current;
	int nesting = READ_ONCE(task->rcu_read_lock_nesting) - 1;

	barrier();
	WRITE_ONCE(task->rcu_read_lock_nesting, nesting);
	if (!nesting) {
		barrier();
		if (unlikely(READ_ONCE(task->rcu_read_unlock_special)))
			abort();
	}
}

/* -- Threads ------------------------------------------------------------- */

void shim_thread_start(unsigned int cpu)
{
	shim_cpu.task = shim_alloc(sizeof(*shim_cpu.task));
	shim_cpu.number = cpu;
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, __per_cpu_offset[cpu]))
		shim_die("arch_prctl");
}

void shim_start(void)
{
	unsigned int cpu;

	nr_cpu_ids = min(sysconf(_SC_NPROCESSORS_CONF) + 1, (long)SHIM_CPUS);
	for_each_possible_cpu(cpu) {
		__per_cpu_offset[cpu] = (unsigned long)cpu * SHIM_UNIT;
		cpumask_set_cpu(cpu, &shim_online);
	}
	shim_thread_start(0);
	if (hwt_registry_init())
		shim_die("module_init");
	/* As hwt_wheels_init(), but without the system wheels. */
	hwt_shards_default = hwt_shards_choose(hwt_shards);
}

struct task_struct *shim_kthread_create(int (*function)(void *arg), void *arg)
{
	struct task_struct *task = shim_alloc(sizeof(*task));

	task->function = function;
	task->arg = arg;
	task->on_demand = shim_on_demand;
	task->cpus_mask = shim_online;
	return task;
}

static void *shim_kthread(void *arg)
{
	struct task_struct *task = arg;

	shim_thread_start(nr_cpu_ids - 1);
	free(current);
	shim_cpu.task = task;
	task->function(task->arg);
	return NULL;
}

void shim_kthread_run(struct task_struct *task)
{
	struct task_struct *self = current;

	task->stop = false;
	shim_cpu.task = task;
	task->function(task->arg);
	shim_cpu.task = self;
}

int kthread_stop(struct task_struct *task)
{
	WRITE_ONCE(task->stop, true);
	wake_up_process(task);
	if (!task->on_demand)
		pthread_join(task->thread, NULL);
	return 0;
}

/* Wake a thread. A full barrier comes before the state is read, as in the kernel. */
int wake_up_process(struct task_struct *task)
{
	u32 state;

	__atomic_add_fetch(&shim_wakeups, 1, __ATOMIC_SEQ_CST);
	if (unlikely(!task->started)) {
		/* The first wake-up is the creator's: no other thread knows the task yet. */
		task->started = true;
		if (task->function && !task->on_demand &&
		    pthread_create(&task->thread, NULL, shim_kthread, task))
			shim_die("pthread_create");
		if (task->function)
			return 1;
	}
	state = xchg(&task->state, TASK_RUNNING);
	if (state == TASK_RUNNING)
		return 0;
	syscall(SYS_futex, &task->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return 1;
}

/* Sleep until a wake-up, or until a time on CLOCK_MONOTONIC. */
static void shim_sleep(const struct timespec *until)
{
	struct task_struct *task = current;
	u32 state;

	if (task->on_demand)
		task->stop = true;
	while (!task->on_demand) {
		state = READ_ONCE(task->state);
		if (state == TASK_RUNNING)
			break;
		if (syscall(SYS_futex, &task->state, FUTEX_WAIT_BITSET_PRIVATE, state,
			    until, NULL, FUTEX_BITSET_MATCH_ANY) && errno == ETIMEDOUT)
			break;
	}
	__set_current_state(TASK_RUNNING);
}

void schedule(void)
{
	shim_sleep(NULL);
}

int schedule_hrtimeout_range_clock(ktime_t *expires, u64 delta, int mode,
				   clockid_t clock)
{
	struct timespec until;

	(void)delta;
	if (!expires) {
		schedule();
		return -EINTR;
	}
	until.tv_sec = *expires / NSEC_PER_SEC;
	until.tv_nsec = *expires % NSEC_PER_SEC;
	if (mode != HRTIMER_MODE_ABS || (clock != CLOCK_MONOTONIC && !current->on_demand))
		abort();
	shim_sleep(&until);
	return 0;
}

int schedule_hrtimeout(ktime_t *expires, int mode)
{
	return schedule_hrtimeout_range_clock(expires, 0, mode, CLOCK_MONOTONIC);
}

void usleep_range(unsigned long min, unsigned long max)
{
	(void)max;
	usleep(min);
}

/* Spin, and yield from time to time, so that a preempted holder gets a CPU. */
void shim_spin_wait(spinlock_t *lock)
{
	unsigned int n = 0;

	do {
		while (READ_ONCE(lock->locked)) {
			__builtin_ia32_pause();
			if (++n % 4096 == 0)
				sched_yield();
		}
	} while (xchg(&lock->locked, true));
}

/* -- The rest ------------------------------------------------------------ */

u64 __weak ktime_get_ns(void)
{
	return shim_clock_ns(CLOCK_MONOTONIC);
}

/*
 * With debug checks and tracepoints off, these functions are never called. The callers have the nop
 * of a static branch.
 */
u32 hwt_debug_mark(const struct hwt_timeout *timeout)
{
	(void)timeout;
	return 0;
}

void __hwt_debug_track(struct hwt_timeout *timeout, u64 state)
{
	(void)timeout;
	(void)state;
	abort();
}

bool __hwt_debug_used(const struct hwt_timeout *timeout)
{
	(void)timeout;
	abort();
}

void hwt_debug_move(const struct hwt_timeout *timeout)
{
	(void)timeout;
	abort();
}

bool __hwt_debug_init(const struct hwt_timeout *timeout)
{
	(void)timeout;
	abort();
}

void shim_trace(const char *name)
{
	(void)name;
	abort();
}

/* There is no debugfs. */
void hwt_debugfs_add(struct hwt_wheel *wheel)
{
	(void)wheel;
}

unsigned int hwt_tick_us = 1000, hwt_ticks_per_wheel = 8192, hwt_levels = 3, hwt_shards;
unsigned long jiffies;
unsigned int hwt_min_tick_us = 1000, hwt_reclaim_ms = 100, hwt_slow_callback_us = 10000;
