#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs the fuzzer in its guest, for fuzz.py.
set -eu
. "$HWT_DIR/lib.sh"

# Else each wheel that ends takes two grace periods, and there are many.
[ ! -w /sys/kernel/rcu_expedited ] || echo 1 >/sys/kernel/rcu_expedited
# Small limits are reached.
load hwt max_timeouts=300 max_shared=40 max_user_timeouts=500 max_user_wheels=3 ||
	fail "hwt.ko does not load"
set --
while IFS= read -r argument; do
	set -- "$@" "$argument"
done <"$HWT_DIR/fuzz.arguments"
"$HWT_BIN/fuzz" "$@" || fail "the fuzzer has found something, or could not run"
unload hwt || fail "hwt.ko does not unload"

leaks=/sys/kernel/debug/kmemleak
[ -w $leaks ] || exit 0
# It takes its time, above all on a busy machine: nobody is to think that the guest hangs.
scan()
{
	echo scan >$leaks &
	while kill -0 $! 2>/dev/null; do
		note "looking for lost memory"
		sleep 5
	done
}

# Only what is older than five seconds is reported, and not at once.
sleep 6
scan
scan
if [ -n "$(cat $leaks)" ]; then
	cat $leaks
	fail "memory is lost"
fi
