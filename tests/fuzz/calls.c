// SPDX-License-Identifier: GPL-2.0-only
/*
 * The system calls of programs, and checks of their results.
 */
#include "fuzz.h"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "guest.h"
#include "hwt_dev.h"
#include "process.h"

#define FILES		4
#define EPOLLS		2
#define MAPS		2
#define STAGE_MAX	128

/* Objects that a program's calls have created. Threads share them without synchronization. */
static struct {
	int			file[FILES];
	int			epoll[EPOLLS];
	struct hwt_rings_args	rings[FILES];
	struct {
		char			*start;
		size_t			size;
		struct hwt_rings_args	rings;
	} map[MAPS];
	/* Operations for a ring. */
	struct hwt_op		stage[STAGE_MAX];
	bool			caps_dropped;
	bool			clock_set;
} state;

/* The first forbidden result that the kernel returned. */
static char broken[200];

/* Memory for arguments: writable, read-only, and a page whose protection calls change. */
#define GOOD_PAGES	8
static char *good, *readonly, *changing;
#define GOOD_END	(good + GOOD_PAGES * PAGE)

/* Return the place of an argument: in mapped memory, partly in it, or outside. */
static char *buffer(uint8_t byte, size_t size)
{
	const size_t half = size / 2 & ~7UL;
	char * const at[] = {
		good, GOOD_END - half, GOOD_END - half + 3, NULL, readonly, changing,
		changing - half, (char *)0xffffffff81000000UL,
		(char *)0x00007ffffffff000UL - size / 2, (char *)0x1234000000000000UL,
		(char *)~7UL, state.map[0].start, state.map[1].start,
		state.map[0].start + state.map[0].size - size / 2, good + 4, good + 1,
	};

	return at[byte < COUNT(at) ? byte : 0];
}

struct copy {
	volatile char		*to;
	const volatile char	*from;
	size_t			size;
};

static void do_copy(void *arg)
{
	struct copy *copy = arg;

	while (copy->size--)
		*copy->to++ = *copy->from++;
}

/* Copy, possibly from or to unmapped memory. Return false after a fault, with a part copied. */
static bool copy(void *to, const void *from, size_t size)
{
	struct copy copy = { .to = to, .from = from, .size = size };

	return run_guarded(do_copy, &copy);
}

#define must_not(...)								\
do {										\
	if (!broken[0])								\
		snprintf(broken, sizeof(broken), __VA_ARGS__);			\
} while (0)

const char *calls_broken(void)
{
	return broken[0] ? broken : NULL;
}

static void remember(uint64_t id)
{
	known.ids[known.ids_n++ % IDS] = id;
}

/* Check an event of the kernel, which no other thread can have changed. */
static void check_event(const struct hwt_event *event)
{
	if (event->kind < HWT_EVENT_EXPIRED || event->kind > HWT_EVENT_CLOCK_SET ||
	    event->flags & ~HWT_EVENT_LAST || event->reserved)
		must_not("event of kind %u, flags %#x, reserved %llx", event->kind,
			 event->flags, event->reserved);
	/* An id of 0 is allowed: it is a key. */
	if (event->kind != HWT_EVENT_CLOCK_SET && !event->generation)
		must_not("event without a generation");
	if (event->kind == HWT_EVENT_EXPIRED && event->fired_ns < event->deadline_ns &&
	    !state.clock_set)
		must_not("early: %llu before %llu", event->fired_ns, event->deadline_ns);
}

static void check_list(const struct hwt_list_args *args, const struct hwt_list_entry *entry)
{
	unsigned int i;

	if (args->entries != (uintptr_t)entry || args->entry_size != sizeof(*entry))
		return;
	for (i = 0; i < args->count; i++)
		if (entry[i].reserved || entry[i].mode > 2 || entry[i].state > 3)
			must_not("list: entry %u: id %llx, state %#x", i, entry[i].id,
				 entry[i].state);
}

static void check_rings(const struct hwt_rings_args *args)
{
	uint64_t ops = (uint64_t)args->op_entries * sizeof(struct hwt_op);
	uint64_t events = (uint64_t)args->event_entries * sizeof(struct hwt_event);

	if (!ops || !events || args->ops_offset < sizeof(struct hwt_rings) ||
	    args->events_offset < args->ops_offset + ops ||
	    args->map_size < args->events_offset + events)
		must_not("rings: %u and %u entries at %u and %u of %llu bytes", args->op_entries,
			 args->event_entries, args->ops_offset, args->events_offset,
			 args->map_size);
}

