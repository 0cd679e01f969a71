#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwtctl info, stats and bench: their figures, --watch, and JSON. For debugfs itself, see
# debugfs.sh.
#
# hwt-test: check stock
# hwt-test: only stock rt
# hwt-test: timeout 300
# hwt-test: load tick_us=2000 ticks_per_wheel=256 max_timeouts=5000
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=lib/hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

names() { "$ctl" stats --wheels | grep '^[0-9]'; }

# -- Wheels: before the device has one --

expect "the system's wheels" 0 "1-hwt_system
2-hwt_system_bh" names
load kt_shown

# Print the predictable lines of a wheel, without durations.
shown()
{
	"$ctl" stats --wheels | sed -n '/shown!one/,/^$/p' |
		sed -n -e '/^[0-9]/p' -e '/^  \(creator\|state\|tick\|pending\|expired\|level\)  */p' \
			-e 's/^  took [0-9.]* [mun]s  *\(shown_slow\)/  took \1/p'
}
expect "in units" 0 "3-shown!one
  creator          shown_make [kt_shown]
  state            running
  tick             10.000 ms
  pending          3
  expired          5
  level 0          0 of 8 buckets of 10.000 ms
  level 1          0 of 8 buckets of 80.000 ms
  level 2          2 of 8 buckets of 640.000 ms" shown
late() { "$ctl" stats --wheels | sed -n '/shown!one/,/^$/p' | awk '/^  late by < / { n += $NF } END { print n }'; }
expect "lateness" 0 5 late

check "JSON: parameters and counters" sh -c "'$ctl' stats --wheels --json |
	grep -q '^{\"wheel\":\"3-shown!one\",\"name\":\"shown/one\",\"creator\":\"shown_make \[kt_shown\]\",.*\"tick_ns\":10000000,.*\"cpus\":\"all\",\"shards\":1,\"pending\":3,.*}\$'"
check "JSON: levels" sh -c "'$ctl' stats --wheels --json |
	grep -q ',\"occupancy\":\[{\"level\":0,\"bucket_ns\":10000000,\"occupied\":0,\"buckets\":8},{.*},{\"level\":2,.*\"occupied\":2,\"buckets\":8}\],\"lateness\":\['"
check "JSON: lateness" sh -c "'$ctl' stats --wheels --json |
	grep -q ',\"lateness\":\[{\"below_ns\":1,\"callbacks\":[0-9]*},.*\]}\$'"

exec 5</dev/hwt
expect "the device's wheel, too" 0 "1-hwt_system
2-hwt_system_bh
3-shown!one
4-hwt_device" names
exec 5<&-
unload kt_shown
expect "both wheels have ended" 0 "1-hwt_system
2-hwt_system_bh" names

umount /sys/kernel/debug
expect "debugfs is not mounted" 1 "hwtctl: /sys/kernel/debug/hwt/wheels: No such file or directory: debugfs is not mounted; run 'mount -t debugfs none /sys/kernel/debug'" \
	"$ctl" stats --wheels
mount -t debugfs debugfs /sys/kernel/debug

# The growth of the counters of a busy wheel
echo "schedule p 0 every=10ms" >/tmp/script
"$ctl" run /tmp/script >/dev/null &
busy=$!
device() { names | grep 'hwt_device$'; }
wait_for 20 device
"$ctl" stats --wheels --watch=1 --count 2 >/tmp/stats
note "$(cat /tmp/stats)"
expect "--wheels --watch: two tables" 0 2 grep -c "^WHEEL  *PENDING SCHED/s EXPIR/s .* SETS/s$" /tmp/stats
expect "--wheels --watch: all wheels" 0 "$(names)
$(names)" sed -n 's/^\([0-9][^ ]*\) .*/\1/p' /tmp/stats
expect "--wheels --watch: rates" 0 2 grep -cE "^[0-9]+-hwt_device +1 +[0-9.]+ +[1-9]" /tmp/stats
"$ctl" stats --wheels --watch=1 --count 2 --json >/tmp/stats
note "$(tail -n 1 /tmp/stats)"
expect "--wheels --watch, JSON" 0 2 grep -cE '^\{"wheel":"[0-9]+-hwt_device","pending":1,"scheduled":[0-9]+,"expired":[0-9]+,.*"scheduled_per_s":[0-9.]+,"expired_per_s":[1-9].*,"clock_sets_per_s":0\.0\}$' /tmp/stats
kill $busy
wait $busy || true

# -- info --

