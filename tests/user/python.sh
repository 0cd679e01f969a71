#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# What of the package for Python needs the device, in a Debian; see python_test.py.
#
# hwt-test: only stock
# hwt-test: long
# hwt-test: disk trace
# hwt-test: load max_timeouts=12000
# hwt-test: timeout 600
set -eu
. "$HWT_DIR/lib.sh"
enter env LD_LIBRARY_PATH=/hwt/bin PYTHONPATH=/hwt/python PYTHONDONTWRITEBYTECODE=1 \
	python3 /hwt/scripts/python_test.py Contexts
