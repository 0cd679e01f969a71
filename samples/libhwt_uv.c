// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * An echo server on libuv that closes connections after a silence.
 *
 * The key of a timeout is the address of its connection. In a turn of the loop the callbacks add
 * their changes to a queue. Before the loop waits again, one system call carries out the changes
 * and then brings events. A turn handles at most EVENTS of them, so that all descriptors get their
 * turns; libuv reports the rest again. A connection that is heard of or closed drops its event.
 *
 * hwt-test: libs hwt uv_a
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>
#include <libhwt.h>

#define EVENTS	64

static struct libhwt *hwt;
static struct libhwt_queue *queue;
static uint64_t idle_ns = 10000000000;

static int check(int ret)
{
	if (ret < 0)
		errx(1, "%s", strerror(-ret));
	return ret;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle);
}

static void connection_close(uint64_t key)
{
	uv_handle_t *handle = (uv_handle_t *)(uintptr_t)key;

	check(libhwt_queue_forget(queue, key));
	if (!uv_is_closing(handle))
		uv_close(handle, on_closed);
}

/* Carry out the changes of a turn, and close the silent connections. */
static void turn_end(void)
{
	struct hwt_event events[EVENTS];
	struct hwt_op ops[EVENTS];
	int i, n;

	check(libhwt_queue_submit(queue));
	while ((n = check(libhwt_queue_results(queue, ops, EVENTS))) > 0) {
		/* A limit is reached, and a new connection has no timeout: close it. */
		for (i = 0; i < n; i++)
			if (ops[i].opcode == HWT_OP_SCHEDULE && ops[i].result < 0)
				connection_close(ops[i].id);
	}
	n = check(libhwt_next(hwt, events, EVENTS, 0));
	for (i = 0; i < n; i++)
		connection_close(events[i].id);
}

/* Push the timeout back. If the queue is full, end the turn first, which may close the stream. */
static void connection_alive(uv_stream_t *stream)
{
	while (!uv_is_closing((uv_handle_t *)stream) &&
	       libhwt_queue_key_after(queue, (uintptr_t)stream, idle_ns) == -EAGAIN)
		turn_end();
	check(libhwt_queue_forget(queue, (uintptr_t)stream));
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
	uv_buf_t answer = uv_buf_init(buffer->base, got > 0 ? got : 0);

	if (got > 0) {
		/* Data that cannot be sent at once is dropped. */
		uv_try_write(stream, &answer, 1);
		connection_alive(stream);
	} else if (got < 0) {
		while (libhwt_queue_cancel(queue, (uintptr_t)stream) == -EAGAIN)
			turn_end();
		connection_close((uintptr_t)stream);
	}
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
	static char bytes[4096];

	(void)handle;
	(void)size;
	*buffer = uv_buf_init(bytes, sizeof(bytes));
}

static void on_connection(uv_stream_t *server, int status)
{
	uv_tcp_t *tcp = malloc(sizeof(*tcp));
	uv_stream_t *stream = (uv_stream_t *)tcp;

	check(tcp ? uv_tcp_init(server->loop, tcp) : -ENOMEM);
	if (status == 0 && uv_accept(server, stream) == 0) {
		check(uv_read_start(stream, on_alloc, on_read));
		connection_alive(stream);
	} else {
		connection_close((uintptr_t)tcp);
	}
}

/* After the poll, and before libuv frees what was closed: the results may name such handles. */
static void on_check(uv_check_t *end)
{
	(void)end;
	turn_end();
}

/* Do no more than wake the loop: on_check() takes the events. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)poll;
	(void)events;
	check(status);
}

/* libhwt_uv [IDLE_MS [PORT]] */
int main(int argc, char **argv)
{
	const struct libhwt_options keys = { .size = sizeof(keys), .flags = HWT_SETUP_KEYS };
	uv_loop_t *loop = uv_default_loop();
	struct sockaddr_in address;
	int length = sizeof(address);
	uv_check_t end;
	uv_tcp_t server;
	uv_poll_t poll;

	if (argc > 1)
		idle_ns = strtoull(argv[1], NULL, 10) * 1000000;
	check(libhwt_open(&hwt, &keys));
	check(libhwt_queue_new(&queue, hwt, NULL));
	check(uv_poll_init(loop, &poll, libhwt_fd(hwt)));
	check(uv_poll_start(&poll, UV_READABLE, on_readable));
	uv_check_init(loop, &end);
	uv_check_start(&end, on_check);
	uv_tcp_init(loop, &server);
	check(uv_ip4_addr("127.0.0.1", argc > 2 ? atoi(argv[2]) : 7007, &address));
	check(uv_tcp_bind(&server, (struct sockaddr *)&address, 0));
	check(uv_listen((uv_stream_t *)&server, SOMAXCONN, on_connection));
	check(uv_tcp_getsockname(&server, (struct sockaddr *)&address, &length));
	printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
	fflush(stdout);
	return uv_run(loop, UV_RUN_DEFAULT);
}
