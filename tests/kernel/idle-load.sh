#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Engines that wait are not load, and not hung: a thread that waits in the wrong
# state counts one in the load average each, and is reported as hung.
#
# hwt-test: long
# hwt-test: only stock
# hwt-test: timeout 120
set -eu
. "$HWT_DIR/lib.sh"

wheels=40
load test_client wheels=$wheels armed=10

# states: of all engines' threads, one a line
states() { sed -n 's/^[0-9]* (client[0-9]*) \(.\) .*/\1/p' /proc/[0-9]*/stat 2>/dev/null; }

sleep 2
n=$(states | wc -l)
if [ "$n" -eq $wheels ]; then ok "$wheels threads"; else not_ok "$wheels threads: $n"; fi
idle=$(states | grep -c I) || true
if [ "$idle" -eq $wheels ]; then
	ok "all of them idle (state I)"
else
	not_ok "all of them idle (state I): $(states | sort | uniq -c | tr '\n' ' ')"
fi

# In 25 s each thread that counted would add a third to the one-minute average, and would be
# reported as hung after 10.
fuse=/proc/sys/kernel/hung_task_timeout_secs
was=$(cat $fuse)
echo 10 >$fuse
before=$(cut -d ' ' -f 1 /proc/loadavg)
sleep 25
echo "$was" >$fuse
after=$(cut -d ' ' -f 1 /proc/loadavg)
note "load average $before, then $after"
if awk "BEGIN { exit !($after < $wheels / 8) }"; then
	ok "the load average is not theirs: $before, after 25 s $after"
else
	not_ok "the load average is not theirs: $before, after 25 s $after"
fi
idle=$(states | grep -c I) || true
if [ "$idle" -eq $wheels ]; then ok "still idle"; else not_ok "still idle: $idle"; fi
unload test_client
plan