/* -- ioctls -------------------------------------------------------------- */

union args {
	char			bytes[256];
	struct hwt_schedule_args schedule;
	struct hwt_list_args	list;
	struct hwt_rings_args	rings;
	struct hwt_enter_args	enter;
};

static int file_of(uint8_t byte)
{
	return state.file[byte % FILES];
}

/* The place of arrays in @good, behind the structures. */
#define ARRAY	(2 * PAGE)
#define ARRAY_MAX	(4 * PAGE)

_Static_assert(LIST_ROOM * sizeof(struct hwt_list_entry) <= ARRAY_MAX, "no room");

static char *array(uint8_t byte, size_t size)
{
	return byte ? buffer(byte, size) : good + ARRAY;
}

/* Set the array of a list. @byte: its place. */
static void list_to(struct hwt_list_args *args, uint8_t byte)
{
	args->entries = (uintptr_t)array(byte, PAGE);
	if (!byte && args->count > LIST_ROOM)
		args->count = LIST_ROOM;
}

/* Use and check an ioctl's result. @where, @array_byte: places of its structure and array. */
static void ioctl_done(unsigned int nr, unsigned int slot, const union args *args,
		       uint8_t where, uint8_t array_byte)
{
	switch (nr) {
	case IOCTL_SCHEDULE:
		remember(args->schedule.id);
		break;
	case IOCTL_LIST:
		known.cursor = args->list.cursor;
		if (!array_byte && run_alone())
			check_list(&args->list, (const void *)(good + ARRAY));
		break;
	case IOCTL_RINGS:
		state.rings[slot] = args->rings;
		if (!where && run_alone())
			check_rings(&args->rings);
		break;
	}
}

/* @bytes: the context, the place of the structure, and one for each field. */
static void run_ioctl(unsigned int nr, const uint8_t *bytes)
{
	const struct ioctl *ioctl_nr = &ioctls[nr];
	uint8_t where = bytes[1], array_byte = 0;
	union args args = {};
	unsigned int i;
	char *to;

	fields_fill(args.bytes, ioctl_nr->fields, bytes + 2);
	for (i = 0; ioctl_nr->fields[i].bytes; i++)
		if (ioctl_nr->fields[i].kind == FIELD_BUFFER)
			array_byte = bytes[2 + i];
	if (nr == IOCTL_LIST)
		list_to(&args.list, array_byte);
	/* The structure is followed by zeros. */
	to = buffer(where, ioctl_nr->fields[0].value);
	if (to == good)
		memset(to, 0, PAGE + 8);
	copy(to, args.bytes, 128);
	if (nr == IOCTL_ENTER)
		run_alarm(5000);
	i = ioctl(file_of(bytes[0]), ioctl_nr->request, to);
	if (nr == IOCTL_ENTER)
		run_alarm(0);
	if (!i && copy(args.bytes, to, 128))
		ioctl_done(nr, bytes[0] % FILES, &args, where, array_byte);
}

static void close_file(unsigned int slot)
{
	if (state.file[slot] >= 0)
		close(state.file[slot]);
	state.file[slot] = -1;
}

static void put_file(unsigned int slot, int fd)
{
	if (fd < 0)
		return;
	close_file(slot);
	state.file[slot] = fd;
}

static void call_open(const uint8_t *args)
{
	static const int flags[] = {
		O_RDWR, O_RDWR | O_NONBLOCK, O_RDONLY, O_WRONLY, O_RDWR | O_APPEND,
		O_RDWR | O_ASYNC,
	};

	put_file(args[0] % FILES, open("/dev/hwt", O_CLOEXEC | flags[args[1] % 6]));
}

static void call_close(const uint8_t *args)
{
	close_file(args[0] % FILES);
}

static void call_dup(const uint8_t *args)
{
	unsigned int to = (args[0] + 1 + args[1]) % FILES;

	put_file(to, dup(file_of(args[0])));
	state.rings[to] = state.rings[args[0] % FILES];
}

static void call_nonblock(const uint8_t *args)
{
	fcntl(file_of(args[0]), F_SETFL, args[1] & 1 ? 0 : O_NONBLOCK);
}

