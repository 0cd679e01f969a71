#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The fuzzer's corpus, which has what once went wrong, and twenty seconds of fuzzing where the
# kernel tells what was reached. "make fuzz" gives other arguments. Small limits are reached.
#
# hwt-test: timeout 120
# hwt-test: load max_timeouts=300 max_user_timeouts=500 max_user_wheels=3
set -eu
. "$HWT_DIR/lib.sh"

seconds=0
if [ -e /sys/kernel/debug/kcov ] && [ "$HWT_QUICK" = 0 ]; then
	seconds=20
fi
set -- --seconds $seconds
# Of make fuzz, a line each
if [ -e "$HWT_DIR/fuzz.arguments" ]; then
	# Else each wheel that ends takes two grace periods, and there are many.
	[ ! -w /sys/kernel/rcu_expedited ] || echo 1 >/sys/kernel/rcu_expedited
	set --
	while IFS= read -r argument; do
		set -- "$@" "$argument"
	done <"$HWT_DIR/fuzz.arguments"
fi
"$HWT_BIN/fuzz" "$@" || fail "the fuzzer has found something, or could not run"
