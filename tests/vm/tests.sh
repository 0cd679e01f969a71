# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Runs the tests of a list and reports on standard output. Markers also go to the kernel log: see
# judge.py. Sourced under busybox sh, by init in a guest and by here.py on a real machine.
#
# HWT_DIR: the directory of this file, the list, scripts, programs (bin) and modules.
# HWT_KERNEL, HWT_QUICK, HWT_SLOW, HWT_TCG, HWT_PATCHING: for the tests, see tests/README.md.
# HWT_LANES: the number of tests that share a load and run at a time; default 4, on slow kernels 1.
# HWT_PARAMS: parameters for hwt.ko.
# HWT_GUEST=1: the machine runs nothing but the tests.
# HWT_BY: prefix of the markers, default "hwt". Tests that run inside a test have another.

export HWT_MODULES=$HWT_DIR/modules HWT_BIN=$HWT_DIR/bin
tests_tmp=${HWT_TMP:-/tmp}
. "$HWT_DIR/lib.sh"
hwt_by=${HWT_BY:-hwt}

# mark TEXT...: print a line to both logs.
mark()
{
	echo "$*"
	echo "$*" >/dev/kmsg
}

hwt_loaded() { grep -q '^hwt ' /proc/modules; }
uptime_seconds() { cut -d ' ' -f 1 /proc/uptime; }
# since UPTIME: print the seconds since then.
since() { echo "$1 $(uptime_seconds)" | awk '{ printf "%.1f\n", $2 - $1 }'; }

# The slab caches that hwt left behind and that are already reported.
known_left=
hwt_caches()
{
	{ sed 1,2d /proc/slabinfo; ls /sys/kernel/slab; } 2>/dev/null |
		sed -n 's/^\(hwt[^ ]*\).*/\1/p' | sort -u | tr '\n' ' '
}

# Unload all modules that were built here, clients before hwt.ko. Retry, because descriptors of
# killed processes may still be closing.
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

# Filter names of modules: omit those for the disk (enter() in lib.sh), which stay loaded, and on a
# real machine those that were not built here.
not_of_disk()
{
	local module
	# grep -v needs a pattern: "/" matches no module.
	{ echo /; ls "$HWT_DIR/disk" 2>/dev/null; } |
		sed -e 's/^[0-9]*-//' -e 's/\.ko$//' -e 's/-/_/g' >"$tests_tmp/of_disk"
	grep -vxF -f "$tests_tmp/of_disk" | while read -r module; do
		[ "${HWT_GUEST:-0}" = 0 ] && [ ! -e "$HWT_MODULES/$module.ko" ] || echo "$module"
	done
}

# after_tests MARKER: kill a guest's processes, and report modules and slab caches that are left.
after_tests()
{
	local left try
	if [ "${HWT_GUEST:-0}" = 1 ]; then
		# Process 1 kills all other processes.
		kill -9 -1
		wait
	fi
	# vrf, among others, cannot be unloaded.
	left=$(sed '/\[permanent\]/d; s/ .*//' /proc/modules | grep -v '^hwt$' | not_of_disk | tr '\n' ' ')
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

# perform KIND LIMIT FILE ARGS: run a test; $rc is its exit code. LIMIT 0: the host ends a test that
# hangs, because busybox's timeout wakes up each second, too often in a year that jumps.
perform()
{
	local kind=$1 limit=$2 file=$3 args=$4 watch limited="timeout -k 5 $2"
	rc=0
	[ "$limit" != 0 ] || { limited=''; limit=100000000; }
	# A test that hangs in the kernel cannot be killed: print where it hangs.
	{
		sleep $((limit + 10))
		echo w >/proc/sysrq-trigger
		echo l >/proc/sysrq-trigger
	} </dev/null >/dev/null 2>&1 &
	watch=$!
	# No quotes: options and parameters are several words.
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

# run NAME KIND LIMIT NOLOAD LOAD FILE ARGS: run a test on a load of its own. LOAD may begin with
# the path of another hwt.ko (plants.py).
run()
{
	local name=$1 load="$HWT_MODULES/hwt.ko $5" begin rc=0

	case $5 in /*) load=$5 ;; esac
	begin=$(uptime_seconds)
	mark "$hwt_by-test: begin $name $2"
	# shellcheck disable=SC2086 # parameters
	if [ "$4" = 0 ] && ! insmod $load ${HWT_LOAD:-}; then
		mark "$hwt_by-test: problem hwt.ko does not load"
	fi
	perform "$2" "$3" "$6" "$7"
	after_tests "$hwt_by-test"
	mark "$hwt_by-test: end $name $rc $(since "$begin")"
}

# run_beside NAME KIND LIMIT FILE ARGS: run a test beside others, with twice the time, and print its
# output in one piece when it ends.
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
	# The output may end without a newline.
	[ -z "$(tail -c 1 "$out")" ] || echo
	echo "$line"
	rmdir "$tests_tmp/beside.lock"
	rm -f "$out"
}

# Run the tests that no other lane has taken.
lane()
{
	local name kind limit file args
	while IFS='|' read -r name kind limit _ _ _ file _ args <&3; do
		mkdir "$tests_tmp/taken.$name" 2>/dev/null || continue
		run_beside "$name" "$kind" "$limit" "$file" "$args" 3<&-
	done 3<"$tests_tmp/shared"
}

# Run the tests of the list that share a load.
run_shared()
{
	local lane=0
	# shellcheck disable=SC2086 # parameters
	insmod "$HWT_MODULES/hwt.ko" ${HWT_LOAD:-} ||
		mark "$hwt_by-guest: problem hwt.ko does not load"
	while [ $lane -lt "${HWT_LANES:-$((4 - 3 * ${HWT_SLOW:-0}))}" ]; do
		lane &
		lane=$((lane + 1))
	done
	wait
	rmdir "$tests_tmp"/taken.*
	after_tests "$hwt_by-guest"
}

# Report unreferenced memory, with all modules unloaded. kmemleak reports only objects older than
# five seconds; a second scan drops those that were unreferenced for a moment.
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

# Print KCSAN's counters, and report a problem if KCSAN has watched no access.
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

# Print gcov's counts of all loads of hwt.ko, for coverage.py, if hwt.ko was built for gcov.
show_coverage()
{
	local file folder
	# Copy the files, because they have a size of 0 for tar.
	find /sys/kernel/debug/gcov -name '*.gcda' 2>/dev/null | while read -r file; do
		folder=$tests_tmp/gcov/$(basename "${file%/*}")
		mkdir -p "$folder" && cp "$file" "$folder"
	done
	[ -d "$tests_tmp/gcov" ] || return 0
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
