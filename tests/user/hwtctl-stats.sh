#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwtctl info, stats and top: their figures, and JSON. For debugfs itself, see debugfs.sh.
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

# -- Wheels: before a context has one --

expect "the system's wheels" 0 "1-hwt_system
2-hwt_system_bh" names
load kt_shown

# Print the predictable lines of a wheel, without durations.
shown()
{
	"$ctl" stats --wheels | sed -n '/shown!one/,/^$/p' |
		sed -n -e '/^[0-9]/p' -e '/^  \(creator\|state\|tick\|pending\|expired\|level\)  */p'
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
writer_begin --thread
writer_sync 0
expect "the wheel of a context with a thread, too" 0 "1-hwt_system
2-hwt_system_bh
3-shown!one
4-hwt_device" names
writer_end
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
"$ctl" run --thread /tmp/script >/dev/null &
busy=$!
device() { names | grep 'hwt_device$'; }
wait_for 20 device
"$ctl" top --count 2 >/tmp/top
note "$(cat /tmp/top)"
expect "top: two screens" 0 2 grep -c "^wheels: 3   contexts: 1   CPU of the threads of hwt: [0-9.]* %$" /tmp/top
expect "top: headings of two tables" 0 4 grep -cE "^ +TIMEOUTS +(SCHEDULES +CALLBACKS +LATE +BEHIND +SLOWEST|EVENTS +SCHEDULES +FIRINGS +OVERRUNS +REFUSALS)$" /tmp/top
expect "top: all wheels" 0 "$(names)
$(names)" sed -n 's/^\([0-9][^ ]*\) .*/\1/p' /tmp/top
expect "top: rates of a wheel" 0 2 grep -cE "^[0-9]+-hwt_device +1 +[0-9.]+ +[1-9][0-9.]* +[0-9.]+ +[0-9.]+ +[0-9.]+ [num]*s$" /tmp/top
expect "top: rates of a context" 0 2 grep -cE "^ *$busy hwtctl +1 +[0-9]+ +0 +[1-9][0-9.]* +[0-9.]+ +0$" /tmp/top
# The longest bar has 37 characters, and each row with callbacks has one.
expect "top: bars" 0 2 grep -cE "^below .* #{37}$" /tmp/top
check "top: a bar for each row" sh -c "! grep '^below' /tmp/top | grep -vE '^below .{12} +([1-9][0-9.]* +[0-9.]+  #+|0 +0  )$'"
# The histogram has as many callbacks as the wheels.
sum() { awk '/^below/ { split(substr($0, 19), f); n += f[1] } END { print n }' /tmp/top; }
all() { "$ctl" stats --wheels | awk '$1 == "expired" { n += $2 } END { print n }'; }
"$ctl" top --count 1 >/tmp/top
check "top: all callbacks in the histogram" [ "$(sum)" -gt 0 -a "$(sum)" -le "$(all)" ]
"$ctl" top --count 2 --json >/tmp/top
note "$(grep device /tmp/top)"
expect "top: wheels as JSON" 0 2 grep -cE '^\{"wheel":"[0-9]+-hwt_device","pending":1,"scheduled":[0-9]+,"expired":[0-9]+,.*"scheduled_per_s":[0-9.]+,"expired_per_s":[1-9].*,"clock_sets_per_s":0\.0,.*,"slowest_ns":[0-9]+,"lateness":\[\{"below_ns":[0-9]+,"callbacks":[1-9][0-9]*\}.*\]\}$' /tmp/top
check "top: threads as JSON" grep -qE '^\{"kernel_thread":"hwt_device",' /tmp/top
kill $busy
wait $busy || true

# -- info --

said() { "$ctl" info "$@" | sed -n "s/^$what  *//p"; }
what=tick
expect "tick" 0 "2.000 ms" said
expect "another tick" 0 "50.000 ms" said --tick 50ms
what=clock
expect "clock" 0 monotonic said
expect "another clock" 0 realtime said --clock realtime
what=buckets
expect "buckets" 0 "64 + 64 + 64 + 64 + 64" said
expect "buckets of a wheel" 0 "256 + 256 + 256" said --thread
what="driven by"
expect "driven by tasks" 0 "the program's tasks" said
expect "driven by a thread" 0 "a kernel thread" said --thread
what="next timeout"
expect "no timeout" 0 none said
what="timeouts at most"
expect "timeouts" 0 5000 said
what="features"
check "features" sh -c "'$ctl' info | grep -q '^features  *setup .*list'"
check "info as JSON" sh -c "'$ctl' info --json |
	grep -q '^{\"clock\":\"monotonic\",\"now_ns\":[0-9]*,\"tick_ns\":2000000,.*\"max_timeouts\":5000,.*\"thread\":false,\"next_ns\":null,.*\"features\":\\[\"setup\",.*\\]}\$'"

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
expired     2
overruns    0
rejected    0
limit       -" steady
what=tick
expect "info of a process" 0 "2.000 ms" said --pid $writer_pid
what="next timeout"
check "its next timeout" sh -c "'$ctl' info --pid $writer_pid | grep -qE '^next timeout +(1h00m|59m[0-9]+s)\$'"
fd=$("$ctl" stats --json --pid $writer_pid | sed 's/.*"fd":\([0-9]*\).*/\1/')
want=$(steady)
options="--pid $writer_pid --fd $fd"
expect "the same by --fd" 0 "$want" steady
check "as JSON" sh -c "'$ctl' stats --json --pid $writer_pid |
	grep -q '^{\"pid\":$writer_pid,\"fd\":$fd,\"command\":\"hwtctl\",\"clock\":\"monotonic\",\"tick_ns\":2000000,\"thread\":false,\"timeouts\":3,\"pending\":3,\"events\":[01],\"scheduled\":5,\"modified\":1,\"cancelled\":1,\"expired\":2,\"overruns\":0,\"read\":[12],\"rejected\":0,\"limit\":null}\$'"
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
check "the thread of a wheel" grep -qE '^ +[0-9]+  hwt_system(:0)?  +[0-9.]+ s$' /tmp/stats
check "the process" grep -qE "^ *$writer_pid +$fd hwtctl +mono +3 +[01] +5 +1 +1 +2 +[12]$" /tmp/stats
# Two descriptors of this shell
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
check "threads as JSON" grep -qE '^\{"kernel_thread":"hwt_system(:0)?","pid":[0-9]*,"cpu_ns":[0-9]*\}$' /tmp/stats
check "one object a line" sh -c "! grep -qv '^{.*}\$' /tmp/stats"

# -- top, of one process --

"$ctl" top --interval 0.3 --count 3 --pid $writer_pid >/tmp/top
expect "three times" 0 3 grep -c "^PROCESS " /tmp/top
expect "the process, three times, with rates of 0" 0 3 grep -cE "^ *$writer_pid hwtctl +3 +[01] +0 +0 +0 +0$" /tmp/top
expect "no wheels" 1 "" grep -E "^(WHEEL|below)" /tmp/top
"$ctl" top -i 300ms -n 3 -p $writer_pid -j >/tmp/top
expect "JSON, three times" 0 3 grep -c "^{\"pid\":$writer_pid,.*,\"scheduled_per_s\":0.0,.*}$" /tmp/top
expect "ended by an interrupt" 0 "" sh -c "timeout -s INT 1 '$ctl' top -i 0.2 >/dev/null"
expect "ended by a signal" 0 "" sh -c "timeout 1 '$ctl' top -i 60 >/dev/null"
check "the process succeeds" writer_end
expect "the process has ended" 1 "hwtctl: process $writer_pid: No such process" \
	"$ctl" top --pid $writer_pid

# A busy process
yes "$(printf 'schedule a 1h\nmodify a 2h\ncancel a')" | "$ctl" run >/dev/null 2>&1 &
busy=$!
one() { [ "$("$ctl" stats --json --pid $busy 2>/dev/null | grep -c .)" = 1 ]; }
wait_for 20 one
"$ctl" top --json --pid $busy --count 2 >/tmp/stats
note "$(tail -n 1 /tmp/stats)"
expect "rates of a busy process" 0 2 grep -cE '"scheduled_per_s":[1-9].*"modified_per_s":[1-9].*"cancelled_per_s":[1-9]' \
	/tmp/stats
kill $busy
wait $busy || true
plan
