// SPDX-License-Identifier: GPL-2.0-only
/*
 * timers [N...]: the timers of libhwt in a process, beside others of one event loop
 *
 * Prints the CPU time of several rounds, ns an operation, system calls included. Objects are used
 * in random order; "store" only stores a time in them, which is what any of them costs at least.
 * Time is virtual: clock_gettime() below takes the place of the C library's, also for libraries.
 * Timers of the kernel expire in real time, and are due when their measurement begins.
 */
#include "guest.h"
#include "hwt_ring.h"

#include <ev.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <uv.h>

#include "libhwt_timers.h"

#define ROUNDS	5
/* The lifetime of a timerfd takes microseconds, and most systems have a limit on descriptors. */
#define FDS_MAX	10000
#define BATCH	256

static uint64_t now = 1000000 * SEC;
static unsigned int fired;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock == CLOCK_PROCESS_CPUTIME_ID)
		return syscall(SYS_clock_gettime, clock, time);
	time->tv_sec = now / SEC;
	time->tv_nsec = now % SEC;
	return 0;
}

/* A timer of each kind, in an object of its own cache lines, as a connection has it. */
struct object {
	union {
		ev_timer		ev;
		uv_timer_t		uv;
		int			fd;
		struct libhwt_timer	hwt;
		struct { uint64_t deadline; unsigned int place; } heap;
		struct { uint64_t deadline; struct object *next, *prev; unsigned int kind; } list;
		struct { ev_timer ev; uint64_t last, ns; } lazy;
		uint64_t		word;
	} u;
} __attribute__((aligned(128)));

/* -- Peers ----------------------------------------------------------------------- */

struct peer {
	const char	*name;
	bool		(*open)(unsigned int n);	/* false: not on this machine */
	void		(*init)(struct object *object);
	void		(*set)(struct object *object, uint64_t ns);
	void		(*stop)(struct object *object);
	void		(*disarm)(struct object *object);
	void		(*run)(void);
	void		(*close)(void);
	unsigned int	max;		/* number of timers; 0: any */
	bool		real;		/* in real time */
};

static int epoll = -1;

/* What a turn of a loop costs in any case. */
static void turn(void)
{
	struct epoll_event event;

	epoll_wait(epoll, &event, 1, 0);
}

static void nothing(void)
{
}

static bool nothing_open(unsigned int n)
{
	return true;
}

/* none */
static void none_init(struct object *object)
{
	object->u.word = 0;
}

static void none_set(struct object *object, uint64_t ns)
{
	object->u.word = now + ns;
}

static void none_stop(struct object *object)
{
	object->u.word = 0;
}

/* libhwt */
static struct libhwt_timers *set;
static void lib_fired(struct libhwt_timer *timer)
{
	fired++;
}

static bool lib_open(unsigned int n)
{
	set = libhwt_timers_new(NULL);
	return true;
}

static void lib_init(struct object *object)
{
	libhwt_timer_init(&object->u.hwt, lib_fired);
}

static void lib_set(struct object *object, uint64_t ns)
{
	libhwt_timer_set(set, &object->u.hwt, ns);
}

static void lib_stop(struct object *object)
{
	libhwt_timer_stop(set, &object->u.hwt);
}

static void lib_disarm(struct object *object)
{
	libhwt_timer_disarm(&object->u.hwt);
}

static void lib_run(void)
{
	turn();
	libhwt_timers_run(set);
}

static void lib_close(void)
{
	libhwt_timers_free(set);
}

/* libev, as its manual recommends it for timers that are pushed back */
static struct ev_loop *loop;
static void ev_fired(struct ev_loop *in, ev_timer *timer, int events)
{
	ev_timer_stop(in, timer);
	fired++;
}

static bool ev_open(unsigned int n)
{
	loop = ev_loop_new(EVFLAG_AUTO);
	return true;
}

static void ev_begin(struct object *object)
{
	ev_timer_init(&object->u.ev, ev_fired, 0., 0.);
}

static void ev_set(struct object *object, uint64_t ns)
{
	object->u.ev.repeat = ns / 1e9;
	ev_timer_again(loop, &object->u.ev);
}

