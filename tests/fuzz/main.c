// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz [--seconds N] [--seed N] [--corpus FILE] [--again N] [PROGRAM...]: the loop.
 *
 * Runs the built-in corpus (corpus/) and that of the file, then for --seconds programs made from
 * them. With programs as arguments, runs only these, each --again times.
 *
 * Each program is printed before it is executed ("run "), so that it ends the log after a crash. A
 * program that reaches something new is shortened, kept and printed ("new "). In the end all kept
 * programs, which together reach every edge reached, are printed ("corpus "), for corpus/.
 */
#include "fuzz.h"

#define CORPUS_MAX	4096
/* The number of programs that a failure prints. */
#define RECENT		16

struct entry {
	struct program	program;
	uint64_t	ns;
};

static struct entry corpus[CORPUS_MAX];
static unsigned int corpus_n;

/* The features seen of each edge, as bits. */
static uint8_t seen[EDGES];
static unsigned int edges;

static struct program recent[RECENT];
static __u64 executions, start_ns;
static int kmsg = -1;

static uint32_t features[FEATURES_MAX];
static unsigned int features_n;

extern const char corpus_text[];

static void print_program(const char *what, const struct program *program)
{
	static char line[TEXT_MAX + 32];
	size_t length = strlen(what);

	memcpy(line, what, length);
	length += program_print(program, line + length);
	line[length++] = '\n';
	if (write(STDOUT_FILENO, line, length) < 0)
		die("standard output cannot be written");
}

static bool is_report(const char *text)
{
	static const char * const heads[] = {
		"WARNING: ", "BUG: ", "BUG ", "INFO: ", "UBSAN: ", "KCSAN: ", "ODEBUG: ",
		"refcount_t: ", "cut here", "Oops", "general protection",
	};
	unsigned int i = 0;

	while (i < COUNT(heads) && !strstr(text, heads[i]))
		i++;
	return i < COUNT(heads);
}

/* Read the kernel log. Return whether it has a report. */
static bool kernel_reports(void)
{
	bool found = false;
	char record[1024];
	ssize_t length;

	if (kmsg < 0)
		return false;
	for (;;) {
		length = read(kmsg, record, sizeof(record) - 1);
		if (length < 0 && errno == EPIPE)
			continue;
		if (length <= 0)
			return found;
		record[length] = '\0';
		if (found || !is_report(record))
			continue;
		printf("fuzz: the kernel reports: %s\n", record);
		found = true;
	}
}

static void stop_if_wrong(void)
{
	const char *broken = calls_broken();
	unsigned int i;

	if (broken)
		printf("fuzz: not allowed: %s\n", broken);
	if (!kernel_reports() && !broken)
		return;
	printf("fuzz: after %llu ms and %llu executions. The last programs:\n",
	       (now_ns() - start_ns) / MSEC, executions);
	for (i = 1; i <= RECENT; i++)
		if (recent[(executions + i) % RECENT].n)
			print_program("was ", &recent[(executions + i) % RECENT]);
	/* Threads, wheels and children end as those of a killed program. */
	_exit(1);
}

static void execute(const struct program *program)
{
	recent[++executions % RECENT] = *program;
	print_program("run ", program);
	run_program(program);
	features_n = cover_take(features);
	stop_if_wrong();
}

static unsigned int bit(uint32_t feature)
{
	return 1U << (feature & 3);
}

/* Record the features of the last execution. */
static void mark(void)
{
	unsigned int i;

	for (i = 0; i < features_n; i++) {
		uint8_t *edge = &seen[features[i] >> 2];

		edges += !*edge;
		*edge |= bit(features[i]);
	}
}

/* Return whether the last execution reached all of the features @wanted. */
static bool reaches(const uint32_t *wanted, unsigned int n)
{
	static uint8_t reached[EDGES];
	unsigned int i;

	memset(reached, 0, sizeof(reached));
	for (i = 0; i < features_n; i++)
		reached[features[i] >> 2] |= bit(features[i]);
	for (i = 0; i < n; i++)
		if (!(reached[wanted[i] >> 2] & bit(wanted[i])))
			return false;
	return true;
}

static void shorten(struct program *program, const uint32_t *wanted, unsigned int n)
{
	struct program shorter;
	unsigned int at;

	for (at = program->n; at-- > 0 && program->n > 1;) {
		shorter = *program;
		program_remove(&shorter, at, 1);
		execute(&shorter);
		if (reaches(wanted, n))
			*program = shorter;
	}
}

/* Run a program, and keep it if it reaches something new. @known: do not shorten it. */
static void try_program(const struct program *program, bool known)
{
	static uint32_t wanted[FEATURES_MAX];
	uint64_t ns = now_ns();
	struct entry *entry;
	unsigned int i, n = 0;

	execute(program);
	ns = now_ns() - ns;
	for (i = 0; i < features_n; i++)
		if (!(seen[features[i] >> 2] & bit(features[i])))
			wanted[n++] = features[i];
	if (!n || corpus_n == CORPUS_MAX)
		return;
	entry = &corpus[corpus_n++];
	*entry = (struct entry) { *program, ns };
	mark();
	if (known)
		return;
	/* If a second run misses them, they depend on timing: keep the program as it is. */
	execute(program);
	if (reaches(wanted, n))
		shorten(&entry->program, wanted, n);
	print_program("new ", &entry->program);
}

