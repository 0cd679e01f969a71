// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A first program with libhwt.
 *
 * hwt-test: libs hwt
 */
#include <stdio.h>
#include <string.h>
#include <libhwt.h>

int main(void)
{
	struct hwt_event event;
	struct libhwt *hwt;
	uint64_t id;
	int ret, n;

	ret = libhwt_open(&hwt, NULL);
	if (ret < 0) {
		fprintf(stderr, "/dev/hwt: %s\n", strerror(-ret));
		return 1;
	}
	if (libhwt_after(hwt, 500000000, 42, NULL) || libhwt_every(hwt, 200000000, 7, &id))
		return 1;
	for (n = 0; n < 5 && libhwt_next(hwt, &event, 1, HWT_NEVER) == 1; n++)
		printf("an event for %llu\n", event.user_data);
	libhwt_cancel(hwt, id);
	libhwt_close(hwt);
	return 0;
}