static void ev_stop(struct object *object)
{
	ev_timer_stop(loop, &object->u.ev);
}

static void ev_turn(void)
{
	ev_run(loop, EVRUN_NOWAIT);
}

static void ev_close(void)
{
	ev_loop_destroy(loop);
}

/* lazy by hand on libev: store the time, and let the timer look */
static void lazy_fired(struct ev_loop *in, ev_timer *timer, int events)
{
	struct object *object = (struct object *)timer;

	if (!object->u.lazy.last) {
		return;
	} else if (object->u.lazy.last + object->u.lazy.ns <= now) {
		object->u.lazy.last = 0;
		fired++;
		return;
	}
	ev_timer_set(timer, (object->u.lazy.last + object->u.lazy.ns - now) / 1e9, 0.);
	ev_timer_start(in, timer);
}

static void lazy_init(struct object *object)
{
	ev_timer_init(&object->u.lazy.ev, lazy_fired, 0., 0.);
	object->u.lazy.last = 0;
}

static void lazy_set(struct object *object, uint64_t ns)
{
	bool later = ev_is_active(&object->u.lazy.ev) && ns >= object->u.lazy.ns;

	object->u.lazy.last = now;
	object->u.lazy.ns = ns;
	if (later)
		return;
	ev_timer_stop(loop, &object->u.lazy.ev);
	ev_timer_set(&object->u.lazy.ev, ns / 1e9, 0.);
	ev_timer_start(loop, &object->u.lazy.ev);
}

static void lazy_stop(struct object *object)
{
	object->u.lazy.last = 0;
	ev_timer_stop(loop, &object->u.lazy.ev);
}

static void lazy_disarm(struct object *object)
{
	object->u.lazy.last = 0;
}

/* libuv */
static uv_loop_t uv;
static void uv_fired(uv_timer_t *timer)
{
	fired++;
}

static bool uv_open(unsigned int n)
{
	uv_loop_init(&uv);
	return true;
}

static void uv_begin(struct object *object)
{
	uv_timer_init(&uv, &object->u.uv);
}

static void uv_set(struct object *object, uint64_t ns)
{
	uv_timer_start(&object->u.uv, uv_fired, ns / MSEC, 0);
}

static void uv_stop_one(struct object *object)
{
	uv_timer_stop(&object->u.uv);
}

static void uv_turn(void)
{
	uv_run(&uv, UV_RUN_NOWAIT);
}

/* Leaks the handles of the loop, which the next round does not use. */

/* a heap by hand, with four children in each node, and the deadlines beside the pointers */
static struct { uint64_t deadline; struct object *object; } *heap;
static unsigned int heap_n;
static bool heap_open(unsigned int n)
{
	heap = malloc((n + 5) * sizeof(*heap));
	heap_n = 0;
	return true;
}

static void heap_init(struct object *object)
{
	object->u.heap.place = ~0U;
}

static void heap_put(unsigned int i, uint64_t deadline, struct object *object)
{
	heap[i].deadline = deadline;
	heap[i].object = object;
	object->u.heap.place = i;
}

static void heap_up(unsigned int i, uint64_t deadline, struct object *object)
{
	for (; i && heap[(i - 1) / 4].deadline > deadline; i = (i - 1) / 4)
		heap_put(i, heap[(i - 1) / 4].deadline, heap[(i - 1) / 4].object);
	heap_put(i, deadline, object);
}

static void heap_down(unsigned int i, uint64_t deadline, struct object *object)
{
	unsigned int child, least, end;

	for (; (child = 4 * i + 1) < heap_n; i = least) {
		end = child + 4 < heap_n ? child + 4 : heap_n;
		for (least = child; ++child < end; )
			if (heap[child].deadline < heap[least].deadline)
				least = child;
		if (heap[least].deadline >= deadline)
			break;
		heap_put(i, heap[least].deadline, heap[least].object);
	}
	heap_put(i, deadline, object);
}

static void heap_set(struct object *object, uint64_t ns)
{
	unsigned int i = object->u.heap.place;
	uint64_t deadline = now + ns;

	object->u.heap.deadline = deadline;
	if (i == ~0U)
		heap_up(heap_n++, deadline, object);
	else if (deadline > heap[i].deadline)
		heap_down(i, deadline, object);
	else
		heap_up(i, deadline, object);
}

