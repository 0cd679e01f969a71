#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# get.sh NAME: makes sure that a kernel of the table is there, and prints its
# directory (vmlinuz, release).
# get.sh --kdir NAME: what modules for it are built against.
# get.sh --names: the names of those that guests boot.
# get.sh --tests NAME: what runs there in "make check": all tests, or those that
# are named.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"

rows() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$here/table"; }
row() { rows | awk -v n="$1" '$1 == n'; }

get()
{
	local kind source config
	read -r _ kind source config _ < <(row "$1") ||
		die "no kernel '$1' in tests/kernels/table"
	case $kind in
	package) "$here/image.sh" "$source" "$config" ;;
	backport) "$here/backport.sh" "$source" "$config" ;;
	source) "$here/build.sh" "$source" "$config" ;;
	uml) "$here/build.sh" "$source" "$config" um ;;
	*) die "kernel $1: unknown kind '$kind'" ;;
	esac
}

case $1 in
--names)
	rows | awk '$5 != "-" { print $1 }' ;;
--tests)
	row "$2" | awk '{ print $5 }' ;;
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
