#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# vendor.sh DIRECTORY: write hwt_timers.c and hwt_timers.h, the timers of libhwt for programs that
# depend on nothing. They are under the MIT licence, compile as C11 and C++, and need no other file.
set -eu
[ $# = 1 ] || { echo "usage: $0 DIRECTORY" >&2; exit 2; }
top=$(dirname "$0")/..

mkdir -p "$1"
{
	echo '/* SPDX-License-Identifier: MIT */'
	sed 1d "$top/lib/libhwt_timers.h"
} >"$1/hwt_timers.h.tmp"
{
	echo '// SPDX-License-Identifier: MIT'
	echo '/*'
	echo ' * The timers of hwt_timers.h, in one file, made of lib/port.h, core/buckets.h, core/buckets.c,'
	echo ' * lib/timers_device.h and lib/timers.c of the project hwt by lib/vendor.sh'
	echo ' */'
	# clock_gettime() and CLOCK_BOOTTIME, if the compiler is told to be strict.
	printf '#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n'
	for file in lib/port.h core/buckets.h core/buckets.c lib/timers_device.h lib/timers.c; do
		printf '\n/* -- %s -- */\n\n' "$file"
		sed -e 1d -e '/^#include <linux\//d' -e '/^#include "\(hwt\.h\|core\/\|port\.h\|timers_device\.h\)/d' \
			-e 's/"libhwt_timers\.h"/"hwt_timers.h"/' \
			-e 's/^\(void\|bool\|u64\|size_t\|unsigned int\) hwt_/static hwt_unused &/' "$top/$file"
	done
} >"$1/hwt_timers.c.tmp"
mv "$1/hwt_timers.h.tmp" "$1/hwt_timers.h"
mv "$1/hwt_timers.c.tmp" "$1/hwt_timers.c"
