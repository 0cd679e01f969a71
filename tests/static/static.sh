#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Static checks. Each is a test point; what it found is shown.
set -eu
. "$(dirname "$0")/../lib.sh"

cd "$HWT_TOP"
results=${HWT_RESULTS:-$HWT_BUILD/results/static}
logs=$HWT_BUILD/static
kernel_source=$(tests/vm/kernels/source.sh linux-source-6.1)
kselftest=$kernel_source/tools/testing/selftests
mkdir -p "$logs" "$(dirname "$results")"
: >"$results"

# check NAME CMD...: passes if the command succeeds and prints nothing.
check()
{
	local name=$1 log=$logs/$1.log start=$SECONDS
	shift
	if "$@" >"$log" 2>&1 && [ ! -s "$log" ]; then
		echo "ok static/$name" >>"$results"
		echo "    ok  $name  ($((SECONDS - start)) s)"
	else
		echo "not ok static/$name # $(grep -c '' "$log") lines in $log" >>"$results"
		echo "  FAIL  $name  ($((SECONDS - start)) s)"
		sed 's/^/        | /' "$log" | head -n 40
	fi
}

mapfile -t sources < <(tools/sources.sh)
[ "${#sources[@]}" -gt 0 ] || die "no sources are found"

# files [PATTERN...]: those of the sources.
files()
{
	local file pattern
	for file in "${sources[@]}"; do
		for pattern in "${@:-*}"; do
			# shellcheck disable=SC2053 # a pattern
			[[ $file != $pattern ]] || { echo "$file"; break; }
		done
	done
}

mapfile -t c_files < <(files '*.c' '*.h')
# What runs in user space. The wheel is checked as kernel code.
mapfile -t user_files < <(files 'tests/user/*.c' 'tests/unit/*.c' 'bench/user/*.c' 'bench/hot/*.c' 'tests/fuzz/*.c' 'samples/*.c' 'lib/*.c' 'tools/*.c' |
	grep -v '^samples/hwt_')
mapfile -t kernel_files < <(files 'hwt*.[ch]' 'samples/hwt_*.c' 'tests/kernel/*.[ch]' 'tests/kernel/lib/*.[ch]' 'bench/bench*.[ch]' 'tests/torture/*.[ch]' 'tests/vm/year/*.[ch]')

# --- for everything ---

# Markdown and licence texts may do without.
spdx()
{
	local file
	files | grep -v -e '\.md$' -e '^LICENSES/' -e '^COPYING$' -e '^debian/' | while read -r file; do
		# Empty files and data have nothing to license.
		[ -s "$file" ] && grep -qI '' "$file" || continue
		head -n 3 "$file" | grep -q 'SPDX-License-Identifier: ' || echo "$file: no SPDX line"
	done
}

# Nothing in the repository knows where it was written or where packages are.
places()
{
	local pattern='(deb|security|ftp[.a-z]*|snapshot)\.debian''\.org|(^|[^a-zA-Z0-9_.])/(root|work|home)/[a-z]'
	if files | grep -v '^LICENSES/' | xargs -d '\n' grep -nIE "$pattern"; then
		return 1
	fi
}

# --- kernel style and kernel tools ---

