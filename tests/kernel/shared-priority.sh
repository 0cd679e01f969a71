#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# On PREEMPT_RT the thread of the wheel that contexts share has a real-time priority, so that
# it can lend it to whoever holds the lock of a context; the threads of wheels that are private
# have none, and on other kernels none has.
#
# hwt-test: load max_shared=4
set -eu
. "$HWT_DIR/lib.sh"

# policies NAME: of the threads of that name
policies()
{
	for comm in /proc/[0-9]*/comm; do
		[ "$(cat "$comm" 2>/dev/null)" = "$1" ] || continue
		cut -d ' ' -f 41 "${comm%comm}stat"
	done | xargs
}

case $(uname -v) in
*PREEMPT_RT*) want=1 ;;
*) want=0 ;;
esac
for n in 1 2 3 4 5; do
	echo "schedule t$n 1h"
done >/tmp/script
echo "wait 1m" >>/tmp/script
"$HWT_BIN/hwtctl" run /tmp/script &
script=$!
wait_for 30 sh -c '[ "$(cat /proc/[0-9]*/comm | grep -cx hwt_private)" = 1 ]' ||
	fail "no private wheel"
[ "$(policies hwt_device)" = $want ] || fail "the shared wheel's policy: $(policies hwt_device), not $want"
[ "$(policies hwt_private)" = 0 ] || fail "a private wheel's: $(policies hwt_private)"
kill $script
wait $script 2>/dev/null || true
