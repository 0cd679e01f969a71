#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwt.ko cannot be unloaded while it has clients, nor while it has a wheel, or a reference to one,
# that an unloaded client has left, which the log names.
set -eu
. "$HWT_DIR/lib.sh"

# stays TEXT: rmmod fails, and changes nothing
stays()
{
	! rmmod hwt 2>/dev/null || fail "hwt.ko was unloaded despite $1"
	grep -q '^hwt .* Live' /proc/modules || fail "hwt.ko is not live any more, with $1"
}

# leaves TEXT SHARED: with kt_leaver gone, the log says that it has left TEXT
leaves()
{
	load kt_leaver shared="$2" || fail "kt_leaver does not load"
	log_mark
	unload kt_leaver || fail "kt_leaver does not unload"
	log_since | grep -q "module kt_leaver is unloaded and leaves $1"
}

load kt_client armed=1000 busy=100
stays "a client with a private wheel"
load test_basics || fail "test_basics fails after that"
unload test_basics
unload kt_client
load kt_client shared=1 armed=1000
stays "a client with a shared wheel"
unload kt_client

load kt_keeper
# init_module is an alias of leaver_init, and is found on kernels built with clang.
leaves 'its wheel left, created by \(leaver_init\|init_module\) ' 0 || fail "the log does not name the wheel that is left"
stays "a wheel that is left"
! leaves '' 0 || fail "the log names a module that left no wheel"
leaves '1 references to the shared wheel left' 1 || fail "the log does not name the reference that is left"
stays "a reference that is left"
load kt_leaver shared=1
unload kt_leaver
unload kt_keeper
