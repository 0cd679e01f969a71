#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# samples/hwt_retry.c: what becomes of requests that fail a number of times, that
# the delays are kept, that a cancel hits, and that it unloads at any moment.
#
# hwt-test: timeout 180
set -eu
. "$HWT_DIR/lib.sh"

dir=/sys/kernel/debug/hwt_retry

# column REQUEST NUMBER
column() { awk -v id="$1" -v n="$2" '$1 == id { print $n }' $dir/requests; }
# became REQUEST OUTCOME [ATTEMPTS]
became() { [ "$(column "$1" 3) ${3:+$(column "$1" 2)}" = "$2 ${3:-}" ]; }
settled() { ! grep -q waiting $dir/requests; }

# waited REQUEST MS...: so often, and each time that long at least
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

refuses()
{
	log_mark
	if load hwt_retry "$1"; then
		unload hwt_retry
		return 1
	fi
	log_since | grep -q "hwt_retry: ${1%%=*}="
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
check "no delay where there was no retry" waited 0
unload hwt_retry || fail "does not unload"

load hwt_retry requests=1 base_ms=40 max_ms=100 jitter_pct=50 fails=99 || fail "does not load"
wait_for 60 settled || true
sed 's/^/# /' $dir/requests
check "with a jitter of half of it they are half as long at least" waited 0 20 40 50 50
unload hwt_retry || fail "does not unload"

log_mark
load hwt_retry requests=4 base_ms=3600000 max_ms=3600000 || fail "does not load"
check "an hour is waited for" became 1 waiting 1
echo 1 >$dir/cancel
check "a cancelled request is let go within seconds" wait_for 30 became 1 cancelled 1
echo 0 >$dir/cancel
check "a cancel that comes too late changes nothing" became 0 succeeded 1
check "cancel of an unknown request is refused" sh -c "! echo 4 >$dir/cancel"
unload hwt_retry || fail "does not unload with requests waiting"
count=$(log_since | grep -c 'hwt_retry: request [23]: cancelled after 1 attempts') || true
check "unload cancels each of those that wait, once" [ "$count" = 2 ]

check "requests=0 is refused, by name" refuses requests=0
check "limit=0 is refused, by name" refuses limit=0
check "limit=17 is refused, by name" refuses limit=17
check "jitter_pct=101 is refused, by name" refuses jitter_pct=101
check "base_ms=0 is refused, by name" refuses base_ms=0
check "max_ms=1 is refused, by name" refuses max_ms=1

# At any moment: while attempts are made at full speed.
rounds=10
[ "$HWT_QUICK" = 0 ] || rounds=3
for round in $(seq $rounds); do
	load hwt_retry requests=200 base_ms=1 max_ms=8 limit=16 || fail "load in round $round"
	[ $((round % 2)) -eq 0 ] || sleep 0.1
	unload hwt_retry || fail "unload in round $round"
done
ok "unloads $rounds times while requests are being retried"
plan
