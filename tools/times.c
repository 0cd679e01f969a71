// SPDX-License-Identifier: GPL-2.0-only
/*
 * Durations and dates as people write them
 *
 * The C library has the dates. Durations are parsed and printed here: no packaged library does both
 * to the nanosecond (systemd keeps its functions private, GLib's end at the microsecond).
 */
#include "hwtctl.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	__u64 ns;
} units[] = {
	/* Of names that begin alike, the longer one comes first. */
	{ "ns", 1 },
	{ "us", NSEC_PER_USEC },
	{ "ms", NSEC_PER_MSEC },
	{ "s", NSEC_PER_SEC },
	{ "m", 60 * NSEC_PER_SEC },
	{ "h", 3600 * NSEC_PER_SEC },
	{ "d", 86400 * NSEC_PER_SEC },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A number with a fraction, as parsed: "1.50" is whole 1, and a fraction of two digits. */
struct decimal {
	__u64		whole;
	const char	*fraction;
	int		digits;		/* of the fraction */
};

static bool decimal_parse(const char **text, struct decimal *decimal)
{
	const char *p = *text;

	decimal->whole = 0;
	decimal->digits = 0;
	for (; is_digit(*p); p++) {
		if (__builtin_mul_overflow(decimal->whole, 10, &decimal->whole) ||
		    __builtin_add_overflow(decimal->whole, *p - '0', &decimal->whole))
			return false;
	}
	decimal->fraction = p + 1;
	if (*p == '.')
		for (p++; is_digit(*p); p++)
			decimal->digits++;
	/* A "." without digits is not a number. */
	if (p - *text < 1 + (decimal->fraction[-1] == '.'))
		return false;
	*text = p;
	return true;
}

/* Convert to nanoseconds. Round up, so that nothing is early. */
static bool decimal_times(const struct decimal *decimal, __u64 unit, __u64 *ns)
{
	__u64 part = 0;
	int i;

	/* From the last digit on, rounding up at each digit is the same as rounding up once. */
	for (i = decimal->digits - 1; i >= 0; i--)
		part = (part + (decimal->fraction[i] - '0') * unit + 9) / 10;
	return !__builtin_mul_overflow(decimal->whole, unit, ns) &&
	       !__builtin_add_overflow(*ns, part, ns) && *ns != HWT_NEVER;
}

static const char *unit_parse(const char *text, __u64 *ns)
{
	unsigned int i;
	size_t length;

	for (i = 0; i < ARRAY_SIZE(units); i++) {
		length = strlen(units[i].name);
		if (!strncmp(text, units[i].name, length) &&
		    !isalpha((unsigned char)text[length])) {
			*ns = units[i].ns;
			return text + length;
		}
	}
	return NULL;
}

bool duration_parse(const char *text, __u64 *ns)
{
	struct decimal decimal;
	__u64 unit, part;
	const char *p = text;

	if (!strcmp(text, "infinity") || !strcmp(text, "inf") || !strcmp(text, "never")) {
		*ns = HWT_NEVER;
		return true;
	}
	*ns = 0;
	do {
		const char *begin = p;

		if (!decimal_parse(&p, &decimal))
			return false;
		unit = NSEC_PER_SEC;
		if (*p || begin != text)
			p = unit_parse(p, &unit);
		if (!p || !decimal_times(&decimal, unit, &part) ||
		    __builtin_add_overflow(*ns, part, ns) || *ns == HWT_NEVER)
			return false;
	} while (*p);
	return true;
}

bool number_parse(const char *text, __u64 max, __u64 *number)
{
	char *end;

	if (!is_digit(*text))
		return false;
	errno = 0;
	*number = strtoull(text, &end, 0);
	return !errno && !*end && *number <= max;
}

const char *duration_wrong(const char *text, __u64 min, __u64 max, __u64 *ns)
{
	static char why[WRONG_TEXT];
	char least[TIME_TEXT], most[TIME_TEXT];

	if (duration_parse(text, ns) && *ns >= min && *ns <= max)
		return NULL;
	duration_format(least, min);
	duration_format(most, max);
	if (max != HWT_NEVER)
		snprintf(why, sizeof(why), "'%s' is not a duration from %s to %s", text, least,
			 most);
	else if (min)
		snprintf(why, sizeof(why), "'%s' is not a duration of %s or more", text, least);
	else
		snprintf(why, sizeof(why), "'%s' is not a duration", text);
	return why;
}

const char *number_wrong(const char *text, __u64 min, __u64 max, __u64 *number)
{
	static char why[WRONG_TEXT];

	if (number_parse(text, max, number) && *number >= min)
		return NULL;
	snprintf(why, sizeof(why), "'%s' is not a number from %llu to %llu", text, min, max);
	return why;
}

/* -- Dates --------------------------------------------------------------- */

bool date_like(const char *text)
{
	const char *dash = strchr(text, '-');

	return *text == '@' || (dash && dash == text + 4);
}

bool date_parse(const char *text, __u64 *ns)
{
	struct decimal fraction = { };
	struct tm tm = { .tm_isdst = -1 };
	const char *end, *begin = text;
	char again[TIME_TEXT];
	__u64 part = 0;
	time_t seconds;

	if (*text == '@') {
		text++;
		return decimal_parse(&text, &fraction) && !*text &&
		       decimal_times(&fraction, NSEC_PER_SEC, ns);
	}
	text = strptime(text, "%Y-%m-%dT%H:%M", &tm);
	end = text && *text == ':' ? strptime(text, ":%S", &tm) : text;
	if (!end)
		return false;
	text = end;
	if (*text == '.' && (!decimal_parse(&text, &fraction) ||
			     !decimal_times(&fraction, NSEC_PER_SEC, &part)))
		return false;
	if (!strcmp(text, "Z"))
		seconds = timegm(&tm);
	else if (!*text)
		seconds = mktime(&tm);
	else
		return false;
	/* A time that does not exist, or lacks a digit, is not what strftime() prints. */
	strftime(again, sizeof(again), "%Y-%m-%dT%H:%M:%S:", &tm);
	if (seconds < 0 || strncmp(begin, again, end - begin) != 0 || again[end - begin] != ':')
		return false;
	return !__builtin_mul_overflow((__u64)seconds, NSEC_PER_SEC, ns) &&
	       !__builtin_add_overflow(*ns, part, ns) && *ns != HWT_NEVER;
}

/* -- Formatting ---------------------------------------------------------- */

char *duration_format(char *buffer, __u64 ns)
{
	__u64 seconds = ns / NSEC_PER_SEC;

	if (ns == HWT_NEVER)
		snprintf(buffer, TIME_TEXT, "never");
	else if (ns < NSEC_PER_USEC)
		snprintf(buffer, TIME_TEXT, "%llu ns", ns);
	else if (ns < NSEC_PER_MSEC)
		snprintf(buffer, TIME_TEXT, "%llu.%03llu us", ns / NSEC_PER_USEC,
			 ns % NSEC_PER_USEC);
	else if (ns < NSEC_PER_SEC)
		snprintf(buffer, TIME_TEXT, "%llu.%03llu ms", ns / NSEC_PER_MSEC,
			 ns % NSEC_PER_MSEC / NSEC_PER_USEC);
	else if (seconds < 60)
		snprintf(buffer, TIME_TEXT, "%llu.%03llu s", seconds,
			 ns % NSEC_PER_SEC / NSEC_PER_MSEC);
	else if (seconds < 3600)
		snprintf(buffer, TIME_TEXT, "%llum%02llus", seconds / 60, seconds % 60);
	else if (seconds < 86400)
		snprintf(buffer, TIME_TEXT, "%lluh%02llum%02llus", seconds / 3600,
			 seconds / 60 % 60, seconds % 60);
	else
		snprintf(buffer, TIME_TEXT, "%llud%02lluh%02llum", seconds / 86400,
			 seconds / 3600 % 24, seconds / 60 % 60);
	return buffer;
}

char *date_format(char *buffer, __u64 ns)
{
	time_t seconds = ns / NSEC_PER_SEC;
	struct tm tm;
	size_t length;

	if (ns == HWT_NEVER || !localtime_r(&seconds, &tm)) {
		snprintf(buffer, TIME_TEXT, "never");
		return buffer;
	}
	length = strftime(buffer, TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buffer + length, TIME_TEXT - length, ".%03llu",
		 ns % NSEC_PER_SEC / NSEC_PER_MSEC);
	return buffer;
}

__u64 clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}
