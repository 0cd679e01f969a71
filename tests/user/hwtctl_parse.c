// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtctl: parsing and formatting of durations and dates, names, strings of JSON.
 *
 * hwt-test: m32
 * hwt-test: shared
 */
#include "kselftest_harness.h"
#include <stdlib.h>

#include "../../tools/hwtctl.h"

#define MINUTE	(60 * NSEC_PER_SEC)
#define HOUR	(60 * MINUTE)
#define DAY	(24 * HOUR)

struct good {
	const char *text;
	__u64 ns;
};

typedef bool (*parser)(const char *text, __u64 *ns);

/* Check that all good texts are parsed, up to an entry without text, and no bad one. */
static void expect_all(struct __test_metadata *_metadata, parser parse, const struct good *good,
		       const char * const *bad)
{
	__u64 ns;

	/* An hour ahead of UTC in winter, two in summer */
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	for (; good->text; good++) {
		/* A 32-bit time_t does not reach some dates. */
		if (sizeof(time_t) < 8 && strchr(good->text, 'T') &&
		    good->ns > 0x7fffffff * NSEC_PER_SEC)
			continue;
		ns = 12345;
		EXPECT_TRUE(parse(good->text, &ns) && ns == good->ns)
			TH_LOG("'%s': %llu", good->text, (unsigned long long)ns);
		EXPECT_EQ(parse == date_parse, date_like(good->text));
	}
	for (; *bad; bad++)
		EXPECT_FALSE(parse(*bad, &ns))
			TH_LOG("'%s'", *bad);
}

TEST(durations)
{
	static const struct good good[] = {
		{ "0", 0 }, { "1", NSEC_PER_SEC }, { "007", 7 * NSEC_PER_SEC },
		{ "1.5", 1500 * NSEC_PER_MSEC }, { ".5", 500 * NSEC_PER_MSEC },
		{ "2.", 2 * NSEC_PER_SEC }, { "1ns", 1 }, { "1us", NSEC_PER_USEC },
		{ "1ms", NSEC_PER_MSEC }, { "1s", NSEC_PER_SEC }, { "1m", MINUTE },
		{ "1h", HOUR }, { "1d", DAY }, { "0.5h", 30 * MINUTE },
		{ "1h30m", HOUR + 30 * MINUTE }, { "1m1ms1m", 2 * MINUTE + NSEC_PER_MSEC },
		{ "1.000000001s", NSEC_PER_SEC + 1 },
		/* Rounded up, so never early */
		{ "0.1ns", 1 }, { "0.0000000001", 1 }, { "1.0000000000", NSEC_PER_SEC },
		{ "0.00000000000000000000000000001d", 1 },
		{ "0.000000000000000000000000000000", 0 },
		{ "0.9999999999999999999999999999", NSEC_PER_SEC },
		{ "18446744073709551614ns", HWT_NEVER - 1 },
		{ "18446744073.709551614", HWT_NEVER - 1 }, { "213503d", 213503 * DAY },
		{ "infinity", HWT_NEVER }, { "inf", HWT_NEVER }, { "never", HWT_NEVER },
		{}
	};
	static const char * const bad[] = {
		"", " ", ".", "s", "ms", "-1", "+1", " 1", "1 ", "1 s", "1x", "1S", "1sec",
		"1s2", "1 1s", "1e3", "0x10", "1,5", "1..5", "1.5.5", "1hm", "ns1",
		"infinity1", "1infinity", "Never",
		/* Too long; the last one is HWT_NEVER, which must be written as a word. */
		"18446744073709551616ns", "18446744073.709551616", "1000000d",
		"213504d", "99999999999999999999", "18446744073709551616", "213503d1d",
		"18446744073709551615ns",
		NULL
	};

	expect_all(_metadata, duration_parse, good, bad);
	EXPECT_FALSE(date_like(""));
}

