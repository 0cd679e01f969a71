// SPDX-License-Identifier: GPL-2.0-only
/* The module of /dev/hwt: its initialisation and exit */
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/module.h>

#include "chardev.h"
#include "debugfs.h"

static int __init hwt_dev_init(void)
{
	return hwt_chardev_init(hwt_debugfs_root);
}

static void __exit hwt_dev_exit(void)
{
	debugfs_lookup_and_remove("contexts", hwt_debugfs_root);
	hwt_chardev_exit();
}

module_init(hwt_dev_init);
module_exit(hwt_dev_exit);

MODULE_DESCRIPTION("Timeouts for programs: /dev/hwt");
MODULE_LICENSE("GPL");
