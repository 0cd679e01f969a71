#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The benchmark module runs each of its parts and leaves nothing behind. Its figures do not matter
# here.
#
# hwt-test: long
# hwt-test: only stock
# hwt-test: timeout 180
set -eu
. "$HWT_DIR/lib.sh"

log_mark
load hwt_bench quick=1 runs=1 seconds=1 pending=1000,2000
for part in ops through slack storm late scale; do
	log_since | grep -q "@bench bench=$part " || fail "no results of $part"
done
! log_since | grep '@bench bench=late peer=h[rw]' | grep -v ' early=0 ' ||
	fail "something was early"
unload hwt_bench
! load hwt_bench pending=0 run=ops 2>/dev/null || fail "0 pending is accepted"