static void heap_stop(struct object *object)
{
	unsigned int i = object->u.heap.place;

	if (i == ~0U)
		return;
	object->u.heap.place = ~0U;
	if (i == --heap_n)
		return;
	if (i && heap[heap_n].deadline < heap[(i - 1) / 4].deadline)
		heap_up(i, heap[heap_n].deadline, heap[heap_n].object);
	else
		heap_down(i, heap[heap_n].deadline, heap[heap_n].object);
}

static void heap_run(void)
{
	turn();
	for (; heap_n && heap[0].deadline <= now; fired++)
		heap_stop(heap[0].object);
}

static void heap_close(void)
{
	free(heap);
}

/* a list for each duration; only for the server's mix, which has two */
static struct object list[2];
static bool list_open(unsigned int n)
{
	int i;

	for (i = 0; i < 2; i++) {
		list[i].u.list.next = &list[i];
		list[i].u.list.prev = &list[i];
	}
	return true;
}

static void list_init(struct object *object)
{
	object->u.list.next = NULL;
}

static void list_stop(struct object *object)
{
	if (!object->u.list.next)
		return;
	object->u.list.next->u.list.prev = object->u.list.prev;
	object->u.list.prev->u.list.next = object->u.list.next;
	object->u.list.next = NULL;
}

static void list_set(struct object *object, uint64_t ns)
{
	struct object *head = &list[ns > 10 * SEC];

	list_stop(object);
	object->u.list.deadline = now + ns;
	object->u.list.next = head;
	object->u.list.prev = head->u.list.prev;
	head->u.list.prev->u.list.next = object;
	head->u.list.prev = object;
}

static void list_run(void)
{
	int i;

	turn();
	for (i = 0; i < 2; i++)
		while (list[i].u.list.next != &list[i] &&
		       list[i].u.list.next->u.list.deadline <= now) {
			list_stop(list[i].u.list.next);
			fired++;
		}
}

/* timerfd: stopped by 0, closed at the end */
static int *fds;
static unsigned int fds_n;
static bool fd_open(unsigned int n)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	fds = calloc(n, sizeof(*fds));
	fds_n = 0;
	return limit.rlim_max > n + 100 && !setrlimit(RLIMIT_NOFILE, &limit);
}

static void fd_init(struct object *object)
{
	struct epoll_event event = { .events = EPOLLIN };

	object->u.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	event.data.fd = object->u.fd;
	fds[fds_n++] = object->u.fd;
	epoll_ctl(epoll, EPOLL_CTL_ADD, object->u.fd, &event);
}

static void fd_set_ns(struct object *object, uint64_t ns)
{
	struct itimerspec at = { .it_value = { ns / SEC, ns % SEC } };

	timerfd_settime(object->u.fd, 0, &at, NULL);
}

static void fd_stop(struct object *object)
{
	fd_set_ns(object, 0);
}

static void fd_run(void)
{
	struct epoll_event events[BATCH];
	uint64_t expired;
	int n, i;

	do {
		n = epoll_wait(epoll, events, BATCH, 0);
		for (i = 0; i < n; i++)
			fired += read(events[i].data.fd, &expired, sizeof(expired)) > 0;
	} while (n > 0);
}

static void fd_close(void)
{
	while (fds_n)
		close(fds[--fds_n]);
	free(fds);
}

/* /dev/hwt: keys and rings, BATCH operations with a system call */
static struct ring ring;
static unsigned int queued;
static bool dev_open(unsigned int n)
{
	int fd = hwt_open(O_NONBLOCK), ret;

	if (fd < 0)
		return false;
	ret = hwt_with(fd, SETUP, setup, .flags = HWT_SETUP_KEYS);
	if (ret || ring_make(&ring, fd, 0, BATCH, 4096))
		return false;
	return true;
}

static void dev_submit(void)
{
	if (ring_enter(&ring, queued, 0, 0) != queued)
		exit(1);
	queued = 0;
}

static void dev_push(struct hwt_op op, struct object *object)
{
	op.id = (uintptr_t)object;
	ring_push(&ring, op);
	if (++queued == BATCH)
		dev_submit();
}

