#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwtctl stats --wheels: what is in debugfs (debugfs.sh), in units and as JSON.
#
# hwt-test: check stock
# hwt-test: only stock rt
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=lib/hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

expect "no wheel has been made" 0 "" "$ctl" stats --wheels
load test_shown

# What is known beforehand of a wheel that others are at, without what it took.
shown()
{
	"$ctl" stats --wheels | sed -n '/shown!one/,/^$/p' |
		sed -n -e '/^[0-9]/p' -e '/^  \(creator\|state\|tick\|pending\|expired\|level\)  */p' \
			-e 's/^  took [0-9.]* [mun]s  *\(shown_slow\)/  took \1/p'
}
expect "in units" 0 "1-shown!one
  creator          shown_make [test_shown]
  state            started
  tick             10.000 ms
  pending          3
  expired          5
  level 0          0 of 8 buckets of 10.000 ms
  level 1          0 of 8 buckets of 80.000 ms
  level 2          2 of 8 buckets of 640.000 ms
  took shown_slow [test_shown]" shown
late() { "$ctl" stats --wheels | awk '/^  late by < / { n += $NF } END { print n }'; }
expect "how late" 0 5 late

check "JSON: parameters and counters" sh -c "'$ctl' stats --wheels --json |
	grep -q '^{\"wheel\":\"1-shown!one\",\"name\":\"shown/one\",\"creator\":\"shown_make \[test_shown\]\",.*\"tick_ns\":10000000,.*\"cpus\":\"all\",\"pending\":3,.*}\$'"
check "JSON: levels" sh -c "'$ctl' stats --wheels --json |
	grep -q ',\"occupancy\":\[{\"level\":0,\"bucket_ns\":10000000,\"occupied\":0,\"buckets\":8},{.*},{\"level\":2,.*\"occupied\":2,\"buckets\":8}\],\"lateness\":\['"
check "JSON: lateness, callbacks" sh -c "'$ctl' stats --wheels --json |
	grep -q ',\"lateness\":\[{\"below_ns\":1,\"callbacks\":[0-9]*},.*\],\"callbacks\":\[{\"longest_ns\":[0-9]*,\"function\":\"shown_slow \[test_shown\]\"},.*\]}\$'"

exec 5</dev/hwt
names() { "$ctl" stats --wheels | grep '^[0-9]'; }
expect "the device's wheel, too" 0 "1-shown!one
2-hwt" names
exec 5<&-
unload test_shown
expect "one has gone" 0 "2-hwt" names

umount /sys/kernel/debug
expect "no debugfs" 1 "hwtctl: /sys/kernel/debug/hwt/wheels: No such file or directory" \
	"$ctl" stats --wheels
mount -t debugfs debugfs /sys/kernel/debug
refused "not of a process" "--wheels goes with --json only" "$ctl" stats --wheels --pid 1
refused "not again and again" "--wheels goes with --json only" "$ctl" stats --wheels --watch
plan
