#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# copy.sh DIRECTORY: makes that a copy of this source tree as it is, without what was built of it.
set -euo pipefail
rm -rf "$1"
mkdir -p "$1"
to=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
tools/sources.sh | tar --verbatim-files-from -T - -c | tar -x -C "$to"
