#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# With debug=1, a module that is unloaded and leaves timeouts on a wheel of another module is
# reported with their functions. kt_debug_host.ko ends these timeouts after the report.
#
# hwt-test: long
# hwt-test: load debug=1
# hwt-test: timeout 150
set -eu
. "$HWT_DIR/lib.sh"

[ "$(cat /sys/module/hwt/parameters/debug)" = Y ] || fail "debug is not on"

# leave FUNCTION HOW OWN [MODULE]: the report contains FUNCTION, a regex
reports=0
leave()
{
	# At most 10 reports are logged in 5 s, and a call causes up to two.
	reports=$((reports + 2))
	if [ $reports -gt 10 ]; then
		sleep 6
		reports=2
	fi
	load kt_debug_host || fail "kt_debug_host does not load"
	load kt_debug_leaver how="$2" own="$3" || fail "kt_debug_leaver does not load"
	log_mark
	expect_begin "hwt: BUG: module kt_debug_leaver .*$1 \[${4:-kt_debug_leaver}\]"
	unload kt_debug_leaver || fail "kt_debug_leaver does not unload"
	expect_end
	after "$2, own=$3"
	ok "$2, own=$3: reported"
}

# after WHAT: check that no timeout has fired, and that those of the host are there
after()
{
	! log_since | grep -q 'kt_debug_leaver: has fired' || fail "$*: a timeout has fired"
	unload kt_debug_host || fail "kt_debug_host does not unload"
	log_since | grep -q 'kt_debug_host: its own are there' || fail "$*: the host's are gone"
	log_since | grep -q 'kt_debug_host: 0 and 0 are pending' || fail "$*: a timeout is left"
}

load kt_debug_host
load kt_debug_leaver
log_mark
unload kt_debug_leaver
after none
check "a module that leaves no timeout is not reported" [ -z "$(log_since | grep 'hwt: BUG:')" ]

leave leaver_expire kmalloc 0
leave leaver_expire kmalloc 1
leave leaver_expire static 0
leave leaver_expire never 0
leave kt_nothing periodic 0
# The hold is about to end.
leave '(leaver_expire|leaver_release)' released 0
leave '(leaver_expire|leaver_release)' released 1
leave leaver_expire copied 0
leave host_sleep borrowed 0 kt_debug_host
# The end of the hold is left to a busy worker.
leave '(leaver_expire|leaver_release)' deferred 1
leave leaver_sleep running 0
leave leaver_sleep running 1
leave leaver_expire late 0
leave leaver_expire late 1
# Last, because the limit of reports suppresses others for some seconds.
leave leaver_expire many 1
plan
