#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwt.ko cannot be unloaded under its clients. Nor under the wheel of one that goes and leaves it:
# the log says whose it was.
set -eu
. "$HWT_DIR/lib.sh"

# stays TEXT: rmmod refuses, and changes nothing
stays()
{
	! rmmod hwt 2>/dev/null || fail "hwt.ko is unloaded under $1"
	grep -q '^hwt .* Live' /proc/modules || fail "hwt.ko is not as before, under $1"
}

load test_client armed=1000 busy=100
stays "a client with a wheel of its own"
load test_basics || fail "it does not work as before"
unload test_basics
unload test_client
load test_client shared=1 armed=1000
stays "a client with a shared wheel"
unload test_client

load test_keeper
load test_leaver
log_mark
unload test_leaver
# (That function has two names; with clang the other one is found.)
log_since | grep -q 'module test_leaver goes and leaves its wheel left, made by \(leaver_init\|init_module\) ' ||
	fail "not a word about the wheel that is left"
stays "a wheel that is left"
load test_leaver
log_mark
unload test_leaver
! log_since | grep -q 'goes and leaves' || fail "it is named though it left nothing"
unload test_keeper
