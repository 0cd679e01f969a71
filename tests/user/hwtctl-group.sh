#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The udev rule, done by hand: who is of the group may use the device, others may not.
#
# hwt-test: check stock
# hwt-test: only stock rt
# hwt-test: timeout 60
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=lib/hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

mkdir -p /etc
printf '%s\n' root:x:0:0::/:/bin/sh member:x:1001:1001::/:/bin/sh \
	stranger:x:1002:1002::/:/bin/sh >/etc/passwd
printf '%s\n' root:x:0: member:x:1001: stranger:x:1002: hwt:x:900:member >/etc/group

rule() { sed -n "s/^SUBSYSTEM==\"misc\", KERNEL==\"hwt\",.* $1=\"\([^\"]*\)\".*/\1/p" /hwt/60-hwt.rules; }
expect "the rule's group" 0 hwt rule GROUP
expect "the rule's mode" 0 0660 rule MODE
expect "it is a device of that subsystem" 0 /sys/class/misc readlink -f /sys/class/misc/hwt/subsystem
expect "and of that name" 0 DEVNAME=hwt grep DEVNAME /sys/class/misc/hwt/uevent

as() { user=$1; shift; su -s /bin/sh "$user" -c "$*"; }
expect "before it, members are refused" 1 "hwtctl: /dev/hwt: Permission denied" \
	as member "$ctl" sleep 0
chgrp "$(rule GROUP)" /dev/hwt
chmod "$(rule MODE)" /dev/hwt
expect "members may" 0 "" as member "$ctl" sleep 10ms
expect "strangers are refused" 1 "hwtctl: /dev/hwt: Permission denied" \
	as stranger "$ctl" sleep 0

# Of another user's process a member sees nothing.
writer_begin
echo "schedule a 1h" >&7
writer_sync 1
expect "no list of root's" 1 "hwtctl: process $writer_pid: Permission denied" \
	as member "$ctl" list --pid $writer_pid
expect "no list by a number" 1 "hwtctl: descriptor 3 of process $writer_pid: Operation not permitted" \
	as member "$ctl" list --pid $writer_pid --fd 3
expect "not in the statistics" 0 "" \
	as member "$ctl stats --json | grep '\"pid\":$writer_pid,\"fd\"' || true"
check "root sees it" sh -c "'$ctl' stats --json | grep -q '\"pid\":$writer_pid,\"fd\"'"
writer_end
plan
