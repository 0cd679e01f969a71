#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A million timeouts of one context, due in one tick, and those of another context: with what
# the shared wheel takes from one context by default, and, to compare, with no such limit.
#
# hwt-test: check stock
# hwt-test: only stock rt
# hwt-test: noload
# hwt-test: long
# hwt-test: timeout 500
set -eu
. "$HWT_DIR/lib.sh"

load hwt
"$HWT_BIN/neighbours" || fail "with max_shared=16384"
"$HWT_BIN/neighbours" 500 20000 || fail "with many who wait for its events"
"$HWT_BIN/neighbours" 0 20000 8 || fail "with threads that list its timeouts"
unload hwt
# Only told: there is nothing to check.
if [ "$HWT_KERNEL" = stock ]; then
	load hwt max_shared=1048576
	"$HWT_BIN/neighbours" || fail "with max_shared=1048576"
	unload hwt
fi
