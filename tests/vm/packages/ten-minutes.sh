#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# ten-minutes.sh: what README.md and CONTRIBUTING.md have a newcomer do, by the commands that stand
# there, in a tree of its own (build/documented). Prints TAP.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"

out=$HWT_BUILD/documented
points=0

# point TEXT COMMAND...: passes if the command succeeds; else shows what was said last.
point()
{
	local text=$1
	shift
	points=$((points + 1))
	if "$@"; then
		echo "ok $points - $text"
	else
		echo "not ok $points - $text"
		tail -n 20 "$out/log" | sed 's/^/# /'
	fi
}

# typed: commands from stdin, as a newcomer has them: nothing of this run is in the environment.
typed()
{
	env --chdir="$out/hwt" -u HWT_BUILD -u HWT_TOP -u HWT_CACHE -u HWT_RESULTS -u NAMED -u QUICK \
		-u MAKEFLAGS -u MAKELEVEL bash -e >"$out/log" 2>&1
}

said() { grep -q -- "$1" "$out/log"; }

builds()
{
	typed <<'END'
make
END
	[ -s "$out/hwt/hwt.ko" ]
}

shows()
{
	typed <<'END'
make run
END
}

# As it has to: the promise that does not hold any more is named.
breaks()
{
	! typed <<'END' && said 'FAIL .*stock/module-params' && said 'ticks of 1000 us' && said '[1-9][0-9]* failed$'
sed -i 's/tick_us = 1000;/tick_us = 2000;/' hwt_main.c
make check-guest KERNEL=stock TEST='module-params'
END
}

rm -rf "$out"
"$HWT_TOP/tools/copy.sh" "$out/hwt"
point "make run shows the module at its job" shows
point "make builds hwt.ko" builds
point "a constant is changed: a test fails, and says which" breaks
rm -rf "$out/hwt"
echo "1..$points"
