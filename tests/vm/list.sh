#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# list.sh KERNEL QUICK [PATTERN]: what a guest runs, from the directives in the
# tests' sources (see tests/README.md). NAMED=1, as in "make check": some kernels run
# only the tests that name them. One line per run, for guest/init:
#
#	name|kind|timeout|noload|load parameters|disk|file|arguments
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
kernel=$1
quick=$2
pattern=${3:-*}
slower=1
[ "$("$top/tests/vm/kernels/get.sh" --slow "$kernel")" != slow ] || slower=3
names=$("$top/tests/vm/kernels/get.sh" --all | tr '\n' ' ')
foreign=$("$top/tests/vm/kernels/get.sh" --arch "$kernel")
tests=$("$top/tests/vm/kernels/get.sh" --tests "$kernel")

# directives FILE: its directives, one "word rest" a line.
directives()
{
	sed -n '1,40s/^[[:space:]*#/]*hwt-test:[[:space:]]*\(.*[^[:space:]*/]\)[[:space:]*/]*$/\1/p' "$1"
}

# value WORD: what follows the directive WORD in $found.
value() { sed -n "s/^$1\([[:space:]]\{1,\}\|\$\)//p" <<<"$found"; }
flag() { grep -qx "$1" <<<"$found"; }

emit()
{
	local name=$1
	# shellcheck disable=SC2053 # a pattern
	[[ $name == $pattern || ${name%%#*} == $pattern ]] || return 0
	(IFS='|'; echo "$*")
}

# runs NAME KIND FILE: a line for each "args" directive, or one.
runs()
{
	local name=$1 kind=$2 file=$3 limit noload=0 n=0 args
	limit=$(value timeout)
	limit=$((${limit:-60} * slower))
	! flag noload || noload=1
	while read -r args; do
		n=$((n + 1))
		[ $n -eq 1 ] || name="$1#$n"
		emit "$name" "$kind" "$limit" $noload "$(value load)" "$(value disk)" \
			"$file" "$args"
	done <<<"$(value args)"
}

wanted()
{
	local only check
	! flag manual || return 1
	# Of another architecture there are the modules, and the programs that need no library.
	if [ -n "$foreign" ]; then
		[[ $source != *.sh ]] || return 1
		[ -z "$(value libs)" ] || return 1
	fi
	if [ "$quick" = 1 ] && flag long; then
		return 1
	fi
	# In "make check" some run where there is something to learn only.
	check=$(value check)
	if [ "${NAMED:-0}" = 1 ] && [ -n "$check" ] && [[ " $check " != *" $kernel "* ]]; then
		return 1
	fi
	only=$(value only)
	if [ -z "$only" ]; then
		[ "${NAMED:-0}" != 1 ] || [ "$tests" != named ]
	else
		[[ " $only " == *" $kernel "* ]]
	fi
}

check_words()
{
	local word
	while read -r word _; do
		case $word in
		''|long|timeout|args|load|noload|only|check|m32|libs|manual|disk) ;;
		*) echo "$1: unknown directive 'hwt-test: $word'" >&2; exit 1 ;;
		esac
	done <<<"$found"
	for word in $(value only) $(value check); do
		[[ " $names " == *" $word "* ]] ||
			{ echo "$1: 'hwt-test: only' or 'check': no kernel $word" >&2; exit 1; }
	done
}

cd "$top"
shopt -s nullglob
for source in tests/kernel/test_*.c tests/user/*.c tests/kernel/*.sh tests/user/*.sh tests/torture/torture*.sh; do
	# A module that was built here leaves these.
	[[ $source != *.mod.c ]] || continue
	found=$(directives "$source")
	check_words "$source"
	wanted || continue
	name=$(basename "${source%.*}")
	case $source in
	tests/kernel/*.c) runs "$name" module "$name.ko" ;;
	*.sh) runs "$name" script "$name.sh" ;;
	tests/user/*)
		runs "$name" program "$name"
		# It is the same kernel code that serves them: once is enough.
		if [ "$kernel" = stock ] && flag m32; then
			runs "$name-32" program "$name-32"
		fi ;;
	esac
done
