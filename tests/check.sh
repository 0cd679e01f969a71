#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# check.sh all|quick|static|wheel|model|litmus|lib|packages|documented|harness|year|guest KERNEL...: runs
# the parts, counts what each reports, ends with the line "N passed, N failed".
#
# A part writes a results file (tests/tap.py) that ends with "done"; one that
# dies before that has failed.
set -eu
. "$(dirname "$0")/lib.sh"
# One stream, in order, also when it goes to a file.
exec 2>&1

cd "$HWT_TOP"
results=$HWT_BUILD/results
parts=()

# run_part NAME CMD...: in the results there is a verdict, whatever happens.
run_part()
{
	local name=$1 file=$results/$1 start=$SECONDS rc=0
	shift
	rm -f "$file"
	echo
	echo "=== $name"
	HWT_RESULTS=$file "$@" </dev/null || rc=$?
	if [ "$(tail -n 1 "$file" 2>/dev/null)" != "done" ]; then
		echo "not ok $name # died without reporting (exit code $rc)" >>"$file"
	elif [ $rc -ne 0 ] && ! grep -q '^not ok ' "$file"; then
		echo "not ok $name # exit code $rc" >>"$file"
	fi
	echo "=== $name: $(count '^ok ' "$file") passed, $(count '^not ok ' "$file") failed," \
		"$((SECONDS - start)) s"
}

part()
{
	parts+=("$results/$1")
	run_part "$@"
}

# beside LANE PART... -- CMD: CMD, which runs those parts, goes on beside what follows. What it
# says is in a log; join LANE waits for its end, and shows that.
declare -A lane_pid lane_parts
beside()
{
	local lane=$1
	shift
	while [ "$1" != -- ]; do
		rm -f "$results/$1"
		parts+=("$results/$1")
		lane_parts[$lane]+=" $1"
		shift
	done
	shift
	# In a process group of its own, which can be ended as one.
	set -m
	"$@" >"$results/$lane.log" 2>&1 &
	lane_pid[$lane]=$!
	set +m
	say "meanwhile:${lane_parts[$lane]} (log: $results/$lane.log)"
}

join()
{
	local lane=$1 said=$SECONDS name file
	while kill -0 "${lane_pid[$lane]}" 2>/dev/null; do
		sleep 1
		if [ $((SECONDS - said)) -ge 15 ]; then
			said=$SECONDS
			say "waiting for the $lane: $(tail -n 1 "$results/$lane.log" | cut -c 1-60)"
		fi
	done
	wait "${lane_pid[$lane]}" || true
	unset "lane_pid[$lane]"
	# A part says so itself when it dies, but not when all of its lane dies with it.
	for name in ${lane_parts[$lane]}; do
		file=$results/$name
		if [ "$(tail -n 1 "$file" 2>/dev/null)" != "done" ] && ! grep -qs '^not ok ' "$file"; then
			echo "not ok $name # killed" >>"$file"
		fi
	done
	cat "$results/$lane.log"
}

end_lanes()
{
	local pid
	for pid in "${lane_pid[@]}"; do
		kill -- "-$pid" 2>/dev/null || true
	done
}

# The last line is a verdict, whatever happens.
verdict=
end()
{
	end_lanes
	[ -n "$verdict" ] || echo "0 passed, 1 failed"
}
trap end EXIT

# count PATTERN FILE...
count() { cat -- "${@:2}" | grep -c "$1" || true; }

# Set-up is not counted when it works, so that the figures do not depend on it.
setup()
{
	tests/setup.sh "$1" || {
		printf '%s\n' "not ok setup $1 # see above" "done" >"$HWT_RESULTS"
		return 1
	}
	echo "done" >"$HWT_RESULTS"
}

need()
{
	part "setup" setup "$1"
	grep -q '^not ok' "$results/setup" && finish
	return 0
}

# A limit against what hangs: beside the guests a part may have to wait for long.
tap() { python3 tests/tap.py --name "$1" --results "$HWT_RESULTS" --timeout 4800 -- "${@:2}"; }
tap_make() { part "$1" tap "$1" make -s --no-print-directory -C "tests/$2" OUT="$HWT_BUILD/${2##*/}" "$3"; }
wheel() { tap_make wheel unit "$1"; }
model() { tap_make model verify/model "$1"; }
weak() { tap_make weak verify/model "$1"; }
litmus() { tap_make litmus verify/litmus check; }
lib() { part lib tap lib tests/unit/libhwt.sh; }
packages() { part packages tap packages tests/vm/packages/packages.sh; }
documented() { part documented tap documented tests/vm/packages/ten-minutes.sh; }
static() { part static tests/static/static.sh; }
harness() { part harness python3 tests/vm/harness.py; }
year() { part year tests/vm/year/run.sh; }

# What neither runs a guest nor has a limit of time gets what is left of the processors.
hosts()
{
	chrt --idle --pid 0 "$BASHPID" || renice -n 19 "$BASHPID" >/dev/null
	static
	wheel check
	litmus
	model check
	weak weak
}

guests()
{
	local kernel
	for kernel in "$@"; do
		part "guest-$kernel" tests/vm/guest.sh "$kernel"
	done
}

finish()
{
	local passed failed skipped
	passed=$(count '^ok ' "${parts[@]}")
	failed=$(count '^not ok ' "${parts[@]}")
	skipped=$(count '^skip ' "${parts[@]}")
	echo
	if [ "$failed" -gt 0 ]; then
		echo "Failures:"
		cat "${parts[@]}" | sed -n 's/^not ok /  /p'
		echo
	fi
	echo "Took $((SECONDS / 60)) min $((SECONDS % 60)) s."
	verdict=said
	if [ "$skipped" -gt 0 ]; then
		echo "$passed passed, $failed failed, $skipped skipped"
	else
		echo "$passed passed, $failed failed"
	fi
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
	exit
}

mkdir -p "$results" || die "$HWT_BUILD is not ours: remove it, or set HWT_BUILD"
case ${1:-all} in
all)
	need check
	mapfile -t kernels < <(tests/vm/kernels/get.sh --names)
	# On some of them only the tests that name them: see tests/vm/kernels/table.
	export NAMED=1
	# Most of a guest's time nothing happens: two of them have room on two processors.
	slow=() others=()
	beside hosts static wheel litmus model weak -- hosts
	for kernel in "${kernels[@]}"; do
		if [ "$(tests/vm/kernels/get.sh --slow "$kernel")" = slow ]; then
			slow+=("$kernel")
		else
			others+=("$kernel")
		fi
	done
	beside slow "${slow[@]/#/guest-}" -- guests "${slow[@]}"
	guests "${others[@]}"
	lib
	packages
	documented
	year
	harness
	join slow
	join hosts
	;;
quick)
	export QUICK=1
	need quick
	static
	wheel check-quick
	model check-quick
	guests stock
	;;
static)
	need static
	static ;;
wheel)
	need quick
	wheel check ;;
model)
	need quick
	model check
	weak weak-deep ;;
litmus)
	need litmus
	litmus ;;
lib)
	need quick
	lib ;;
packages)
	need packages
	packages ;;
documented)
	need documented
	documented ;;
harness)
	need static
	harness ;;
year)
	need year
	year ;;
guest)
	shift
	need guest
	guests "${@:-stock}" ;;
*)
	die "check.sh all|quick|static|wheel|model|litmus|lib|packages|documented|harness|year|guest KERNEL..." ;;
esac
finish
