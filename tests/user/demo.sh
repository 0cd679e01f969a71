#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# What "make run" shows works on every kernel.
#
# hwt-test: check stock
# hwt-test: noload
# hwt-test: long
# hwt-test: timeout 180
set -eu
exec sh /hwt/demo.sh