static void dev_set(struct object *object, uint64_t ns)
{
	dev_push(op_schedule(ns, 0), object);
}

static void dev_stop(struct object *object)
{
	dev_push(op_cancel(0), object);
}

static void dev_run(void)
{
	struct hwt_event event;
	unsigned int before;

	do {
		dev_submit();
		before = fired;
		while (ring_pop(&ring, &event))
			fired++;
	} while (fired > before);
}

static void dev_close(void)
{
	ring_close(&ring);
}

static const struct peer peers[] = {
	{ "store", nothing_open, none_init, none_set, none_stop, none_stop, turn,
	  nothing, 0, false },
	{ "libhwt", lib_open, lib_init, lib_set, lib_stop, lib_disarm, lib_run,
	  lib_close, 0, false },
	{ "libev", ev_open, ev_begin, ev_set, ev_stop, NULL, ev_turn, ev_close, 0, false },
	{ "lazy", ev_open, lazy_init, lazy_set, lazy_stop, lazy_disarm, ev_turn,
	  ev_close, 0, false },
	{ "heap", heap_open, heap_init, heap_set, heap_stop, NULL, heap_run,
	  heap_close, 0, false },
	{ "libuv", uv_open, uv_begin, uv_set, uv_stop_one, NULL, uv_turn,
	  nothing, 0, false },
	{ "lists", list_open, list_init, list_set, list_stop, NULL, list_run,
	  nothing, 0, false },
	{ "timerfd", fd_open, fd_init, fd_set_ns, fd_stop, NULL, fd_run,
	  fd_close, FDS_MAX, true },
	{ "hwt-rings", dev_open, none_init, dev_set, dev_stop, NULL, dev_run,
	  dev_close, 0, true },
};

/* -- Operations --------------------------------------------------------------------- */

enum { CREATE, PUSH, DEFERRED, PULL, STOP, DISARM, EXPIRE, MIX, MIX_DISARM, OPS };
static const char *const op_name[OPS] = {
	"create", "push-back", "put-off-by-it", "pull-forward", "stop", "disarm", "expire",
	"mix-stop", "mix-disarm",
};

static struct object *objects;
static unsigned int *order;
static double *spans;
static unsigned int count;

static __u64 seed = 0x9e3779b97f4a7c15ULL;
static uint64_t pick(uint64_t n)
{
	return (next_random(&seed) >> 16) % n;
}

static void shuffle(unsigned int n)
{
	unsigned int i, k, other;

	for (i = 0; i < n; i++)
		order[i] = i;
	for (i = n - 1; i; i--) {
		k = pick(i + 1);
		other = order[i];
		order[i] = order[k];
		order[k] = other;
	}
}

static void note(int op, const struct peer *peer, uint64_t begin, unsigned int n)
{
	uint64_t ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;

	printf("@bench bench=process peer=%s op=%s n=%u unit=ns value=%.1f\n", peer->name,
	       op_name[op], count, (double)ns / n);
}

static void each(const struct peer *peer, int op, unsigned int n, uint64_t ns, uint64_t spread)
{
	uint64_t begin;
	unsigned int i;

	shuffle(n);
	for (i = 0; i < n; i++)
		spans[i] = ns + pick(spread);
	begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (i = 0; i < n; i++)
		peer->set(&objects[order[i]], spans[i]);
	note(op, peer, begin, n);
}

static void all(const struct peer *peer, int op, unsigned int n, void (*fn)(struct object *object))
{
	uint64_t begin;
	unsigned int i;

	shuffle(n);
	begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (i = 0; i < n; i++)
		fn(&objects[order[i]]);
	note(op, peer, begin, n);
}

static void expire_all(const struct peer *peer, int op, unsigned int n, uint64_t until,
		       unsigned int expected)
{
	uint64_t begin;

	fired = 0;
	now = until;
	begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	peer->run();
	note(op, peer, begin, n);
	if (fired != expected && peer != peers)
		printf("%s, %s: %u of %u have fired\n", peer->name, op_name[op], fired, expected);
}

