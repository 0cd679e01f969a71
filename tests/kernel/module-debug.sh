#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# With debug=1, a module that goes and leaves timeouts on somebody's wheel is reported with
# what they would have called, and they are withdrawn: the guest survives their deadlines.
#
# hwt-test: long
# hwt-test: load debug=1
# hwt-test: timeout 150
set -eu
. "$HWT_DIR/lib.sh"

[ "$(cat /sys/module/hwt/parameters/debug)" = Y ] || fail "debug is not on"

# leave FUNCTION HOW OWN [MODULE]: the report names the function (a regex)
leave()
{
	load test_debug_host || fail "no wheels"
	load test_debug_leaver how="$2" own="$3" || fail "does not load"
	log_mark
	expect_begin "hwt: BUG: module test_debug_leaver .*$1 \[${4:-test_debug_leaver}\]"
	unload test_debug_leaver || fail "does not unload"
	expect_end
	after "$2, own=$3"
	ok "$2, own=$3: reported, and withdrawn"
}

# after WHAT: its deadline has passed, or anything that would call into what is gone.
after()
{
	sleep 1.5
	! log_since | grep -q 'test_debug_leaver: has fired' || fail "$*: it has fired"
	unload test_debug_host || fail "the wheels are not let go"
	log_since | grep -q 'test_debug_host: its own are there' || fail "$*: others' are gone, too"
	log_since | grep -q 'test_debug_host: 0 and 0 are pending' || fail "$*: something is left"
}

load test_debug_host
load test_debug_leaver
log_mark
unload test_debug_leaver
after none
check "one that leaves nothing is not reported" [ -z "$(log_since | grep 'hwt: BUG:')" ]

leave leaver_expire kmalloc 0
leave leaver_expire kmalloc 1
leave leaver_expire static 0
leave leaver_expire never 0
leave kt_nothing periodic 0
# Not let go yet, or just then.
leave '(leaver_expire|leaver_release)' released 0
leave '(leaver_expire|leaver_release)' released 1
leave leaver_expire copied 0
leave host_sleep borrowed 0 test_debug_host
# Left to a worker that is busy.
leave '(leaver_expire|leaver_release)' deferred 1
leave leaver_sleep running 0
leave leaver_sleep running 1
leave leaver_put putting 1
# Last: so many reports keep others out of the log for a while.
leave leaver_expire many 1
plan
