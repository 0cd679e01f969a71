/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tests ask of the guest that they run in.
 */
#ifndef HWT_GUEST_H
#define HWT_GUEST_H

#include <ctype.h>
#include <dirent.h>
#include <sys/stat.h>

#include "hwt_dev.h"

/* A number that NAME on the kernel's command line gives, or what the test takes by itself. */
static inline unsigned int given(const char *name, unsigned int normal)
{
	const char *env = getenv(name);

	return env && atoi(env) > 0 ? (unsigned int)atoi(env) : normal;
}

static inline bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* The value behind a word in a file of such lines; -1 if it is not there. */
static inline long read_word(const char *path, const char *word)
{
	FILE *file = fopen(path, "re");
	long value = -1, n;
	char name[64];

	while (file && fscanf(file, "%63s %ld", name, &n) == 2)
		if (!strcmp(name, word))
			value = n;
	if (file)
		fclose(file);
	return value;
}

/* Make a memory cgroup, for so many bytes; a process is in it that writes 0 to cgroup.procs. */
#define CGROUP	"/sys/fs/cgroup"
static inline bool make_group(const char *path, const char *bytes)
{
	char file[64];

	if (!write_text(CGROUP "/cgroup.subtree_control", "+memory"))
		return false;
	rmdir(path);
	if (mkdir(path, 0755))
		return false;
	/* Not there without swap in the kernel. */
	snprintf(file, sizeof(file), "%s/memory.swap.max", path);
	write_text(file, "0");
	snprintf(file, sizeof(file), "%s/memory.max", path);
	return write_text(file, bytes);
}

/* -- Injected faults ------------------------------------------------------ */

#define DEBUGFS		"/sys/kernel/debug/"

/* By default allocations that may sleep never fail, nor do single pages. */
static inline bool fault_knobs(void)
{
	/* Quiet: thousands of faults, each wanted. */
	return write_text(DEBUGFS "failslab/ignore-gfp-wait", "N") &&
	       write_text(DEBUGFS "failslab/verbose", "0") &&
	       write_text(DEBUGFS "fail_page_alloc/ignore-gfp-wait", "N") &&
	       write_text(DEBUGFS "fail_page_alloc/ignore-gfp-highmem", "N") &&
	       write_text(DEBUGFS "fail_page_alloc/min-order", "0") &&
	       write_text(DEBUGFS "fail_page_alloc/verbose", "0") &&
	       write_text(DEBUGFS "fail_usercopy/verbose", "0");
}

/* -- The kernel log ------------------------------------------------------- */

/* What comes from now on. */
static inline int log_open(void)
{
	int kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (kmsg >= 0)
		lseek(kmsg, 0, SEEK_END);
	return kmsg;
}

/* Is there a line with this text from the descriptor's place on? It is behind that line then. */
static inline bool log_has(int kmsg, const char *text)
{
	char line[8192];
	ssize_t n;

	while ((n = read(kmsg, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue;
		line[n] = 0;
		if (strstr(line, text))
			return true;
	}
	return false;
}

/* -- Threads -------------------------------------------------------------- */

/* Is it a thread of a wheel that only one context has? @name: of a directory in /proc. */
static inline bool private_thread(const char *name)
{
	char path[64], comm[32];
	bool is;
	FILE *file;

	if (!isdigit((unsigned char)*name))
		return false;
	snprintf(path, sizeof(path), "/proc/%.20s/comm", name);
	file = fopen(path, "re");
	if (!file)
		return false;
	is = fgets(comm, sizeof(comm), file) && !strcmp(comm, "hwt_private\n");
	fclose(file);
	return is;
}

/* How many there are; one of them is @pid, which may be NULL. */
static inline unsigned int private_threads(pid_t *pid)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned int n = 0;

	while (proc && (entry = readdir(proc))) {
		if (!private_thread(entry->d_name))
			continue;
		n++;
		if (pid)
			*pid = atoi(entry->d_name);
	}
	if (proc)
		closedir(proc);
	return n;
}

#endif /* HWT_GUEST_H */
