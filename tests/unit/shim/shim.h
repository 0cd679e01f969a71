/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of the kernel's interface that hwt needs in a program: the wheel alone (tests/unit), or
 * all that implements hwt.h, on several threads that stand for CPUs (bench/hot, x86-64 only).
 *
 * The lock-free half of hwt executes the same instructions as in the kernel:
 *
 *   atomic64_t, xchg()    lock cmpxchg, xchg, ...; lib/llist.c is the kernel's
 *   this_cpu_inc()        incq %gs:..., each thread has its own base there
 *   current, in_nmi(),    one load from the thread's own line (%fs: for %gs:), as in Linux 6.2
 *   processor id          and later
 *   rcu_read_lock_sched() the preemption count
 *
 * The instructions that the kernel's build adds to calls and returns, against speculation and for
 * tracing, are left out. ktime_get_ns() is clock_gettime(), without a system call.
 *
 * The engine's functions work, but have other costs: the engine sleeps and is woken by futex, and
 * a spinlock is one byte. synchronize_rcu() does nothing: a program stops its wheels when no other
 * thread uses them.
 */
#ifndef _SHIM_H
#define _SHIM_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <linux/types.h>
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/kconfig.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <asm/barrier.h>

/* The static_assert() of assert.h needs a text. */
#undef static_assert
#define static_assert(expression)	_Static_assert(expression, #expression)

/* -- Annotations, modules, messages -------------------------------------- */

#define __aligned(x)		__attribute__((aligned(x)))
#define SMP_CACHE_BYTES		64
#define prefetchw(address)	__builtin_prefetch(address, 1)
#define ____cacheline_aligned_in_smp	__aligned(SMP_CACHE_BYTES)
#define __init
#define __percpu
#define __must_hold(x)
#define __acquires(x)
#define __releases(x)
#ifndef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(symbol)
#endif

#define KBUILD_MODNAME		"hwt"
#define MODULE_NAME_LEN		56
#define THIS_MODULE		((struct module *)NULL)
#define module_name(module)	((void)(module), "bench")
#define __module_get(module)	((void)(module))
#define module_put(module)	((void)(module))
#define debugfs_remove(dentry)	((void)(dentry))
#define MODULE_STATE_GOING	2
#define ERESTARTSYS		512
#define NOTIFY_DONE		0
#define NOTIFY_OK		1
#define within_module(address, module)	((void)(address), (void)(module), false)

struct notifier_block {
	int (*notifier_call)(struct notifier_block *block, unsigned long event, void *data);
};

#define register_module_notifier(block)		((void)(block), 0)
#define unregister_module_notifier(block)	((void)(block))
#define pvclock_gtod_register_notifier(block)	((void)(block), 0)
#define pvclock_gtod_unregister_notifier(block)	((void)(block))
#define CPUHP_AP_ONLINE_DYN	0
#define cpuhp_setup_state_nocalls(state, name, online, offline)	((void)(online), 0)
#define cpuhp_remove_state_nocalls(state)	((void)(state))
#define DECLARE_STATIC_KEY_FALSE(name)	extern bool name
#define static_branch_unlikely(key)	((void)(key), shim_branch_off())

/*
 * A static branch that is off, as with CONFIG_JUMP_LABEL: a nop in the place of a jump. With
 * SHIM_BARE, there is no nop, to measure its cost.
 */
static __always_inline bool shim_branch_off(void)
{
#ifdef SHIM_BARE
	return false;
#endif
	asm goto(".byte 0x0f, 0x1f, 0x44, 0, 0\n"
		 ".pushsection .shim_jumps, \"\"\n.quad %l[on]\n.popsection"
		 : : : : on);
	return false;
on:
	return true;
}

/* Tracepoints are off, too. */
void shim_trace(const char *name);

