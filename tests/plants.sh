# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Faults that are put into a copy of the checkout, one after the other, to see what finds them.
# Sourced after lib.sh and packages.sh; the caller has a function try NAME, which prints what has
# found the fault, and fails if nothing has.

# plants_copy DIR PATCHES: the checkout, as it is. What has not changed since the last time is not
# compiled anew.
plants_copy()
{
	"$HWT_TOP/tools/copy.sh" "$1"
	# But for what the last plant was in.
	(cd "$1" && sed -n 's|^+++ b/||p' "$2"/*.patch | sort -u | xargs touch)
}

# plants_try PATCHES TOP [NAME...]: each of them, or those, in TOP/tree. Fails if one was not found.
plants_try()
{
	local plants=$1 top=$2 missed=0 patch name found rc
	shift 2
	"$HWT_TOP/tests/setup.sh" guest
	packages_install patch
	plants_copy "$top/tree" "$plants"
	for patch in "$plants"/*.patch; do
		name=$(basename "$patch" .patch)
		if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then
			continue
		fi
		# There and back: only that file is compiled anew.
		patch -s -p1 -d "$top/tree" <"$patch"
		found=$(try "$name") && rc=0 || rc=1
		patch -s -R -p1 -d "$top/tree" <"$patch"
		if [ "$rc" -eq 0 ]; then
			echo "$name: found: ${found//$'\n'/; }"
		else
			echo "$name: NOT FOUND (log: $top/$name.log)"
			missed=$((missed + 1))
		fi
	done
	[ $missed -eq 0 ]
}