# Types that are ignored, and why. Nothing may be suppressed in the sources.
ignored_types()
{
	case $1 in
	# The one place where differences between kernels live.
	# (Upper case on its left makes checkpatch take it for a constant.)
	hwt_compat.h|tests/*compat.h) echo LINUX_VERSION_CODE,CONSTANT_COMPARISON ;;
	# User space: no kernel helpers or attributes to prefer, stand-ins for
	# kernel headers, and the macros of kselftest_harness.h.
	tests/user/*|tests/unit/*|bench/user/*|bench/hot/*|tests/fuzz/*|samples/*|lib/*|tools/*)
		echo PREFER_KERNEL_TYPES,PREFER_DEFINED_ATTRIBUTE_MACRO,NEW_TYPEDEFS,CAMELCASE,AVOID_EXTERNS,VOLATILE,MACRO_ARG_REUSE ;;
	# Its one macro takes code as an argument.
	bench/*) echo MACRO_ARG_REUSE,MACRO_ARG_PRECEDENCE ;;
	esac
}

checkpatch()
{
	local file ignore bad=0
	for file in "$@"; do
		ignore=$(ignored_types "$file")
		"$kernel_source/scripts/checkpatch.pl" --no-tree --strict --terse --show-types --quiet \
			--no-summary ${ignore:+--ignore "$ignore"} -f "$file" || bad=1
	done
	return $bad
}

kernel_doc()
{
	local documented
	mapfile -t documented < <(grep -lE '^/\*\*$' "${kernel_files[@]}")
	[ "${#documented[@]}" -gt 0 ] || { echo "nothing is documented"; return 1; }
	"$kernel_source/scripts/kernel-doc" -none -Werror "${documented[@]}"
}

# All modules, from nothing, with more warnings and with sparse.
build_checked()
{
	rm -rf "$HWT_BUILD/modules/static"
	HWT_TREE=static tests/vm/build.sh stock W=1 C=2 CF=-D__CHECK_ENDIAN__ KCFLAGS= 2>/dev/null ||
		tail -n 20 "$HWT_BUILD/modules/static.log"
	# gcc's warnings end in their option, sparse's do not.
	grep -E '(warning|error):' "$HWT_BUILD/modules/static.log" >"$logs/build.warnings" || true
}
gcc_warnings() { build_checked; grep -E '\[-W|error:' "$logs/build.warnings" || true; }
sparse_warnings() { grep -vE '\[-W' "$logs/build.warnings" || true; }

# --- user space ---

# Where a file's headers are: the harness, or stand-ins for the kernel's.
includes()
{
	case $1 in
	tests/unit/*) echo "-Itests/unit/include -isystem $kernel_source/tools/include" ;;
	tests/user/*) echo "-Itests/user/lib -isystem $kselftest" ;;
	esac
}

# uninitvar: it does not see through the harness's macros; clang does.
cppcheck_run()
{
	[ "${#user_files[@]}" -gt 0 ] || return 0
	cppcheck --quiet --enable=warning,performance,portability --std=c11 --error-exitcode=1 \
		--suppress=missingInclude --suppress=uninitvar "--suppress=*:$kselftest/*" \
		-I. -Ilib -Itests/user/lib -I"$kselftest" "${user_files[@]}"
}

tidy_one()
{
	local errors=$logs/tidy.$BASHPID checks=
	# These run under ASan and UBSan, and the analyzer loses itself in the lists.
	[[ $1 != tests/unit/* ]] || checks='-clang-analyzer-*'
	# shellcheck disable=SC2046 # words
	clang-tidy --quiet ${checks:+--checks="$checks"} "$1" -- -std=gnu11 -I. -Ilib $(includes "$1") 2>"$errors" || cat "$errors"
	rm -f "$errors"
}

# A shell of its own: it waits for its own jobs.
tidy()
(
	for file in "${user_files[@]}"; do
		# What these include is set up by make bench only.
		[[ $file != bench/* ]] || continue
		while [ "$(jobs -rp | wc -l)" -ge "${HWT_JOBS:-$(nproc)}" ]; do
			wait -n
		done
		tidy_one "$file" &
	done
	wait
)

# --- scripts ---

shell_scripts()
{
	files | while read -r file; do
		case $file in
		*.sh) echo "$file" ;;
		*.*) ;;
		*) head -n 1 "$file" | grep -qE '^#!.*\b(ba)?sh$' && echo "$file" ;;
		esac
	done
}

# The guest's sh is busybox, which like dash has "local". /hwt/lib.sh is there only.
shellcheck_run()
{
	local script dialect
	shell_scripts | while read -r script; do
		dialect=()
		! head -n 1 "$script" | grep -qx '#!/bin/sh' || dialect=(-s dash)
		shellcheck -x -P SCRIPTDIR -S warning -e SC1091 "${dialect[@]}" "$script" || true
	done
}

python_run()
{
	local parse='import ast, sys; [ast.parse(open(f).read(), f) for f in sys.argv[1:]]'
	files '*.py' | xargs -d '\n' python3 -c "$parse"
}

abi() { tests/static/abi.py guard; }
manual() { tests/static/manual.sh "$kernel_source/scripts/kernel-doc"; }
# One version of all.
versions()
{
	local version
	version=$(sed -n '1s/^hwt (\(.*\)) .*/\1/p' debian/changelog)
	grep -qx "PACKAGE_VERSION=\"$version\"" dkms.conf || echo "dkms.conf has another than $version"
	grep -qxF "MODULE_VERSION(\"$version\");" hwt_main.c || echo "hwt.ko has another than $version"
	grep -qx "VERSION := $version" lib/Makefile || echo "libhwt has another than $version"
	grep -q "^#define HWTCTL_VERSION.*\"$version\"" tools/hwtctl.h || echo "hwtctl has another than $version"
	grep -qF "/usr/src/hwt-$version/hwt.h" docs/packages.md || echo "docs/packages.md has another than $version"
}

# What tracepoints and checks cost while they are off, in instructions.
off_is_free()
{
	local said
	said=$(make -s --no-print-directory -C bench/hot KSRC="$kernel_source" off 2>&1) ||
		grep -v '^@bench' <<<"$said"
}
# The faults that are planted now and then: can they be?
plants()
{
	local plant
	files 'tests/*/plants/*.patch' | while read -r plant; do
		patch -p1 -F0 --dry-run -s <"$plant" >/dev/null || echo "$plant does not apply"
	done
}
directives() { tests/vm/list.sh stock 0 >/dev/null; }

# Two lanes, for two processors.
kernel_lane()
{
	check gcc-W1 gcc_warnings
	check sparse sparse_warnings
	check checkpatch checkpatch "${c_files[@]}"
	check kernel-doc kernel_doc
}

rest_lane()
{
	check spdx spdx
	check places places
	check directives directives
	check plants plants
	check documentation tests/static/readme-blocks.sh
	check abi abi
	check versions versions
	check figures make -s --no-print-directory -C docs/figures check OUT="$logs/figures"
	check manual manual
	check hwtctl tests/static/hwtctl.sh
	# Few run the benchmarks; that they build is seen here.
	check bench-builds make -s --no-print-directory -C bench/hot KSRC="$kernel_source" programs
	if [ "${QUICK:-0}" = 1 ]; then
		echo "skip static/off-is-free # quick" >>"$results"
	else
		check off-is-free off_is_free
	fi
	check shellcheck shellcheck_run
	check python python_run
	check cppcheck cppcheck_run
	if [ "${QUICK:-0}" = 1 ]; then
		echo "skip static/clang-tidy # quick" >>"$results"
	else
		check clang-tidy tidy
	fi
}

kernel_lane &
rest_lane
wait $!
echo "done" >>"$results"
! grep -q '^not ok ' "$results"