/* Run a corpus: a program in each line; lines that begin with # are comments. */
static unsigned int replay(const char *line)
{
	struct program program;
	unsigned int n = 0;

	for (; *line; line += strcspn(line, "\n")) {
		line += *line == '\n';
		if (!*line || *line == '#' || *line == '\n')
			continue;
		if (!program_parse(&program, line)) {
			printf("fuzz: not a program: %.60s\n", line);
			die("the corpus");
		}
		try_program(&program, true);
		n++;
	}
	return n;
}

static unsigned int replay_file(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	/* Read the whole file, which has no 0. */
	if (!file || getdelim(&text, &size, 0, file) < 0)
		die(path);
	fclose(file);
	return replay(text);
}

/* Return a program that has a call of a kind, or any program after 32 attempts. */
static const struct entry *find(struct random *random, unsigned int kind)
{
	const struct entry *entry;
	unsigned int tries, i;

	for (tries = 0; tries < 32; tries++) {
		entry = &corpus[random_below(random, corpus_n)];
		for (i = 0; i < entry->program.n; i++)
			if (entry->program.calls[i].kind == kind)
				return entry;
	}
	return entry;
}

/* Choose a program by a kind of call, so that programs with rare kinds are used, too. */
static const struct program *choose(struct random *random, unsigned int kind)
{
	const struct entry *a = find(random, kind), *b = find(random, kind);

	/* Mostly the faster one of two. */
	if (b->ns < a->ns && random_below(random, 4))
		a = b;
	return &a->program;
}

static void make_program(struct program *program, struct random *random)
{
	unsigned int kind;

	if (!corpus_n || !random_below(random, 20)) {
		program_random(program, random);
		return;
	}
	*program = *choose(random, random_kind(random));
	/* Mix it with a program that has a call of the same kind. */
	kind = program->n ? program->calls[random_below(random, program->n)].kind : 0;
	program_mutate(program, choose(random, kind), random);
}

static void print_state(void)
{
	__u64 ns = now_ns() - start_ns;

	printf("fuzz: %3llu:%02llu  %llu executions (%llu/s), %u in the corpus, %u edges\n",
	       ns / SEC / 60, ns / SEC % 60, executions, executions * SEC / (ns + 1), corpus_n,
	       edges);
}

static void fuzz(struct random *random, unsigned int seconds)
{
	uint64_t end = now_ns() + seconds * SEC, told = 0;
	struct program program;

	while (now_ns() < end) {
		make_program(&program, random);
		try_program(&program, false);
		if (now_ns() - told < 5 * SEC)
			continue;
		told = now_ns();
		print_state();
	}
}

static void run_given(char **texts, unsigned int times)
{
	struct program program;

	for (; *texts; texts++) {
		unsigned int i;

		if (!program_parse(&program, *texts))
			die("an argument is not a program");
		for (i = 0; i < times; i++)
			execute(&program);
	}
}

int main(int __attribute__((unused)) argc, char **argv)
{
	uint64_t seconds = 0, seed = now_ns(), again = 100;
	const struct {
		const char	*name;
		uint64_t	*value;
	} options[] = { { "--seconds", &seconds }, { "--seed", &seed }, { "--again", &again } };
	const char *file = NULL;
	struct random random;
	unsigned int n, i;
	bool kcov;

	setlinebuf(stdout);
	for (argv++; *argv && !strncmp(*argv, "--", 2); argv += 2) {
		if (!argv[1])
			return 2;
		if (!strcmp(*argv, "--corpus"))
			file = argv[1];
		for (i = 0; i < COUNT(options); i++)
			if (!strcmp(*argv, options[i].name))
				*options[i].value = strtoull(argv[1], NULL, 0);
	}
	/* With 0, the generator would only return 0. */
	random.state = seed | 1ULL << 63;

	kcov = cover_init();
	printf("fuzz: seed %#llx, %s\n", (__u64)random.state,
	       kcov ? "guided by KCOV" : "without KCOV");
	kmsg = log_open();
	calls_init();
	run_init();
	start_ns = now_ns();
	if (*argv) {
		run_given(argv, again);
	} else {
		n = replay(corpus_text);
		if (file)
			n += replay_file(file);
		printf("fuzz: the corpus has %u programs\n", n);
		print_state();
		fuzz(&random, seconds);
		print_state();
		for (i = 0; i < corpus_n; i++)
			print_program("corpus ", &corpus[i].program);
	}
	printf("fuzz: nothing found\n");
	return 0;
}
