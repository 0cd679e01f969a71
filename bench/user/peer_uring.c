// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring timeouts, each request submitted by itself or batch_size of them at once. The kernel
 * finds the one to move or cancel by going through a list of all, so with many of them the
 * time limit ends that.
 *
 * And the same with the commands of /dev/hwt instead of io_uring's own requests.
 */
#include "user_bench.h"
#include <liburing.h>

/* What marks the completion of a request about a timeout, not of the timeout. */
#define REQUEST		0x100000000ULL

static struct io_uring ring;
/* Of the hwt peers, else 0. */
static int device;

/*
 * With room for a completion of each timeout, as far as the kernel has it (65536); the rest
 * goes to a list that the kernel keeps meanwhile.
 */
static int ring_init(unsigned int timers, unsigned int flags, struct io_uring_params *params)
{
	*params = (struct io_uring_params) {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | flags,
		.cq_entries = timers + batch_size,
	};
	return io_uring_queue_init_params(batch_size, &ring, params);
}

static void uring_open(unsigned int count)
{
	struct io_uring_params params;
	int ret = ring_init(count, IORING_SETUP_COOP_TASKRUN, &params);

	/* Before 5.19. */
	if (ret == -EINVAL)
		ret = ring_init(count, 0, &params);
	if (ret)
		give_up("io_uring_setup: %s", strerror(-ret));
	if (!(params.features & IORING_FEAT_NODROP))
		give_up("this io_uring drops completions");
}

static void hwt_uring_open(unsigned int count)
{
	device = hwt_device_open(HWT_FEATURE_URING, HWT_SETUP_KEYS);
	uring_open(count);
}

/* Take what has completed so far, without a system call. */
static void take_completions(void)
{
	struct io_uring_cqe *cqe;
	unsigned int head, got = 0;

	io_uring_for_each_cqe(&ring, head, cqe) {
		bool request = cqe->user_data & REQUEST;

		/* A timeout that was cancelled says so. All else must have succeeded. */
		if (cqe->res != (request ? 0 : -ECANCELED))
			give_up("io_uring: %s: %s", request ? "request" : "timeout",
				strerror(-cqe->res));
		got++;
	}
	io_uring_cq_advance(&ring, got);
}

/* io_uring's own request. */
static void prepare_request(struct io_uring_sqe *sqe, enum operation op,
			    const struct todo *todo, struct __kernel_timespec *time)
{
	*time = (struct __kernel_timespec) {
		.tv_sec = time_of(todo) / SEC,
		.tv_nsec = time_of(todo) % SEC,
	};
	if (op == CREATE)
		io_uring_prep_timeout(sqe, time, 0, deadline_ns ? IORING_TIMEOUT_ABS : 0);
	else if (op == REARM)
		io_uring_prep_timeout_update(sqe, time, todo->timer, 0);
	else
		io_uring_prep_timeout_remove(sqe, todo->timer, 0);
}

/* A command of /dev/hwt. A new timeout is known by its timer's number, as io_uring's are. */
static void prepare_command(struct io_uring_sqe *sqe, enum operation op,
			    const struct todo *todo)
{
	static const __u32 commands[OPERATIONS] = {
		HWT_URING_ARM, HWT_URING_MODIFY, HWT_URING_CANCEL,
	};
	struct hwt_uring_cmd args = {};

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = device;
	sqe->cmd_op = commands[op];
	sqe->addr = todo->timer;
	if (op != CANCEL) {
		args.time_ns = time_of(todo);
		args.flags = deadline_ns ? HWT_ARM_ABSOLUTE : 0;
	}
	memcpy(sqe->cmd, &args, sizeof(args));
}

static void submit(enum operation op, const struct todo *todo, unsigned int count)
{
	struct __kernel_timespec times[BATCH_MAX];
	struct io_uring_sqe *sqe;
	unsigned int i;
	int ret;

	for (i = 0; i < count; i++) {
		sqe = io_uring_get_sqe(&ring);
		if (!sqe)
			give_up("io_uring_get_sqe: the queue is full");
		if (device)
			prepare_command(sqe, op, &todo[i]);
		else
			prepare_request(sqe, op, &todo[i], &times[i]);
		sqe->user_data = (op == CREATE ? 0 : REQUEST) | todo[i].timer;
	}
	ret = io_uring_submit(&ring);
	if (ret != (int)count)
		give_up("io_uring_submit: %s", ret < 0 ? strerror(-ret) : "not all");
	take_completions();
}

static void submit_singly(enum operation op, const struct todo *todo, unsigned int count)
{
	for (; count--; todo++)
		submit(op, todo, 1);
}

static void uring_reap(unsigned int count)
{
	struct io_uring_cqe *cqes[EVENTS];
	unsigned int seen = 0, got, i;
	int ret;

	while (seen < count) {
		ret = io_uring_wait_cqe(&ring, cqes);
		if (ret)
			give_up("io_uring_wait_cqe: %s", strerror(-ret));
		if (!seen)
			reap_first();
		got = io_uring_peek_batch_cqe(&ring, cqes, EVENTS);
		for (i = 0; i < got; i++) {
			if (cqes[i]->res != (device ? 0 : -ETIME))
				give_up("io_uring: timeout: %s", strerror(-cqes[i]->res));
		}
		io_uring_cq_advance(&ring, got);
		seen += got;
	}
}

const struct peer peer_uring = {
	"io_uring", "IORING_OP_TIMEOUT, IORING_TIMEOUT_UPDATE, IORING_OP_TIMEOUT_REMOVE",
	uring_open, submit_singly, uring_reap, NULL,
};

const struct peer peer_uring_batch = {
	"io_uring-batch", "the same, 32 at once",
	uring_open, submit, uring_reap, NULL,
};

const struct peer peer_hwt_uring = {
	"hwt-uring", "/dev/hwt: HWT_URING_ARM, HWT_URING_MODIFY, HWT_URING_CANCEL of io_uring",
	hwt_uring_open, submit_singly, uring_reap, hwt_engine_ns,
};

const struct peer peer_hwt_uring_batch = {
	"hwt-uring-batch", "the same, 32 at once",
	hwt_uring_open, submit, uring_reap, hwt_engine_ns,
};
