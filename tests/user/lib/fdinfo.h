/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What /proc tells of a descriptor.
 */
#ifndef HWT_FDINFO_H
#define HWT_FDINFO_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number behind a name that ends with a colon; -1 if it is not there. */
static inline long fd_number_of(const char *process, int fd, const char *name)
{
	char path[64], line[128];
	size_t length = strlen(name);
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo/%d", process, fd);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, length) && line[length] == ':')
			value = atol(line + length + 1);
	if (file)
		fclose(file);
	return value;
}

static inline long fd_number(int fd, const char *name)
{
	return fd_number_of("self", fd, name);
}

#endif /* HWT_FDINFO_H */
