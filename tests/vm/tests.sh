# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Runs the tests of a list, reports on standard output. Markers go to the kernel log, too: see
# judge.py. Sourced by init in a guest, and by here.py on a real machine, under busybox sh.
#
# HWT_DIR: the directory of this file, the list, scripts, programs (bin) and modules.
# HWT_KERNEL, HWT_QUICK, HWT_SLOW, HWT_TCG, HWT_PATCHING: for the tests, see tests/README.md.
# HWT_LANES: tests that share a load run so many at a time; default 4, on slow kernels 1.
# HWT_PARAMS: parameters for hwt.ko.
# HWT_GUEST=1: all of this machine is ours.
# HWT_BY: what the markers begin with, default "hwt". Tests that run in a test have their own.

export HWT_MODULES=$HWT_DIR/modules HWT_BIN=$HWT_DIR/bin
tests_tmp=${HWT_TMP:-/tmp}
. "$HWT_DIR/lib.sh"
hwt_by=${HWT_BY:-hwt}

# mark TEXT...: to both logs.
mark()
{
	echo "$*"
	echo "$*" >/dev/kmsg
}

hwt_loaded() { grep -q '^hwt ' /proc/modules; }
uptime_seconds() { cut -d ' ' -f 1 /proc/uptime; }
# since SECONDS: from then to now.
since() { echo "$1 $(uptime_seconds)" | awk '{ printf "%.1f\n", $2 - $1 }'; }

# Names of slab caches that hwt left behind; those already reported.
known_left=
hwt_caches()
{
	{ sed 1,2d /proc/slabinfo; ls /sys/kernel/slab; } 2>/dev/null |
		sed -n 's/^\(hwt[^ ]*\).*/\1/p' | sort -u | tr '\n' ' '
}

# Unload whatever was built here, users before what they use. Descriptors of killed processes
# may still be closing.
unload_all()
{
	local try module
	for try in 1 2 3 4 5 6 7 8 9 10; do
		for module in $(sed 's/ .*//' /proc/modules); do
			[ -e "$HWT_MODULES/$module.ko" ] && rmmod "$module" 2>/dev/null
		done
		hwt_loaded || return 0
		[ "$try" -lt 4 ] || sleep 1
	done
	return 1
}

# Of the names of modules, those that are not for the disk (lib.sh, enter), which stay, and on a
# real machine those that were built here only.
not_of_disk()
{
	local module
	# (Without any pattern grep matches everything: so there is one that nothing matches.)
	{ echo /; ls "$HWT_DIR/disk" 2>/dev/null; } |
		sed -e 's/^[0-9]*-//' -e 's/\.ko$//' -e 's/-/_/g' >"$tests_tmp/of_disk"
	grep -vxF -f "$tests_tmp/of_disk" | while read -r module; do
		[ "${HWT_GUEST:-0}" = 0 ] && [ ! -e "$HWT_MODULES/$module.ko" ] || echo "$module"
	done
}

# after_tests WHAT: nothing may be left: no process, no module, no slab cache.
after_tests()
{
	local left try
	if [ "${HWT_GUEST:-0}" = 1 ]; then
		# From process 1: everyone but the kernel and this shell.
		kill -9 -1
		wait
	fi
	left=$(sed 's/ .*//' /proc/modules | grep -v '^hwt$' | not_of_disk | tr '\n' ' ')
	[ -z "$left" ] || mark "$1: problem left loaded: $left"
	unload_all || mark "$1: problem hwt.ko does not unload (use count $(sed -n 's/^hwt [0-9]* \([0-9]*\).*/\1/p' /proc/modules))"
	# Caches are freed by RCU and work items.
	for try in 1 2 3 4 5 6 7 8 9 10; do
		left=$(hwt_caches)
		# A cache that an earlier test left is that test's failure.
		[ -n "$left" ] && [ "$left" != "$known_left" ] || return 0
		sleep 0.2
	done
	mark "$1: problem slab caches left behind: $left"
	known_left=$left
}

# perform KIND LIMIT FILE ARGS: run one test; its exit code in $rc. LIMIT 0: the host ends a test
# that hangs. (busybox's timeout wakes up each second, which is much in a year that jumps.)
perform()
{
	local kind=$1 limit=$2 file=$3 args=$4 watch limited="timeout -k 5 $2"
	rc=0
	[ "$limit" != 0 ] || { limited=''; limit=100000000; }
	# A test stuck in the kernel survives its killing: show where it is stuck.
	{
		sleep $((limit + 10))
		echo w >/proc/sysrq-trigger
		echo l >/proc/sysrq-trigger
	} </dev/null >/dev/null 2>&1 &
	watch=$!
	# Options and parameters are words: no quotes around them on purpose.
	# shellcheck disable=SC2086
	case $kind in
	program) $limited "$HWT_BIN/$file" $args || rc=$? ;;
	script)	 $limited sh "$HWT_DIR/scripts/$file" $args || rc=$? ;;
	module)
		$limited insmod "$HWT_MODULES/$file" $args || rc=$?
		if [ $rc -eq 0 ]; then
			rmmod "${file%.ko}" || echo "$hwt_by-test: problem $file does not unload"
		fi ;;
	esac
	kill $watch 2>/dev/null
	wait $watch 2>/dev/null
}

