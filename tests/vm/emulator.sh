#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# emulator.sh: makes sure that there is a QEMU whose emulated processors see code that
# another one has changed. Before 8.1 ("accel/tcg: Always lock pages before translation") one
# of them may go on with an instruction as it was: a breakpoint that is gone, a static branch.
# Kernels change their own code, and tests that use kprobes have them do so without end.
#
# An older one is helped by that of the distribution's backports, unpacked into the cache.
# Nothing is installed, so this needs no root; lib.sh puts it before the system's. Where it
# cannot be had, the system's has to do.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/../suite.sh"

programs=(qemu-system-x86_64 qemu-system-i386 qemu-system-aarch64)
dir=$HWT_CACHE/qemu
tmp=$dir.tmp

new_enough()
{
	local version
	version=$(qemu-system-x86_64 --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9.]*\).*/\1/p')
	[ "$(printf '%s\n' 8.1 "$version" | sort -V | head -n 1)" = 8.1 ]
}

# Does what is in the cache run here? lib.sh puts it before the system's.
runs()
{
	local program
	for program in "${programs[@]}"; do
		"$dir/bin/$program" --version >/dev/null 2>&1 || return
	done
}

unpack()
{
	local file program
	suite_begin "$tmp" -backports
	mkdir "$tmp/deb" "$tmp/bin"
	cd "$tmp/deb"
	logged "$HWT_CACHE/qemu.log" "fetching QEMU of the backports" suite_apt get download \
		qemu-system-x86 qemu-system-arm qemu-system-common qemu-system-data seabios
	cd "$tmp"
	for file in deb/*.deb; do
		dpkg-deb -x "$file" .
	done
	for program in "${programs[@]}"; do
		cat >"bin/$program" <<-EOF
			#!/bin/sh
			exec "$dir/usr/bin/$program" -L "$dir/usr/share/qemu" -L "$dir/usr/share/seabios" "\$@"
		EOF
		chmod 755 "bin/$program"
		"usr/bin/$program" --version
	done
	rm -rf deb sources lists cache usr/share/doc
	mv "$tmp" "$dir"
}

# Unpacked in a process of its own, so that it ends at the first thing that fails.
fetch()
{
	# Of another machine, or in pieces: it would be in the way for good.
	runs || rm -rf "$dir"
	new_enough || "$0" unpack >/dev/null ||
		say "going on with the system's $(qemu-system-x86_64 --version | head -n 1)"
}

if [ "${1:-}" = unpack ]; then
	unpack
elif { [ -e "$dir" ] && ! runs; } || ! new_enough; then
	with_lock qemu fetch
fi
