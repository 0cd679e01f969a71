// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs as text ("open schedule:0001 close"; trailing bytes of 0 are omitted), random programs,
 * and mutations.
 */
#include "fuzz.h"

static uint32_t random_next(struct random *random)
{
	random->state ^= random->state << 13;
	random->state ^= random->state >> 7;
	random->state ^= random->state << 17;
	return random->state >> 16;
}

uint32_t random_below(struct random *random, uint32_t n)
{
	return (uint64_t)random_next(random) * n >> 32;
}

size_t program_print(const struct program *program, char *text)
{
	const struct call *call;
	unsigned int i, j, n;
	char *p = text;

	for (i = 0; i < program->n; i++) {
		call = &program->calls[i];
		n = kind_get(call->kind)->args;
		while (n && !call->args[n - 1])
			n--;
		p += sprintf(p, "%s%s%s", i ? " " : "", kind_get(call->kind)->name,
			     n ? ":" : "");
		for (j = 0; j < n; j++)
			p += sprintf(p, "%02x", call->args[j]);
	}
	*p = '\0';
	return p - text;
}

static bool parse_kind(struct call *call, const char *name, size_t length)
{
	unsigned int i;

	for (i = 0; i < kinds_count(); i++) {
		if (strlen(kind_get(i)->name) == length &&
		    !strncmp(kind_get(i)->name, name, length)) {
			call->kind = i;
			return true;
		}
	}
	return false;
}

static bool parse_call(struct call *call, const char *word, size_t length)
{
	const char *colon = memchr(word, ':', length);
	unsigned int n, i;

	memset(call, 0, sizeof(*call));
	if (!parse_kind(call, word, colon ? (size_t)(colon - word) : length))
		return false;
	if (!colon)
		return true;
	n = (length - (colon + 1 - word)) / 2;
	if (n > kind_get(call->kind)->args)
		return false;
	for (i = 0; i < n; i++)
		if (sscanf(colon + 1 + 2 * i, "%2hhx", &call->args[i]) != 1)
			return false;
	return true;
}

bool program_parse(struct program *program, const char *text)
{
	size_t length;

	program->n = 0;
	for (;;) {
		text += strspn(text, " ");
		length = strcspn(text, " \r\n");
		if (!length)
			return program->n;
		if (program->n == CALLS_MAX ||
		    !parse_call(&program->calls[program->n], text, length))
			return false;
		program->n++;
		text += length;
	}
}

unsigned int random_kind(struct random *random)
{
	unsigned int total = 0, i, at;

	for (i = 0; i < kinds_count(); i++)
		total += kind_get(i)->weight;
	at = random_below(random, total);
	for (i = 0; at >= kind_get(i)->weight; i++)
		at -= kind_get(i)->weight;
	return i;
}

static uint8_t random_byte(struct random *random)
{
	/* Small bytes are the usual values. */
	return !random_below(random, 2) ? random_below(random, 8) : random_below(random, 256);
}

static void random_call(struct call *call, struct random *random)
{
	const struct kind *kind;
	unsigned int i;

	memset(call, 0, sizeof(*call));
	call->kind = random_kind(random);
	kind = kind_get(call->kind);
	for (i = 0; i < kind->args; i++) {
		bool rare = kind->rare & 1U << i;

		if (!random_below(random, rare ? 24 : 2))
			call->args[i] = random_byte(random);
	}
}

void program_random(struct program *program, struct random *random)
{
	unsigned int i;

	program->n = 2 + random_below(random, CALLS_MAX / 2);
	for (i = 0; i < program->n; i++)
		random_call(&program->calls[i], random);
	/* Most calls need a context. */
	memset(&program->calls[0], 0, sizeof(program->calls[0]));
	parse_kind(&program->calls[0], "open", 4);
}

/* Make room for up to @n calls at @at. Return the number of calls. */
static unsigned int make_room(struct program *program, unsigned int at, unsigned int n)
{
	if (n > CALLS_MAX - program->n)
		n = CALLS_MAX - program->n;
	memmove(&program->calls[at + n], &program->calls[at],
		(program->n - at) * sizeof(struct call));
	program->n += n;
	return n;
}

void program_remove(struct program *program, unsigned int at, unsigned int n)
{
	program->n -= n;
	memmove(&program->calls[at], &program->calls[at + n],
		(program->n - at) * sizeof(struct call));
}

static void insert(struct program *program, struct random *random)
{
	unsigned int at = random_below(random, program->n + 1);

	if (make_room(program, at, 1))
		random_call(&program->calls[at], random);
}

static void insert_part(struct program *program, const struct program *other,
			struct random *random)
{
	unsigned int from = random_below(random, other->n);
	unsigned int n = 1 + random_below(random, other->n - from);
	unsigned int at = random_below(random, program->n + 1);

	n = make_room(program, at, n);
	memcpy(&program->calls[at], &other->calls[from], n * sizeof(struct call));
}

static void repeat(struct program *program, struct random *random)
{
	unsigned int at = random_below(random, program->n);
	struct call call = program->calls[at];
	unsigned int n = make_room(program, at, 1 + random_below(random, 4));

	while (n--)
		program->calls[at + n] = call;
}

static void change(struct program *program, struct random *random)
{
	struct call *call = &program->calls[random_below(random, program->n)];
	unsigned int n = kind_get(call->kind)->args;
	uint8_t *arg;

	if (!n)
		return;
	arg = &call->args[random_below(random, n)];
	switch (random_below(random, 4)) {
	case 0:
		*arg = 0;
		break;
	case 1:
		*arg += 1 - 2 * random_below(random, 2);
		break;
	case 2:
		*arg ^= 1 << random_below(random, 8);
		break;
	default:
		*arg = random_byte(random);
	}
}

void program_mutate(struct program *program, const struct program *other,
		    struct random *random)
{
	unsigned int steps = 1 + random_below(random, 5);

	while (steps--) {
		unsigned int what = random_below(random, 10);

		if (what < 2)
			insert(program, random);
		else if (what == 2 && program->n > 1)
			program_remove(program, random_below(random, program->n), 1);
		else if (what == 3)
			insert_part(program, other, random);
		else if (what == 4)
			repeat(program, random);
		else if (what > 4)
			change(program, random);
	}
}
