// SPDX-License-Identifier: GPL-2.0-only
/*
 * libhwt's queue, used by several threads under the thread sanitizer. The sanitizer does not see
 * the kernel's memory accesses, so this file has a small device with the acquires and releases of
 * device/ring.c. If the library lacks its half of a pair, the sanitizer reports a data race.
 *
 * The Makefile compiles the library so that it calls fake_ioctl() and fake_mmap().
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "libhwt.h"

/* A timeout fires at once, so the device keeps only its event. */
static struct {
	int			fd;
	pthread_mutex_t		submit, lock;
	struct hwt_event	events[100000];		/* not in the ring yet */
	unsigned int		first, last;
	uint64_t		id;
	struct hwt_rings	*rings;
	struct hwt_op		*ops;
	struct hwt_event	*ring;
	uint32_t		op_mask, event_mask, op_head, event_tail, flags;
} device = { .submit = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER };

static uint32_t unread(void)
{
	return device.event_tail - __atomic_load_n(&device.rings->event_head, __ATOMIC_ACQUIRE);
}

static void tell(void)
{
	uint32_t flags = device.first != device.last ? HWT_RINGS_MORE : 0;

	if (flags == device.flags)
		return;
	device.flags = flags;
	__atomic_store_n(&device.rings->flags, flags, __ATOMIC_RELEASE);
}

static void fill(void)
{
	while (device.first != device.last && unread() <= device.event_mask) {
		device.ring[device.event_tail++ & device.event_mask] =
			device.events[device.first++];
		__atomic_store_n(&device.rings->event_tail, device.event_tail,
				 __ATOMIC_RELEASE);
	}
	tell();
}

static void run(struct hwt_op *op)
{
	struct hwt_event event = { .user_data = op->user_data, .kind = HWT_EVENT_EXPIRED };

	op->result = -ENOENT;
	if (op->opcode != HWT_OP_SCHEDULE)
		return;
	op->result = 0;
	pthread_mutex_lock(&device.lock);
	op->id = ++device.id;
	event.id = op->id;
	device.events[device.last++] = event;
	tell();
	pthread_mutex_unlock(&device.lock);
}

static int submit(struct hwt_enter_args *enter)
{
	uint32_t n, done;
	struct hwt_op op;
	bool valid;

	pthread_mutex_lock(&device.submit);
	n = __atomic_load_n(&device.rings->op_tail, __ATOMIC_ACQUIRE) - device.op_head;
	valid = n <= device.op_mask + 1;
	for (done = 0; valid && done < n && done < enter->submit; done++) {
		op = device.ops[device.op_head & device.op_mask];
		run(&op);
		device.ops[device.op_head++ & device.op_mask] = op;
		__atomic_store_n(&device.rings->op_head, device.op_head, __ATOMIC_RELEASE);
	}
	enter->submit = done;
	pthread_mutex_unlock(&device.submit);
	return valid ? 0 : -EINVAL;
}

static int enter(struct hwt_enter_args *enter)
{
	int ret = enter->submit ? submit(enter) : 0;
	bool wait;

	if (ret)
		return ret;
	pthread_mutex_lock(&device.lock);
	fill();
	enter->events = unread();
	wait = enter->wait && !enter->events;
	enter->result = wait ? -ETIME : 0;
	pthread_mutex_unlock(&device.lock);
	/* A short wait, whatever the requested time. */
	if (enter->result == -ETIME)
		usleep(1000);
	return 0;
}

