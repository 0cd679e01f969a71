// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Closes flows that were silent: flows INTERFACE OBJECT [IDLE_MS]
 *
 * flows.bpf.c stores a deadline for each packet in a table that this program has mapped. The timers
 * here watch these words: a packet costs no event, no system call and no lock.
 */
#include <arpa/inet.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <libhwt_timers.h>

#include "flows.h"

static struct libhwt_timers *timers;
static struct libhwt_timer timer[FLOWS];
static struct flow *flows;

static void say(const char *what, const struct flow *flow)
{
	struct in_addr from = { flow->key >> 32 };

	printf("%s %s:%u %u\n", what, inet_ntoa(from), ntohs(flow->key >> 16), ntohs(flow->key));
	fflush(stdout);
}

/* The deadline that the kernel stored last has passed. A packet from now on opens a new flow. */
static void on_silent(struct libhwt_timer *silent)
{
	struct flow *flow = &flows[silent - timer];

	say("closed", flow);
	__atomic_store_n(&flow->key, 0, __ATOMIC_RELEASE);
}

static int on_open(void *context, void *data, size_t size)
{
	unsigned int index = *(unsigned int *)data;

	(void)context;
	(void)size;
	say("opened", &flows[index]);
	libhwt_timer_init(&timer[index], on_silent);
	libhwt_timer_watch(timers, &timer[index], (uint64_t *)&flows[index].deadline);
	return 0;
}

/* Load the program, and attach it to an interface. */
static struct bpf_object *start(const char *interface, const char *path, uint64_t idle_ns)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);

	if (!object ||
	    bpf_map__set_initial_value(bpf_object__find_map_by_name(object, ".rodata"),
				       &idle_ns, sizeof(idle_ns)) ||
	    bpf_object__load(object) ||
	    !bpf_program__attach_xdp(bpf_object__find_program_by_name(object, "see"),
				     if_nametoindex(interface)))
		err(1, "%s", path);
	return object;
}

int main(int argc, char **argv)
{
	const char *idle_ms = argc > 3 ? argv[3] : "60000";
	struct bpf_object *object;
	struct ring_buffer *opened;
	int fd;

	if (argc < 3)
		errx(2, "usage: flows INTERFACE OBJECT [IDLE_MS]");
	object = start(argv[1], argv[2], strtoull(idle_ms, NULL, 10) * 1000000);
	fd = bpf_object__find_map_fd_by_name(object, "flows");
	flows = mmap(NULL, FLOWS * sizeof(*flows), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fd = bpf_object__find_map_fd_by_name(object, "opened");
	opened = ring_buffer__new(fd, on_open, NULL, NULL);
	timers = libhwt_timers_new(NULL);
	if (flows == MAP_FAILED || !opened || !timers)
		err(1, "no memory");
	for (;;) {
		ring_buffer__poll(opened, libhwt_timers_wait_ms(timers));
		libhwt_timers_run(timers);
	}
}
