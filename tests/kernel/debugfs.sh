#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# debugfs: the files of a wheel and of a context, which exist as long as the wheel or context does,
# and reads of all files while wheels and contexts are created and destroyed.
#
# hwt-test: timeout 120
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

top=/sys/kernel/debug/hwt
for dir in $top/wheels $top/contexts; do
	[ -d $dir ] || fail "there is no $dir"
done

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

# -- A context --

context_dir() { grep -l "^pid $1\$" $top/contexts/*/stats 2>/dev/null | sed 's,/stats$,,'; }
writer_begin
echo "schedule a 1h
schedule b 2h
modify a 2h
cancel b
schedule p 0 every=1h
wait p" >&7
writer_sync 1
dir=$(context_dir "$writer_pid")
[ -n "$dir" ] || fail "no directory for the context"
expect "a context" 0 "pid $writer_pid
command hwtctl
uid 0
wheel hwt_device
private 0
clockid 1
tick_ns 1000000
closing 0
keys 0
timeouts 2
pending 2
events 0
scheduled 3
modified 1
cancelled 1
stopped 0
expired 1
overruns 0
read 1
rejected 0
limit 0" cat "$dir/stats"
writer_end
expect "the directory goes with the context" 0 "" context_dir "$writer_pid"

# A newline in a command's name must not begin another line.
twolines=$(printf '/tmp/two\nlines')
cp "$ctl" "$twolines"
"$twolines" run --tick 5ms - <<-end >/dev/null 2>&1 &
	schedule a 1h
	idle 1h
end
pid=$!
there() { [ -n "$(context_dir $pid)" ]; }
wait_for 20 there || fail "no directory for a private context"
named() { sed -n '/^command/p;/^wheel/p;/^private/p' "$(context_dir $pid)/stats"; }
private() { grep -q '^private 1$' "$(context_dir $pid)/stats"; }
wait_for 20 private
expect "a command's name with a newline, and a private wheel" 0 'command two\012lines
wheel hwt_private
private 1' named
kill $pid
wait $pid 2>/dev/null || true

# -- Concurrent reads --

read_all()
{
	while [ ! -e /tmp/enough ]; do
		cat $top/wheels/*/* $top/contexts/*/* >/dev/null 2>&1 || true
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
	echo "schedule a 1ms" | "$ctl" run --tick 2ms - >/dev/null || fail "a context in round $n"
done
touch /tmp/enough
wait $reader
wheels() { ls $top/wheels | sed 's/^[0-9]*-//'; }
expect "after reads during all this, no wheel is left" 0 "hwt_system
hwt_system_bh" wheels
expect "no context is left" 0 "" ls $top/contexts
rmmod hwt
[ ! -d $top ] || fail "$top is left"
load hwt
ok "the directory goes with hwt.ko"
plan