#define TP_PROTO(...)		__VA_ARGS__
#define TP_ARGS(...)		__VA_ARGS__
#define TRACE_EVENT(name, proto, ...)				\
	static __always_inline bool trace_##name##_enabled(void)	\
	{								\
		return shim_branch_off();				\
	}								\
	static __always_inline void trace_##name(proto)			\
	{								\
		if (shim_branch_off())					\
			shim_trace(#name);				\
	}

struct module;
struct lock_class_key;

/* Without a check of the format, because u64 is another type here. */
void shim_printk(const char *format, ...);

#define pr_err(format, ...)	shim_printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_warn(format, ...)	pr_err(format, ##__VA_ARGS__)
#define pr_err_ratelimited(format, ...)	pr_err(format, ##__VA_ARGS__)
#define pr_warn_once(format, ...)	pr_err(format, ##__VA_ARGS__)
#define pr_warn_ratelimited(format, ...)	pr_err(format, ##__VA_ARGS__)

struct ratelimit_state {
};

#define HZ			250
#define RATELIMIT_MSG_ON_RELEASE	0
#define ratelimit_state_init(state, interval, burst)	((void)(state))
#define ratelimit_set_flags(state, flags)	((void)(state))
/* No messages: a benchmark may be behind. */
#define __ratelimit(state)	((void)(state), false)
#define WARN_ON(condition) ({					\
	bool __warn = (condition);				\
	if (__warn)						\
		shim_printk("WARNING: %s\n", #condition);	\
	__warn; })
#define WARN(condition, ...)	WARN_ON(condition)
/* No tool looks for races here. */
#define data_race(expression)	(expression)
#define lockdep_assert_held(lock)	((void)(lock))
#define lockdep_depth(task)	0
#define debug_locks		1
#define debug_show_held_locks(task)	((void)(task))
#define might_sleep()		((void)0)

/* -- Numbers ------------------------------------------------------------- */

#define U16_MAX			UINT16_MAX
#define S64_MAX			INT64_MAX
#define U64_MAX			UINT64_MAX
#define lower_32_bits(x)	((u32)(x))
#define upper_32_bits(x)	((u32)((x) >> 32))

/*
 * Without the check that both sides have one type: u64 is "unsigned long" here, and "unsigned long
 * long" in the kernel. The build of the module has the check.
 */
#undef min
#undef max
#define min(x, y) ({			\
	typeof(x) _x = (x);		\
	typeof(y) _y = (y);		\
	_x < _y ? _x : _y; })
#define max(x, y) ({			\
	typeof(x) _x = (x);		\
	typeof(y) _y = (y);		\
	_x > _y ? _x : _y; })

#define mul_u64_u64_shr(a, b, shift)	((u64)((__uint128_t)(a) * (b) >> (shift)))

/* One instruction on x86; the version of the kernel's tools is portable. */
#define fls64(x)		shim_fls64(x)

static __always_inline int shim_fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

#define div64_u64(a, b)		((a) / (b))
#define div_u64(a, b)		((a) / (b))

#define sort(base, n, size, compare, swap)	qsort(base, n, size, compare)

static inline void strscpy(char *to, const char *from, size_t size)
{
	snprintf(to, size, "%s", from);
}

/* -- Atomics ------------------------------------------------------------- */

typedef struct {
	s64 counter;
} atomic64_t;

