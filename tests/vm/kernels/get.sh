#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# get.sh NAME: makes sure that a kernel of the table is there, and prints its
# directory (vmlinuz, release).
# get.sh --kdir NAME: what modules for it are built against.
# get.sh --make NAME: what make is told to build them, a word a line.
# get.sh --arch NAME: its architecture, if that is not this machine's.
# get.sh --names: the names of those that guests boot in "make check".
# get.sh --all: the names of all that guests can boot.
# get.sh --tests NAME: what runs there in "make check": all tests, or those that
# are named.
# get.sh --slow NAME: "slow", if tests take their time there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"

rows() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$here/table"; }
row() { rows | awk -v n="$1" '$1 == n'; }

# look_up NAME: sets kind, source and config.
look_up()
{
	read -r _ kind source config _ < <(row "$1") ||
		die "no kernel '$1' in tests/vm/kernels/table"
}

get()
{
	look_up "$1"
	case $kind in
	package) "$here/image.sh" "$source" "$config" ;;
	backport) "$here/backport.sh" "$source" "$config" ;;
	foreign) "$here/foreign.sh" "$source" "$config" ;;
	source) "$here/build.sh" "$source" "$config" ;;
	clang) "$here/build.sh" "$source" "$config" clang ;;
	uml) "$here/build.sh" "$source" "$config" um ;;
	*) die "kernel $1: unknown kind '$kind'" ;;
	esac
}

make_words()
{
	local prefix
	look_up "$1"
	case $kind in
	clang) echo LLVM=-14 ;;
	uml) echo ARCH=um ;;
	foreign)
		echo "ARCH=$source"
		[ "$source" != i386 ] || return 0
		prefix=$("$here/cross.sh")
		echo "CROSS_COMPILE=$prefix" ;;
	esac
}

case $1 in
--names)
	rows | awk '$5 != "-" { print $1 }' ;;
--all)
	rows | awk '$2 != "uml" { print $1 }' ;;
--tests)
	row "$2" | awk '{ print $5 }' ;;
--slow)
	row "$2" | awk '{ print $6 }' ;;
--arch)
	row "$2" | awk '$2 == "foreign" { print $3 }' ;;
--make)
	make_words "$2" ;;
--kdir)
	dir=$(get "$2")
	if [ -d "$dir/build" ]; then
		echo "$dir/build"
	else
		echo "/lib/modules/$(cat "$dir/release")/build"
	fi ;;
*)
	get "$1" ;;
esac
