#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The fuzzer's corpus, with programs that once found bugs, and twenty seconds of fuzzing if the
# kernel has KCOV. "make fuzz" gives other arguments. Limits are small, so that they are reached.
#
# hwt-test: timeout 120
# hwt-test: load max_timeouts=300 max_user_timeouts=500
set -eu
. "$HWT_DIR/lib.sh"

seconds=0
[ ! -e /sys/kernel/debug/kcov ] || [ "$HWT_QUICK" != 0 ] || seconds=20
set -- --seconds $seconds
# The arguments of make fuzz, one on each line
if [ -e "$HWT_DIR/fuzz.arguments" ]; then
	# Destroying a wheel takes two grace periods: make them short.
	[ ! -w /sys/kernel/rcu_expedited ] || echo 1 >/sys/kernel/rcu_expedited
	set --
	while IFS= read -r argument; do
		set -- "$@" "$argument"
	done <"$HWT_DIR/fuzz.arguments"
fi
"$HWT_BIN/fuzz" "$@" || fail "the fuzzer has found something, or could not run"
