#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The commands that the documentation shows
set -eu
. "$HWT_DIR/lib.sh"
PATH=$HWT_BIN:$PATH

# From docs/programs.md.
hwtctl sleep 1.5s
printf 'schedule half 30ms\nschedule tea 60ms\n' | hwtctl run
hwtctl info
hwtctl stats
hwtctl top >/tmp/watched &
watched() { [ "$(grep -c '' /tmp/watched)" -ge 3 ]; }
wait_for 20 watched
kill $!
