#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwt.ko cannot be unloaded under its clients.
set -eu
. "$HWT_DIR/lib.sh"

# in_use TEXT: rmmod refuses, and changes nothing
in_use()
{
	if rmmod hwt 2>/tmp/error; then
		load hwt || true
		not_ok "$1: rmmod is refused"
	elif grep -q '^hwt .* Live' /proc/modules; then
		ok "$1: rmmod is refused: $(cat /tmp/error)"
	else
		not_ok "$1: hwt is as before: $(grep '^hwt ' /proc/modules)"
	fi
}

load test_client armed=1000 busy=100
in_use "a client with a wheel of its own"
load test_basics || not_ok "it works as before"
unload test_basics
unload test_client
load test_client shared=1 armed=1000
in_use "a client with a shared wheel"
unload test_client
if rmmod hwt; then
	ok "without clients it is unloaded"
else
	not_ok "without clients it is unloaded"
fi
load hwt
plan