#define try_cmpxchg(pointer, old, new)					\
	__atomic_compare_exchange_n(pointer, old, new, false,		\
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define xchg(pointer, new)	__atomic_exchange_n(pointer, new, __ATOMIC_SEQ_CST)
/* On x86, loads are not reordered. */
#define smp_acquire__after_ctrl_dep()	barrier()

static __always_inline s64 atomic64_read(const atomic64_t *atomic)
{
	return READ_ONCE(atomic->counter);
}

#define atomic64_read_acquire(atomic)	__atomic_load_n(&(atomic)->counter, __ATOMIC_ACQUIRE)
#define atomic64_set_release(atomic, value) \
	__atomic_store_n(&(atomic)->counter, value, __ATOMIC_RELEASE)

static __always_inline void atomic64_set(atomic64_t *atomic, s64 value)
{
	WRITE_ONCE(atomic->counter, value);
}

static __always_inline bool atomic64_try_cmpxchg(atomic64_t *atomic, s64 *old,
						 s64 new)
{
	return try_cmpxchg(&atomic->counter, old, new);
}

static __always_inline s64 atomic64_xchg(atomic64_t *atomic, s64 value)
{
	return __atomic_exchange_n(&atomic->counter, value, __ATOMIC_SEQ_CST);
}

static __always_inline void atomic64_inc(atomic64_t *atomic)
{
	__atomic_add_fetch(&atomic->counter, 1, __ATOMIC_SEQ_CST);
}

static __always_inline s64 atomic64_dec_if_positive(atomic64_t *atomic)
{
	s64 old = atomic64_read(atomic);

	while (old > 0 && !atomic64_try_cmpxchg(atomic, &old, old - 1))
		;
	return old - 1;
}

/* -- The machine --------------------------------------------------------- */

#define SHIM_CPUS		1024

/* The machine's CPUs, and one more for kthreads. */
extern unsigned int nr_cpu_ids;

struct cpumask {
	unsigned long	bits[SHIM_CPUS / BITS_PER_LONG];
};

typedef struct cpumask cpumask_var_t[1];

/* The place of a CPU. A program may set it; by default, all CPUs share one cache. */
struct shim_place {
	u16	node;
	u16	cache;
};

extern struct shim_place shim_place[SHIM_CPUS];
/* All CPUs are online, unless a program says otherwise. */
extern struct cpumask shim_online;

#define cpu_online_mask		((const struct cpumask *)&shim_online)
#define cpu_online(cpu)		cpumask_test_cpu(cpu, cpu_online_mask)
#define cpu_to_node(cpu)	((int)shim_place[cpu].node)
#define NUMA_NO_NODE		(-1)
/* CPUs set aside by isolcpus= and nohz_full=: no CPU, unless a program says otherwise. */
extern struct cpumask shim_isolated;
#define housekeeping_test_cpu(cpu, type)	(!cpumask_test_cpu(cpu, &shim_isolated))
/* Called by hwt_cpu_cache(), because CONFIG_X86 is not set here. */
#define topology_physical_package_id(cpu)	((int)shim_place[cpu].cache)
#define num_possible_cpus()	nr_cpu_ids
#define num_online_cpus()	cpumask_weight(cpu_online_mask)
#define for_each_possible_cpu(cpu)	for ((cpu) = 0; (cpu) < nr_cpu_ids; (cpu)++)
#define for_each_online_cpu(cpu)	for_each_set_bit(cpu, shim_online.bits, nr_cpu_ids)

#define zalloc_cpumask_var(mask, gfp)	(memset(mask, 0, sizeof(struct cpumask)), true)
#define free_cpumask_var(mask)	((void)(mask))
#define cpumask_copy(to, from)	((void)(*(to) = *(from)))
/* Never printed, because no program sets an affinity. */
#define cpumask_pr_args(mask)	(mask)

static inline bool cpumask_test_cpu(unsigned int cpu, const struct cpumask *mask)
{
	return mask->bits[BIT_WORD(cpu)] & BIT_MASK(cpu);
}

static inline void cpumask_set_cpu(unsigned int cpu, struct cpumask *mask)
{
	mask->bits[BIT_WORD(cpu)] |= BIT_MASK(cpu);
}

/* The mask of one CPU, until the thread's next call. */
static inline const struct cpumask *cpumask_of(unsigned int cpu)
{
	static __thread struct cpumask mask;

	memset(&mask, 0, sizeof(mask));
	cpumask_set_cpu(cpu, &mask);
	return &mask;
}

static inline void cpumask_clear_cpu(unsigned int cpu, struct cpumask *mask)
{
	mask->bits[BIT_WORD(cpu)] &= ~BIT_MASK(cpu);
}

static inline unsigned int cpumask_weight(const struct cpumask *mask)
{
	unsigned int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(mask->bits); i++)
		n += __builtin_popcountl(mask->bits[i]);
	return n;
}

static inline bool cpumask_empty(const struct cpumask *mask)
{
	return !cpumask_weight(mask);
}

static inline bool cpumask_intersects(const struct cpumask *a, const struct cpumask *b)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(a->bits); i++)
		if (a->bits[i] & b->bits[i])
			return true;
	return false;
}

