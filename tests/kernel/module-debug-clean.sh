#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# With debug=1, correct clients are not reported, since any report fails this test, and work as
# without.
#
# hwt-test: long
# hwt-test: load debug=1
# hwt-test: timeout 180
set -eu
. "$HWT_DIR/lib.sh"

[ "$(cat /sys/module/hwt/parameters/debug)" = Y ] || fail "debug is not on"

# run MODULE [PARAMS...]
run()
{
	check "$*" load "$@"
	unload "$1" || fail "$1 does not unload"
}

run test_basics
run test_sync
check "torture" sh "$HWT_DIR/scripts/torture.sh" seed=4 seconds=2 nmi=0 hotplug_ms=0 clock_ms=0
run kt_client wheels=3 armed=1000 busy=100
run kt_client wheels=3 armed=1000 busy=100 shared=1
run hwt_first
run hwt_retry requests=200 base_ms=1 max_ms=8 limit=16
run hwt_heartbeat peers=500 ping_ms=20 idle_ms=60 reconnects=1
run hwt_idle connections=20000 idle_ms=8
for part in delays cancel push-back periodic many; do
	check "tour $part" "$HWT_BIN/tour" $part
done
plan
