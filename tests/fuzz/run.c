// SPDX-License-Identifier: GPL-2.0-only
/*
 * Executes a program: its calls in order, except those that a second thread or a child executes at
 * the same time. No call waits for ever: a thread that may wait gets signals, and a child is killed
 * at the end.
 */
#include "fuzz.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id	_sigev_un._tid
#endif

#define CHILDREN_MAX	8
#define RANGE_MAX	8

static __thread timer_t timer;
static __thread unsigned int failing;
static __thread sigjmp_buf *fault;
static __thread bool on_main;
static bool in_child;

static pid_t children[CHILDREN_MAX];
static unsigned int children_n;

/* The second thread's program. @busy: its execution has not ended. */
static struct {
	pthread_mutex_t		lock;
	pthread_cond_t		cond;
	bool			busy;
	struct program		program;
} second = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.cond = PTHREAD_COND_INITIALIZER,
};

void die(const char *what)
{
	fprintf(stderr, "fuzz: %s\n", what);
	_exit(2);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void on_fault(int sig)
{
	if (fault)
		siglongjmp(*fault, 1);
	signal(sig, SIG_DFL);
}

static void set_fail(unsigned int nth)
{
	char text[12];

	snprintf(text, sizeof(text), "%u", nth);
	/* This write itself may hit an injected fault. */
	while (!write_text("/proc/thread-self/fail-nth", text) && errno == EFAULT)
		;
	failing = nth;
}

bool run_guarded(void (*fn)(void *arg), void *arg)
{
	unsigned int nth = failing;
	volatile bool done = false;
	sigjmp_buf env;

	/* An injected fault in the delivery of SIGSEGV would kill the fuzzer. */
	if (nth)
		set_fail(0);
	if (!sigsetjmp(env, 0)) {
		fault = &env;
		fn(arg);
		done = true;
	}
	fault = NULL;
	if (nth)
		set_fail(nth);
	return done;
}

void run_fail(unsigned int nth)
{
	/* No signals: an injected fault in the return from a signal could kill the fuzzer. */
	run_alarm(0);
	set_fail(nth);
}

void run_alarm(unsigned int us)
{
	struct itimerspec spec = {
		.it_value.tv_nsec = us * USEC,
		.it_interval.tv_nsec = us * USEC,
	};

	if (us && failing)
		set_fail(0);
	/* A child has no timer, and is killed in the end. */
	if (!in_child)
		timer_settime(timer, 0, &spec, NULL);
}

static void make_timer(void)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGALRM,
	};

	event.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		die("timer_create");
}

static void run_calls(const struct program *program);

static void part(const struct program *program, unsigned int from, unsigned int n,
		 struct program *to)
{
	*to = *program;
	to->n = from + n < program->n ? from + n : program->n;
	program_remove(to, 0, from);
}

static void run_child(const struct program *program)
{
	unsigned int slot = __atomic_fetch_add(&children_n, 1, __ATOMIC_RELAXED);
	pid_t pid;

	if (slot >= CHILDREN_MAX)
		return;
	run_fail(0);		/* a fork() that fails makes the kernel print a stack */
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		in_child = true;
		cover_none();
		run_calls(program);
		_exit(0);
	}
	children[slot] = pid;
}

static void end_children(void)
{
	unsigned int i;

	for (i = 0; i < CHILDREN_MAX && i < children_n; i++) {
		if (children[i] <= 0)
			continue;
		kill(children[i], SIGKILL);
		while (waitpid(children[i], NULL, 0) < 0 && errno == EINTR)
			;
		children[i] = 0;
	}
	children_n = 0;
}

/* No other thread or child was executing calls when the main thread's current call began. */
static bool alone;

static bool second_busy(void)
{
	return __atomic_load_n(&second.busy, __ATOMIC_ACQUIRE);
}

static void second_set(bool busy)
{
	pthread_mutex_lock(&second.lock);
	__atomic_store_n(&second.busy, busy, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&second.cond);
	pthread_mutex_unlock(&second.lock);
}

static void second_wait(bool busy)
{
	pthread_mutex_lock(&second.lock);
	while (second.busy != busy)
		pthread_cond_wait(&second.cond, &second.lock);
	pthread_mutex_unlock(&second.lock);
}

/* Start the second thread. Return false if it is busy, or the caller is not the main thread. */
static bool second_start(const struct program *program)
{
	if (!on_main || in_child || second_busy())
		return false;
	second.program = *program;
	second_set(true);
	return true;
}

static void *second_thread(void *arg)
{
	make_timer();
	cover_thread(1);
	for (;;) {
		second_wait(true);
		run_calls(&second.program);
		run_alarm(0);
		second_set(false);
	}
	return arg;
}

bool run_alone(void)
{
	return on_main && alone;
}

/*
 * Have a child or the second thread execute the next calls. Return the number of calls that the
 * caller then skips.
 */
static unsigned int run_beside(const struct program *program, unsigned int at)
{
	const struct call *call = &program->calls[at];
	struct program beside;

	part(program, at + 1, 1 + call->args[0] % RANGE_MAX, &beside);
	if (call->kind == KIND_THREAD)
		return second_start(&beside) ? beside.n : 0;
	if (!in_child)
		run_child(&beside);
	/* The caller executes them, too, or only the child. */
	return call->args[1] & 1 ? beside.n : 0;
}

static void run_calls(const struct program *program)
{
	unsigned int i;
	bool fails;

	for (i = 0; i < program->n; i++) {
		const struct call *call = &program->calls[i];

		if (call->kind == KIND_FORK || call->kind == KIND_THREAD) {
			i += run_beside(program, i);
			continue;
		}
		/* The second thread may end during the call, but does not begin during it. */
		if (on_main)
			alone = !in_child && !children_n && !second_busy();
		fails = failing;
		cover_call_begin();
		call_run(call);
		if (fails)
			run_fail(0);
		cover_call_end();
	}
	if (failing)
		run_fail(0);
}

void run_program(const struct program *program)
{
	calls_begin();
	run_calls(program);
	second_wait(false);
	run_alarm(0);
	end_children();
	cover_call_begin();
	calls_end();
	cover_call_end();
}

void run_init(void)
{
	struct sigaction alarmed = { .sa_handler = on_alarm };
	struct sigaction faulted = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
	pthread_t thread;

	/* This alone makes nothing fail. */
	fault_knobs();
	/* No SA_RESTART: a signal ends a wait. */
	sigaction(SIGALRM, &alarmed, NULL);
	sigaction(SIGSEGV, &faulted, NULL);
	sigaction(SIGBUS, &faulted, NULL);
	signal(SIGPIPE, SIG_IGN);
	on_main = true;
	make_timer();
	cover_thread(0);
	if (pthread_create(&thread, NULL, second_thread, NULL))
		die("pthread_create");
}