static inline bool cpumask_subset(const struct cpumask *a, const struct cpumask *b)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(a->bits); i++)
		if (a->bits[i] & ~b->bits[i])
			return false;
	return true;
}

/* -- Threads and CPUs ---------------------------------------------------- */

#define TASK_RUNNING		0
#define TASK_INTERRUPTIBLE	1
#define TASK_UNINTERRUPTIBLE	2
#define TASK_IDLE		0x402
#define TASK_NORMAL		3
#define TASK_FREEZABLE		0x2000
#define TASK_FROZEN		0x8000

/**
 * struct task_struct - a thread
 * @rcu_read_lock_nesting:   as in the kernel
 * @rcu_read_unlock_special: as in the kernel; always 0
 * @state:      a futex: TASK_RUNNING, or the state of a task that is about to sleep
 * @on_demand:  a kthread without a thread: see shim_kthread_run()
 * @started:    it has been woken once
 * @stop:       the result of kthread_should_stop()
 * @cpus_mask:  set by set_cpus_allowed_ptr(); does not pin the thread
 * @function:   of a kthread
 * @arg:        its argument
 * @thread:     of a kthread
 */
struct task_struct {
	int		rcu_read_lock_nesting;
	u32		rcu_read_unlock_special;
	u32		state;
	u32		flags;
	struct {
		u64	sum_exec_runtime;
	} se;
	bool		on_demand;
	bool		started;
	bool		stop;
	struct cpumask	cpus_mask;
	int		(*function)(void *arg);
	void		*arg;
	pthread_t	thread;
} __aligned(64);

/* The values that the kernel keeps in one cache line for each CPU. */
struct shim_cpu {
	struct task_struct	*task;
	int			preempt_count;
	unsigned int		number;
} __aligned(64);

extern __thread struct shim_cpu shim_cpu;

#define current			(shim_cpu.task)
#define smp_processor_id()	READ_ONCE(shim_cpu.number)
#define raw_smp_processor_id()	smp_processor_id()
struct lock_class_key {
};

/* Make the caller CPU 0, and initialise hwt. main() calls this first. */
void shim_start(void);
/* Make the caller this CPU, without pinning it. Each other thread calls this first. */
void shim_thread_start(unsigned int cpu);

/* Set: new kthreads get no thread of their own; shim_kthread_run() runs them. */
extern bool shim_on_demand;
/* The number of calls of wake_up_process(). */
extern unsigned long shim_wakeups;

/* Run a kthread's function in the caller, until the function would sleep. */
void shim_kthread_run(struct task_struct *task);

struct task_struct *shim_kthread_create(int (*function)(void *arg), void *arg);
#define kthread_create(function, arg, ...)	shim_kthread_create(function, arg)
int kthread_stop(struct task_struct *task);
#define kthread_should_stop()	READ_ONCE(current->stop)

/* kthread_stop() waits for the end of a thread. */
struct completion {
};

#define init_completion(completion)	((void)(completion))
#define complete(completion)		((void)(completion))
#define wait_for_completion_timeout(completion, timeout)	((void)(completion), 1)

#define get_task_struct(task)	(task)
/* Called for kthreads only, with their last reference. */
#define put_task_struct(task)	free(task)

int wake_up_process(struct task_struct *task);

struct wait_queue_entry {
	void	*private;
};

#define default_wake_function(entry, mode, flags, key)	wake_up_process((entry)->private)
#define schedule_timeout(timeout)	schedule()
#define set_current_state(new)	((void)xchg(&current->state, new))
#define __set_current_state(new)	WRITE_ONCE(current->state, new)
void schedule(void);
static inline void *memchr_inv(const void *start, int c, size_t bytes)
{
	const char *p = start, *end = p + bytes;

	while (p < end && *p == (char)c)
		p++;
	return p < end ? (void *)p : NULL;
}

static inline int cond_resched(void) { return 0; }
#define cond_resched_tasks_rcu_qs()	((void)0)
#define cpu_relax()		__builtin_ia32_pause()
#define signal_pending(task)	((void)(task), false)
#define freezing(task)		((void)(task), false)
#define PF_NOFREEZE		1
#define sched_set_fifo(task)	((void)(task))
#define sched_set_fifo_low(task)	((void)(task))

