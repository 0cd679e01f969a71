// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz [--seconds N] [--seed N] [--corpus FILE] [--again N] [PROGRAM...]: the loop.
 *
 * First the corpus in the program itself (corpus/) and that of the file, then programs made
 * from them for so many seconds. With programs as arguments: only those, each so many times.
 *
 * Each program is printed before it is carried out, so that after a crash it is what the log ends
 * with ("run " and the program, which can be given to make fuzz). What reaches something new is
 * kept, made as short as it can be, and printed ("new "). In the end all that were kept, which
 * together reach everything that was reached, are printed ("corpus "): for corpus/.
 */
#include "fuzz.h"

#define CORPUS_MAX	4096
/* Programs before the last one that are told of when something is wrong. */
#define RECENT		16

struct entry {
	struct program	program;
	uint64_t	ns;
};

static struct entry corpus[CORPUS_MAX];
static unsigned int corpus_n;

/* How often each edge was taken, as bits. */
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
		die("nowhere to write to");
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

/* Does the kernel report something? What it is, is in its log. */
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
		printf("fuzz: the kernel says: %s\n", record);
		found = true;
	}
}

static void stop_if_wrong(void)
{
	const char *broken = calls_broken();
	unsigned int i;

	if (broken)
		printf("fuzz: it must not be: %s\n", broken);
	if (!kernel_reports() && !broken)
		return;
	printf("fuzz: after %llu ms and %llu executions. The last programs:\n",
	       (now_ns() - start_ns) / MSEC, executions);
	for (i = 1; i <= RECENT; i++)
		if (recent[(executions + i) % RECENT].n)
			print_program("was ", &recent[(executions + i) % RECENT]);
	/* Threads, wheels and children go as a killed program's do. */
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

/* What the last execution has reached. */
static void mark(void)
{
	unsigned int i;

	for (i = 0; i < features_n; i++) {
		uint8_t *edge = &seen[features[i] >> 2];

		edges += !*edge;
		*edge |= bit(features[i]);
	}
}

/* Did the last execution reach all of these? */
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

/* Keeps it if it reaches something new; @known: it is of a corpus, and short already. */
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
	/* If it was luck, a matter of time: it may be again, and stays as it is. */
	execute(program);
	if (reaches(wanted, n))
		shorten(&entry->program, wanted, n);
	print_program("new ", &entry->program);
}

/* A line each; those that begin with # say what it is about. */
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

	/* To its end: there is no 0 in it. */
	if (!file || getdelim(&text, &size, 0, file) < 0)
		die(path);
	fclose(file);
	return replay(text);
}

/* One that has a call of that kind, if it is found soon. */
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

/* So that those with the seldom kinds have their turn, however many there are of the others. */
static const struct program *choose(struct random *random, unsigned int kind)
{
	const struct entry *a = find(random, kind), *b = find(random, kind);

	/* The faster of two, most of the time. */
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
	/* What it is mixed with has to do with it. */
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
			die("that is not a program");
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
	/* A generator that stays 0 otherwise. */
	random.state = seed | 1ULL << 63;

	kcov = cover_init();
	printf("fuzz: seed %#llx, %s\n", (__u64)random.state,
	       kcov ? "guided by KCOV" : "blindly, without KCOV");
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
