// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtctl info: clock, limits and features of the device
 */
#include "hwtctl.h"
#include <unistd.h>

static const struct {
	__u64 bit;
	const char *name;
} features[] = {
	{ HWT_FEATURE_SETUP, "setup" },
	{ HWT_FEATURE_BOOTTIME, "boottime" },
	{ HWT_FEATURE_REALTIME, "realtime" },
	{ HWT_FEATURE_LIST, "list" },
	{ HWT_FEATURE_RINGS, "rings" },
	{ HWT_FEATURE_URING, "uring" },
	{ HWT_FEATURE_THREAD, "thread" },
	{ HWT_FEATURE_KEYS, "keys" },
};

/* Buckets of a level above level 0, see struct hwt_setup_args */
#define HIGHER_MAX	512

static void put_limit(const char *what, __u64 limit)
{
	put_heading("%-20s", what);
	if (limit)
		printf("%llu\n", limit);
	else
		printf("no limit\n");
}

static void put_text(const char *what, const char *text)
{
	put_heading("%-20s", what);
	printf("%s\n", text);
}

/* Format the time to the next timeout, which the kernel rounds down. */
static const char *next_format(char *text, const struct hwt_info_args *info)
{
	if (info->next_ns == HWT_NEVER)
		return "none";
	return duration_format(text, info->next_ns > info->now_ns ?
				     info->next_ns - info->now_ns : 0);
}

static void print_text(const struct hwt_info_args *info)
{
	char text[TIME_TEXT];
	unsigned int i;

	put_text("device", device_path);
	put_text("clock", clock_name(info->clock));
	put_text("now", info->clock == CLOCK_REALTIME ?
		 date_format(text, info->now_ns) : duration_format(text, info->now_ns));
	put_text("tick", duration_format(text, info->tick_ns));
	put_heading("%-20s", "buckets");
	printf("%u", info->ticks_per_wheel);
	/* The levels above have as many, but HIGHER_MAX at most. */
	for (i = 1; i < info->levels; i++)
		printf(" + %u", info->ticks_per_wheel < HIGHER_MAX ? info->ticks_per_wheel :
								     HIGHER_MAX);
	printf("\n");
	put_text("driven by", info->thread ? "a kernel thread" : "the program's tasks");
	if (!info->thread)
		put_text("next timeout", next_format(text, info));
	put_text("ids", info->keys ? "the program's keys" : "given by the kernel");
	put_limit("timeouts at most", info->max_timeouts);
	put_limit("  pending", info->max_pending);
	put_limit("  of a user", info->max_user_timeouts);
	put_heading("%-19s", "features");
	for (i = 0; i < ARRAY_SIZE(features); i++)
		if (info->features & features[i].bit)
			printf(" %s", features[i].name);
	printf("\n");
}

static void print_json(const struct hwt_info_args *info)
{
	const char *comma = "";
	unsigned int i;

	printf("{\"clock\":\"%s\",\"now_ns\":%llu,\"tick_ns\":%llu",
	       clock_name(info->clock), info->now_ns, info->tick_ns);
	printf(",\"levels\":%u,\"ticks_per_wheel\":%u,\"max_timeouts\":%llu",
	       info->levels, info->ticks_per_wheel, info->max_timeouts);
	printf(",\"max_pending\":%llu", info->max_pending);
	printf(",\"max_user_timeouts\":%llu,\"thread\":%s", info->max_user_timeouts,
	       info->thread ? "true" : "false");
	if (!info->thread)
		json_put_time(stdout, "next_ns", info->next_ns);
	printf(",\"keys\":%s,\"features\":[", info->keys ? "true" : "false");
	for (i = 0; i < ARRAY_SIZE(features); i++) {
		if (info->features & features[i].bit) {
			printf("%s\"%s\"", comma, features[i].name);
			comma = ",";
		}
	}
	printf("]}\n");
}

int cmd_info(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		OPTION_PID, OPTION_FD, OPTION_CLOCK, OPTION_TICK, OPTION_THREAD, { }
	};
	struct target target = { .fd = -1 };
	struct setup setup = { };
	struct hwt_info_args info;
	bool json = false;
	int option, fd;

	while ((option = next_option(argc, argv, "jp:f:h", options)) != -1) {
		if (option == 'j')
			json = true;
		else if (!target_option(option, &target))
			setup_option(option, &setup);
	}
	no_operand(argc, argv);
	if (target_given(&target)) {
		if (setup.wanted)
			usage_error("--pid excludes --clock, --tick and --thread");
		fd = target_open(&target);
	} else {
		fd = context_open(0, &setup);
	}
	context_info(fd, &info);
	if (json)
		print_json(&info);
	else
		print_text(&info);
	close(fd);
	return DONE;
}
