// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtctl list, save and restore
 *
 * A save consists of lines of JSON: first {"hwt_save":1, ...} with the set-up of the context and
 * the number of timeouts, then a line for each timeout. hwtctl(1) describes the format.
 */
#include "hwtctl.h"
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAVE_VERSION	1

/* -- list ---------------------------------------------------------------- */

/* Print the fields of a timeout, without the braces around them. */
static void put_entry_json(FILE *to, const struct hwt_list_entry *entry, const char *name)
{
	fprintf(to, "\"id\":%llu", entry->id);
	if (name)
		fprintf(to, ",\"name\":\"%s\"", name);
	fprintf(to, ",\"data\":%llu,\"mode\":\"%s\",\"pending\":%s,\"event\":%s",
		entry->user_data, mode_name(entry->mode),
		entry->state & HWT_STATE_PENDING ? "true" : "false",
		entry->state & HWT_STATE_EVENT ? "true" : "false");
	json_put_time(to, "deadline_ns", entry->deadline_ns);
	json_put_time(to, "remaining_ns", entry->remaining_ns);
	fprintf(to, ",\"period_ns\":%llu,\"overruns\":%llu", entry->period_ns,
		entry->overruns);
}

static void put_entry_text(const struct hwt_list_entry *entry, const char *name)
{
	static const char *const states[] = { "-", "pending", "expired", "both" };
	char left[TIME_TEXT], period[TIME_TEXT];

	printf("%-11s %-7s %14s %11s %8llu %20llu %llu%s%s\n", mode_name(entry->mode),
	       states[entry->state & 3],
	       entry->state & HWT_STATE_PENDING ?
	       duration_format(left, entry->remaining_ns) : "-",
	       entry->period_ns ? duration_format(period, entry->period_ns) : "-",
	       entry->overruns, entry->user_data, entry->id, name ? " " : "",
	       name ? name : "");
}

void list_print(int fd, const struct run *run, bool json)
{
	struct hwt_list_entry *entries;
	size_t count, i;

	entries = context_list(fd, &count);
	if (!json)
		printf("%-11s %-7s %14s %11s %8s %20s %s\n", "MODE", "STATE", "LEFT",
		       "PERIOD", "OVERRUNS", "DATA", run ? "ID NAME" : "ID");
	for (i = 0; i < count; i++) {
		const char *name = run ? run_name_of(run, entries[i].id) : NULL;

		if (json) {
			printf("{");
			put_entry_json(stdout, &entries[i], name);
			printf("}\n");
		} else {
			put_entry_text(&entries[i], name);
		}
	}
	free(entries);
}

/* -- save ---------------------------------------------------------------- */

/* Return the text of a save, which the caller frees, and its size. Does not return if it fails. */
static char *save_text(int fd, const struct run *run, size_t *size)
{
	struct hwt_list_entry *entries;
	struct hwt_info_args info;
	size_t count, i;
	char *text;
	FILE *to = open_memstream(&text, size);

	if (!to)
		fail(errno, "saving");
	context_info(fd, &info);
	entries = context_list(fd, &count);
	fprintf(to, "{\"hwt_save\":%d,\"clock\":\"%s\",\"thread\":%s,\"keys\":%s,\"tick_ns\":%llu,",
		SAVE_VERSION, clock_name(info.clock), info.thread ? "true" : "false",
		info.keys ? "true" : "false", info.tick_ns);
	fprintf(to, "\"ticks_per_wheel\":%u,\"levels\":%u,\"count\":%zu}\n",
		info.ticks_per_wheel, info.levels, count);
	for (i = 0; i < count; i++) {
		fprintf(to, "{");
		put_entry_json(to, &entries[i],
			       run ? run_name_of(run, entries[i].id) : NULL);
		fprintf(to, "}\n");
	}
	free(entries);
	if (fclose(to))
		fail(errno, "saving");
	return text;
}

