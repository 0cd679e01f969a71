// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring timeouts, submitted one by one or batch_size at once. To find a timeout to move or
 * cancel, the kernel searches a list of all timeouts; with many timeouts the time limit ends these
 * operations.
 *
 * The hwt peers use the commands of /dev/hwt instead of io_uring's own requests.
 */
#include "user_bench.h"
#include <liburing.h>

/* Marks the completion of a request to move or cancel, not of a timeout. */
#define REQUEST		0x100000000ULL

static struct io_uring ring;
/* /dev/hwt; 0 for io_uring's own requests. */
static int device;

/*
 * Set up a ring with room for a completion of each timeout, at most 65536. The kernel keeps further
 * completions in a list.
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

	/* Kernels before 5.19 do not know the flag. */
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

/* Take the completions so far, without a system call. */
static void take_completions(void)
{
	struct io_uring_cqe *cqe;
	unsigned int head, got = 0;

	io_uring_for_each_cqe(&ring, head, cqe) {
		bool request = cqe->user_data & REQUEST;

		/* A cancelled timeout completes with -ECANCELED. All requests must succeed. */
		if (cqe->res != (request ? 0 : -ECANCELED))
			give_up("io_uring: %s: %s", request ? "request" : "timeout",
				strerror(-cqe->res));
		got++;
	}
	io_uring_cq_advance(&ring, got);
}

/* Prepare a request of io_uring. */
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

/* Prepare a command of /dev/hwt. The key is the timer's number, as the user_data of io_uring. */
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
	uring_open, submit_singly, uring_reap,
};

const struct peer peer_uring_batch = {
	"io_uring-batch", "the same, 32 at once",
	uring_open, submit, uring_reap,
};

const struct peer peer_hwt_uring = {
	"hwt-uring", "/dev/hwt: HWT_URING_ARM, HWT_URING_MODIFY, HWT_URING_CANCEL of io_uring",
	hwt_uring_open, submit_singly, uring_reap,
};

const struct peer peer_hwt_uring_batch = {
	"hwt-uring-batch", "the same, 32 at once",
	hwt_uring_open, submit, uring_reap,
};