/* What libraries and programs can do in virtual time. */
static void single_virtual(const struct peer *peer, unsigned int n)
{
	uint64_t start = now;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		now += 5 * SEC;
		peer->run();
		each(peer, PUSH, n, 75 * SEC, 1);
	}
	/* All deadlines of before have come, and no new one. */
	expire_all(peer, DEFERRED, n, start + 80 * SEC, 0);
}

static void single(const struct peer *peer, unsigned int n)
{
	uint64_t due = 20 * MSEC + n * 20000;
	unsigned int i;

	for (i = 0; i < n; i++)
		peer->init(&objects[i]);
	peer->run();
	each(peer, CREATE, n, 60 * SEC, 10 * SEC);
	if (!peer->real)
		single_virtual(peer, n);
	each(peer, PULL, n, 2 * SEC, SEC);
	each(peer, PUSH, n, 60 * SEC, SEC);
	all(peer, STOP, n, peer->stop);
	each(peer, CREATE, n, 60 * SEC, 10 * SEC);
	if (peer->disarm)
		all(peer, DISARM, n, peer->disarm);
	else
		all(peer, STOP, n, peer->stop);
	if (peer->real) {
		for (i = 0; i < n; i++)
			peer->set(&objects[order[i]], due);
		peer->run();
		fired = 0;
		sleep_ns(due + 5 * MSEC);
	} else {
		now += 100 * SEC;
		peer->run();
		each(peer, CREATE, n, 60 * SEC, 10 * SEC);
	}
	expire_all(peer, EXPIRE, n, now + 80 * SEC, n);
}

/*
 * Each request arms and ends a timer of 5 s, and pushes one of 60 s back. One request in a thousand
 * is not answered. 256 requests are one turn of the loop.
 */
static void mix(const struct peer *peer, int op, unsigned int n, void (*end)(struct object *object))
{
	unsigned int requests = peer->real ? 200000 : 2000000, i, c;
	uint64_t begin;

	for (i = 0; i < 2 * n; i++)
		peer->init(&objects[i]);
	peer->run();
	begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (i = 0; i < requests; i++) {
		c = (uint32_t)(i * 2654435761u) % n;
		now += 10000;
		if (i % 256 == 0)
			peer->run();
		peer->set(&objects[2 * c], 5 * SEC);
		peer->set(&objects[2 * c + 1], 60 * SEC);
		if (i % 1000)
			end(&objects[2 * c]);
	}
	note(op, peer, begin, requests);
	for (i = 0; i < 2 * n; i++)
		peer->stop(&objects[i]);
}

/* Measure a peer with @count timers. */
static void measure(const struct peer *peer)
{
	bool lists = !strcmp(peer->name, "lists");
	int op;

	for (op = lists ? MIX : EXPIRE; op <= MIX_DISARM; op++) {
		if ((peer->max && count > peer->max) || (op != EXPIRE && count > 20000) ||
		    (op == MIX_DISARM && !peer->disarm))
			return;
		if (!peer->open(op == EXPIRE ? count : 2 * count)) {
			printf("%s: not on this machine\n", peer->name);
			return;
		}
		if (op == EXPIRE)
			single(peer, count);
		else
			mix(peer, op, count, op == MIX ? peer->stop : peer->disarm);
		peer->close();
	}
}

int main(int argc, char **argv)
{
	static const unsigned int usual[] = { 1000, 10000, 100000, 1000000 };
	int counts = argc > 1 ? argc - 1 : 4, i, round;
	const struct peer *peer;
	size_t n;

	epoll = epoll_create1(0);
	for (i = 0; i < counts; i++) {
		count = argc > 1 ? strtoul(argv[i + 1], NULL, 10) : usual[i];
		n = 2 * (size_t)count;
		if (posix_memalign((void **)&objects, 128, n * sizeof(*objects)))
			return 1;
		order = malloc(n * sizeof(*order));
		spans = malloc(n * sizeof(*spans));
		memset(objects, 0, n * sizeof(*objects));
		for (round = 0; round < ROUNDS; round++)
			for (peer = peers; peer < peers + sizeof(peers) / sizeof(*peers); peer++)
				measure(peer);
		free(objects);
		free(order);
		free(spans);
	}
	return 0;
}
