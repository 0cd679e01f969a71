// SPDX-License-Identifier: GPL-2.0-only
/*
 * Coverage, by KCOV: the kernel records each basic block that a thread's system call enters. An
 * edge is two successive blocks of hwt.ko; a feature is an edge with a class of how often it was
 * taken.
 */
#include "fuzz.h"

#include <sys/mman.h>

#define KCOV_INIT_TRACE	_IOR('c', 1, unsigned long)
#define KCOV_ENABLE	_IO('c', 100)
#define KCOV_TRACE_PC	0

#define KCOV		"/sys/kernel/debug/kcov"
/* In words. Further blocks of a call are not counted. */
#define AREA_SIZE	131072UL

struct cover {
	int		fd;
	uint64_t	*area;
	unsigned int	n;
	uint16_t	edges[EDGES];
	uint8_t		counts[EDGES];
};

static struct cover covers[THREADS];
static __thread struct cover *own;
static uint64_t module_start, module_size;

static bool find_module(void)
{
	FILE *file = fopen("/proc/modules", "re");
	unsigned long size, start;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "hwt %lu %*u %*s %*s 0x%lx", &size, &start) != 2)
			continue;
		module_start = start;
		module_size = size;
	}
	if (file)
		fclose(file);
	return module_start;
}

bool cover_init(void)
{
	unsigned int i;

	if (!find_module())
		die("hwt.ko is not loaded, or its address is hidden");
	for (i = 0; i < THREADS; i++) {
		struct cover *cover = &covers[i];

		cover->fd = open(KCOV, O_RDWR | O_CLOEXEC);
		if (cover->fd < 0)
			return false;
		if (ioctl(cover->fd, KCOV_INIT_TRACE, AREA_SIZE))
			die("KCOV_INIT_TRACE");
		cover->area = mmap(NULL, AREA_SIZE * sizeof(uint64_t),
				   PROT_READ | PROT_WRITE, MAP_SHARED, cover->fd, 0);
		if (cover->area == MAP_FAILED)
			die("no memory for KCOV");
	}
	return true;
}

void cover_thread(unsigned int thread)
{
	struct cover *cover = &covers[thread];

	if (!cover->area)
		return;
	if (ioctl(cover->fd, KCOV_ENABLE, KCOV_TRACE_PC))
		die("KCOV_ENABLE");
	own = cover;
}

/* For a child: it shares its parent's area, but must not use it. */
void cover_none(void)
{
	own = NULL;
}

void cover_call_begin(void)
{
	if (own)
		__atomic_store_n(&own->area[0], 0, __ATOMIC_RELAXED);
}

static void count_edge(struct cover *cover, uint64_t from, uint64_t to)
{
	uint16_t edge = ((from * 0x9e3779b1) >> 8 ^ to) & (EDGES - 1);

	if (!cover->counts[edge])
		cover->edges[cover->n++] = edge;
	if (cover->counts[edge] < UINT8_MAX)
		cover->counts[edge]++;
}

void cover_call_end(void)
{
	uint64_t n, i, pc, last = 0;

	if (!own)
		return;
	n = __atomic_load_n(&own->area[0], __ATOMIC_RELAXED);
	for (i = 1; i <= n; i++) {
		pc = own->area[i] - module_start;
		if (pc >= module_size)
			continue;
		count_edge(own, last, pc);
		last = pc;
	}
}

/* Return the class of a count: 1; 2 or 3; 4 to 15; more. */
static unsigned int count_class(uint8_t count)
{
	return count > 15 ? 3 : count > 3 ? 2 : count > 1;
}

unsigned int cover_take(uint32_t *features)
{
	unsigned int i, j, n = 0;

	for (i = 0; i < THREADS; i++) {
		struct cover *cover = &covers[i];

		for (j = 0; j < cover->n && n < FEATURES_MAX; j++) {
			uint16_t edge = cover->edges[j];

			features[n++] = edge << 2 | count_class(cover->counts[edge]);
			cover->counts[edge] = 0;
		}
		cover->n = 0;
	}
	return n;
}
