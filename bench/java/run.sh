#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh [-q]: Java's timers (Netty, the JDK) beside hwt's hot path in user space.
# Needs the packages default-jdk-headless and libnetty-java.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../tests/lib.sh"

timeouts=1000000 runs=5
case ${1:-} in
"") ;;
-q) timeouts=200000 runs=3 ;;
*) die "usage: run.sh [-q]" ;;
esac

out=$HWT_BUILD/bench/java
jars=/usr/share/java
classes=$out:$jars/netty-common.jar:$jars/jctools-core.jar
have javac || die "no javac: install default-jdk-headless"
[ -e "$jars/netty-common.jar" ] || die "no Netty: install libnetty-java"

mkdir -p "$out"
make -s -C "$here/../hot" OUT="$HWT_BUILD/bench/hot" "$HWT_BUILD/bench/hot/million" >&2
javac -Xlint:all -d "$out" -cp "$classes" "$here/Timers.java"
exec java -Xms2g -Xmx2g -cp "$classes" Timers "$timeouts" "$runs" \
	"$HWT_BUILD/bench/hot/million"
