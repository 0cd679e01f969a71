# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Shared by the scripts that run on the host. Sourced, never run.

# The top of the checkout and the cache that survives it.
HWT_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
HWT_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/hwt
# Everything built from this checkout for the tests.
HWT_BUILD=${HWT_BUILD:-$HWT_TOP/build}
export HWT_TOP HWT_CACHE HWT_BUILD
# A newer emulator than the system's, if one was fetched: see guest/emulator.sh. And what users of
# Debian do not have in theirs (modprobe, depmod).
PATH=$HWT_CACHE/qemu/bin:$PATH:/usr/sbin:/sbin

# To stderr: stdout is for results.
say() { printf '[hwt] %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command as root, directly or through sudo.
as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif have sudo; then
		sudo -n true || die "sudo failed: be root, or allow sudo without a password"
		sudo -n "$@"
	else
		die "need root (or sudo) for: $*"
	fi
}

# with_lock NAME CMD...: one at a time, over all checkouts of this user.
with_lock()
{
	local name=$1
	shift
	mkdir -p "$HWT_CACHE"
	(
		if ! flock -n 9; then
			say "waiting for another run that holds '$name'"
			flock 9
		fi
		"$@"
	) 9>"$HWT_CACHE/.lock-$name"
}

# logged LOG MESSAGE CMD...: runs CMD with its output in LOG, and says how it
# gets on once in a while. On failure shows the end of the log.
logged()
{
	local log=$1 what=$2 rc=0 pid start=$SECONDS last=$SECONDS
	shift 2
	say "$what (log: $log)"
	# In a process group of its own: what is interrupted must not go on.
	set -m
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	set +m
	trap 'kill -- "-$pid"; exit 130' INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		sleep 1
		if [ $((SECONDS - last)) -ge 15 ]; then
			last=$SECONDS
			say "  ... $((SECONDS - start)) s: $(tail -n 1 "$log" | cut -c 1-60)"
		fi
	done
	wait "$pid" || rc=$?
	trap - INT TERM
	if [ $rc -ne 0 ]; then
		tail -n 30 "$log" >&2
		say "failed after $((SECONDS - start)) s: $what"
	fi
	return $rc
}