/* An ioctl of any number, valid or not. */
static void call_ioctl(const uint8_t *args)
{
	unsigned long request = _IO(HWT_IOC_MAGIC, args[1]);

	if (args[2])
		request = _IOC(args[2] & 3, HWT_IOC_MAGIC, args[1], args[2]);
	memset(good, args[3], 128);
	ioctl(file_of(args[0]), request, buffer(args[4], 128));
}

/* Stage an operation, or several copies with different times. */
static void call_op(const uint8_t *args)
{
	unsigned int copies = args[0] < 0x80 ? 1 : args[0] - 0x80, i;
	struct hwt_op op = {};

	fields_fill((char *)&op, op_fields, args + 1);
	for (i = 0; i < copies && known.staged < STAGE_MAX; i++) {
		state.stage[known.staged++ % STAGE_MAX] = op;
		op.time_ns += MSEC / 2;
	}
}

static struct iovec read_to(uint8_t count, uint8_t where)
{
	size_t size = (value_count(count) & 1023) * sizeof(struct hwt_event);

	/* A size that is no multiple of an event's. */
	if (count >= 0xfe)
		size = count == 0xff ? 100 : 63;
	if (size > ARRAY_MAX)
		size = ARRAY_MAX;
	return (struct iovec) { array(where, size), size };
}

static void read_done(ssize_t bytes, const struct iovec *to)
{
	const struct hwt_event *event = to->iov_base;

	for (; bytes >= (ssize_t)sizeof(*event); bytes -= sizeof(*event))
		check_event(event++);
}

static void call_read(const uint8_t *args)
{
	struct iovec to = read_to(args[1], args[2]);
	ssize_t ret;

	run_alarm(5000);
	ret = read(file_of(args[0]), to.iov_base, to.iov_len);
	run_alarm(0);
	if (!args[2] && run_alone())
		read_done(ret, &to);
}

/* Read into several pieces, some of which may be invalid. */
static void call_readv(const uint8_t *args)
{
	struct iovec to[4] = {
		{ good + ARRAY, args[1] },
		{ buffer(args[2], 64), 64 },
		{ good + ARRAY + PAGE, args[3] * 16 },
		read_to(args[4], 0),
	};

	run_alarm(5000);
	if (args[5] & 1)
		preadv2(file_of(args[0]), to, 4, -1, RWF_NOWAIT);
	else
		readv(file_of(args[0]), to, 4);
	run_alarm(0);
}

static void call_write(const uint8_t *args)
{
	if (write(file_of(args[0]), good, 64) >= 0)
		must_not("a write succeeded");
}

static void call_poll(const uint8_t *args)
{
	struct pollfd polled[3] = {
		{ .fd = file_of(args[0]), .events = args[1] ? args[1] : POLLIN },
		{ .fd = file_of(args[2]), .events = POLLIN },
		{ .fd = file_of(args[0]), .events = POLLIN | POLLRDHUP },
	};

	poll(polled, 1 + args[3] % 3, args[4] % 4);
}

static void call_epoll(const uint8_t *args)
{
	static const uint32_t modes[] = {
		EPOLLIN, EPOLLIN | EPOLLET, EPOLLIN | EPOLLONESHOT, EPOLLIN | EPOLLEXCLUSIVE,
		EPOLLOUT, 0,
	};
	static const int ops[] = { EPOLL_CTL_ADD, 0, 0, EPOLL_CTL_MOD, EPOLL_CTL_DEL };
	struct epoll_event event = { .events = modes[args[3] % 6] }, got[4];
	unsigned int what = args[1] % 6;
	int *fd = &state.epoll[args[0] % EPOLLS], file = file_of(args[2]);

	/* An epoll may watch the other one, too. */
	if (args[2] & 0x80)
		file = state.epoll[(args[0] + 1) % EPOLLS];
	if (*fd < 0)
		*fd = epoll_create1(EPOLL_CLOEXEC);
	if (what == 5) {
		close(*fd);
		*fd = -1;
		return;
	}
	if (ops[what])
		epoll_ctl(*fd, ops[what], file, &event);
	if (what < 3)
		epoll_wait(*fd, got, 4, args[4] % 4);
}

/* -- Rings --------------------------------------------------------------- */