/* Return the descriptor of this program that @path names; -1: it names none. */
static int descriptor_named(const char *path)
{
	__u64 fd;

	if (!path || !strcmp(path, "-") || !strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	if (!strncmp(path, "/dev/fd/", 8) && number_parse(path + 8, INT_MAX, &fd))
		return fd;
	return -1;
}

static int write_all(int fd, const char *text, size_t size)
{
	ssize_t put;

	for (; size; text += put, size -= put) {
		put = write(fd, text, size);
		if (put <= 0)
			return put ? -errno : -EIO;
	}
	return 0;
}

/*
 * Open a device or a FIFO. Return -ENOENT if the name is free, or that of a regular file or a link.
 * Another user may exchange the file at any time, so the descriptor is checked as well.
 */
static int special_open(const char *path)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return -ENOENT;
	/* O_CREAT only makes the kernel apply fs.protected_fifos. */
	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && !S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -ENOENT;
}

/*
 * Create a complete new file, and give it the name @path. The directory is looked up only once:
 * otherwise another user could exchange it before the rename, and have a file of theirs renamed.
 */
static int file_replace(const char *path, const char *text, size_t size)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char dir[PATH_MAX] = ".", other[32];
	int dir_fd, fd, ret;
	__u64 number;

	if (slash && snprintf(dir, sizeof(dir), "%.*s", (int)(name - path), path) >=
		     (int)sizeof(dir))
		return -ENAMETOOLONG;
	if (getrandom(&number, sizeof(number), 0) < 0)
		return -errno;
	snprintf(other, sizeof(other), "hwtctl.%016llx", number);
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	fd = openat(dir_fd, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		ret = -errno;
		goto out;
	}
	ret = write_all(fd, text, size);
	if (!ret && fsync(fd))
		ret = -errno;
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret && renameat(dir_fd, other, dir_fd, name))
		ret = -errno;
	if (ret)
		unlinkat(dir_fd, other, 0);
out:
	close(dir_fd);
	return ret;
}

int save_write(int fd, const struct run *run, const char *path)
{
	int to = descriptor_named(path), ret;
	bool opened = to < 0;
	size_t size;
	char *text;

	/* First, since this may end the program, and would leave the new file. */
	text = save_text(fd, run, &size);
	if (opened)
		to = special_open(path);
	if (to == -ENOENT)
		ret = file_replace(path, text, size);
	else if (to < 0)
		ret = to;
	else if (fflush(stdout))
		ret = -errno;
	else
		ret = write_all(to, text, size);
	if (opened && to >= 0 && close(to) && !ret)
		ret = -errno;
	free(text);
	return ret;
}

/* -- Common parts of list and save --------------------------------------- */

struct source {
	struct target		target;
	struct setup		setup;
	struct run		run;
};

static bool source_option(int option, struct source *source)
{
	return target_option(option, &source->target) ||
	       setup_option(option, &source->setup);
}

/* Open the context that the options and operands choose. Return its descriptor. */
static int source_open(int argc, char **argv, struct source *source)
{
	const char *script = last_operand(argc, argv);

	if (target_given(&source->target)) {
		if (script || source->setup.wanted)
			usage_error("--pid excludes a script, --clock, --tick and --thread");
		return target_open(&source->target);
	}
	if (!script)
		usage_error("a context is missing: give --pid or a script");
	run_begin(&source->run, &source->setup);
	if (!run_script(&source->run, script))
		exit(FAILED);
	return source->run.fd;
}

static const struct run *source_run(const struct source *source)
{
	return source->target.pid ? NULL : &source->run;
}

int cmd_list(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		OPTION_PID, OPTION_FD, OPTION_CLOCK, OPTION_TICK, OPTION_THREAD, { }
	};
	struct source source = { .target.fd = -1 };
	int option, fd;

	while ((option = next_option(argc, argv, "jp:f:h", options)) != -1) {
		if (option == 'j')
			source.run.json = true;
		else
			source_option(option, &source);
	}
	fd = source_open(argc, argv, &source);
	list_print(fd, source_run(&source), source.run.json);
	close(fd);
	return DONE;
}

