#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Tracepoints: all events of a known sequence (kt_traced.c), and no others; a filter; all on
# during schedules and cancels from every context.
#
# hwt-test: timeout 300
set -eu
. "$HWT_DIR/lib.sh"

# The commands are those of docs/tracing.md.
cd /sys/kernel/tracing
[ -d events/hwt ] || fail "there are no tracepoints of hwt"

# Print the events of one kind, without values that differ from run to run.
traced()
{
	sed -n "s/.*: $1: //p" /tmp/trace |
		sed -e 's/timeout=[^ ]* //' -e 's/ \[kt_traced\]//' -e 's/ now=[0-9]*//' -e 's/ shard=0$//'
}

# told NAME EVENT LINES: the events of one kind are these
same_lines()
{
	traced "$1"
	[ "$(traced "$1")" = "$2" ]
}
told() { check "$1" same_lines "$2" "$3"; }

echo 0 >tracing_on
echo >trace
echo 'wheel == "traced"' >events/hwt/filter
echo 1 >events/hwt/enable
echo 1 >tracing_on
load kt_traced || fail "kt_traced does not load"
echo 0 >tracing_on
echo 0 >events/hwt/enable
# Before the unload: later, the functions have no names.
cat trace >/tmp/trace
unload kt_traced

far=1000000000000000
told "hwt_schedule: new, pushed back, never, past, periodic, shut down, stopped" hwt_schedule \
	"wheel=traced function=traced_once expires=$far ret=0
wheel=traced function=traced_once expires=2000000000000000 ret=3
wheel=traced function=traced_once expires=-1 ret=0
wheel=traced function=traced_once expires=1000000 ret=0
wheel=traced function=traced_again expires=1000000 ret=0
wheel=traced function=traced_once expires=$far ret=-108
wheel=traced function=traced_once expires=$far ret=0
wheel=traced function=traced_once expires=$far ret=-108"
told "hwt_cancel: cancels of pending timeouts, and a hand-back" hwt_cancel \
	"wheel=traced expires=2000000000000000
wheel=traced expires=-1
wheel=traced expires=1000000001000000
wheel=traced expires=$far"
told "hwt_expire_entry" hwt_expire_entry \
	"wheel=traced function=traced_once expires=1000000
wheel=traced function=traced_again expires=1000000"
told "hwt_expire_exit" hwt_expire_exit \
	"wheel=traced function=traced_once
wheel=traced function=traced_again"
told "hwt_wheel_create" hwt_wheel_create \
	"wheel=traced tick_ns=1000000 ticks=8192 levels=3 clock=0 max_pending=0 workers=0 shards=1 shared=0 creator=traced_make"
told "hwt_wheel_stop" hwt_wheel_stop "wheel=traced handed_back=1"

# all_of NAME EVENT AWK-CONDITION: there are such events, and all meet the condition. v[] has
# their values by name.
all_events()
{
	grep ": $1: " /tmp/trace | head -n 5
	sed -n "s/.*: $1: //p" /tmp/trace | tr '=' ' ' |
		awk "{ for (i = 1; i < NF; i += 2) v[\$i] = \$(i + 1); n++; if (!($2)) bad = 1 }
			END { exit bad || !n }"
}
all_of() { check "$1" all_events "$2" "$3"; }
sed -i 's/ \[kt_traced\]//' /tmp/trace
all_of "none is early" hwt_expire_entry 'v["now"] >= v["expires"]'
timeouts() { sed -n "s/.*: $1: .*timeout=\([^ ]*\).*/\1/p" /tmp/trace; }
same() { [ -n "$(timeouts "$1")" ] && [ "$(timeouts "$1")" = "$(timeouts "$2")" ]; }
check "entry and exit have the same timeouts" same hwt_expire_entry hwt_expire_exit
all_of "hwt_schedule: the shard" hwt_schedule 'v["shard"] == "0"'
all_of "hwt_wake: the end of the wait, a kick" hwt_wake 'v["kicked"] ~ /^[01]$/ && v["expires"] != ""'
all_of "hwt_pass: the cursor, numbers of timeouts" hwt_pass \
	'v["cursor"] > 0 && v["collected"] <= 8 && v["served"] <= 2'
check "the engine is kicked" grep -q ': hwt_wake: .* kicked=1' /tmp/trace
check "a pass serves a timeout" grep -q ': hwt_pass: .* served=1' /tmp/trace

# -- From all contexts --

everywhere()
{
	echo 0 >events/hwt/filter
	echo 1 >events/hwt/enable
	echo 1 >tracing_on
	check "torture with all tracepoints on" sh "$HWT_DIR/scripts/torture.sh" seconds=3
	for module in test_contexts test_kprobe; do
		check "$module with all tracepoints on" load $module
		check "$module unloads" unload $module
	done
	echo 0 >tracing_on
	check "schedules are traced" grep -q ' hwt_schedule: ' trace

	# A worker may have read the clock before the timeout was due.
	echo 0 >events/hwt/enable
	echo >trace
	echo 1 >events/hwt/hwt_expire_entry/enable
	echo 1 >tracing_on
	check "test_workers with hwt_expire_entry on" load test_workers
	echo 0 >tracing_on
	check "test_workers unloads" unload test_workers
	echo 1 >events/hwt/enable
	sed 's/ \[[a-z_]*\]//' trace >/tmp/trace
	all_of "none is early with workers" hwt_expire_entry 'v["now"] >= v["expires"]'
}
[ "${HWT_QUICK:-0}" = 1 ] || everywhere

# -- Unloading --

rmmod hwt || fail "hwt.ko does not unload while its tracepoints are on"
[ ! -d events/hwt ] || fail "the tracepoints of hwt.ko are left"
load hwt || fail "hwt.ko does not load again"
ok "hwt.ko unloads while its tracepoints are on, and loads again"
echo >trace
plan
