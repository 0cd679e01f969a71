// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loading the module, and a user's first open(), with each allocation and user copy made to fail
 * once.
 *
 * A failed load leaves no module, device, slab cache or state of CPU hotplug, and the next load
 * succeeds. A failed open() returns ENOMEM or EFAULT and keeps nothing. Most points of a load are
 * the kernel's own: only some of these are made to fail.
 *
 * hwt-test: long
 * hwt-test: only debug debug612
 * hwt-test: noload
 * hwt-test: timeout 1200
 */
#include "kselftest_harness.h"

#include "fault.h"

#define MARGIN		20
#define LOAD_REPORTS	\
	"kmem_cache_create.*\\(hwt_|vmalloc error: size|kmemleak: .* new|event_define_fields"

static int module_file = -1;

static int load(void *arg)
{
	(void)arg;
	return load_module(module_file, "");
}

/* Return a remainder of a module that was not loaded, or NULL. */
static const char *left(void)
{
	static const char * const paths[] = {
		"/sys/module/hwt", HWT_DEV, "/sys/class/hwt", "/sys/kernel/debug/hwt",
	};
	static const char * const files[][2] = {
		{ "/proc/modules", "hwt " }, { "/proc/slabinfo", "hwt" },
		{ "/sys/devices/system/cpu/hotplug/states", "hwt:" }, { "/proc/devices", " hwt\n" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(paths); i++)
		if (!access(paths[i], F_OK))
			return paths[i];
	for (i = 0; i < ARRAY_SIZE(files); i++)
		if (file_has(files[i][0], files[i][1]))
			return files[i][0];
	return names_in("/sys/kernel/slab", "hwt") ? "a slab cache" : NULL;
}

/* Some objects are freed later, by RCU. */
static void nothing_left(struct __test_metadata *_metadata)
{
	EXPECT_TRUE(until(!left()))
		TH_LOG("%s", left());
}

static void works(struct __test_metadata *_metadata)
{
	int fd = hwt_open(O_NONBLOCK);
	struct hwt_event event;

	ASSERT_LE(0, fd);
	EXPECT_LT(0, hwt_users());
	EXPECT_EQ(0, hwt_add(fd, HWT_ARM_ABSOLUTE, 0, 6, NULL));
	EXPECT_EQ(1, hwt_next(fd, &event));
	EXPECT_EQ(6, event.user_data);
	close(fd);
	EXPECT_EQ(0, hwt_users());
}

/* The module may be held for a moment after its last user. */
static void unload_soon(struct __test_metadata *_metadata)
{
	ASSERT_TRUE(until(!unload_module("hwt")));
}

/*
 * Return whether a report of kmemleak is about hwt. After an unload its functions are addresses
 * without a name. The kernel itself leaks the name of a slab cache or a class for which sysfs has
 * no memory; therefore the test evaluates the reports and clears them, before the guest does.
 */
static bool leak_of_hwt(const char *object)
{
	return (strstr(object, "hwt") || strstr(object, ">] 0x")) &&
	       !strstr(object, "sysfs_slab_add") && !strstr(object, "__class_register");
}

/* Scan twice: stale pointers in registers and stacks affect a single scan. */
static void no_leaks(struct __test_metadata *_metadata)
{
	static char text[1 << 20];
	char *object, *next;
	FILE *file;

	ASSERT_EQ(0, access(DEBUGFS "kmemleak", W_OK));
	/* kmemleak ignores objects younger than five seconds. */
	sleep_ns(6 * SEC);
	ASSERT_TRUE(write_text(DEBUGFS "kmemleak", "scan"));
	ASSERT_TRUE(write_text(DEBUGFS "kmemleak", "scan"));
	file = fopen(DEBUGFS "kmemleak", "r");
	ASSERT_NE(NULL, file);
	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	for (object = strstr(text, "unreferenced"); object; object = next) {
		next = strstr(object + 1, "unreferenced");
		if (next)
			next[-1] = 0;
		EXPECT_FALSE(leak_of_hwt(object))
			TH_LOG("%s", object);
	}
}

static void check_load(struct __test_metadata *_metadata, void *arg, int ret, unsigned int hit)
{
	unsigned int *n = arg;
	bool thorough = ++*n % 16 == 0;

	EXPECT_TRUE(!ret || hit);
	if (ret) {
		/* The kernel's part of a load may return any other error. */
		EXPECT_NE(-EINVAL, ret);
		nothing_left(_metadata);
		/* The full check is slow. */
		if (!thorough)
			return;
		ASSERT_EQ(0, load(NULL));
	}
	if (thorough)
		works(_metadata);
	unload_soon(_metadata);
	if (thorough)
		nothing_left(_metadata);
}

/* Count the points before the module's own: those of a load with a parameter that it refuses. */
static unsigned int points_of_others(struct __test_metadata *_metadata)
{
	int nth = fault_open(0);
	unsigned int points;

	ASSERT_LE(0, nth);
	ASSERT_TRUE(fault_arm(nth, FAULT_MOST));
	EXPECT_EQ(-EINVAL, load_module(module_file, "tick_us=0"));
	points = fault_points(nth, FAULT_MOST);
	fault_disarm(nth);
	close(nth);
	TH_LOG("%u points before the module's", points);
	return points;
}

FIXTURE(module) { };

FIXTURE_SETUP(module)
{
	module_file = open_module("hwt");
	ASSERT_LE(0, module_file);
	ASSERT_EQ(0, mlockall(MCL_CURRENT));
	ASSERT_EQ(NULL, left());
}

FIXTURE_TEARDOWN(module)
{
	close(module_file);
}

TEST_F_TIMEOUT(module, load, 3000)
{
	struct fault_call call = { .call = load, .check = check_load, .hit = 100, .failed = 50 };
	unsigned int points = points_of_others(_metadata), n = 0;

	/* The number varies from load to load. */
	EXPECT_LT(MARGIN, points);
	call.others = points - MARGIN;

	/*
	 * The kernel reports failed allocations of slab caches, of memory and of tracepoint fields,
	 * and it leaks the name of a cache for which sysfs has no memory.
	 */
	write_text("/dev/kmsg", "hwt-expect-begin: " LOAD_REPORTS);
	each_fault(_metadata, &call, &n);
	no_leaks(_metadata);
	write_text(DEBUGFS "kmemleak", "clear");
	fault_expect_end();
	ASSERT_EQ(0, load(NULL));
	works(_metadata);
	unload_soon(_metadata);
}

static int opened;

static int first_open(void *arg)
{
	(void)arg;
	opened = open(HWT_DEV, O_RDWR | O_CLOEXEC);
	return opened < 0 ? hwt_errno() : 0;
}

static void check_open(struct __test_metadata *_metadata, void *arg, int ret, unsigned int hit)
{
	(void)arg;
	/* -EFAULT: the path could not be copied. */
	EXPECT_TRUE(!ret || (hit && (ret == -ENOMEM || ret == -EFAULT)))
		TH_LOG("%d", ret);
	if (!ret) {
		EXPECT_LT(0, hwt_users());
		close(opened);
	}
	EXPECT_EQ(0, hwt_users());
	works(_metadata);
}

TEST_F_TIMEOUT(module, first_open, 2000)
{
	const struct fault_call call = {
		.call = first_open, .check = check_open, .hit = 12, .failed = 4,
	};

	ASSERT_EQ(0, load(NULL));
	fault_expect_begin();
	each_fault(_metadata, &call, NULL);
	fault_expect_end();
	unload_soon(_metadata);
}

TEST_HARNESS_MAIN