int cmd_save(int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		OPTION_PID, OPTION_FD, OPTION_CLOCK, OPTION_TICK, OPTION_THREAD, { }
	};
	struct source source = { .target.fd = -1 };
	const char *path = NULL;
	int option, fd, ret;

	while ((option = next_option(argc, argv, "o:p:f:h", options)) != -1) {
		if (option == 'o')
			path = optarg;
		else
			source_option(option, &source);
	}
	fd = source_open(argc, argv, &source);
	ret = save_write(fd, source_run(&source), path);
	close(fd);
	if (ret)
		fail(-ret, "%s", path ? path : "standard output");
	return DONE;
}

/* -- restore ------------------------------------------------------------- */

struct saved {
	struct hwt_list_entry	entry;
	char			*name;		/* or NULL */
};

struct save {
	const char		*path;
	unsigned int		line;
	int			clock;
	bool			thread;
	bool			keys;
	__u64			tick_ns;
	__u32			ticks_per_wheel;
	__u32			levels;
	size_t			count;
	struct saved		*saved;
};

static void __attribute__((noreturn)) bad_save(const struct save *save, const char *why)
{
	if (save->line)
		fail(0, "%s:%u: %s", save->path, save->line, why);
	fail(0, "%s: %s", save->path, why);
}

/* A line of a save */
struct object {
	const struct save	*save;
	struct json_object	*json;
};

static bool object_has(const struct object *object, const char *key)
{
	return json_object_object_get_ex(object->json, key, NULL);
}

static struct json_object *object_get(const struct object *object, const char *key,
				      enum json_type type)
{
	struct json_object *value;
	char why[64];

	if (!json_object_object_get_ex(object->json, key, &value) ||
	    !json_object_is_type(value, type)) {
		snprintf(why, sizeof(why), "\"%s\" is missing or has another type",
			 key);
		bad_save(object->save, why);
	}
	return value;
}

static __u64 object_number(const struct object *object, const char *key, __u64 max)
{
	struct json_object *value = object_get(object, key, json_type_int);
	char why[64];

	if (json_object_get_int64(value) < 0 || json_object_get_uint64(value) > max) {
		snprintf(why, sizeof(why), "\"%s\" is out of range", key);
		bad_save(object->save, why);
	}
	return json_object_get_uint64(value);
}

static bool object_bool(const struct object *object, const char *key)
{
	return json_object_get_boolean(object_get(object, key, json_type_boolean));
}

static const char *object_string(const struct object *object, const char *key)
{
	return json_object_get_string(object_get(object, key, json_type_string));
}

/* Return a time; null is HWT_NEVER. */
static __u64 object_time(const struct object *object, const char *key)
{
	struct json_object *value;

	if (json_object_object_get_ex(object->json, key, &value) && !value)
		return HWT_NEVER;
	return object_number(object, key, HWT_NEVER);
}

/* Parse a line that holds one object. Return: NULL if it does not. */
static struct json_object *object_parse(const char *line, size_t length)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *json;

	if (!tokener)
		fail(ENOMEM, "parsing JSON");
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	json = json_tokener_parse_ex(tokener, line, length);
	if (json && !json_object_is_type(json, json_type_object)) {
		json_object_put(json);
		json = NULL;
	}
	json_tokener_free(tokener);
	return json;
}

/* Read the next line, in place of the previous one. Return: whether there was one. */
static bool object_read(FILE *file, struct save *save, struct object *object)
{
	static char *line;
	static size_t room;
	ssize_t length = getline(&line, &room, file);

	json_object_put(object->json);
	object->json = NULL;
	if (length < 0) {
		if (ferror(file))
			fail(errno, "%s", save->path);
		return false;
	}
	save->line++;
	object->save = save;
	if (strlen(line) == (size_t)length)
		object->json = object_parse(line, length);
	if (!object->json)
		bad_save(save, "this is not a line of a save");
	return true;
}