static void unmap(unsigned int slot)
{
	if (state.map[slot].start)
		munmap(state.map[slot].start, state.map[slot].size);
	state.map[slot].start = NULL;
}

static void call_mmap(const uint8_t *args)
{
	static const int protections[] = {
		PROT_READ | PROT_WRITE, PROT_READ, PROT_WRITE, PROT_NONE,
		PROT_READ | PROT_WRITE | PROT_EXEC,
	};
	const struct hwt_rings_args *rings = &state.rings[args[0] % FILES];
	const size_t right = rings->map_size;
	const size_t sizes[] = { right, PAGE, right + PAGE, 1UL << 40 };
	size_t size = args[2] < COUNT(sizes) ? sizes[args[2]] : right;
	unsigned int slot = args[1] % MAPS;
	char *start;

	unmap(slot);
	start = mmap(NULL, size, protections[args[3] % 5],
		     args[4] ? MAP_PRIVATE : MAP_SHARED, file_of(args[0]), args[5] * PAGE);
	if (start == MAP_FAILED)
		return;
	state.map[slot].size = size;
	state.map[slot].rings = *rings;
	state.map[slot].start = start;
}

static void call_munmap(const uint8_t *args)
{
	unsigned int slot = args[0] % MAPS;

	if (!args[1])
		unmap(slot);
	else if (state.map[slot].start)
		munmap(state.map[slot].start + (args[1] - 1) * PAGE % state.map[slot].size, PAGE);
}

static void call_remap(const uint8_t *args)
{
	unsigned int slot = args[0] % MAPS;
	char *start = state.map[slot].start;
	size_t size = state.map[slot].size;

	if (!start)
		return;
	switch (args[1] % 6) {
	case 0:
	case 1:
		mprotect(start, size, PROT_READ | (args[1] % 6 ? 0 : PROT_WRITE));
		break;
	case 2:
		madvise(start, size, MADV_DONTNEED);
		break;
	case 3:
		madvise(start, size, args[2] & 1 ? MADV_DONTFORK : MADV_DOFORK);
		break;
	case 4:
		start = mremap(start, size, size + PAGE, MREMAP_MAYMOVE);
		if (start == MAP_FAILED)
			break;
		state.map[slot].size = size + PAGE;
		state.map[slot].start = start;
		break;
	default:
		mlock(start, size);
	}
}

struct ring {
	const uint8_t		*args;
	size_t			size;
	uint32_t		op_entries, event_entries;
	struct hwt_rings	*shared;
	struct hwt_op		*ops;
	struct hwt_event	*events;
};

static void ring_push(void *arg)
{
	const struct ring *ring = arg;
	uint32_t tail = ring->shared->op_tail, i;

	if (!ring->op_entries)
		return;
	for (i = 0; i < known.staged; i++)
		ring->ops[(tail + i) & (ring->op_entries - 1)] = state.stage[i % STAGE_MAX];
	__atomic_store_n(&ring->shared->op_tail, tail + i, __ATOMIC_RELEASE);
	known.staged = 0;
}

/* Return the value of a byte for a word in the rings. The smallest bytes are the usual values. */
static uint32_t value_word(uint8_t byte)
{
	static const uint32_t values[] = { 0, 1, 8, 64, 4096, 65536, 1U << 31, ~0U };

	return byte < COUNT(values) ? values[byte] : byte < 0xc0 ? byte : value_count(byte);
}

/* Write the program's indices, the kernel's, or any word. */
static void ring_poke(void *arg)
{
	const struct ring *ring = arg;
	struct hwt_rings *shared = ring->shared;
	const uint8_t *args = ring->args;
	uint32_t value = value_word(args[2]), offset;

	switch (args[1] % 8) {
	case 0:
		shared->event_head = shared->event_tail;
		break;
	case 1:
		shared->op_tail += value;
		break;
	case 2:
		shared->event_head += value;
		break;
	case 3:
		shared->op_tail = shared->op_head + value;
		break;
	case 5:
		shared->op_head += value;
		shared->event_tail += value;
		shared->flags += value;
		break;
	case 6:
		shared->op_head = value;
		shared->event_tail = value;
		shared->flags = value;
		break;
	default:
		offset = args[1] % 8 == 4 ? args[3] * 4 :
			 (args[3] << 8 | args[4]) * 4 % ring->size;
		memcpy((char *)shared + offset, &value, 4);
	}
}

