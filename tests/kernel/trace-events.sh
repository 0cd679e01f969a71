#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Tracepoints: what each tells of a known sequence (test_traced.c), all of it and no more; a filter;
# and all of them on while others schedule and cancel from every context.
#
# hwt-test: timeout 300
set -eu
. "$HWT_DIR/lib.sh"

# As docs/tracing.md says.
cd /sys/kernel/tracing
[ -d events/hwt ] || fail "no tracepoints of hwt's"

# The events of one kind, without what differs from run to run.
traced()
{
	sed -n "s/.*: $1: //p" /tmp/trace |
		sed -e 's/timeout=[^ ]* //' -e 's/ \[test_traced\]//' -e 's/ now=[0-9]*//' -e 's/ shard=0$//'
}

# told NAME EVENT LINES
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
load test_traced || fail "the sequence did not go through"
echo 0 >tracing_on
echo 0 >events/hwt/enable
# Now: the module's functions have names as long as it is there.
cat trace >/tmp/trace
unload test_traced

far=1000000000000000
told "hwt_schedule: new, pushed back, never, over, periodic, dead, stopped" hwt_schedule \
	"wheel=traced function=traced_once expires=$far ret=0
wheel=traced function=traced_once expires=2000000000000000 ret=3
wheel=traced function=traced_once expires=-1 ret=0
wheel=traced function=traced_once expires=1000000 ret=0
wheel=traced function=traced_again expires=1000000 ret=0
wheel=traced function=traced_once expires=$far ret=-108
wheel=traced function=traced_once expires=$far ret=0
wheel=traced function=traced_once expires=$far ret=-108"
told "hwt_cancel: those that hit, and what a stop hands back" hwt_cancel \
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

# all_of NAME EVENT AWK-CONDITION: of each event of that kind, and there are some. v[] has
# its values by name.
all_events()
{
	grep ": $1: " /tmp/trace | head -n 5
	sed -n "s/.*: $1: //p" /tmp/trace | tr '=' ' ' |
		awk "{ for (i = 1; i < NF; i += 2) v[\$i] = \$(i + 1); n++; if (!($2)) bad = 1 }
			END { exit bad || !n }"
}
all_of() { check "$1" all_events "$2" "$3"; }
sed -i 's/ \[test_traced\]//' /tmp/trace
all_of "never early by what it says" hwt_expire_entry 'v["now"] >= v["expires"]'
timeouts() { sed -n "s/.*: $1: .*timeout=\([^ ]*\).*/\1/p" /tmp/trace; }
same() { [ -n "$(timeouts "$1")" ] && [ "$(timeouts "$1")" = "$(timeouts "$2")" ]; }
check "the same timeout begins and ends" same hwt_expire_entry hwt_expire_exit
all_of "the shard" hwt_schedule 'v["shard"] == "0"'
all_of "hwt_wake: until when, and why" hwt_wake 'v["kicked"] ~ /^[01]$/ && v["expires"] != ""'
all_of "hwt_pass: up to when, and how many" hwt_pass \
	'v["cursor"] > 0 && v["collected"] <= 8 && v["served"] <= 2'
check "it is kicked" grep -q ': hwt_wake: .* kicked=1' /tmp/trace
check "and serves" grep -q ': hwt_pass: .* served=1' /tmp/trace

# -- From everywhere --

everywhere()
{
	echo 0 >events/hwt/filter
	echo 1 >events/hwt/enable
	echo 1 >tracing_on
	check "torture while all is traced" sh "$HWT_DIR/scripts/torture.sh" seconds=3
	for module in test_contexts test_kprobe; do
		check "$module while all is traced" load $module
		check "it goes" unload $module
	done
	echo 0 >tracing_on
	check "and it is told" grep -q ' hwt_schedule: ' trace

	# Workers may have looked at the clock before it was due.
	echo 0 >events/hwt/enable
	echo >trace
	echo 1 >events/hwt/hwt_expire_entry/enable
	echo 1 >tracing_on
	check "test_workers, traced" load test_workers
	echo 0 >tracing_on
	check "it goes" unload test_workers
	echo 1 >events/hwt/enable
	sed 's/ \[[a-z_]*\]//' trace >/tmp/trace
	all_of "never early by what is told, with workers" hwt_expire_entry 'v["now"] >= v["expires"]'
}
[ "${HWT_QUICK:-0}" = 1 ] || everywhere

# -- Going --

rmmod hwt || fail "hwt.ko does not unload while its tracepoints are on"
[ ! -d events/hwt ] || fail "its tracepoints are left"
load hwt || fail "hwt.ko does not load any more"
ok "hwt.ko goes while its tracepoints are on, and comes again"
echo >trace
plan
