#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# copy.sh DIRECTORY: makes that a copy of this source tree as it is, without what was built of it.
set -eu
mkdir -p "$1"
to=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

# What git knows or would take; without git, what is no result of a build.
{
	{ [ -e .git ] && git ls-files -z --cached --others --exclude-standard; } ||
		find . -name build -prune -o -type f ! -name '*.o' ! -name '*.ko' ! -name '*.mod' \
			! -name '*.mod.c' ! -name '.*.cmd' -print0
} | while IFS= read -r -d '' file; do
	[ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --null -T - -c | tar -x -C "$to"
