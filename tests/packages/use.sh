#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest, in the Debian where packages.sh has installed hwt's packages: what comes of it.
set -eu
. /hwt/lib.sh

version=$1

check()
{
	use_name=$1
	shift
	if "$@" >/tmp/said 2>&1; then
		ok "$use_name"
	else
		not_ok "$use_name"
		sed 's/^/# /' /tmp/said
	fi
}

enter true
enter /lib/systemd/systemd-udevd --daemon || fail "no udevd"
check "modprobe finds the module" enter modprobe hwt
check "its version" enter sh -c "[ \"\$(modinfo -F version hwt)\" = $version ]"
enter udevadm trigger --settle /dev/hwt 2>/dev/null || enter udevadm settle || true
owner() { [ "$(enter stat -c '%G %a' /dev/hwt)" = "hwt 660" ]; }
check "udev gives the device to the group" wait_for 10 owner
check "hwtctl" enter hwtctl info
check "hwtctl, as a member of the group" enter /usr/bin/setpriv --reuid=nobody --regid=nogroup \
	--groups="$(enter getent group hwt | cut -d : -f 3)" hwtctl sleep 10ms
if enter /usr/bin/setpriv --reuid=nobody --regid=nogroup --clear-groups hwtctl sleep 10ms >/dev/null 2>&1; then
	not_ok "... as nobody: refused"
else
	ok "... as nobody: refused"
fi
check "a program with libhwt" enter program
check "modprobe of a module that uses it" enter modprobe hwt_first
fired() { dmesg | grep -q 'hwt_first: a second has passed'; }
check "it is called back" wait_for 20 fired
check "both go again" enter modprobe -r hwt_first hwt
killall systemd-udevd 2>/dev/null || true
plan