#define set_cpus_allowed_ptr(task, mask)	(cpumask_copy(&(task)->cpus_mask, mask), 0)
#define cpus_read_trylock()	true
#define cpus_read_unlock()	((void)0)
void usleep_range(unsigned long min, unsigned long max);

#define NMI_MASK		0xf00000
#define preempt_count()		READ_ONCE(shim_cpu.preempt_count)
#define preempt_count_set(count)	WRITE_ONCE(shim_cpu.preempt_count, count)
#define preempt_disable()	do { shim_cpu.preempt_count++; barrier(); } while (0)
#define preempt_enable()	do { barrier(); shim_cpu.preempt_count--; } while (0)
#define in_nmi()		(preempt_count() & NMI_MASK)
#define irqs_disabled()		false
#define local_irq_save(flags)	((flags) = 0)
#define local_irq_restore(flags)	((void)(flags))
#define SOFTIRQ_DISABLE_OFFSET	0x200
#define SOFTIRQ_MASK		0xff00
#define in_softirq()		(preempt_count() & SOFTIRQ_MASK)
#define preempt_count_add(n)	(shim_cpu.preempt_count += (n))
#define preempt_count_sub(n)	(shim_cpu.preempt_count -= (n))
#define local_bh_disable()	preempt_count_add(SOFTIRQ_DISABLE_OFFSET)
#define local_bh_enable()	preempt_count_sub(SOFTIRQ_DISABLE_OFFSET)

#define WARN_ONCE(condition, ...)	WARN_ON(condition)

/* -- Per CPU ------------------------------------------------------------- */

/* The distance between two CPUs' copies of an allocation. */
#define SHIM_UNIT		4096

extern unsigned long __per_cpu_offset[SHIM_CPUS];

void *shim_alloc_percpu(size_t size);
void shim_free_percpu(void *block);

#define alloc_percpu_gfp(type, gfp)	((type *)shim_alloc_percpu(sizeof(type)))
#define free_percpu(block)	shim_free_percpu(block)
#define per_cpu_ptr(pointer, cpu)					\
	((typeof(pointer))((char *)(pointer) + __per_cpu_offset[cpu]))

#define this_cpu_inc(variable) do {					\
	static_assert(sizeof(variable) == 8);				\
	asm volatile("incq %%gs:%0" : "+m" (variable));			\
} while (0)
#define raw_cpu_read(variable) ({					\
	unsigned long __value;						\
	static_assert(sizeof(variable) == 8);				\
	asm volatile("movq %%gs:%1, %0" : "=r" (__value) : "m" (variable)); \
	__value; })

/* -- RCU ----------------------------------------------------------------- */

void __rcu_read_lock(void);
void __rcu_read_unlock(void);
#define rcu_read_lock()		__rcu_read_lock()
#define rcu_read_unlock()	__rcu_read_unlock()
#define rcu_read_lock_sched()	preempt_disable()
#define rcu_read_unlock_sched()	preempt_enable()
#define rcu_preempt_depth()	READ_ONCE(current->rcu_read_lock_nesting)
#undef synchronize_rcu
#define synchronize_rcu()	((void)0)
#define list_add_tail_rcu(entry, list)	list_add_tail(entry, list)
#define list_del_rcu(entry)	list_del(entry)
#define list_for_each_entry_rcu(entry, list, member)	\
	list_for_each_entry(entry, list, member)

/* -- Locks, waiting, work ------------------------------------------------ */

typedef struct {
	bool locked;
} spinlock_t;

typedef spinlock_t raw_spinlock_t;

#define spin_lock_init(lock)	((lock)->locked = false)

void shim_spin_wait(spinlock_t *lock);

static __always_inline void spin_lock(spinlock_t *lock)
{
	preempt_disable();
	if (unlikely(xchg(&lock->locked, true)))
		shim_spin_wait(lock);
}

static __always_inline void spin_unlock(spinlock_t *lock)
{
	/* Pairs with the xchg() of the next holder, which sees all writes of this one. */
	smp_store_release(&lock->locked, false);
	preempt_enable();
}

