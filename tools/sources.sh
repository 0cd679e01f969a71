#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# sources.sh: list the files of this source tree, one per line: those that git tracks or would add;
# without git, those that are not the result of a build.
set -euo pipefail
cd "$(dirname "$0")/.."

{
	{ [ -e .git ] && git ls-files --cached --others --exclude-standard 2>/dev/null; } ||
		find . \( -name build -o -name .git \) -prune -o -type f ! -name '*.o' ! -name '*.ko' \
			! -name '*.mod' ! -name '*.mod.c' ! -name '*.a' ! -name '.*.cmd' ! -name '.*.d' \
			! -name Module.symvers ! -name modules.order -printf '%P\n'
} | while IFS= read -r file; do
	[ ! -e "$file" ] || echo "$file"
done
