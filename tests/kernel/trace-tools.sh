#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The tracepoints with perf, trace-cmd and bpftrace, and the two bpftrace scripts in tools/, as in
# docs/tracing.md.
#
# hwt-test: only stock
# hwt-test: long
# hwt-test: disk trace
# hwt-test: timeout 600
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

# Load for the traces: a hundred timeouts in two seconds, and those of kt_shown.
work()
{
	load kt_shown
	awk 'BEGIN { for (i = 0; i < 100; i++) printf "schedule t%d %dms\n", i, i * 10 }' |
		"$ctl" run --thread - >/dev/null
}

# documented: run lines of docs/tracing.md in the Debian, in the background
documented()
{
	documented_lines=$(cat)
	enter sh -ec "$documented_lines" >/tmp/documented.txt 2>&1 &
	documented=$!
}
has() { grep -q "$2" "$1"; }

# Work until the documented lines end: their start cannot be seen. kt_shown stays loaded.
work_on()
{
	work
	while kill -0 "$documented" 2>/dev/null; do
		unload kt_shown
		work
	done
	wait "$documented" || sed 's/^/# /' /tmp/documented.txt
}

enter perf list 'hwt:*' >/tmp/list 2>&1 || true
for event in schedule cancel expire_entry expire_exit wake pass wheel_create wheel_stop; do
	check "perf list: hwt:hwt_$event" has /tmp/list "hwt:hwt_$event "
done

documented <<'end'
perf record -a -e 'hwt:*' -o /tmp/perf.data sleep 10
perf script -i /tmp/perf.data
end
work_on
check "perf: a schedule" has /tmp/documented.txt 'hwt:hwt_schedule: wheel=hwt_device timeout=0x[0-9a-f]* function=hwt_thread_expire.* expires=[0-9]* ret=0'
check "perf: a wheel" has /tmp/documented.txt 'hwt:hwt_wheel_create: wheel=shown/one tick_ns=10000000 '
unload kt_shown

documented <<'end'
trace-cmd record -e hwt -o /tmp/trace.dat sleep 10
trace-cmd report -i /tmp/trace.dat
end
work_on
# trace-cmd has noted the names of functions while the module was loaded.
unload kt_shown
grep -m 20 . /tmp/documented.txt | sed 's/^/# /'
check "trace-cmd: a schedule" has /tmp/documented.txt 'hwt_schedule: *wheel=hwt_device timeout=0x[0-9a-f]* function=hwt_thread_expire.* expires=[0-9]* ret=0'
check "trace-cmd: an expiry" has /tmp/documented.txt 'hwt_expire_entry: *wheel=shown/one .* function=shown_slow'

# Stop bpftrace, which prints its results then. A signal that comes too early has no effect.
bpftrace_gone() { ! pidof bpftrace >/dev/null; }
bpftrace_stop()
{
	for _ in 1 2 3 4; do
		killall -INT bpftrace
		! wait_for 30 bpftrace_gone || return 0
	done
	sed "s/^/# /" /proc/"$(pidof bpftrace)"/stack || true
	killall -KILL bpftrace
	return 1
}

# one_line CHECK...: run a documented line of bpftrace during the work, then CHECK its output
attached() { has /tmp/documented.txt '^Attaching '; }
one_line()
{
	rm -f /tmp/documented.txt
	documented
	wait_for 120 attached
	sleep 3
	work
	unload kt_shown
	bpftrace_stop || note "bpftrace does not end"
	wait $documented || note "bpftrace: exit status $?"
	check "$@"
	sed 's/^/# /' /tmp/documented.txt
}
one_line "bpftrace: callers of a schedule" has /tmp/documented.txt '^ *hwt_ioctl' <<'end'
bpftrace -e 'tracepoint:hwt:hwt_schedule { @[kstack(8)] = count(); }'
end
one_line "bpftrace: wake-ups by wheel" has /tmp/documented.txt '^@\[hwt_device, 0\]: [0-9]' <<'end'
bpftrace -e 'tracepoint:hwt:hwt_wake { @[args->wheel, args->kicked] = count(); }'
end

# script NAME: run it in the background until script_end
script()
{
	enter bpftrace "/hwt/tools/$1" >"/tmp/$1.txt" 2>&1 &
	script=$!
	script_name=$1
	begun() { has "/tmp/$script_name.txt" '^Tracing hwt:'; }
	wait_for 120 begun || { cat "/tmp/$1.txt"; fail "$1 does not begin"; }
}
script_end()
{
	bpftrace_stop || { sed 's/^/# /' "/tmp/$script_name.txt"; fail "$script_name does not end"; }
	wait "$script" || note "bpftrace: exit status $?"
	sed 's/^/# /' "/tmp/$script_name.txt"
}

script hwt-lateness.bt
work
unload kt_shown
script_end
check "hwt-lateness.bt: device wheel" has /tmp/hwt-lateness.bt.txt '^@late_us\[hwt_device\]:'
check "hwt-lateness.bt: module wheel" has /tmp/hwt-lateness.bt.txt '^@late_us\[shown/one\]:'
counted()
{
	awk '/^@late_us/ { on = ($0 ~ /\[hwt_device\]/) } on && /^[[(]/ { sub(/^.*\) */, ""); n += $1 } END { print n }' \
		/tmp/hwt-lateness.bt.txt
}
expect "hwt-lateness.bt: each timeout counts once" 0 100 counted

script hwt-callbacks.bt
work
script_end
unload kt_shown
check "hwt-callbacks.bt: slowest" has /tmp/hwt-callbacks.bt.txt '^@longest_us\[shown_slow\]: [0-9]\{5,\}$'
check "hwt-callbacks.bt: calls" has /tmp/hwt-callbacks.bt.txt '^@calls\[hwt_thread_expire\]: 100$'
plan