static void save_head(FILE *file, struct save *save, struct object *object)
{
	if (!object_read(file, save, object) || !object_has(object, "hwt_save"))
		bad_save(save, "this is not a save");
	if (object_number(object, "hwt_save", HWT_NEVER) != SAVE_VERSION)
		bad_save(save, "the save has another version");
	if (!clock_parse(object_string(object, "clock"), &save->clock))
		bad_save(save, "\"clock\" is unknown");
	save->thread = object_bool(object, "thread");
	save->keys = object_bool(object, "keys");
	save->tick_ns = object_number(object, "tick_ns", HWT_NEVER);
	save->ticks_per_wheel = object_number(object, "ticks_per_wheel", UINT_MAX);
	save->levels = object_number(object, "levels", UINT_MAX);
	save->count = object_number(object, "count", INT_MAX);
}

static void save_entry(const struct object *object, struct saved *saved)
{
	struct hwt_list_entry *entry = &saved->entry;
	const char *mode = object_string(object, "mode");
	bool one_shot;

	memset(saved, 0, sizeof(*saved));
	if (object->save->keys)
		entry->id = object_number(object, "id", ~0ULL);
	while (strcmp(mode, mode_name(entry->mode)) != 0)
		if (++entry->mode > HWT_MODE_FIXED_DELAY)
			bad_save(object->save, "\"mode\" is unknown");
	entry->user_data = object_number(object, "data", ~0ULL);
	entry->deadline_ns = object_time(object, "deadline_ns");
	entry->remaining_ns = object_time(object, "remaining_ns");
	entry->period_ns = object_number(object, "period_ns", HWT_NEVER);
	one_shot = entry->mode == HWT_MODE_ONE_SHOT;
	if (one_shot != !entry->period_ns)
		bad_save(object->save, "\"period_ns\" does not fit \"mode\"");
	if (!object_has(object, "name"))
		return;
	saved->name = strdup(object_string(object, "name"));
	if (!saved->name)
		fail(ENOMEM, "%s", object->save->path);
}

static void save_read(const char *path, struct save *save)
{
	FILE *file = stdin;
	struct object object = {};
	size_t room = 0, i = 0;

	save->path = "standard input";
	if (strcmp(path, "-") != 0) {
		save->path = path;
		file = fopen(path, "re");
		if (!file)
			fail(errno, "%s", path);
	}
	save_head(file, save, &object);
	while (object_read(file, save, &object)) {
		if (i == save->count)
			bad_save(save, "there are more timeouts than the first line says");
		/* Grow step by step: the number in the file need not be true. */
		if (i == room) {
			room = room ? 2 * room : 64;
			save->saved = must_alloc(save->saved, room * sizeof(*save->saved));
		}
		save_entry(&object, &save->saved[i++]);
	}
	save->line = 0;
	if (i < save->count)
		bad_save(save, "there are fewer timeouts than the first line says");
	if (file != stdin)
		fclose(file);
}

/* Schedule a timeout. Return 0, HWT_STATE_ bits if one of this key existed, or a negative errno. */
static int restore_one(int fd, const struct save *save, const struct hwt_list_entry *entry,
		       __u64 *id)
{
	bool date = save->clock == CLOCK_REALTIME;
	struct hwt_schedule_args args = {
		.size = sizeof(args),
		.flags = date ? HWT_ARM_ABSOLUTE : 0,
		.mode = entry->mode,
		.time_ns = date ? entry->deadline_ns : entry->remaining_ns,
		.period_ns = entry->period_ns,
		.user_data = save->keys ? 0 : entry->user_data,
		.id = save->keys ? entry->id : 0,
	};
	int ret = hwt_call(fd, HWT_IOC_SCHEDULE, &args);

	*id = args.id;
	return ret ?: (int)args.was;
}

