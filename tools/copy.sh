#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# copy.sh DIRECTORY: replace DIRECTORY by a copy of this source tree, without the results of builds.
set -euo pipefail
rm -rf "$1"
mkdir -p "$1"
to=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
tools/sources.sh | tar --verbatim-files-from -T - -c | tar -x -C "$to"
