/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files, modules, threads and settings of the guest.
 */
#ifndef HWT_GUEST_H
#define HWT_GUEST_H

#include "hwt_dev.h"

#include <dirent.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Return the number NAME=... of the kernel's command line, or @normal. */
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

/* Return the number after @word in a file of lines "WORD NUMBER"; -1 if there is none. */
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

/* Return the number after @name in the descriptor's fdinfo; -1 if there is none. */
static inline long fd_number(int fd, const char *name)
{
	char path[64], word[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	snprintf(word, sizeof(word), "%s:", name);
	return read_word(path, word);
}

/* Return whether a line contains @text, which may end with the newline. */
static inline bool file_has(const char *path, const char *text)
{
	FILE *file = fopen(path, "re");
	static char line[4096];
	bool found = false;

	while (file && fgets(line, sizeof(line), file))
		found |= !!strstr(line, text);
	if (file)
		fclose(file);
	return found;
}

/* Wait until a child sleeps in a system call, then stop it and let it go on. */
static inline bool stop_and_go(pid_t pid)
{
	unsigned int tries = PATIENCE_MS;
	char path[32];
	int status;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (!file_has(path, ") S ") && --tries)
		sleep_ns(MSEC);
	return tries && !kill(pid, SIGSTOP) && waitpid(pid, &status, WUNTRACED) == pid &&
	       WIFSTOPPED(status) && !kill(pid, SIGCONT);
}

/* Return the number of names in a directory that begin with @begin, and not with a dot. */
static inline unsigned int names_in(const char *path, const char *begin)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned int n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.' && !strncmp(entry->d_name, begin, strlen(begin));
	if (dir)
		closedir(dir);
	return n;
}

/* Return the module's use count: each open file and each mapping holds it once. */
static inline __u64 hwt_users(void)
{
	return read_number("/sys/module/hwt/refcnt");
}

/* Create a memory cgroup with a limit. A process enters it by writing 0 to its cgroup.procs. */
#define CGROUP	"/sys/fs/cgroup"
static inline bool make_group(const char *path, const char *bytes)
{
	char file[64];

	if (!write_text(CGROUP "/cgroup.subtree_control", "+memory"))
		return false;
	rmdir(path);
	if (mkdir(path, 0755))
		return false;
	/* May fail: a kernel without swap does not have this file. */
	snprintf(file, sizeof(file), "%s/memory.swap.max", path);
	write_text(file, "0");
	snprintf(file, sizeof(file), "%s/memory.max", path);
	return write_text(file, bytes);
}

/* Set or clear an effective capability; the permitted set stays. Return 0 or -errno. */
static inline int set_capability(int cap, bool set)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	if (set)
		data[cap / 32].effective |= 1U << cap % 32;
	else
		data[cap / 32].effective &= ~(1U << cap % 32);
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

#define DEBUGFS		"/sys/kernel/debug/"

/* Let allocations that may sleep, and of single pages, fail too. Do not log each fault. */
static inline bool fault_knobs(void)
{
	return write_text(DEBUGFS "failslab/ignore-gfp-wait", "N") &&
	       write_text(DEBUGFS "failslab/verbose", "0") &&
	       write_text(DEBUGFS "fail_page_alloc/ignore-gfp-wait", "N") &&
	       write_text(DEBUGFS "fail_page_alloc/ignore-gfp-highmem", "N") &&
	       write_text(DEBUGFS "fail_page_alloc/min-order", "0") &&
	       write_text(DEBUGFS "fail_page_alloc/verbose", "0") &&
	       write_text(DEBUGFS "fail_usercopy/verbose", "0");
}

static inline int log_open(void)
{
	int kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (kmsg >= 0)
		lseek(kmsg, 0, SEEK_END);
	return kmsg;
}

/* Search @text from the descriptor's position on; if found, move behind that line. */
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

/* -- Modules, for tests with "hwt-test: noload" ----------------------------- */

static inline int open_module(const char *name)
{
	const char *dir = getenv("HWT_MODULES");
	char path[256];

	snprintf(path, sizeof(path), "%s/%s.ko", dir ? dir : ".", name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static inline int load_module(int file, const char *params)
{
	return syscall(SYS_finit_module, file, params, 0) ? hwt_errno() : 0;
}

/* Fail at once while the module is in use. */
static inline int unload_module(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? hwt_errno() : 0;
}

/* Count the tasks in a directory of /proc whose names begin with @name; @pid: one of them. */
static inline unsigned int threads_named(const char *directory, const char *name, pid_t *pid)
{
	DIR *dir = opendir(directory);
	char path[64], comm[32];
	struct dirent *entry;
	unsigned int n = 0;
	FILE *file;

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%.20s/comm", directory, entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(comm, sizeof(comm), file) && !strncmp(comm, name, strlen(name))) {
			n++;
			if (pid)
				*pid = atoi(entry->d_name);
		}
		fclose(file);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Count the threads of contexts. */
static inline unsigned int context_threads(pid_t *pid)
{
	return threads_named("/proc", "hwt_device\n", pid);
}

#endif /* HWT_GUEST_H */
