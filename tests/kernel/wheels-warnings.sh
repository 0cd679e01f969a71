#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The text and the number of warnings: more than 64 wheels, a tick that is raised, a callback that
# waits for itself, a parameter of a wheel that is out of range.
#
# hwt-test: check stock debug
# hwt-test: timeout 120
set -eu
. "$HWT_DIR/lib.sh"

# said TIMES REGEX TEXT: the log has had REGEX so many times since the mark
counts()
{
	log_since | grep "$2"
	[ "$(log_since | grep -c "$2")" -eq "$1" ]
}
said() { check "$3" counts "$1" "$2"; }

many='hwt: more than 64 wheels are alive'

log_mark
load kt_client wheels=62
said 0 "$many" "64 wheels, the system wheels included: no warning"
unload kt_client
load kt_client wheels=62
unload kt_client
said 0 "$many" "64 other wheels after these: no warning"
load kt_client wheels=70
said 1 "$many.*kt_client" "more than 64 wheels: one warning, with the creator of the latest"
unload kt_client
load kt_client wheels=70
unload kt_client
said 1 "$many" "more than 64 wheels once more: no second warning"

log_mark
load kt_client wheels=3 tick_us=10
unload kt_client
said 1 'tick of 10000 ns raised to min_tick_us, 1000 us' "a short tick is raised, with one warning"
load kt_client wheels=3 tick_us=20
unload kt_client
said 0 'tick of 20000 ns' "another short tick: no second warning"

itself='hwt: callback client_expire \[kt_client\] waits for its own timeout in a _sync call'
log_mark
load kt_client busy=100 self=1
sleep 1
unload kt_client
said 1 "$itself" "a callback calls _sync for its own timeout again and again: one warning"

logged() { log_since | grep "$1"; }

# refused PARAM REGEX: the log has the wheel and the reason
refused()
{
	log_mark
	! load kt_client "$1" || fail "$1 is accepted"
	# Possibly more than once: busybox tries both system calls.
	check "$1 is refused, and the log has the wheel and the reason" logged "$2"
}

refused buckets=1 'hwt: client0: ticks_per_wheel=1 is out of range: 2 to 65536'
refused levels=7 'hwt: client0: levels=7 is out of range: 1 to 6'
plan
