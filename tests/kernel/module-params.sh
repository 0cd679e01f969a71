#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwt.ko's parameters: a value out of range is refused, and the log names parameter, value and
# range; an accepted value is in sysfs, and in the parameters of a wheel with the defaults.
#
# hwt-test: long
# hwt-test: noload
# hwt-test: timeout 120
set -eu
. "$HWT_DIR/lib.sh"

params=/sys/module/hwt/parameters

# refuses NAME VALUE RANGE: insmod fails, the log has the reason, and no module is left
refuses()
{
	log_mark
	if insmod "$HWT_MODULES/hwt.ko" "$1=$2" 2>/tmp/error; then
		rmmod hwt
		return 1
	fi
	cat /tmp/error
	log_since | grep hwt:
	grep -q 'Invalid argument' /tmp/error && ! grep -q '^hwt ' /proc/modules &&
		log_since | grep -q "hwt: $1=$2 is out of range: $3"
}
refused() { check "$1=$2 is refused: $3" refuses "$@"; }

# makes WANTED PARAMS...: sysfs has the parameters, and the log of kt_client has WANTED
makes()
{
	wanted=$1
	shift
	load hwt "$@" || return 1
	wrong=
	for pair in "$@"; do
		[ "$(cat $params/"${pair%%=*}")" = "${pair#*=}" ] || wrong="$wrong $pair"
	done
	log_mark
	load kt_client || true
	unload kt_client || true
	unload hwt || return 1
	echo "wrong in sysfs: ${wrong:-none}; $(log_since | grep 'a wheel has')"
	[ -z "$wrong" ] && log_since | grep -q "$wanted"
}

# accepted TICK BUCKETS LEVELS PARAMS...
accepted()
{
	like="a wheel has ticks of $1 us, $2 buckets, $3 levels"
	shift 3
	check "$*: $like" makes "$like" "$@"
}

refused tick_us 0 '1 to 3600000000'
refused tick_us 3600000001 '1 to 3600000000'
refused tick_us 4294967295 '1 to 3600000000'
refused ticks_per_wheel 0 '2 to 65536'
refused ticks_per_wheel 1 '2 to 65536'
refused ticks_per_wheel 65537 '2 to 65536'
refused levels 0 '1 to 6'
refused levels 7 '1 to 6'
refused min_tick_us 0 '1 to 1000000'
refused min_tick_us 1000001 '1 to 1000000'
refused reclaim_ms 0 '1 to 10000'
refused reclaim_ms 10001 '1 to 10000'
refused max_timeouts 0 '1 to 1073741824'
refused max_timeouts 1073741825 '1 to 1073741824'

accepted 1000 8192 3 tick_us=1000 ticks_per_wheel=8192 levels=3 min_tick_us=1000 reclaim_ms=100
accepted 5000 128 2 tick_us=5000 ticks_per_wheel=128 levels=2
accepted 1000 1024 1 ticks_per_wheel=513 levels=1
accepted 1000 65536 6 ticks_per_wheel=65536 levels=6
accepted 3600000000 2 3 tick_us=3600000000 ticks_per_wheel=2
accepted 1000 8192 3 tick_us=1
accepted 250 8192 3 tick_us=250 min_tick_us=100
accepted 20000 8192 3 tick_us=1 min_tick_us=20000
accepted 1000 8192 3 reclaim_ms=1
accepted 1000 8192 3 reclaim_ms=10000
accepted 1000 8192 3 max_timeouts=1 max_user_timeouts=0 thread_contexts=Y
accepted 1000 8192 3 max_timeouts=1073741824 max_user_timeouts=1

# user_default TIMEOUTS WANTED: the default of max_user_timeouts follows from max_timeouts
user_default()
{
	load hwt max_timeouts="$1"
	check "max_timeouts=$1: max_user_timeouts is $2" grep -qx "$2" $params/max_user_timeouts
	unload hwt
}

user_default 1048576 4194304
user_default 10 40
user_default 1073741824 4294967294
plan
