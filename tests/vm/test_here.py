#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests make check-here in a guest, as on a real machine. Prints TAP.

The guest has a disk with a Debian, a compiler, kernel headers, and a copy of this source tree and
its builds at the same paths, so that the emulated processor compiles little.
"""

import apt
import boot
import build
import debian
import host
import kernels
import listing

OUT = host.BUILD / "guest/here"
ROOT = OUT / "root"
SOURCE = "linux-source-6.1"

# The Debian has no network, so this tells make check-here that all packages are installed.
DPKG_QUERY = """#!/bin/sh
format=
while [ $# -gt 0 ]; do
	case $1 in
	-W) ;;
	-f) format=$2; shift ;;
	*) case $format in
	   *db:Status*) echo "$1 ii " ;;
	   *) printf '%s' '@VERSION@' ;;
	   esac ;;
	esac
	shift
done
"""

SCRIPT = """#!/bin/sh
set -eu
. "$HWT_DIR/lib.sh"
top='@TOP@'
# in_tree COMMAND: run a command in the source tree, as root of the Debian.
in_tree()
{
	enter /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root HWT_BUILD='@BUILD@' \\
		XDG_CACHE_HOME='@CACHE@' HWT_JOBS=2 /bin/sh -c "cd '$top' && $1" </dev/null
}
# says TEXT COMMAND: check that the command fails with a text and a verdict, and builds nothing.
says()
{
	! in_tree "$2" >/tmp/said 2>&1 && grep -qF "$1" /tmp/said && [ "$(tail -n 1 /tmp/said)" = "0 passed, 1 failed" ] &&
		! grep -q "building" /tmp/said || { cat /tmp/said; return 1; }
}
gone() { ! grep -q '^hwt' /proc/modules; }
no_rest() { gone && [ -z "$(enter sh -c "ls -d '@BUILD@/here' /tmp/hwt-*" 2>/dev/null)" ]; }
passes()
{
	in_tree "$1" >/tmp/said 2>&1 && tail -n 1 /tmp/said | grep -qE '^[1-9][0-9]* passed, 0 failed' || { cat /tmp/said; return 1; }
}
run="commands/here.py --no-bench"
# The tree may be below root's home, which no other user may enter.
for_all=$top
while [ "$for_all" != / ]; do
	enter chmod a+rx "$for_all"
	for_all=${for_all%/*}
	for_all=${for_all:-/}
done

check "without root it is refused" says "needs root" "setpriv --reuid=1 --regid=1 --clear-groups $run --yes"
check "nobody to ask: refused" says "nobody to ask" "$run"
insmod "$HWT_MODULES/hwt.ko"
check "hwt is loaded: refused" says "hwt is loaded" "$run --yes"
sleep 100 </dev/hwt &
check "hwt is in use: refused" says "hwt is in use (" "$run --yes"
kill $!
wait
rmmod hwt
in_tree 'mv /lib/modules/$(uname -r)/build /tmp/build'
check "no headers: refused" says "install linux-headers-" "$run --yes"
in_tree 'mv /tmp/build /lib/modules/$(uname -r)/build'
check "no such test" says "no test matches" "$run --yes nonsense"

in_tree 'touch core/group.c'
check "make check-here builds and passes" passes "make check-here YES=1 TEST='test_basics|events|test_periodic'"
check "... after telling what it does" grep -q "This is going to" /tmp/said
check "... with the benchmark" grep -q "@bench" /tmp/said
check "... and leaves nothing" no_rest
in_tree "make -s -C tests run_tests TARGETS=kernel TEST=test_basics 2>/dev/null" >/tmp/said && rc=0 || rc=$?
check "run_tests passes" test $rc = 0
check "... prints TAP" sh -c "head -n 1 /tmp/said | grep -qx 'TAP version 13' && sed -n 2p /tmp/said | grep -qx '1\\.\\.[0-9]*'"
check "... and nothing else" sh -c "! grep -vE '^(TAP version 13|1\\.\\.[0-9]+|ok [0-9]+ .*)$' /tmp/said"
# Replace the test of events by a program that fails.
in_tree "cp /bin/false '@BUILD@/user/events'"
fails() { ! in_tree "$run --yes events" >/tmp/said 2>&1 && tail -n 1 /tmp/said | grep -qE ', [1-9][0-9]* failed'; }
check "a test that fails is counted" fails
check "... and nothing is left" no_rest
if [ -w /sys/module/module/parameters/sig_enforce ]; then
	echo 1 >/sys/module/module/parameters/sig_enforce
	check "signatures are enforced: refused" says "signed modules only" "$run --yes"
fi
plan
"""


def fill(kernel):
    """Make the guest's root: a Debian, the tree, its builds, and parts of the kernel's source."""
    host.as_root(["rm", "-rf", ROOT])
    ROOT.mkdir(parents=True)
    host.as_root(["tar", "-C", ROOT, "-xf", debian.root("packages")])
    source = kernels.source(SOURCE)
    selftests = "tools/testing/selftests"
    copies = [(host.BUILD / "modules/here", "modules/here"), (host.BUILD / "user", "user")]
    host.run([host.TOP / "tools/copy.sh", OUT / "tree"])
    commands = [f"mkdir -p '{ROOT}{host.TOP.parent}' '{ROOT}{host.BUILD}/modules' '{ROOT}{source}/{selftests}'",
                f"cp -a '{OUT}/tree' '{ROOT}{host.TOP}'",
                # Copy with times, so that the sources stay older than their builds.
                f"cd '{host.TOP}' && tools/sources.sh | cpio -pdmu --quiet '{ROOT}{host.TOP}'",
                f"cp -a '{source}/{selftests}'/*.[ch] '{source}/{selftests}/lib.mk' '{ROOT}{source}/{selftests}/'"]
    commands += [f"cp -a '{here_}' '{ROOT}{host.BUILD}/{there}'" for here_, there in copies]
    (OUT / "dpkg-query").write_text(DPKG_QUERY.replace("@VERSION@", apt.version(SOURCE)), encoding="ascii")
    commands += [f"install -m 755 '{OUT}/dpkg-query' '{ROOT}/usr/local/bin/dpkg-query'"]
    # The headers of the guest's kernel.
    release = kernel.release
    commands += [f"rm -rf '{ROOT}/usr/lib/modules' && mkdir -p '{ROOT}/usr/lib/modules/{release}'",
                 f"cp -P /lib/modules/{release}/build /lib/modules/{release}/source '{ROOT}/usr/lib/modules/{release}/'",
                 f"cp -a /usr/src/linux-headers-{release} /usr/src/linux-headers-{release.rsplit('-', 1)[0]}-common '{ROOT}/usr/src/'"
                 f" && cp -a /usr/lib/linux-kbuild-* '{ROOT}/usr/lib/'"]
    for command in commands:
        host.as_root(["sh", "-ec", command])


def main():
    """Run the guest, and print TAP."""
    kernel = kernels.find("stock").get()
    OUT.mkdir(parents=True, exist_ok=True)
    # The same builds as in the guest.
    build.modules(kernel, tree="here")
    build.programs(kernel)
    disk = OUT / "disk.ext4"
    try:
        fill(kernel)
        debian.disk(ROOT, disk)
    finally:
        host.as_root(["rm", "-rf", ROOT])
    text = SCRIPT
    for name, value in (("TOP", host.TOP), ("BUILD", host.BUILD), ("CACHE", host.CACHE.parent)):
        text = text.replace(f"@{name}@", str(value))
    tests = [listing.Test("here", "script", 1800, "here.sh", noload=True, disk="packages")]
    machine = boot.start(kernel, "here", tests, {"hwt/scripts/here.sh": text}, tree="here", ktests=True,
                         programs=False, disk=disk, label="here", limit=2000)
    machine.run()
    disk.unlink()
    return machine.results.print_tap()


if __name__ == "__main__":
    host.main(main)
