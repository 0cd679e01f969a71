#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The demo of "make run", with an explanation of each figure. Exit with 0 only if all checks pass.
#
# hwt-test: check stock
# hwt-test: noload
# hwt-test: long
# hwt-test: timeout 180
set -eu
. "$HWT_DIR/lib.sh"

debug=/sys/kernel/debug
ctl=$HWT_BIN/hwtctl
mkdir -p /tmp/demo
cd /tmp/demo

step() { printf '\n== %s\n' "$*"; }
say() { printf '   %s\n' "$*"; }
# Show a command as typed by a user, run it, and show its output.
try()
{
	printf '\n   # %s\n' "$(echo "$*" | sed -e "s|$HWT_MODULES/||g" -e "s|$HWT_BIN/||g")"
	"$@" >/tmp/out 2>&1 || {
		show </tmp/out
		fail "$*"
	}
	show </tmp/out
}
# Print an explanation of the output.
explain()
{
	echo
	for line; do
		say "$line"
	done
}
# Write a script for hwtctl, and show it.
write()
{
	cat >"$1"
	printf '\n   # cat %s\n' "$1"
	show <"$1"
}
# expired COUNT: check that COUNT timeouts expired in the last output, none early.
expired()
{
	[ "$(grep -c '^[^ ]* expired, .* late' /tmp/out)" = "$1" ] ||
		fail "$1 timeouts should have expired, none early"
}
show() { sed 's/^/   | /'; }
# said MODULE: show the module's log lines since log_mark.
said() { log_since | sed -n "s/^\(\[ *[0-9.]*\] \)\{0,1\}$1: /$1: /p" | show; }

step "1. The module"
say "hwt keeps many coarse timeouts cheap: for other kernel modules (hwt.h)"
say "and for programs (/dev/hwt)."
# As "make install" does.
mkdir -p "/lib/modules/$(uname -r)"
cp "$HWT_MODULES/hwt.ko" "/lib/modules/$(uname -r)"
depmod
try modinfo hwt
try modprobe hwt
try grep -r . /sys/module/hwt/parameters
explain "modinfo has the unit and range of each parameter, docs/parameters.md its meaning."
try ls -l /dev/hwt
explain "Root's, until a udev rule gives it to a group (docs/packages.md)."
try "$ctl" info
explain "tick: deadlines are rounded up to it. buckets: level 0 spans 64 ticks; longer timeouts" \
	"wait on a higher level. Beyond a limit, a call fails with ENOSPC."

step "2. A program's timeouts"
say "Never early: a deadline is rounded up to the tick, and then the program has to wake up."
for delay in 2s 1s 700ms 350ms 200ms 100ms 50ms 20ms 7ms 3ms 1ms 0; do
	echo "schedule after-$delay $delay"
done | write delays
try "$ctl" run delays
expired 12
explain "late: from the deadline, rounded up to the tick of 1 ms, to the event. It is the time" \
	"that the program takes to wake up, the same for 1 ms and for 2 s; on an emulated" \
	"and busy machine, milliseconds."
write script <<END
# Cancelled: only B fires.
schedule A 200ms
schedule B 400ms
cancel A
wait B
# An idle timeout: each sign of life pushes it back.
schedule silence 300ms
idle 50ms
modify silence 300ms
idle 50ms
modify silence 300ms
wait silence
# A periodic one. While its event is not read, it counts overruns.
schedule beat 20ms every=20ms
wait beat
wait beat
idle 150ms
wait beat
cancel beat
# All timeouts that are left end.
schedule hour 1h
schedule day 1d
cancel all
END
try "$ctl" run --verbose script
expired 5
grep -q '^beat expired, .* overruns$' /tmp/out || fail "no overruns, although no event was read"
grep -qx 'cancelled 2' /tmp/out || fail "the timeouts were not cancelled"
explain "id: names a timeout in its context, and is not used again. overruns: periods of 20 ms" \
	"that passed without an event of their own, while the script was idle for 150 ms." \
	"cancelled 2: timeouts that have not fired."

