#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests an installed hwt in a guest, in the Debian of packages.py. use.sh packages VERSION:
# installed from packages. use.sh by-hand: installed by by-hand.sh.
set -eu
. "$HWT_DIR/lib.sh"

owner() { [ "$(enter stat -c '%G %a' /dev/hwt)" = "hwt 660" ]; }
# as USER GROUPS COMMAND...
as()
{
	use_as="--reuid=$1 --regid=nogroup $2"
	shift 2
	# shellcheck disable=SC2086 # words
	enter /usr/bin/setpriv $use_as "$@"
}
refused() { ! "$@" >/tmp/refused 2>&1 && grep -q "Permission denied" /tmp/refused; }
# The shell example of docs/programs.md, as a member of the group.
shell()
{
	as somebody --init-groups sh -c "printf 'schedule half 30ms\nschedule tea 60ms\n' | hwtctl run" |
		grep -q "^tea expired"
}

packages()
{
	check "modprobe finds the module" enter modprobe hwt
	check "its version" enter sh -c "[ \"\$(modinfo -F version hwt)\" = $1 ]"
	enter udevadm trigger --settle /dev/hwt 2>/dev/null || enter udevadm settle || true
	check "udev gives the device to the group" wait_for 10 owner
	check "hwtctl" enter hwtctl info
	check "hwtctl, as a member of the group" \
		as nobody "--groups=$(enter getent group hwt | cut -d : -f 3)" hwtctl sleep 10ms
	check "... as nobody: refused" refused as nobody --clear-groups hwtctl sleep 10ms
	check "a program with libhwt" enter program
	check "a program in Python" \
		enter python3 -c 'import hwt; c = hwt.open(); c.after(0.01); c.read(); c.close()'
	check "modprobe of a module that uses it" enter modprobe hwt_first
	fired() { dmesg | grep -q 'hwt_first: a second has passed'; }
	check "it is called back" wait_for 20 fired
	check "both go again" enter modprobe -r hwt_first hwt
}

by_hand()
{
	check "it is loaded as at boot" enter /lib/systemd/systemd-modules-load
	check "... with the parameter of modprobe.d" \
		grep -qx 4000 /sys/module/hwt/parameters/tick_us
	check "udev gives the device to the group" wait_for 10 owner
	check "hwtctl, as a member of the group" shell
	check "... as nobody: refused" refused as nobody --clear-groups hwtctl sleep 10ms
	check "a program with libhwt" as somebody --init-groups program
	check "it goes again" enter modprobe -r hwt
}

enter true
enter /lib/systemd/systemd-udevd --daemon || fail "no udevd"
case $1 in
packages) packages "$2" ;;
by-hand) by_hand ;;
esac
killall systemd-udevd 2>/dev/null || true
plan