/* Restore all timeouts, or none. With @run, a context of this program, they get their names. */
static void restore_all(int fd, const struct save *save, struct run *run)
{
	__u64 *made = must_alloc(NULL, (save->count + 1) * sizeof(*made));
	size_t made_count = 0, i;
	const char *bad;
	int ret = 0;

	for (i = 0; i < save->count; i++) {
		const struct saved *saved = &save->saved[i];
		__u64 id;

		ret = restore_one(fd, save, &saved->entry, &id);
		if (ret < 0)
			break;
		/* An undo must not cancel a timeout that existed before. */
		if (!ret)
			made[made_count++] = id;
		if (!run || !saved->name)
			continue;
		bad = run_set_name(run, saved->name, id);
		if (bad)
			fail(0, "%s:%zu: '%s': %s", save->path, i + 2, saved->name, bad);
	}
	while (ret < 0 && made_count) {
		struct hwt_cancel_args cancel = {
			.size = sizeof(cancel),
			.id = made[--made_count],
		};

		hwt_call(fd, HWT_IOC_CANCEL, &cancel);
	}
	free(made);
	if (ret < 0)
		fail(ret, "%s: restoring", save->path);
}

/*
 * Refuse a save if a timeout of one of its keys exists: a schedule would move or replace that one,
 * which no undo can take back, since slack, overruns and an unread event would be lost.
 */
static void keys_check(int fd, pid_t pid, const struct save *save)
{
	size_t i;

	for (i = 0; i < save->count; i++) {
		struct hwt_get_args args = {
			.size = sizeof(args),
			.id = save->saved[i].entry.id,
		};

		if (!hwt_call(fd, HWT_IOC_GET, &args))
			fail(0, "%s:%zu: the context of process %d has a timeout of key %llu",
			     save->path, i + 2, (int)pid, args.id);
	}
}

static void save_free(struct save *save)
{
	size_t i;

	for (i = 0; i < save->count; i++)
		free(save->saved[i].name);
	free(save->saved);
}

static void restore_into(const struct target *target, const struct save *save)
{
	int fd = target_open(target);
	struct hwt_info_args info;

	context_info(fd, &info);
	/* Deadlines are restored on CLOCK_REALTIME, and remaining times on all other clocks. */
	if (save->clock != info.clock &&
	    (save->clock == CLOCK_REALTIME || info.clock == CLOCK_REALTIME))
		fail(0, "%s: saved on the %s clock; the context of process %d uses the %s clock",
		     save->path, clock_name(save->clock), (int)target->pid,
		     clock_name(info.clock));
	if (save->keys != info.keys)
		fail(0, "%s: saved %s keys; the context of process %d is %s", save->path,
		     save->keys ? "with" : "without", (int)target->pid,
		     info.keys ? "with keys" : "without");
	if (save->keys)
		keys_check(fd, target->pid, save);
	restore_all(fd, save, NULL);
	close(fd);
}

int cmd_restore(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		OPTION_PID, OPTION_FD, { }
	};
	struct target target = { .fd = -1 };
	struct setup setup = { .wanted = true, .saved = true };
	struct save save = { };
	struct run run = { };
	const char *path;
	int option;

	while ((option = next_option(argc, argv, "jp:f:h", options)) != -1) {
		if (option == 'j')
			run.json = true;
		else
			target_option(option, &target);
	}
	path = last_operand(argc, argv);
	target_given(&target);
	save_read(path ? path : "-", &save);
	if (target.pid) {
		restore_into(&target, &save);
		save_free(&save);
		return DONE;
	}
	setup_clock(&setup, save.clock);
	setup.args.flags |= save.thread ? HWT_SETUP_THREAD : 0;
	setup.args.flags |= save.keys ? HWT_SETUP_KEYS : 0;
	setup.args.tick_ns = save.tick_ns;
	setup.args.ticks_per_wheel = save.ticks_per_wheel;
	setup.args.levels = save.levels;
	run_begin(&run, &setup);
	restore_all(run.fd, &save, &run);
	save_free(&save);
	run_rest(&run);
	return DONE;
}
