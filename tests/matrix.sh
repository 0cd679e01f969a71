#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# matrix.sh [CELL...]: all tests on each kernel of the matrix (or on these), one line per cell
# with the date, and "N passed, N failed" at the end. The lines are kept in build/matrix/results
# from run to run, so that a cell which was not run now has its latest result.
# matrix.sh --show: what is there, as a table.
# QUICK=1: without the tests that take long.
#
# The cells are in tests/matrix.cells; a cell that cannot be had says there why.
set -eu
. "$(dirname "$0")/lib.sh"

out=$HWT_BUILD/matrix
results=$out/results
passed=0
failed=0

cells()
{
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' -e 's/[[:space:]]*|[[:space:]]*/|/g' \
		"$HWT_TOP/tests/matrix.cells"
}

# count PATTERN FILE
count() { grep -c "$1" "$2" 2>/dev/null || true; }

# keep CELL TEXT...: instead of what was there of it.
keep()
{
	local cell=$1
	shift
	touch "$results"
	awk -F '|' -v cell="$cell" '$1 != cell' "$results" >"$results.tmp"
	echo "$cell|$(date -u +%Y-%m-%d)|$*" >>"$results.tmp"
	mv "$results.tmp" "$results"
	echo "$cell: $*"
}

# warnings KERNEL DIRECTORY: the first that W=1 has to say of the module itself there.
warnings()
{
	local kdir list words=()
	if ! kdir=$("$HWT_TOP/tests/vm/kernels/get.sh" --kdir "$1") ||
		! list=$("$HWT_TOP/tests/vm/kernels/get.sh" --make "$1"); then
		echo "cannot be built: what that takes is not there"
		return
	fi
	[ -z "$list" ] || mapfile -t words <<<"$list"
	rm -rf "$2/w1"
	mkdir -p "$2/w1"
	ln -s "$HWT_TOP"/Kbuild "$HWT_TOP"/hwt*.[ch] "$2/w1/"
	rm -f "$2"/w1/*.mod.c
	if ! make -C "$kdir" M="$2/w1" "${words[@]}" W=1 -j"${HWT_JOBS:-$(nproc)}" \
		modules >"$2/w1.log" 2>&1 </dev/null; then
		echo "does not build: $(grep -m 1 -i error "$2/w1.log")"
	else
		grep -m 1 -E "(^|/)hwt[a-z_]*\.[ch]:.*(warning|error):|^(WARNING|ERROR): modpost:" \
			"$2/w1.log" || true
	fi
}

# run CELL KERNEL: with a build of its own, so that none takes what was made for another.
run()
{
	local cell=$1 kernel=$2 dir=$out/$1 release verdict warnings
	mkdir -p "$dir"
	rm -f "$dir/tests"
	if ! "$HWT_TOP/tests/vm/kernels/get.sh" "$kernel" >"$dir/kernel" 2>"$dir/kernel.log"; then
		failed=$((failed + 1))
		verdict=$(sed -n 's/^\[hwt\] error: //p' "$dir/kernel.log" | tail -n 1)
		keep "$cell" "no kernel: $verdict"
		return
	fi
	release=$(cat "$(cat "$dir/kernel")/release")
	say "$cell: $release (log: $dir/log)"
	warnings=$(warnings "$kernel" "$dir")
	# All tests, whatever is in the environment. The guest's exit code adds nothing to what it reports.
	HWT_BUILD=$dir/build HWT_RESULTS=$dir/tests NAMED='' TEST='' HWT_APPEND='' \
		"$HWT_TOP/tests/vm/guest.sh" "$kernel" >"$dir/log" 2>&1 </dev/null || true
	verdict="$(count '^ok ' "$dir/tests") passed, $(count '^not ok ' "$dir/tests") failed"
	verdict="$verdict, $(count '^skip ' "$dir/tests") skipped"
	if [ -n "$warnings" ]; then
		verdict="W=1: $warnings"
		failed=$((failed + 1))
	elif [ "$(tail -n 1 "$dir/tests" 2>/dev/null)" != "done" ]; then
		verdict="died without reporting: $(tail -n 1 "$dir/log")"
		failed=$((failed + 1))
	elif grep -q '^not ok ' "$dir/tests" || ! grep -q '^ok ' "$dir/tests"; then
		failed=$((failed + 1))
	else
		passed=$((passed + 1))
	fi
	[ "${QUICK:-0}" != 1 ] || verdict="$verdict (quick)"
	keep "$cell" "$release: $verdict"
}

show()
{
	local cell kernel what why
	echo "| cell | | date | result |"
	echo "| --- | --- | --- | --- |"
	while IFS='|' read -r cell kernel what why; do
		if [ "$kernel" = - ]; then
			echo "| $cell | $what | | not run: $why |"
		else
			awk -F '|' -v cell="$cell" -v what="$what" 'BEGIN { line = "| | never run |" }
				$1 == cell { line = "| " $2 " | " $3 " |" }
				END { print "| " cell " | " what " " line }
				' "$results"
		fi
	done < <(cells)
}

mkdir -p "$out"
touch "$results"
if [ "${1:-}" = --show ]; then
	show
	exit
fi
for name in "$@"; do
	cells | grep -q "^$name|" || die "no cell '$name' in tests/matrix.cells"
done
while IFS='|' read -r cell kernel what why <&3; do
	[ $# -eq 0 ] || [[ " $* " == *" $cell "* ]] || continue
	if [ "$kernel" = - ]; then
		echo "$cell ($what): not run: $why"
	else
		run "$cell" "$kernel"
	fi
done 3< <(cells)
echo
show
echo
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
