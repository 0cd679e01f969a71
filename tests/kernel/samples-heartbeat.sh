#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# samples/hwt_heartbeat.c: who stays, who is reconnected and who is closed; that
# signs of life are pushed back the cheap way; that no peer is leaked.
#
# hwt-test: timeout 180
set -eu
. "$HWT_DIR/lib.sh"

dir=/sys/kernel/debug/hwt_heartbeat

total() { awk -v key="$1" '$1 == key { print $2 }' $dir/totals; }
is() { [ "$(total "$1")" -eq "$2" ]; }
at_least() { [ "$(total "$1")" -ge "$2" ]; }
# each KIND COLUMN LEAST: all peers of the kind have at least that
each()
{
	awk -v kind="$1" -v n="$2" -v least="$3" '
	$2 == kind { found = 1; if ($n + 0 < least + 0) low = 1 }
	END { exit !found || low }' $dir/peers
}
logged() { log_since | grep -q "$1"; }
# Two for each open peer; and the summary, if something has happened just now.
pending_is() { is wheel_pending "$1" || is wheel_pending $(($1 + 1)); }
summaries() { log_since | grep -c 'hwt_heartbeat: [0-9]* reconnects so far, '; }
refuses()
{
	log_mark
	if load hwt_heartbeat "$1"; then
		unload hwt_heartbeat
		return 1
	fi
	log_since | grep -q "hwt_heartbeat: ${1%%=*}="
}

log_mark
began=$(cut -d . -f 1 /proc/uptime)
load hwt_heartbeat peers=9 ping_ms=50 idle_ms=400 answers=4 reconnects=2 ||
	fail "does not load"
check "the dead are closed" wait_for 60 is closed 3
check "and freed by their last release" wait_for 30 is freed 3
check "the flaky are reconnected more than once" wait_for 60 each flaky 6 2
sed 's/^/# /' $dir/peers $dir/totals
check "the others stay open" is open 6
check "the steady have answered" wait_for 30 each steady 4 10
check "none of the dead is listed" sh -c "! grep dead $dir/peers"
check "each of the dead was reconnected twice before" \
	[ "$(log_since | grep -c 'hwt_heartbeat: peer [258]: .* closed after 2 reconnects')" = 3 ]
check "answers push the idle timeout back" wait_for 30 at_least pushed_back 30
check "two timeouts pending for each open peer" wait_for 30 pending_is 12
# One entry for each first schedule, one for each ping that a closing cancelled, and one for
# each summary, of which one may be pending.
check "pushing back submits nothing" \
	[ "$(total wheel_collected)" -le $((22 + $(total summaries))) ]
check "the log has a summary" wait_for 30 at_least summaries 1
unload hwt_heartbeat || fail "does not unload"
took=$(($(cut -d . -f 1 /proc/uptime) - began + 1))
check "but no more than one in a second: $(summaries) in $took s" [ "$(summaries)" -le $took ]
check "all peers are freed" logged "hwt_heartbeat: 9 peers freed of 9"

check "peers=0 is refused, by name" refuses peers=0
check "ping_ms=0 is refused, by name" refuses ping_ms=0
check "idle_ms=1 is refused, by name" refuses idle_ms=1

# Unloaded while pings, answers and closings are under way.
rounds=6
[ "$HWT_QUICK" = 0 ] || rounds=2
for round in $(seq $rounds); do
	log_mark
	load hwt_heartbeat peers=500 ping_ms=20 idle_ms=60 answers="$round" reconnects=0 ||
		fail "load in round $round"
	[ $((round % 2)) -eq 0 ] || sleep 0.2
	unload hwt_heartbeat || fail "unload in round $round"
	log_since | grep -q "hwt_heartbeat: 500 peers freed of 500" ||
		fail "peers lost in round $round"
done
ok "no peer lost in $rounds unloads under way"
plan
