#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Load and unload fifty times, each time with timeouts that are pending, fire, and are scheduled and
# cancelled until the end.
#
# hwt-test: long
# hwt-test: noload
# hwt-test: timeout 180
set -eu
. "$HWT_DIR/lib.sh"

# Keep a CPU busy.
(while :; do :; done) &
spinner=$!

for round in 1 2 3 4 5 6 7 8 9 10; do
	for shape in "" "shared=1" "wheels=3" "levels=1 buckets=32" "wheels=5 shared=1"; do
		load hwt || fail "round $round: hwt does not load"
		# $shape holds several words.
		# shellcheck disable=SC2086
		load test_client armed=1000 busy=100 $shape || fail "round $round: the client does not load"
		[ $((round % 3)) -eq 0 ] || sleep 0.05
		unload test_client || fail "round $round: the client does not unload"
		unload hwt || fail "round $round: hwt does not unload"
	done
	ok "round $round: five loads and unloads"
done
kill $spinner
fired=$(dmesg | sed -n 's/.*test_client: fired \([0-9]*\) times.*/\1/p' | sort -n | tail -n 1)
check "timeouts fired meanwhile, up to $fired times in a round" [ "${fired:-0}" -gt 0 ]
plan