echo
say "Timeouts can be saved and created again, also those of other processes."
write later <<END
schedule tea 2s
schedule coffee 1s
END
try "$ctl" save --output saved later
"$ctl" restore saved >restored &
restored=$!
has_both() { [ "$("$ctl" list --json --pid $restored | grep -c .)" = 2 ]; }
wait_for 30 has_both || fail "they were not restored"
try "$ctl" list --pid $restored
explain "LEFT: time until the timeout expires. DATA: the program's own number."
try "$ctl" stats
explain "CPU TIME: of the threads of wheels; hwt_system is for kernel modules. NOW: timeouts that" \
	"the context has. EVENTS: expired, but not read yet. The rest counts operations since" \
	"the context was opened."
wait $restored || fail "hwtctl restore"
try cat restored
expired 2

step "3. A kernel client: requests retried with exponential back-off"
say "Six requests. Of their attempts, 0, 1, 2, 3, 99 and 99 fail."
say "After 3 retries it is given up. Number 5 is cancelled before that."
log_mark
try insmod "$HWT_MODULES/hwt_retry.ko" requests=6 fails=0,1,2,3,99,99 base_ms=300 limit=3 \
	jitter_pct=0
echo
say "# echo 5 > $debug/hwt_retry/cancel"
echo 5 >$debug/hwt_retry/cancel
settled() { ! grep -q waiting $debug/hwt_retry/requests; }
wait_for 30 settled || fail "requests are still waiting"
try cat $debug/hwt_retry/requests
got=$(awk 'NR > 1 { print $3 }' $debug/hwt_retry/requests | xargs)
[ "$got" = "succeeded succeeded succeeded succeeded given-up cancelled" ] ||
	fail "the requests should have ended otherwise"
explain "waits: time between two attempts. The delays double: 300, 600 and 1200 ms. Each is" \
	"rounded up to the tick, and late by the wake-up of the thread; none is short."
try rmmod hwt_retry
echo
say "What it wrote to the kernel log:"
said hwt_retry

step "4. A kernel client: heartbeats"
say "Six peers, pinged every 50 ms. Each answer pushes back the peer's idle timeout of"
say "250 ms. Peers 1 and 4 fall silent and come back when reconnected; peers 2 and 5"
say "do not, and are closed in the end."
log_mark
try insmod "$HWT_MODULES/hwt_heartbeat.ko" peers=6 ping_ms=50 idle_ms=250 answers=5
closed() { grep -qx 'freed 2' $debug/hwt_heartbeat/totals; }
wait_for 30 closed || fail "the dead peers were not closed"
try cat $debug/hwt_heartbeat/peers
explain "missed: periods of the ping that passed without one. silent_ms: time since an answer."
try cat $debug/hwt_heartbeat/totals
grep -qx 'open 4' $debug/hwt_heartbeat/totals || fail "four peers should be open"
explain "wheel_rearmed counts the answers that pushed an idle timeout back: each changed one word" \
	"of memory. wheel_collected counts what the wheel's thread had to take from its lists:" \
	"far less. wheel_wakeups: how often that thread woke up in all."
try rmmod hwt_heartbeat
echo
say "What it wrote to the kernel log:"
said hwt_heartbeat
log_since | grep -q '6 peers freed of 6' || fail "not all peers were freed"

step "5. Many, and the statistics"
say "Ten thousand timeouts of one program, all due within a second: each fires once, none early."
seq 10000 | awk '{ print "schedule t" $1, 4000 + $1 % 1000 "ms" }' >many
"$ctl" run many >/tmp/fired &
many=$!
try "$ctl" top --count 6
explain "One screen a second; on a terminal, each replaces the one before. The histogram has the" \
	"callbacks of wheels: the program drives its timeouts itself."
wait $many || fail "hwtctl run"
cp /tmp/fired /tmp/out
expired 10000
[ "$(cut -d ' ' -f 1 /tmp/fired | sort -u | wc -l)" = 10000 ] || fail "a timeout fired twice"

step "6. Clean unload"
try rmmod hwt
! grep -q '^hwt' /proc/modules || fail "hwt is still loaded"
say "unloaded; nothing is left"