# run NAME KIND LIMIT NOLOAD LOAD FILE ARGS: one test on a load of its own. LOAD may begin with
# the path of another hwt.ko (plants.py).
run()
{
	local name=$1 load="$HWT_MODULES/hwt.ko $5" begin rc=0

	case $5 in /*) load=$5 ;; esac
	begin=$(uptime_seconds)
	mark "$hwt_by-test: begin $name $2"
	# shellcheck disable=SC2086 # parameters
	if [ "$4" = 0 ] && ! insmod $load; then
		mark "$hwt_by-test: problem hwt.ko does not load"
	fi
	perform "$2" "$3" "$6" "$7"
	after_tests "$hwt_by-test"
	mark "$hwt_by-test: end $name $rc $(since "$begin")"
}

# run_beside NAME KIND LIMIT FILE ARGS: one of several at a time. What it prints is reported in
# one piece when it ends.
run_beside()
{
	local name=$1 out=$tests_tmp/beside.$1 begin rc=0 line

	begin=$(uptime_seconds)
	echo "$hwt_by-test: begin $name $2" >/dev/kmsg
	perform "$2" $(($3 * 2)) "$4" "$5" >"$out" 2>&1
	line="$hwt_by-test: end $name $rc $(since "$begin")"
	echo "$line" >/dev/kmsg
	until mkdir "$tests_tmp/beside.lock" 2>/dev/null; do
		sleep 0.05
	done
	echo "$hwt_by-test: begin $name $2"
	cat "$out"
	# The output may end in the middle of a line.
	[ -z "$(tail -c 1 "$out")" ] || echo
	echo "$line"
	rmdir "$tests_tmp/beside.lock"
	rm -f "$out"
}

# Run each test that no other lane has taken.
lane()
{
	local name kind limit file args
	while IFS='|' read -r name kind limit _ _ _ file _ args <&3; do
		mkdir "$tests_tmp/taken.$name" 2>/dev/null || continue
		run_beside "$name" "$kind" "$limit" "$file" "$args" 3<&-
	done 3<"$tests_tmp/shared"
}

# Those tests of the list that share a load.
run_shared()
{
	local lane=0
	insmod "$HWT_MODULES/hwt.ko" || mark "$hwt_by-guest: problem hwt.ko does not load"
	while [ $lane -lt "${HWT_LANES:-$((4 - 3 * ${HWT_SLOW:-0}))}" ]; do
		lane &
		lane=$((lane + 1))
	done
	wait
	rmdir "$tests_tmp"/taken.*
	after_tests "$hwt_by-guest"
}

# Unreferenced memory, with everything unloaded. Only objects older than five seconds are
# reported, and a second scan drops what was a moment's luck.
check_kmemleak()
{
	local leaks=/sys/kernel/debug/kmemleak
	[ -w $leaks ] || return 0
	sleep 5
	echo scan >$leaks
	sleep 1
	echo scan >$leaks
	if [ -n "$(cat $leaks)" ]; then
		cat $leaks
		mark "$hwt_by-guest: problem kmemleak: $(grep -c '^unreferenced' $leaks) objects lost ($(grep -m 1 comm $leaks))"
	fi
}

# A KCSAN that has watched nothing has found nothing.
check_kcsan()
{
	local counts=/sys/kernel/debug/kcsan
	if [ ! -r $counts ]; then
		[ "${HWT_KERNEL:-}" != kcsan ] ||
			mark "$hwt_by-guest: problem KCSAN does not say what it has watched"
		return 0
	fi
	sed 's/^/# kcsan: /' $counts
	if grep -q '^setup_watchpoints: 0$' $counts; then
		mark "$hwt_by-guest: problem KCSAN has watched nothing"
	fi
}

# Print what gcov has counted of hwt.ko over all its loads, for coverage.py. There is nothing
# unless hwt.ko was built to count.
show_coverage()
{
	local file
	mkdir "$tests_tmp/gcov"
	# To tar these files look empty: they are copied first.
	find /sys/kernel/debug/gcov -name '*.gcda' 2>/dev/null | while read -r file; do
		cp "$file" "$tests_tmp/gcov"
	done
	rmdir "$tests_tmp/gcov" 2>/dev/null && return
	echo "hwt-coverage: begin"
	tar -C "$tests_tmp/gcov" -cz . | base64
	echo "hwt-coverage: end"
}

run_tests()
{
	local count=0 name kind limit noload load file shared args
	grep '^\([^|]*|\)\{7\}1|' "$HWT_DIR/list" >"$tests_tmp/shared" && run_shared
	count=$(grep -c '' "$tests_tmp/shared")
	while IFS='|' read -r name kind limit noload load _ file shared args <&3; do
		[ "$shared" = 0 ] || continue
		run "$name" "$kind" "$limit" "$noload" "$load" "$file" "$args" 3<&-
		count=$((count + 1))
	done 3<"$HWT_DIR/list"
	after_tests "$hwt_by-guest"
	check_kmemleak
	check_kcsan
	show_coverage
	mark "$hwt_by-guest: idle $(awk '{ print $2, $1 }' /proc/uptime)"
	mark "$hwt_by-guest: end $count"
}
