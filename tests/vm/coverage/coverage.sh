#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make check-coverage [KERNELS="debug ..."] [TEST=pattern] [QUICK=1]: what the tests reach of
# hwt.ko, counted by gcov in guests, whose counts are added up.
# coverage.sh --report: only the report, of what was counted last.
#
# A kernel must have CONFIG_GCOV_KERNEL; of hwt.ko a build of its own is made. In
# build/coverage: report.txt, html/index.html, and of each part of the tests its log.
set -eu -o pipefail
. "$(dirname "$0")/../../lib.sh"

out=$HWT_BUILD/coverage
here=$HWT_TOP/tests/vm/coverage
read -ra kernels <<<"${KERNEL:-debug debug612}"
# The counts come at the end of a guest: in parts, so that not all is lost with one.
all=('test_*' '!(test_*|fault_*|pull_*)' '@(fault_*|pull_*)')
# Of debug612 what debug does not have.
some=("@(uring*|module-debug)")
failed=0

# count KERNEL NUMBER PATTERN: runs the tests there, and reads what was counted.
count()
{
	local kernel=$1 dir=$out/$1 part=$out/$1-$2 tree=$out/$1/modules/$1 rc=0
	mkdir -p "$dir"
	say "$3 on $kernel, with hwt.ko built to count (log: $part.log)"
	HWT_COVERAGE=$here HWT_BUILD=$dir HWT_RESULTS=$part.results NAMED='' TEST=$3 \
		"$HWT_TOP/tests/vm/guest.sh" "$kernel" >"$part.log" 2>&1 </dev/null || rc=$?
	sed -n 's/^\(\[hwt\] guest .* passed,.*\)/\1/p' "$part.log"
	if [ $rc -ne 0 ]; then
		say "tests failed: what they reach is not what they should"
		failed=1
	fi
	find "$tree" -name '*.gcda' -delete
	sed -n '/^hwt-coverage: begin/,/^hwt-coverage: end/{/^hwt-coverage/!p}' \
		"$dir/guest/$kernel/tests.log" | tr -d '\r' | base64 -d | tar -C "$tree" -xzm ||
		die "nothing was counted: see $part.log"
	# The modules were built in a tree of links, the sources are in none.
	# Of tracepoints all but the fields is the kernel's macros.
	gcovr --root "$tree" --filter "$HWT_TOP/hwt" --exclude "$HWT_TOP/hwt_trace" --json "$part.json" "$tree" >>"$part.log" 2>&1
}

merge()
{
	local file tracefiles=()
	for file in "$out"/*-[0-9].json; do
		tracefiles+=(--add-tracefile "$file")
	done
	gcovr --root "$HWT_TOP" "${tracefiles[@]}" --json "$out/coverage.json" \
		--html-details "$out/html/index.html" --html-title "hwt.ko, by its tests"
}

mkdir -p "$out/html"
if [ "${1:-}" != --report ]; then
	rm -f "$out"/*-[0-9].json
	for kernel in "${kernels[@]}"; do
		parts=("${all[@]}")
		[ "$kernel" != debug612 ] || parts=("${some[@]}")
		[ -z "${TEST:-}" ] || parts=("$TEST")
		for i in "${!parts[@]}"; do
			count "$kernel" "$i" "${parts[i]}"
		done
	done
fi
logged "$out/gcovr.log" "adding up" merge
python3 "$here/report.py" "$HWT_TOP" "$out/coverage.json" "$here/not-reached" |
	tee "$out/report.txt"
exit $failed
