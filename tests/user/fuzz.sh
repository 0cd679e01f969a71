#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The fuzzer's corpus, which has what once went wrong, and twenty seconds of fuzzing where the
# kernel tells what was reached. "make fuzz" is for longer.
#
# hwt-test: timeout 120
# hwt-test: load max_timeouts=300 max_shared=40 max_user_timeouts=500 max_user_wheels=3
set -eu
. "$HWT_DIR/lib.sh"

seconds=0
if [ -e /sys/kernel/debug/kcov ] && [ "$HWT_QUICK" = 0 ]; then
	seconds=20
fi
"$HWT_BIN/fuzz" --seconds $seconds || fail "the fuzzer has found something, or could not run"
