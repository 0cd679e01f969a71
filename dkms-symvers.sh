#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# dkms-symvers.sh DIRECTORY: copy Module.symvers there, for the build of modules that use hwt's
# symbols. dkms runs this after the build, in the directory of the build.
set -eu
cp Module.symvers "$1/Module.symvers"
