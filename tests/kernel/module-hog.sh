#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A task of real-time priority never leaves CPU 1. hwt.ko with a shard there is loaded, used and
# unloaded all the same, and no other caller waits.
#
# hwt-test: noload
# hwt-test: only stock
# hwt-test: timeout 300
set -eu
. "$HWT_DIR/lib.sh"

limit=/proc/sys/kernel/sched_rt_runtime_us
before=$(cat $limit)
echo -1 >$limit

# soon TEXT COMMAND...: the command, which may hang unkillably, succeeds within 20 s
soon()
{
	text=$1
	shift
	rm -f /tmp/done
	(if "$@"; then touch /tmp/done; fi) &
	check "$text" wait_for 20 test -e /tmp/done
}

use_device() { : 3<>/dev/hwt; }

load kt_hog
soon "hwt.ko with two shards is loaded" load hwt shards=2
soon "a client gets a shared wheel of two shards" load kt_client shared=1 tick_us=5000
soon "/dev/hwt is opened and closed" use_device
soon "another client, with a wheel of its own, is loaded" load kt_shown
soon "... and unloaded" unload kt_shown
soon "the client is unloaded" unload kt_client
soon "hwt.ko is unloaded" unload hwt
# What hangs goes on now.
unload kt_hog
wait
echo "$before" >$limit
plan
