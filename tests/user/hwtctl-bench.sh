#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwtctl bench: it measures what it was asked for, each way that the kernel has. How long
# it takes is no matter here.
#
# hwt-test: check stock
# hwt-test: only stock rt
# hwt-test: timeout 150
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=lib/hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

ways="ioctl rings timerfd"
"$ctl" bench --timeouts 1000 --repetitions 3 >/tmp/table 2>/tmp/messages
note "$(cat /tmp/table)"
expect "its heading" 0 "1000 timeouts, ns for each, median of 3" head -n 1 /tmp/table
expect "its ways" 0 "$ways" sh -c "sed -n 2p /tmp/table | xargs"
for operation in schedule modify cancel expire; do
	expect "$operation, all ways" 0 "$(echo "$ways" | wc -w)" sh -c "
		sed -n 's/^$operation //p' /tmp/table | tr -s ' ' '\n' | grep -c '^[1-9][0-9]*\$'"
done
expect "and no more" 0 6 grep -c . /tmp/table

# More timeouts than rings have entries.
for way in $ways; do
	"$ctl" bench --json --only "$way" -n 5003 -r 1 >/tmp/json
	expect "$way as JSON" 0 "schedule modify cancel expire" sh -c "
		sed -n 's/^{\"way\":\"$way\",\"operation\":\"\([a-z]*\)\",\"ns\":[0-9]*[1-9.][0-9.]*,\"timeouts\":5003,\"repetitions\":1}\$/\1/p' /tmp/json | xargs"
done
expect "two ways" 0 "ioctl timerfd" sh -c "
	'$ctl' bench --only ioctl,timerfd -n 10 -r 1 | sed -n 2p | xargs"
expect "more than a context takes" 1 "hwtctl: bench: a context of /dev/hwt has at most 1048576 timeouts" \
	"$ctl" bench --only ioctl -n 1048577
plan
