#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The first programs of README.md, kernel and user, do what it says there. Then samples/hwt_cookbook.c:
# changes are saved together, the note is called, and all requests are cancelled and freed when it
# goes, whenever that is.
set -eu
. "$HWT_DIR/lib.sh"

passed() { log_since | grep -q 'hwt_first: a second has passed'; }

log_mark
load hwt_first || fail "does not load"
check "the kernel client's callback runs" wait_for 30 passed
unload hwt_first || fail "does not unload"

log_mark
load hwt_first || fail "does not load again"
unload hwt_first || fail "does not unload before the second has passed"
sleep 2
silent() { ! passed; }
check "unloaded in time, it says nothing" silent
user_said() { "$HWT_BIN/first" | grep 'a second has passed'; }
check "the user program says so, too" user_said

# -- The cookbook --

said() { log_since | grep -q "hwt_cookbook: $1"; }

# saved: how many changes, in all that was logged
saved() { log_since | awk '/hwt_cookbook: saved/ { n += $(NF - 1) } END { print n + 0 }'; }
all_saved() { [ "$(saved)" = "$1" ]; }
steps() { log_since | grep -c "hwt_cookbook: saved"; }

log_mark
load hwt_cookbook changes=20 requests=300 || fail "does not load"
check "the changes are saved" wait_for 30 all_saved 20
check "not each by itself: in $(steps) steps" [ "$(steps)" -le 10 ]
check "the note is called" wait_for 30 said '200 ms have passed'
unload hwt_cookbook || fail "does not unload"
check "what was pending is cancelled" said '300 of 300 requests were pending'
check "and freed" said '300 requests freed'

rounds=10
[ "$HWT_QUICK" = 0 ] || rounds=3
for round in $(seq $rounds); do
	log_mark
	load hwt_cookbook changes="$round" || fail "load in round $round"
	[ $((round % 2)) -eq 0 ] || sleep 0.1
	unload hwt_cookbook || fail "unload in round $round"
	said '10 requests freed' || fail "requests lost in round $round"
done
ok "unloads $rounds times while something is pending"
plan