TEST(dates)
{
	static const struct good good[] = {
		{ "@0", 0 }, { "@1.5", 1500 * NSEC_PER_MSEC },
		{ "@4102444800", 4102444800 * NSEC_PER_SEC }, { "1970-01-01T00:00Z", 0 },
		{ "1970-01-01T00:00:01Z", NSEC_PER_SEC },
		{ "2000-02-29T12:34:56.789Z", 951827696789 * NSEC_PER_MSEC },
		{ "2100-01-01T00:00:00Z", 4102444800 * NSEC_PER_SEC },
		{ "2038-01-19T03:14:08Z", 2147483648 * NSEC_PER_SEC },
		{ "2026-01-01T12:00", 1767265200 * NSEC_PER_SEC },
		{ "2026-07-01T12:00", 1782900000 * NSEC_PER_SEC },
		{}
	};
	static const char * const bad[] = {
		"", "@", "@-1", "@1s", "@ 1", "@1.2.3", "@99999999999999999999",
		"2026-01-01", "2026-01-01T", "2026-01-01T12", "2026-1-1T12:00",
		"2026-01-01 12:00", "2026-01-01T12:0", "2026-01-01T12:00:", "26-01-01T12:00",
		"2026-02-29T12:00", "2026-00-01T12:00", "2026-13-01T12:00",
		"2026-01-00T12:00", "2026-01-32T12:00", "2026-01-01T24:00",
		"2026-01-01T12:60", "2026-01-01T12:00:60", "2026-01-01T12:00:00.",
		"2026-01-01T12:00z", "2026-01-01T12:00ZZ", "2026-01-01T12:00+01:00",
		"1969-12-31T23:59:59Z", " 2026-01-01T12:00", "2026-01-01T12:00 ",
		"2999-01-01T00:00Z",
		/* Skipped at the beginning of summer time */
		"2026-03-29T02:30",
		NULL
	};

	expect_all(_metadata, date_parse, good, bad);
}

TEST(numbers)
{
	static const char * const bad[] = { "18446744073709551616", "", "-1", "+1", " 1", "1x" };
	unsigned int i;
	__u64 n;

	EXPECT_TRUE(number_parse("0", 0, &n) && n == 0);
	EXPECT_TRUE(number_parse("18446744073709551615", ~0ULL, &n) && n == ~0ULL);
	EXPECT_TRUE(number_parse("0xff", 255, &n) && n == 255);
	EXPECT_FALSE(number_parse("0x100", 255, &n));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_FALSE(number_parse(bad[i], ~0ULL, &n));
}

TEST(writing_times)
{
	static const struct {
		__u64 ns;
		const char *text;
	} times[] = {
		{ 0, "0 ns" }, { 999, "999 ns" }, { 1000, "1.000 us" },
		{ 999999, "999.999 us" }, { 1000000, "1.000 ms" }, { 999999999, "999.999 ms" },
		{ NSEC_PER_SEC, "1.000 s" }, { 59999999999, "59.999 s" }, { MINUTE, "1m00s" },
		{ HOUR - 1, "59m59s" }, { HOUR, "1h00m00s" }, { DAY - 1, "23h59m59s" },
		{ DAY, "1d00h00m" }, { HWT_NEVER - 1, "213503d23h34m" }, { HWT_NEVER, "never" },
	};
	char buffer[TIME_TEXT];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(times); i++)
		EXPECT_STREQ(times[i].text, duration_format(buffer, times[i].ns));
	setenv("TZ", "UTC", 1);
	tzset();
	EXPECT_STREQ("1970-01-01T00:00:01.500", date_format(buffer, 1500 * NSEC_PER_MSEC));
	EXPECT_STREQ("2000-02-29T12:34:56.789", date_format(buffer, 951827696789999999ULL));
	EXPECT_STREQ("never", date_format(buffer, HWT_NEVER));
}

TEST(json_strings)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	ASSERT_NE(NULL, file);
	json_put_string(file, "a\"\\\n\x01z\x7f\xc2\x9b");
	json_put_time(file, "t", 5);
	json_put_time(file, "n", HWT_NEVER);
	fclose(file);
	EXPECT_STREQ("\"a\\\"\\\\\\u000a\\u0001z\\u007f\\u009b\",\"t\":5,\"n\":null", text);
	free(text);
}

TEST(names)
{
	char buffer[16];

	EXPECT_STREQ("a\\\\\\n\\x1b\\xc3",
		     name_escape(buffer, sizeof(buffer), "a\\\n\x1b\xc3\xa9"));
}

TEST_HARNESS_MAIN