#define SCRIBBLE_NS	(3 * MSEC)

/* Alternate a word of the first operations, while another thread may be in HWT_IOC_ENTER. */
static void ring_scribble(void *arg)
{
	const struct ring *ring = arg;
	unsigned int words = sizeof(struct hwt_op) / 4, turns = 0, i;
	volatile uint32_t *word = (uint32_t *)ring->ops + ring->args[1] % words;
	uint32_t values[2] = { value_word(ring->args[2]), value_word(ring->args[3]) };
	uint64_t end = now_ns() + SCRIBBLE_NS;

	for (; now_ns() < end; turns++)
		for (i = 0; i < ring->op_entries && i < STAGE_MAX; i++)
			word[i * words] = values[turns & 1];
}

/* Take an event, and remember its id and those in the operations. */
static void ring_reap(void *arg)
{
	const struct ring *ring = arg;
	struct hwt_rings *shared = ring->shared;
	uint32_t i;

	for (i = 0; i < ring->op_entries && i < IDS; i++)
		if (ring->ops[i].opcode == HWT_OP_SCHEDULE && !ring->ops[i].result)
			remember(ring->ops[i].id);
	if (ring->event_entries)
		remember(ring->events[shared->event_head & (ring->event_entries - 1)].id);
	__atomic_store_n(&shared->event_head, shared->event_head + 1, __ATOMIC_RELEASE);
}

static void run_ring(void (*fn)(void *ring), const uint8_t *args)
{
	unsigned int slot = args[0] % MAPS;
	const struct hwt_rings_args *rings = &state.map[slot].rings;
	uintptr_t start = (uintptr_t)state.map[slot].start;
	struct ring ring = {
		.args = args,
		.size = state.map[slot].size,
		.op_entries = rings->op_entries,
		.event_entries = rings->event_entries,
		.shared = (void *)start,
		.ops = (void *)(start + rings->ops_offset),
		.events = (void *)(start + rings->events_offset),
	};

	if (start)
		run_guarded(fn, &ring);
}

/* -- Descriptors, time, capabilities, memory ----------------------------- */

/* Send a descriptor, and receive it or not. */
static void call_pass(const uint8_t *args)
{
	int pair[2], fd = file_of(args[0]), number;

	if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return;
	send_fd(pair[0], fd);
	if (args[2] & 1)
		close_file(args[0] % FILES);
	if (!(args[2] & 2))
		put_file((args[0] + 1 + args[1]) % FILES, receive_fd(pair[1], &number));
	close(pair[0]);
	close(pair[1]);
}

static void call_sleep(const uint8_t *args)
{
	struct timespec span = { .tv_nsec = (1 + args[0] % 16) * 200 * USEC };

	nanosleep(&span, NULL);
}

static void call_signal(const uint8_t *args)
{
	run_alarm((1 + args[0] % 16) * 100);
}

static void call_clock(const uint8_t *args)
{
	struct timespec now;

	state.clock_set = true;
	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += (int8_t)args[0];
	/* Keep the clock in a valid range. */
	if (now.tv_sec > 1000)
		clock_settime(CLOCK_REALTIME, &now);
}

/* Drop or regain the capabilities that lift a context's limits. */
static void set_caps(bool have)
{
	set_capability(CAP_SYS_NICE, have);
	set_capability(CAP_SYS_RESOURCE, have);
}

static void call_caps(const uint8_t *args)
{
	state.caps_dropped = true;
	set_caps(args[0] & 1);
}

/* Change the page @changing, in which arguments may be. */
static void call_page(const uint8_t *args)
{
	static const int protections[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };

	if (args[0] % 4 == 3)
		madvise(changing, PAGE, MADV_DONTNEED);
	else
		mprotect(changing, PAGE, protections[args[0] % 4]);
}

static void call_fdinfo(const uint8_t *args)
{
	fd_number(file_of(args[0]), "hwt-timeouts");
}

static void call_fail(const uint8_t *args)
{
	run_fail(1 + args[0] % 64);
}

/* -- The table of calls -------------------------------------------------- */

