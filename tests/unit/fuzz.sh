#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# fuzz.sh RUNS COMMAND...: the fuzzer, so many inputs long, as one test. What it
# says is shown if it fails.
set -u

runs=$1
shift
if log=$("$@" -runs="$runs" 2>&1); then
	echo "ok - fuzzer: $runs inputs"
else
	printf '%s\n' "$log" | grep -v NEW_FUNC
	echo "not ok - fuzzer: see above"
	exit 1
fi