/* There are no interrupts: to disable and enable them, an instruction each, is left out. */
#define spin_lock_irq(lock)	spin_lock(lock)
#define spin_unlock_irq(lock)	spin_unlock(lock)
#define spin_lock_irqsave(lock, flags)	do { (flags) = 0; spin_lock(lock); } while (0)
#define spin_unlock_irqrestore(lock, flags)	do { (void)(flags); spin_unlock(lock); } while (0)
#define raw_spin_lock_init(lock)	spin_lock_init(lock)
#define raw_spin_lock_irqsave(lock, flags)	spin_lock_irqsave(lock, flags)
#define raw_spin_unlock_irqrestore(lock, flags)	spin_unlock_irqrestore(lock, flags)

struct mutex {
	pthread_mutex_t mutex;
};

#define DEFINE_MUTEX(name)	struct mutex name = { PTHREAD_MUTEX_INITIALIZER }
#define mutex_init(lock)	pthread_mutex_init(&(lock)->mutex, NULL)
#define mutex_destroy(lock)	pthread_mutex_destroy(&(lock)->mutex)
#define lockdep_register_key(key)	((void)(key))
#define lockdep_unregister_key(key)	((void)(key))
#define lockdep_set_class(lock, key)	((void)(key))
#define mutex_lock(lock)	pthread_mutex_lock(&(lock)->mutex)
#define mutex_unlock(lock)	pthread_mutex_unlock(&(lock)->mutex)

/* There is at most one waiter: the thread that stops the wheel. */
typedef struct {
	struct task_struct *waiter;
} wait_queue_head_t;

extern wait_queue_head_t shim_var_queue;
struct wait_bit_queue_entry { int wq_entry; };
#define __var_waitqueue(var)	((void)(var), &shim_var_queue)
#define init_wait_var_entry(wait, var, flags)	((void)(wait))
#define prepare_to_wait(queue, wait, state) do {	\
	(void)(wait);					\
	(queue)->waiter = current;			\
	set_current_state(state);			\
} while (0)
#define finish_wait(queue, wait) do {			\
	__set_current_state(TASK_RUNNING);		\
	(queue)->waiter = NULL;				\
} while (0)
#define wake_up_var(var) do {				\
	(void)(var);					\
	if (shim_var_queue.waiter)			\
		wake_up_process(shim_var_queue.waiter);	\
} while (0)

struct irq_work {
	void (*function)(struct irq_work *work);
};

#define IRQ_WORK_INIT_HARD(f)	((struct irq_work){ .function = (f) })
#define irq_work_queue(work)	((work)->function(work))
#define irq_work_is_pending(work)	((void)(work), false)
#define irq_work_sync(work)	((void)(work))

typedef struct {
	void (*function)(void *arg);
	void *arg;
} call_single_data_t;

#define INIT_CSD(csd, f, argument)	(*(csd) = (call_single_data_t){ (f), (argument) })
#define smp_call_function_single_async(cpu, csd)	((void)(cpu), (csd)->function((csd)->arg))
#define kick_all_cpus_sync()	((void)0)

struct work_struct {
	void (*function)(struct work_struct *work);
};

#define INIT_WORK(work, f)	((work)->function = (f))
#define alloc_workqueue(name, flags, max)	((struct workqueue_struct *)(name))
#define destroy_workqueue(queue)	((void)(queue))
#define queue_work(queue, work)	((void)(queue), (work)->function(work))

/* -- Time ---------------------------------------------------------------- */

typedef s64 ktime_t;

#define time_before(a, b)	((long)((a) - (b)) < 0)
#define time_before_eq(a, b)	((long)((a) - (b)) <= 0)

#define NSEC_PER_USEC		1000L
#define NSEC_PER_MSEC		1000000L
#define NSEC_PER_SEC		1000000000L

static inline u64 shim_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * (u64)NSEC_PER_SEC + now.tv_nsec;
}

/* Constant. */
extern unsigned long jiffies;

