// SPDX-License-Identifier: GPL-2.0-only
/*
 * Provokes kernel reports. tests/vm/test_harness.py checks that the harness notices each of them.
 */
#include <linux/module.h>

static char *what = "warn";
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "warn, expected, unexpected, or oops");

/* Provoke a warning whose head contains @who, which the harness looks for. */
static void kt_provoke_warn(const char *who)
{
	WARN(1, "provoked by %s\n", who);
}

static int __init kt_provoke_init(void)
{
	bool brackets = !strcmp(what, "expected") || !strcmp(what, "unexpected");

	if (brackets)
		pr_info("hwt-expect-begin: provoked by somebody\n");
	if (strcmp(what, "oops"))
		kt_provoke_warn("somebody");
	else
		WRITE_ONCE(*(int *)NULL, 1);
	if (!strcmp(what, "unexpected"))
		kt_provoke_warn("another");
	if (brackets)
		pr_info("hwt-expect-end\n");
	return 0;
}

static void __exit kt_provoke_exit(void)
{
}

module_init(kt_provoke_init);
module_exit(kt_provoke_exit);
MODULE_DESCRIPTION("Provokes kernel reports, to test the harness");
MODULE_LICENSE("GPL");