said() { "$ctl" info "$@" | sed -n "s/^$what  *//p"; }
what=tick
expect "tick" 0 "2.000 ms" said
expect "tick of a private wheel" 0 "50.000 ms" said --tick 50ms
what=clock
expect "clock" 0 monotonic said
expect "clock of a private wheel" 0 realtime said --clock realtime
what=buckets
expect "buckets" 0 "256 + 256 + 256" said
what="timeouts at most"
expect "timeouts" 0 5000 said
what="wheels of a user"
expect "wheels, with the capability" 0 "no limit: opened with CAP_SYS_RESOURCE (without: 2)" said
what="features"
check "features" sh -c "'$ctl' info | grep -q '^features  *setup .*list'"
check "info as JSON" sh -c "'$ctl' info --json |
	grep -q '^{\"clock\":\"monotonic\",\"now_ns\":[0-9]*,\"tick_ns\":2000000,.*\"max_timeouts\":5000,.*\"features\":\\[\"setup\",.*\\]}\$'"

# -- One context --

writer_begin
echo "schedule a 1h
schedule b 2h
schedule c 3h
schedule p 0 every=1h
modify a 2h
cancel c
wait p
schedule d 0
idle 300ms" >&7
writer_sync 1
# Without "events" and "read": the last event may be read meanwhile.
options="--pid $writer_pid"
# shellcheck disable=SC2086 # words
steady() { "$ctl" stats $options | sed -e 's/^\(events\|read\) .*//' | grep .; }
expect "statistics of a process" 0 "timeouts    3
pending     3
scheduled   5
modified    1
cancelled   1
stopped     0
expired     2
overruns    0
rejected    0
limit       -" steady
what=tick
expect "info of a process" 0 "2.000 ms" said --pid $writer_pid
fd=$("$ctl" stats --json --pid $writer_pid | sed 's/.*"fd":\([0-9]*\).*/\1/')
want=$(steady)
options="--pid $writer_pid --fd $fd"
expect "the same by --fd" 0 "$want" steady
check "as JSON" sh -c "'$ctl' stats --json --pid $writer_pid |
	grep -q '^{\"pid\":$writer_pid,\"fd\":$fd,\"command\":\"hwtctl\",\"clock\":\"monotonic\",\"tick_ns\":2000000,\"private\":false,\"timeouts\":3,\"pending\":3,\"events\":[01],\"scheduled\":5,\"modified\":1,\"cancelled\":1,\"stopped\":0,\"expired\":2,\"overruns\":0,\"read\":[12],\"rejected\":0,\"limit\":null}\$'"
printf 'schedule a 1h\nschedule b 0\nwait b\nstats\n' >/tmp/script
expect "stats as a command of a script" 0 "read        1" sh -c "'$ctl' run --no-wait /tmp/script | grep '^read '"
check "the same as JSON" sh -c "'$ctl' run --json --no-wait /tmp/script | tail -n 1 |
	grep -qx '{\"stats\":{\"timeouts\":1,\"pending\":1,\"events\":0,\"scheduled\":2,.*,\"rejected\":0,\"limit\":null}}'"
{ seq 5001 | sed 's/.*/schedule t& 1h/'; echo stats; } >/tmp/script
expect "the limit that was met" 0 "limit       max_timeouts" sh -c "
	'$ctl' run --keep-going --no-wait /tmp/script 2>/dev/null | tail -n 1"
expect "no such process" 1 "hwtctl: process 999999: No such process" \
	"$ctl" stats --pid 999999
expect "a process without a context" 1 "hwtctl: process 1 does not have /dev/hwt open" \
	"$ctl" stats --pid 1
expect "a descriptor of another file" 1 \
	"hwtctl: descriptor 0 of process $writer_pid is not /dev/hwt" \
	"$ctl" stats --json --pid $writer_pid --fd 0

# -- All contexts --

"$ctl" stats >/tmp/stats
note "$(cat /tmp/stats)"
check "a parameter" grep -q '[: ]tick_us=2000' /tmp/stats
check "all parameters" sh -c "cd /sys/module/hwt/parameters &&
	for p in *; do grep -q \"[: ]\$p=\$(cat \$p)\" /tmp/stats || exit 1; done"
check "the thread of the wheel" grep -qE '^ +[0-9]+  hwt_device(:0)?  +[0-9.]+ s$' /tmp/stats
check "the process" grep -qE "^ *$writer_pid +$fd hwtctl +mono +3 +[01] +5 +1 +1 +2 +[12]$" /tmp/stats
# Two descriptors of this shell, one private.
exec 5<>/dev/hwt 6<>/dev/hwt
expect "all of this process" 0 "5 6" sh -c "'$ctl' stats --json |
	sed -n 's/^{\"pid\":$$,\"fd\":\([0-9]*\).*/\1/p' | xargs"
expect "one of this process" 0 1 sh -c "'$ctl' stats --json --pid $$ --fd 6 | grep -c ."
expect "both of this process" 0 2 sh -c "'$ctl' stats --json --pid $$ | grep -c ."
# A process may have any bytes in its name: here "x", an e with an accent, half a character.
printf "x\303\251\342\202" >/proc/$$/comm
expect "a name with invalid UTF-8" 0 "$(printf 'x\303\251??')" sh -c "'$ctl' stats --json --pid $$ --fd 6 |
	sed -n 's/.*\"command\":\"\([^\"]*\)\".*/\1/p'"
