#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Torture: see tests/torture/README.md. In the guest; the arguments are parameters of
# hwt_torture.ko. In the third run all threads contend for a few timeouts.
#
# hwt-test: timeout 300
# hwt-test: args inject_ms=0
# hwt-test: args inject_ms=20
# hwt-test: args seed=1 seconds=5 threads=4 timeouts=1 wheels=2 pairs=0 nmi=0 hotplug_ms=0
set -eu
. "$HWT_DIR/lib.sh"

# The verdict is read from the log, which keeps only its end.
dmesg -c >/dev/null
rc=0
# Setting a probe patches code that other CPUs execute.
[ "${HWT_PATCHING:-1}" = 1 ] || set -- nmi=0 "$@"
[ "${HWT_QUICK:-0}" != 1 ] || set -- seconds=5 "$@"
# On a slow kernel, callbacks may wait for each other and for CPU hotplug for longer than the
# hung-task limit. The torture has a limit of its own, "patience".
fuse=/proc/sys/kernel/hung_task_timeout_secs
short=
if [ "${HWT_SLOW:-0}" = 1 ] && [ -w $fuse ]; then
	short=$(cat $fuse)
	echo 180 >$fuse
fi
load hwt_torture report=5 "$@" || rc=$?
[ -z "$short" ] || echo "$short" >$fuse

# The module's test points are numbered from 1, after a plan.
dmesg | sed -n 's/^.*hwt_torture: \(begins.*\|ends.*\|nothing to look at.*\)/# \1/p'
dmesg | sed -n 's/^.*hwt_torture: \(1\.\.[0-9]*\|\(not \)\{0,1\}ok [0-9].*\)$/\1/p' >/tmp/torture.tap
cat /tmp/torture.tap
grep -q '^1\.\.' /tmp/torture.tap || fail "no verdict"
! grep -q '^not ok ' /tmp/torture.tap || rc=1
# After the verdict: a module that has leaked cannot be unloaded.
[ ! -d /sys/module/hwt_torture ] || unload hwt_torture || fail "hwt_torture does not unload"
exit $rc
