// SPDX-License-Identifier: GPL-2.0-only
/*
 * One context arms all that it may for one tick. How late are the timeouts of another, on the
 * wheel that both share? The figures are told; what is checked is that no more of the one are
 * on that wheel than max_shared, and that nothing is lost or early. docs/limits.md says what
 * the lateness is bounded by.
 *
 * neighbours [EPOLLS [TIMEOUTS [LISTERS]]]: so many epoll instances watch the one context, and
 * so many threads do nothing but list its timeouts. Run by neighbours.sh.
 *
 * hwt-test: manual
 */
#include "hwt_ring.h"
#include "fdinfo.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#define BATCH	1024
#define PROBES	4000

#define ARRAY_SIZE(_array)	(sizeof(_array) / sizeof((_array)[0]))

#define CHECK(_true)							\
do {									\
	if (!(_true)) {							\
		printf("# line %d: not so: %s\n", __LINE__, #_true);		\
		exit(1);						\
	}								\
} while (0)

/* What the many have to tell. */
struct told {
	int error;
	unsigned int made;
	unsigned int lost;	/* or early, or twice */
	long shared;
	__u64 deadline;
	__u64 last;		/* when the last one fired */
	bool armed;
	bool done;
};

static unsigned int many(void)
{
	return quick() ? 100000 : 1000000;
}

/* Returns how many could be made. */
static unsigned int arm(int fd, unsigned int count, __u32 flags, __u64 time_ns)
{
	static struct hwt_op ops[BATCH];
	unsigned int n = 0, i;
	long done;

	while (n < count) {
		for (i = 0; i < BATCH; i++) {
			ops[i] = op_schedule(time_ns, n + i);
			ops[i].flags = flags;
		}
		done = hwt_batch(fd, ops, count - n < BATCH ? count - n : BATCH);
		for (i = 0; (long)i < done && !ops[i].result; i++)
			n++;
		if ((long)i < done || done <= 0)
			break;
	}
	return n;
}

/* Return: false if not so many are to be had. */
static bool watch(int fd, unsigned int epolls)
{
	const struct rlimit enough = { .rlim_cur = 2048, .rlim_max = 2048 };
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int ep;

	setrlimit(RLIMIT_NOFILE, &enough);
	while (epolls--) {
		ep = epoll_create1(EPOLL_CLOEXEC);
		if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event))
			return false;
	}
	return true;
}

static void *list_for_ever(void *arg)
{
	static struct hwt_list_entry entries[BATCH];
	int fd = (intptr_t)arg;

	while (hwt_entries(fd, entries, BATCH) >= 0)
		;
	return NULL;
}

static void be_many(volatile struct told *told, unsigned int total, unsigned int epolls,
		    unsigned int listers)
{
	pthread_t thread;
	static struct hwt_event events[1024];
	int fd = hwt_open(0), ret, i;
	unsigned int n = 0;
	char *seen = calloc(total, 1);
	__u64 begun;

	told->error = fd < 0 || !seen || !watch(fd, epolls);
	if (told->error) {
		free(seen);
		return;
	}
	/* How long will it take to arm them? They are to be there before they are due. */
	begun = now_ns();
	ret = hwt_open(0);
	arm(ret, total / 16, 0, HOUR);
	close(ret);
	told->deadline = now_ns() + (now_ns() - begun) * 32 + 3 * SEC;

	told->made = arm(fd, total, HWT_ABSOLUTE, told->deadline);
	told->shared = fd_number(fd, "hwt-shared");
	/* They end with the process. */
	while (listers--)
		told->error |= pthread_create(&thread, NULL, list_for_ever,
					       (void *)(intptr_t)fd);
	told->armed = true;
	while (n < told->made) {
		ret = hwt_read(fd, events, ARRAY_SIZE(events));
		if (ret <= 0) {
			told->error = ret;
			return;
		}
		for (i = 0; i < ret; i++) {
			__u64 data = events[i].user_data;

			told->lost += data >= total || seen[data]++ ||
				      events[i].fired_ns < told->deadline;
			told->last = events[i].fired_ns;
		}
		n += ret;
	}
	told->done = true;
	free(seen);
}

static int by_value(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void print_lateness(const char *when, __u64 *late, unsigned int n)
{
	static const unsigned int percent[] = { 50, 99, 100 };
	unsigned int i;

	qsort(late, n, sizeof(*late), by_value);
	printf("# %s: %u, late by", when, n);
	for (i = 0; i < ARRAY_SIZE(percent); i++)
		printf("%s %llu us (%u %%)", i ? "," : "",
		       (late[(n - 1) * percent[i] / 100] / USEC),
		       percent[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	static __u64 late[2][PROBES];
	unsigned int total = argc > 2 ? (unsigned int)atoi(argv[2]) : many();
	unsigned int n[2] = {}, i, strange = 0;
	struct hwt_event events[64];
	volatile struct told *told;
	__u64 max_shared, tick = hwt_param("tick_us") * USEC, first, last;
	int fd, ret, k, status;
	pid_t pid;

	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	CHECK(told != MAP_FAILED);
	memset((void *)told, 0, sizeof(*told));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		be_many(told, total, argc > 1 ? atoi(argv[1]) : 0, argc > 3 ? atoi(argv[3]) : 0);
		_exit(0);
	}
	while (!told->armed && !waitpid(pid, &status, WNOHANG))
		sleep_ns(10 * MSEC);
	CHECK(told->armed);
	CHECK(told->made == total);
	max_shared = hwt_param("max_shared");
	CHECK(told->shared == (long)(max_shared < total ? max_shared : total));
	CHECK(now_ns() < told->deadline);

	/* One each tick, on the wheel that all share: a quarter of them before it. */
	fd = hwt_open(O_NONBLOCK);
	CHECK(fd >= 0);
	first = told->deadline / tick * tick - PROBES / 4 * tick;
	for (i = 0; i < PROBES; i++)
		CHECK(!hwt_add(fd, HWT_ABSOLUTE, first + i * tick, i, NULL));
	CHECK(fd_number(fd, "hwt-shared") == PROBES);
	for (i = 0; i < PROBES;) {
		CHECK(hwt_wait(fd, 10 * PATIENCE_MS) == POLLIN);
		ret = hwt_read(fd, events, ARRAY_SIZE(events));
		CHECK(ret > 0);
		for (k = 0; k < ret; k++, i++) {
			bool after = events[k].deadline_ns >= told->deadline / tick * tick;

			strange += events[k].fired_ns < events[k].deadline_ns;
			late[after][n[after]++] = events[k].fired_ns - events[k].deadline_ns;
		}
	}
	last = events[ret - 1].fired_ns;
	CHECK(!strange);
	CHECK(hwt_read(fd, events, 1) == -EAGAIN);
	close(fd);
	CHECK(!child_end(pid));
	CHECK(!told->error);
	CHECK(told->done);
	CHECK(!told->lost);

	printf("# %u of one context due in one tick, %ld of them on the shared wheel\n", told->made,
	       told->shared);
	printf("# they fired within %llu ms\n",
	       ((told->last - told->deadline) / MSEC));
	print_lateness("timeouts of another before that tick", late[0], n[0]);
	print_lateness("timeouts of another from that tick on", late[1], n[1]);
	printf("# the last of those %s the many were through\n",
	       last < told->last ? "came before" : "came when");
	return 0;
}