printf 'x\n\033[2J\\' >/proc/$$/comm
expect "a name with control characters" 0 'x\n\x1b[2J\\' sh -c "'$ctl' stats | sed -n 's/^ *$$ *6 \(.*\) mono .*/\1/p'"
# In a pid namespace, process 2 is an ordinary one: here a shell, and hwtctl is its child.
expect "a child of process 2" 0 1 sh -c "unshare -m -p -f --mount-proc sh -c \"sh -c '$ctl stats --json; :'; :\" |
	grep -c '^{.pid.:3,.fd.:5,.command.:.hwtctl.'"
exec 5>&- 6>&-
"$ctl" stats --json >/tmp/stats
check "parameters as JSON" grep -q '^{"parameters":{.*"tick_us":"2000".*}}$' /tmp/stats
check "threads as JSON" grep -qE '^\{"thread":"hwt_device(:0)?","pid":[0-9]*,"cpu_ns":[0-9]*\}$' /tmp/stats
check "one object a line" sh -c "! grep -qv '^{.*}\$' /tmp/stats"

# -- --watch --

"$ctl" stats --watch=0.3 --count 3 >/tmp/stats
expect "three times" 0 3 grep -c "^    PID  THREAD " /tmp/stats
expect "the process, three times" 0 3 grep -c "^ *$writer_pid  *$fd hwtctl " /tmp/stats
check "rates of 0" grep -qE "^ *$writer_pid +$fd hwtctl +mono +3 +[01] +0 +0 +0 +0 +0$" \
	/tmp/stats
expect "an interval as the operand" 0 1 sh -c "'$ctl' stats --watch --count 1 0.1 | grep -c THREAD"
expect "short options" 0 1 sh -c "'$ctl' stats -w -n 1 100ms | grep -c THREAD"
"$ctl" stats --watch=0.3 --count 3 --pid $writer_pid --json >/tmp/stats
expect "JSON, three times" 0 3 grep -c "^{\"pid\":$writer_pid,.*,\"scheduled_per_s\":0.0,.*}$" /tmp/stats
expect "ended by an interrupt" 0 "" sh -c "timeout -s INT 1 '$ctl' stats --watch=0.2 >/dev/null"
expect "ended by a signal" 0 "" sh -c "timeout 1 '$ctl' stats --watch=60 >/dev/null"
check "the process succeeds" writer_end
expect "the process has ended" 1 "hwtctl: process $writer_pid: No such process" \
	"$ctl" stats --watch=0.1 --pid $writer_pid

# A busy process
"$ctl" stress --quiet --seconds 4 --contexts 2 --timeouts 1000 >/tmp/stress &
stress=$!
two() { [ "$("$ctl" stats --json --pid $stress 2>/dev/null | grep -c .)" = 2 ]; }
wait_for 20 two
"$ctl" stats --json --pid $stress --watch=1 --count 2 >/tmp/stats
note "$(tail -n 1 /tmp/stats)"
expect "rates of a busy process" 0 4 grep -cE '"scheduled_per_s":[1-9].*"modified_per_s":[1-9].*"cancelled_per_s":[1-9]' \
	/tmp/stats
wait $stress

# -- bench: the requested measurements. Their values do not matter here --

ways="ioctl rings timerfd"
"$ctl" bench --timeouts 1000 --repetitions 3 >/tmp/table 2>/tmp/messages
note "$(cat /tmp/table)"
expect "bench: heading" 0 "1000 timeouts, ns for each, median of 3" head -n 1 /tmp/table
expect "bench: ways" 0 "$ways" sh -c "sed -n 2p /tmp/table | xargs"
for operation in schedule modify cancel expire; do
	expect "$operation, all ways" 0 "$(echo "$ways" | wc -w)" sh -c "
		sed -n 's/^$operation //p' /tmp/table | tr -s ' ' '\n' | grep -c '^[1-9][0-9]*\$'"
done
expect "bench: no further lines" 0 6 grep -c . /tmp/table

# More timeouts than rings have entries.
for way in $ways; do
	"$ctl" bench --json --only "$way" -n 4999 -r 1 >/tmp/json
	expect "$way as JSON" 0 "schedule modify cancel expire" sh -c "
		sed -n 's/^{\"way\":\"$way\",\"operation\":\"\([a-z]*\)\",\"ns\":[0-9]*[1-9.][0-9.]*,\"timeouts\":4999,\"repetitions\":1}\$/\1/p' /tmp/json | xargs"
done
expect "bench: two ways" 0 "ioctl timerfd" sh -c "
	'$ctl' bench --only ioctl,timerfd -n 10 -r 1 | sed -n 2p | xargs"
expect "bench: more timeouts than a context may have" 1 "hwtctl: bench: a context of /dev/hwt has at most 5000 timeouts" \
	"$ctl" bench --only ioctl -n 5001
plan
