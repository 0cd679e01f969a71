#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A client with reference counts cancels its timeouts on the shared wheel, and is unloaded after
# hwt_wheel_barrier(), repeatedly, while slow callbacks of another client keep the wheel busy.
#
# hwt-test: timeout 120
set -eu
. "$HWT_DIR/lib.sh"

rounds=20
[ "$HWT_QUICK" = 0 ] || rounds=5
nothing_left() { ! log_since | grep 'left behind the barrier'; }

for workers in 0 2; do
	load kt_client shared=1 busy=4 slow_ms=20 workers=$workers || fail "kt_client fails"
	log_mark
	for round in $(seq $rounds); do
		load kt_unloader workers=$workers || fail "the client does not load"
		[ $((round % 2)) -eq 0 ] || sleep 0.02
		unload kt_unloader || fail "the client does not unload"
	done
	check "$workers workers: no object is left after the barrier, $rounds times" nothing_left
	unload kt_client
done
plan
