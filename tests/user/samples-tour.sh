#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# samples/tour.c: /dev/hwt keeps what it promises there; it says so if it does not.
#
# hwt-test: check stock
# hwt-test: timeout 120
set -eu
. "$HWT_DIR/lib.sh"

for part in info delays cancel push-back periodic stop many; do
	check "tour $part" "$HWT_BIN/tour" $part
done
rc=0
"$HWT_BIN/tour" nonsense 2>/dev/null || rc=$?
check "an unknown part is refused" [ $rc = 2 ]
plan
