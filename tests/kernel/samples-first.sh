#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The first programs of README.md, kernel and user, do what it says there.
set -eu
. "$HWT_DIR/lib.sh"

said() { log_since | grep -q 'hwt_first: a second has passed'; }

log_mark
load hwt_first || fail "does not load"
if wait_for 30 said; then
	ok "the kernel client's callback runs"
else
	not_ok "the kernel client's callback runs"
fi
unload hwt_first || fail "does not unload"

log_mark
load hwt_first || fail "does not load again"
unload hwt_first || fail "does not unload before the second has passed"
sleep 2
if said; then
	not_ok "unloaded in time, it says nothing"
else
	ok "unloaded in time, it says nothing"
fi

out=$("$HWT_BIN/first") || fail "the user program fails: $out"
case $out in
*"a second has passed"*) ok "the user program: $out" ;;
*) not_ok "the user program: $out" ;;
esac
plan