#define TICK_NSEC		(4 * NSEC_PER_MSEC)
#define MAX_JIFFY_OFFSET	((LONG_MAX >> 1) - 1)
/* Weak, so that a program may have its own clock. */
u64 ktime_get_ns(void);
#define ktime_get_boottime_ns()	shim_clock_ns(CLOCK_BOOTTIME)
#define ktime_get_mono_fast_ns()	ktime_get_ns()
#define ktime_get_boot_fast_ns()	ktime_get_boottime_ns()
#define ktime_get_coarse_ns()	shim_clock_ns(CLOCK_MONOTONIC_COARSE)
#define ktime_get_real_ns()	ktime_get_ns()
#define ktime_get_real_fast_ns()	ktime_get_real_ns()
/* Wheels here are on CLOCK_MONOTONIC. */
#define ktime_mono_to_any(time, offset)	(time)
#define ktime_get_coarse_with_offset(offset)	ktime_get_coarse_ns()
#define ktime_mono_to_real(time)	(time)
#define KTIME_MAX		S64_MAX
#define ktime_to_ns(time)	(time)
#define ns_to_ktime(ns)		((ktime_t)(ns))

#define HRTIMER_MODE_ABS	0
#define HRTIMER_MODE_ABS_SOFT	4

/* Timers do not fire. */
struct timer_list {
	void		(*function)(struct timer_list *timer);
	unsigned long	expires;
	bool		pending;
};

enum hrtimer_restart { HRTIMER_NORESTART };

struct hrtimer {
	enum hrtimer_restart (*function)(struct hrtimer *timer);
	ktime_t		expires;
	bool		pending;
};

#define timer_setup(timer, f, flags)	((timer)->function = (f), (timer)->pending = false)
#define mod_timer(timer, time)	((timer)->expires = (time), (timer)->pending = true)
#define del_timer_sync(timer)	((timer)->pending = false)
#define timer_delete_sync(timer)	del_timer_sync(timer)
#define hrtimer_init(timer, clock, mode)	((void)(clock), (timer)->pending = false)
#define hrtimer_start(timer, time, mode)	((timer)->expires = (time), (timer)->pending = true)
#define hrtimer_cancel(timer)	((timer)->pending = false)
#define time_after(a, b)	time_before(b, a)
int schedule_hrtimeout(ktime_t *expires, int mode);
int schedule_hrtimeout_range_clock(ktime_t *expires, u64 delta, int mode,
				   clockid_t clock);

/* -- Memory -------------------------------------------------------------- */

/* Flags that the kernel's tools/include does not have. */
#define GFP_KERNEL_ACCOUNT	GFP_KERNEL
#define __GFP_RETRY_MAYFAIL	0
#define __GFP_NOWARN		0
#define __GFP_ZERO		0
#define PAGE_SIZE		4096UL
#define PAGE_ALLOC_COSTLY_ORDER	3

/* The number of blocks in use. */
extern unsigned int shim_allocated;
/* The number of the allocation that fails, counted from now; 0: none fails. */
extern unsigned int shim_fail_at;

/* Allocate a block on its own cache line, and fill it. Fails by shim_fail_at only. */
void *shim_alloc_filled(size_t size, int byte);
void shim_free(const void *block);

#define shim_alloc(size)	shim_alloc_filled(size, 0)
#define kzalloc(size, gfp)	shim_alloc(size)
#define kzalloc_node(size, gfp, node)	((void)(node), kzalloc(size, gfp))
#define kcalloc(n, size, gfp)	((void)(gfp), shim_alloc(array_size(n, size)))
#define kcalloc_node(n, size, gfp, node)	((void)(node), kcalloc(n, size, gfp))
#define kmalloc_array(n, size, gfp)	((void)(gfp), shim_alloc_filled(array_size(n, size), 0x6b))
#define kfree(block)		shim_free(block)
#define kvmalloc_node(size, gfp, node)	((void)(gfp), (void)(node), shim_alloc_filled(size, 0x6b))
#define kvmalloc(size, gfp)	kvmalloc_node(size, gfp, NUMA_NO_NODE)
#define __vmalloc(size, gfp)	kvmalloc(size, gfp)
#define kvfree(block)		shim_free(block)

#endif /* _SHIM_H */
