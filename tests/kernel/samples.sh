#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The samples. The first programs of README.md, kernel and user, do as documented there.
#
# samples/hwt_cookbook.c: changes are saved together, and unloading at any time cancels and frees all requests.
#
# samples/hwt_heartbeat.c: peers stay, are reconnected or are closed as they should. Answers are
# push-backs without a submission. No peer is leaked.
#
# samples/hwt_idle.c: silent connections are closed, and unloading at any time frees all.
#
# samples/hwt_retry.c: the results of requests that fail several times, the delays between tries,
# cancels, and unloading at any time.
#
# hwt-test: timeout 300
set -eu
. "$HWT_DIR/lib.sh"

rounds=10
[ "$HWT_QUICK" = 0 ] || rounds=3

logged() { log_since | grep -q "$1"; }

# refused MODULE PARAM...: loading fails for each, and the log names the parameter
refuses()
{
	log_mark
	if load "$1" "$2"; then
		unload "$1"
		return 1
	fi
	logged "$1: ${2%%=*}="
}
refused()
{
	module=$1
	shift
	for param; do
		check "$module: $param is refused, by name" refuses "$module" "$param"
	done
}

# -- The first programs --

passed() { logged 'hwt_first: a second has passed'; }

log_mark
load hwt_first || fail "does not load"
check "the kernel client's callback runs" wait_for 30 passed
unload hwt_first || fail "does not unload"

log_mark
load hwt_first || fail "does not load again"
unload hwt_first || fail "does not unload before the second has passed"
sleep 2
silent() { ! passed; }
check "unloaded before the second has passed, it logs nothing" silent
user_said() { "$HWT_BIN/first" | grep 'a second has passed'; }
check "the user program prints that a second has passed" user_said

# -- The cookbook --

said() { logged "hwt_cookbook: $1"; }

# saved: print the number of changes in all logged savings
saved() { log_since | awk '/hwt_cookbook: saved/ { n += $(NF - 1) } END { print n + 0 }'; }
all_saved() { [ "$(saved)" = "$1" ]; }
steps() { log_since | grep -c "hwt_cookbook: saved"; }

log_mark
load hwt_cookbook changes=20 requests=300 || fail "does not load"
check "the changes are saved" wait_for 30 all_saved 20
check "several changes are saved at once: $(steps) steps" [ "$(steps)" -le 10 ]
check "the cache becomes empty" wait_for 30 said 'the cache is empty'
unload hwt_cookbook || fail "does not unload"
check "the periodic timeout has ended itself" [ "$(log_since | grep -c 'the cache is empty')" = 1 ]
check "pending requests are cancelled" said '300 of 300 requests were pending'
check "all requests are freed" said '300 requests freed'

for round in $(seq $rounds); do
	log_mark
	load hwt_cookbook changes="$round" || fail "load in round $round"
	[ $((round % 2)) -eq 0 ] || sleep 0.1
	unload hwt_cookbook || fail "unload in round $round"
	said '10 requests freed' || fail "requests lost in round $round"
done
ok "unloads $rounds times with pending timeouts"

# -- Heartbeat --

dir=/sys/kernel/debug/hwt_heartbeat

total() { awk -v key="$1" '$1 == key { print $2 }' $dir/totals; }
is() { [ "$(total "$1")" -eq "$2" ]; }
at_least() { [ "$(total "$1")" -ge "$2" ]; }
# each KIND COLUMN LEAST: the column of all peers of the kind is LEAST or more
each()
{
	awk -v kind="$1" -v n="$2" -v least="$3" '
	$2 == kind { found = 1; if ($n + 0 < least + 0) low = 1 }
	END { exit !found || low }' $dir/peers
}
# Two timeouts for each open peer, and one for a summary after recent events.
pending_is() { is wheel_pending "$1" || is wheel_pending $(($1 + 1)); }
summaries() { log_since | grep -c 'hwt_heartbeat: [0-9]* reconnects so far, '; }

log_mark
began=$(cut -d . -f 1 /proc/uptime)
load hwt_heartbeat peers=9 ping_ms=50 idle_ms=400 answers=4 reconnects=2 ||
	fail "does not load"
check "the dead are closed" wait_for 60 is closed 3
check "the last release frees them" wait_for 30 is freed 3
check "the flaky are reconnected more than once" wait_for 60 each flaky 6 2
sed 's/^/# /' $dir/peers $dir/totals
check "the others stay open" is open 6
check "the steady have answered" wait_for 30 each steady 4 10
check "none of the dead is listed" sh -c "! grep dead $dir/peers"
check "each of the dead was reconnected twice before" \
	[ "$(log_since | grep -c 'hwt_heartbeat: peer [258]: .* closed after 2 reconnects')" = 3 ]
check "answers push the idle timeout back" wait_for 30 at_least pushed_back 30
check "two timeouts pending for each open peer" wait_for 30 pending_is 12
# Submissions: the first schedules, each ping that a closing has cancelled, and each summary, of
# which one may be pending.
check "pushing back submits nothing" \
	[ "$(total wheel_collected)" -le $((22 + $(total summaries))) ]