static int rings(struct hwt_rings_args *args)
{
	device.op_mask = args->op_entries - 1;
	device.event_mask = args->event_entries - 1;
	args->ops_offset = sizeof(struct hwt_rings);
	args->events_offset = args->ops_offset + args->op_entries * sizeof(struct hwt_op);
	args->map_size = args->events_offset + args->event_entries * sizeof(struct hwt_event);
	device.rings = mmap(NULL, args->map_size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	device.ops = (struct hwt_op *)((char *)device.rings + args->ops_offset);
	device.ring = (struct hwt_event *)((char *)device.rings + args->events_offset);
	return 0;
}

static int ioctl_run(unsigned long request, void *args)
{
	struct hwt_info_args *info = args;

	switch (request) {
	case HWT_IOC_INFO:
		info->clock = CLOCK_MONOTONIC;
		return 0;
	case HWT_IOC_RINGS:
		return rings(args);
	case HWT_IOC_ENTER:
		return enter(args);
	default:
		return -ENOTTY;
	}
}

int fake_ioctl(int fd, unsigned long request, void *args);
int fake_ioctl(int fd, unsigned long request, void *args)
{
	int ret = fd == device.fd ? ioctl_run(request, args) : -EBADF;

	errno = -ret;
	return ret ? -1 : 0;
}

void *fake_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
void *fake_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	return fd == device.fd ? device.rings : mmap(at, size, prot, flags, fd, offset);
}

#define THREADS	4
#define EACH	5000
#define TOTAL	(THREADS * EACH)

static struct libhwt *hwt;
static struct libhwt_queue *queue;
static unsigned char results_seen[TOTAL], events_seen[TOTAL];
static unsigned int results, wrong;
static bool produced;

static void complain(const char *what, long value)
{
	fprintf(stderr, "%s: %ld\n", what, value);
	__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void once(const char *what, unsigned char *seen, uint64_t data)
{
	if (data >= TOTAL || __atomic_fetch_add(&seen[data], 1, __ATOMIC_RELAXED))
		complain(what, data);
}

static void take_results(void)
{
	struct hwt_op ops[5];
	int i, n = libhwt_queue_results(queue, ops, 5);

	if (n < 0)
		complain("results", n);
	for (i = 0; i < n; i++) {
		if (ops[i].result || !ops[i].id)
			complain("result", ops[i].result);
		once("a result", results_seen, ops[i].user_data);
	}
	__atomic_fetch_add(&results, n, __ATOMIC_RELAXED);
}

static void *produce(void *arg)
{
	struct hwt_op op = { .opcode = HWT_OP_SCHEDULE };
	uintptr_t self = (uintptr_t)arg;
	unsigned int i;
	int ret;

	for (i = 0; i < EACH; i++) {
		op.user_data = self * EACH + i;
		while ((ret = libhwt_queue_add(queue, &op, 1)) == -EAGAIN) {
			ret = libhwt_queue_submit(queue);
			if (ret)
				complain("submit", ret);
			take_results();
		}
		if (ret != 1)
			complain("add", ret);
	}
	while (__atomic_load_n(&results, __ATOMIC_RELAXED) < TOTAL) {
		libhwt_queue_submit(queue);
		take_results();
		sched_yield();
	}
	return NULL;
}

/* Read events until none is left after the end of all producers. */
static void *consume(void *arg)
{
	bool submits = (uintptr_t)arg % 2, last;
	struct hwt_event events[3];
	int i, ret;

	do {
		last = __atomic_load_n(&produced, __ATOMIC_RELAXED);
		if (submits)
			libhwt_queue_submit(queue);
		ret = libhwt_next(hwt, events, 3, HWT_NEVER);
		if (ret < 0)
			complain("next", ret);
		for (i = 0; i < ret; i++)
			once("an event", events_seen, events[i].user_data);
	} while (ret > 0 || !last);
	return NULL;
}

int main(void)
{
	struct libhwt_queue_options options = {
		.size = sizeof(options),
		.ops = 8,
		.events = 32,
	};
	pthread_t threads[2 * THREADS];
	uintptr_t i;

	device.fd = open("/dev/null", O_RDWR);
	if (libhwt_adopt(&hwt, device.fd) || libhwt_queue_new(&queue, hwt, &options))
		return 1;
	for (i = 0; i < THREADS; i++) {
		pthread_create(&threads[i], NULL, produce, (void *)i);
		pthread_create(&threads[THREADS + i], NULL, consume, (void *)i);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* All operations have results, so no event will come any more. */
	__atomic_store_n(&produced, true, __ATOMIC_RELAXED);
	for (; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	libhwt_close(hwt);
	for (i = 0; i < TOTAL; i++)
		if (!results_seen[i] || !events_seen[i])
			complain("missing", i);
	return !!wrong;
}
