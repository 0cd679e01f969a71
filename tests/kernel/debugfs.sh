#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# debugfs: the files of a wheel, which exist as long as the wheel does, the file of all contexts, and
# reads of all files while wheels and contexts are created and destroyed.
#
# hwt-test: timeout 120
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

top=/sys/kernel/debug/hwt
[ -d $top/wheels ] || fail "there is no $top/wheels"
expect "no context" 0 "" cat $top/contexts

# -- A wheel --

load kt_shown
dir=$(echo $top/wheels/*-shown!one)
[ -d "$dir" ] || fail "no directory for the wheel: $(ls $top/wheels)"
expect "parameters" 0 "name shown/one
creator shown_make [kt_shown]
module kt_shown
shared 0
users 1
state running
clock boottime
tick_ns 10000000
ticks_per_wheel 8
levels 3
coarse_clock 0
freezable 0
bh 0
max_pending 100
workers 0
priority normal
wait sleep
cpus all
shards 1" cat "$dir/params"

# The counters of the engine vary.
counters() { grep -v '^\(late\|behind\|collected\|wakeups\|passes\) ' "$dir/stats"; }
expect "counters" 0 "pending 3
scheduled 9
rearmed 1
expired 5
cancelled 1
handed_back 0
rejected 0
overruns 0
clock_sets 0" counters
engine() { grep -c '^\(late\|behind\|collected\|wakeups\|passes\) [0-9]*$' "$dir/stats"; }
expect "counters of the engine" 0 5 engine

expect "levels" 0 "# level bucket_ns occupied buckets
0 10000000 0 8
1 80000000 0 8
2 640000000 2 8" cat "$dir/levels"

# Each callback is counted, by a power of two of nanoseconds.
lateness()
{
	awk 'NR == 1 { below = 1; next }
		{ n += $2; if ($1 != below) bad = 1; below *= 2 }
		END { print n, bad + 0 }' "$dir/lateness"
}
expect "lateness" 0 "5 0" lateness
expect "the last line is not empty" 0 "" sh -c "tail -n 1 '$dir/lateness' | grep ' 0\$' || true"

# With one shard, its counters are those of the wheel.
shards() { awk 'NR == 1 || ($1 == 0 && $2 == 3 && $3 == 9 && $4 == 5 && $5 == 1 && $10 == "all") { print NF }' "$dir/shards"; }
expect "shards" 0 "11
10" shards
[ -z "${HWT_PARAMS:-}" ] || expect "each shard of a wheel" 0 \
	"$(seq 0 $(($(cat /sys/module/hwt/parameters/shards) - 1)))" \
	sed -n 's/ .*//; 2,$p' "$top"/wheels/1-*/shards

# An open file does not keep the wheel.
exec 5<"$dir/stats"
unload kt_shown || fail "the module does not unload while a file is open"
! cat <&5 >/dev/null 2>&1 || fail "a file of a destroyed wheel can be read"
exec 5<&-
[ ! -d "$dir" ] || fail "the directory of the wheel is left"
ok "the directory goes with the wheel"

# Wheels with other parameters.
load kt_shown others=1
# some NAME LINE...: print these lines of a wheel's parameters
some()
{
	params=$(cat $top/wheels/*-"$1"/params)
	shift
	for line; do
		echo "$params" | grep "^$line "
	done
}
expect "workers, real-time priority, the wall clock" 0 "state running
clock realtime
coarse_clock 1
freezable 1
workers 2
priority fifo_low
cpus all" some two state clock coarse_clock freezable workers priority cpus
expect "a tick of an hour" 0 "# level bucket_ns occupied buckets
0 3600000000000 0 65536
1 235929600000000000 0 512
2 18446744073709551615 0 512
3 18446744073709551615 0 512
4 18446744073709551615 0 512
5 18446744073709551615 0 512" cat $top/wheels/*-two/levels
expect "busy waiting on a CPU" 0 "state running
wait busy
cpus 0" some three state wait cpus
expect "a stopped wheel" 0 "state stopped
priority fifo" some four state priority
unload kt_shown

# -- Contexts --

# context PID: print what the file says about the context that PID has opened
context()
{
	sed 's/^context [0-9]*$/context N/' $top/contexts |
		awk -v pid="$1" 'BEGIN { RS = "" } index($0, "\npid " pid "\n")'
}
writer_begin
echo "schedule a 1h
schedule b 2h
modify a 2h
cancel b
schedule p 0 every=1h
wait p" >&7
writer_sync 1
exec 5</dev/hwt
expect "a context" 0 "context N
pid $writer_pid
command hwtctl
uid 0
thread 0
clockid 1
tick_ns 1000000
keys 0
timeouts 2
pending 2
events 0
scheduled 3
modified 1
cancelled 1
expired 1
overruns 0
read 1
rejected 0
limit 0" context "$writer_pid"
numbers() { sed -n 's/^context //p' $top/contexts; }
expect "contexts in the order of their numbers" 0 "$(numbers | sort -nu)" numbers
expect "two contexts" 0 2 sh -c "grep -c '^context ' $top/contexts"
exec 5<&-
writer_end
expect "their lines go with them" 0 "" cat $top/contexts

# A newline in a command's name must not begin another line.
twolines=$(printf '/tmp/two\nlines')
cp "$ctl" "$twolines"
"$twolines" run --thread - <<-end >/dev/null 2>&1 &
	schedule a 1h
	idle 1h
end
pid=$!
named() { context $pid | grep '^command\|^thread 1'; }
thread() { named | grep -q thread; }
wait_for 20 thread || fail "no context with a thread"
expect "a command's name with a newline, and a thread" 0 'command two\012lines
thread 1' named
kill $pid
wait $pid 2>/dev/null || true

# -- Concurrent reads --

read_all()
{
	while [ ! -e /tmp/enough ]; do
		cat $top/wheels/*/* $top/contexts >/dev/null 2>&1 || true
	done
}
rm -f /tmp/enough
read_all &
reader=$!
n=0
while [ $n -lt 20 ]; do
	n=$((n + 1))
	load kt_shown || fail "round $n"
	unload kt_shown || fail "round $n"
	echo "schedule a 1ms" | "$ctl" run --thread - >/dev/null || fail "a context in round $n"
done
touch /tmp/enough
wait $reader
wheels() { ls $top/wheels | sed 's/^[0-9]*-//'; }
expect "after reads during all this, no wheel is left" 0 "hwt_system
hwt_system_bh" wheels
expect "no context is left" 0 "" cat $top/contexts
rmmod hwt
[ ! -d $top ] || fail "$top is left"
load hwt
ok "the directory goes with hwt.ko"
plan