check "the log has a summary" wait_for 30 at_least summaries 1
unload hwt_heartbeat || fail "does not unload"
took=$(($(cut -d . -f 1 /proc/uptime) - began + 1))
check "at most one summary in a second: $(summaries) in $took s" [ "$(summaries)" -le $took ]
check "all peers are freed" logged "hwt_heartbeat: 9 peers freed of 9"

refused hwt_heartbeat peers=0 ping_ms=0 idle_ms=1

# Unload during pings, answers and closings.
for round in $(seq $rounds); do
	log_mark
	load hwt_heartbeat peers=500 ping_ms=20 idle_ms=60 answers="$round" reconnects=0 ||
		fail "load in round $round"
	[ $((round % 2)) -eq 0 ] || sleep 0.2
	unload hwt_heartbeat || fail "unload in round $round"
	log_since | grep -q "hwt_heartbeat: 500 peers freed of 500" ||
		fail "peers lost in round $round"
done
ok "$rounds unloads lose no peer"

# -- Idle connections --

log_mark
load hwt_idle connections=8000 idle_ms=4000 alive_pct=60 || fail "does not load"
check "silent connections are closed" wait_for 60 \
	logged 'hwt_idle: 3120 of 8000 connections closed after a silence, 80 by their peers; [1-9]'
unload hwt_idle || fail "does not unload"
check "the others stay open, and all are freed" logged ': 4800 open .*, 8000 freed in all'
refused hwt_idle connections=0 idle_ms=7

# Unload during packets and closings.
for round in $(seq $rounds); do
	log_mark
	load hwt_idle connections=20000 idle_ms=$((8 << round % 6)) || fail "load in round $round"
	[ $((round % 2)) -eq 0 ] || sleep "1.$round"
	unload hwt_idle || fail "unload in round $round"
	logged 'hwt_idle: .*, 20000 freed in all' || fail "connections lost in round $round"
done
ok "$rounds unloads lose no connection"

# -- Retry --

dir=/sys/kernel/debug/hwt_retry

# column REQUEST NUMBER
column() { awk -v id="$1" -v n="$2" '$1 == id { print $n }' $dir/requests; }
# became REQUEST OUTCOME [ATTEMPTS]
became() { [ "$(column "$1" 3) ${3:+$(column "$1" 2)}" = "$2 ${3:-}" ]; }
settled() { ! grep -q waiting $dir/requests; }

# waited REQUEST MS...: the number of delays, and the minimum of each
waited()
{
	awk -v want="$*" '
	BEGIN { n = split(want, ms, " ") }
	$1 == ms[1] {
		found = NF - 3 == n - 1
		for (i = 2; i <= n; i++)
			if ($(i + 2) + 0 < ms[i] * 1000)
				found = 0
	}
	END { exit !found }' $dir/requests
}

load hwt_retry requests=8 base_ms=20 max_ms=100 limit=4 jitter_pct=0 fails=0,1,3,99 ||
	fail "does not load"
wait_for 60 settled || true
sed 's/^/# /' $dir/requests
check "no failure: succeeds at once" became 0 succeeded 1
check "one failure: succeeds at the second attempt" became 1 succeeded 2
check "three failures: succeeds at the fourth" became 2 succeeded 4
check "too many failures: given up after the limit" became 3 given-up 5
check "the pattern of failures is repeated" became 7 given-up 5
check "the delays double up to the longest, and are kept" waited 3 20 40 80 100
check "a request without retries has no delay" waited 0
unload hwt_retry || fail "does not unload"

load hwt_retry requests=1 base_ms=40 max_ms=100 jitter_pct=50 fails=99 || fail "does not load"
wait_for 60 settled || true
sed 's/^/# /' $dir/requests
check "with a jitter of 50 %, delays are at least half as long" waited 0 20 40 50 50
unload hwt_retry || fail "does not unload"

log_mark
load hwt_retry requests=4 base_ms=3600000 max_ms=3600000 || fail "does not load"
check "a delay of an hour: the request waits" became 1 waiting 1
echo 1 >$dir/cancel
check "a cancelled request ends within seconds" wait_for 30 became 1 cancelled 1
echo 0 >$dir/cancel
check "a cancel that comes too late changes nothing" became 0 succeeded 1
check "cancel of an unknown request is refused" sh -c "! echo 4 >$dir/cancel"
unload hwt_retry || fail "does not unload with requests waiting"
count=$(log_since | grep -c 'hwt_retry: request [23]: cancelled after 1 attempts') || true
check "unloading cancels each waiting request once" [ "$count" = 2 ]

refused hwt_retry requests=0 limit=0 limit=17 jitter_pct=101 base_ms=0 max_ms=1

# Unload while attempts are made at full speed.
for round in $(seq $rounds); do
	load hwt_retry requests=200 base_ms=1 max_ms=8 limit=16 || fail "load in round $round"
	[ $((round % 2)) -eq 0 ] || sleep 0.1
	unload hwt_retry || fail "unload in round $round"
done
ok "unloads $rounds times while requests are being retried"
plan
