// SPDX-License-Identifier: GPL-2.0-only
/* Find the cores of this machine, and pin threads to them. */
#define _GNU_SOURCE
#include <sched.h>

#include "bench.h"

static unsigned int *cores;	/* CPUs of the machine, by number */

/* Number the CPUs: one of each core first, then their siblings. Return the number of CPUs. */
unsigned int bench_find_cores(void)
{
	unsigned int cpu, first, pass, n = 0;
	cpu_set_t set;
	char path[80];
	FILE *file;

	sched_getaffinity(0, sizeof(set), &set);
	cores = calloc(CPU_COUNT(&set), sizeof(*cores));
	for (pass = 0; cores && pass < 2; pass++)
		for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
			if (!CPU_ISSET(cpu, &set))
				continue;
			snprintf(path, sizeof(path),
				 "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
				 cpu);
			file = fopen(path, "r");
			if (!file || fscanf(file, "%u", &first) != 1)
				first = cpu;
			if (file)
				fclose(file);
			if (first == cpu ? !pass : pass)
				cores[n++] = cpu;
		}
	return n;
}

void bench_pin(pthread_t thread, unsigned int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cores[core], &set);
	pthread_setaffinity_np(thread, sizeof(set), &set);
}
