// SPDX-License-Identifier: GPL-2.0-only
/* The first program for /dev/hwt of README.md */
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "hwt_uapi.h"

int main(void)
{
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.time_ns = 1000000000,		/* from now */
		.user_data = 42,
	};
	struct hwt_event event;
	int fd = open("/dev/hwt", O_RDWR);

	if (fd < 0 || ioctl(fd, HWT_IOC_SCHEDULE, &args) ||
	    read(fd, &event, sizeof(event)) != sizeof(event)) {
		perror("/dev/hwt");
		return 1;
	}
	printf("a second has passed for %llu\n", event.user_data);
	return 0;
}
