#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A client that goes and leaves its wheel: the log says whose it was, and hwt.ko cannot be
# unloaded under the wheel's thread.
set -eu
. "$HWT_DIR/lib.sh"

load test_keeper
load test_leaver
log_mark
unload test_leaver
# (That function has two names; with clang the other one is found.)
log_since | grep -q 'module test_leaver goes and leaves its wheel left, made by \(leaver_init\|init_module\) ' ||
	fail "not a word about the wheel that is left"
! rmmod hwt 2>/dev/null || fail "hwt.ko is unloaded under a wheel"
load test_leaver
log_mark
unload test_leaver
! log_since | grep -q 'goes and leaves' || fail "it is named though it left nothing"
unload test_keeper
