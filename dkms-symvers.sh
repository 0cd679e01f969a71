#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# dkms-symvers.sh DIRECTORY: run by dkms when the module has been built, where that was. Keeps what
# modules that use its symbols are built with.
set -eu
cp Module.symvers "$1/Module.symvers"
