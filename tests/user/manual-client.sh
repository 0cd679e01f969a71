#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwt(4) says enough: a client in another language that was written from it alone works.
#
# hwt-test: only stock
set -eu
. "$HWT_DIR/lib.sh"

"$HWT_BIN/manual_client"