#define KIND(_name, _weight, _args, _rare)	.kind = { #_name, _weight, _args, _rare }
#define CALL(_name, _weight, _args, _rare)					\
	{ KIND(_name, _weight, _args, _rare), .run = call_##_name }
#define RING(_name, _weight, _args)						\
	{ KIND(_name, _weight, _args, 0), .ring = ring_##_name }
#define IOCTL(_name, _weight, _args, _rare, _NAME)				\
	{ KIND(_name, _weight, _args, _rare), .ioctl = IOCTL_##_NAME }

/* Calls without a function are ioctls, or are for run.c. */
static const struct {
	struct kind	kind;
	void		(*run)(const uint8_t *args);
	void		(*ring)(void *ring);
	unsigned int	ioctl;
} kinds[] = {
	[KIND_FORK] = { KIND(fork, 2, 2, 0) },
	[KIND_THREAD] = { KIND(thread, 8, 1, 0) },
	CALL(open, 6, 2, 0),
	CALL(close, 4, 1, 0),
	CALL(dup, 2, 2, 0),
	CALL(nonblock, 2, 2, 0),
	CALL(ioctl, 1, 5, 0x10),
	CALL(op, 12, 10, 0x200),
	CALL(read, 8, 3, 0x4),
	CALL(readv, 3, 6, 0),
	CALL(write, 1, 1, 0),
	CALL(poll, 4, 5, 0),
	CALL(epoll, 4, 5, 0),
	CALL(mmap, 5, 6, 0x3c),
	CALL(munmap, 2, 2, 0),
	CALL(remap, 1, 3, 0),
	RING(push, 8, 1),
	RING(poke, 6, 5),
	RING(reap, 4, 1),
	RING(scribble, 3, 4),
	CALL(pass, 1, 3, 0),
	CALL(sleep, 5, 1, 0),
	CALL(signal, 2, 1, 0),
	CALL(clock, 1, 1, 0),
	CALL(caps, 1, 1, 0),
	CALL(page, 1, 1, 0),
	CALL(fdinfo, 1, 1, 0),
	CALL(fail, 4, 1, 0),
	/* The first three bytes are the context, and the structure's place and size. */
	IOCTL(info, 1, 6, 0x36, INFO),
	IOCTL(setup, 5, 12, 0x106, SETUP),
	IOCTL(schedule, 14, 10, 0x206, SCHEDULE),
	IOCTL(modify, 8, 10, 0x206, MODIFY),
	IOCTL(cancel, 6, 6, 0x26, CANCEL),
	IOCTL(get, 4, 5, 0x6, GET),
	IOCTL(list, 4, 8, 0xa6, LIST),
	IOCTL(stats, 1, 4, 0x6, STATS),
	IOCTL(rings, 8, 6, 0x6, RINGS),
	IOCTL(enter, 10, 7, 0x6, ENTER),
};

unsigned int kinds_count(void)
{
	return COUNT(kinds);
}

const struct kind *kind_get(unsigned int kind)
{
	return &kinds[kind].kind;
}

void call_run(const struct call *call)
{
	if (kinds[call->kind].run)
		kinds[call->kind].run(call->args);
	else if (kinds[call->kind].ring)
		run_ring(kinds[call->kind].ring, call->args);
	else
		run_ioctl(kinds[call->kind].ioctl, call->args);
}

static char *map_pages(unsigned int n)
{
	/* With an inaccessible page on both sides. */
	char *start = mmap(NULL, (n + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED ||
	    mprotect(start + PAGE, n * PAGE, PROT_READ | PROT_WRITE))
		die("no memory");
	return start + PAGE;
}

void calls_init(void)
{
	good = map_pages(GOOD_PAGES);
	readonly = map_pages(1);
	changing = map_pages(1);
	mprotect(readonly, PAGE, PROT_READ);
}

void calls_begin(void)
{
	memset(&state, 0, sizeof(state));
	memset(&known, 0, sizeof(known));
	memset(state.file, -1, sizeof(state.file));
	memset(state.epoll, -1, sizeof(state.epoll));
	broken[0] = '\0';
}

void calls_end(void)
{
	unsigned int i;

	for (i = 0; i < MAPS; i++)
		unmap(i);
	for (i = 0; i < FILES; i++)
		close_file(i);
	for (i = 0; i < EPOLLS; i++)
		if (state.epoll[i] >= 0)
			close(state.epoll[i]);
	if (state.caps_dropped)
		set_caps(true);
	mprotect(changing, PAGE, PROT_READ | PROT_WRITE);
}
