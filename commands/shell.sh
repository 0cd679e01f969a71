#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The guest of "make shell". busybox mounts the Debian on the disk; bash runs "shell.sh inside" there.
# shell.py fills /hwt/shell, reads the exit status from the kernel log, and then ends the guest.
set -u
. /hwt/shell/words

outside()
{
	. "$HWT_DIR/lib.sh"
	# The last close of the line waits until the output has been sent.
	trap 'code=$?; exec </dev/null >/dev/null 2>&1; echo "hwt-shell: exit $code" >/dev/kmsg; sleep 60' EXIT
	exec </dev/ttyS1 >/dev/ttyS1 2>&1
	# udev would create these.
	ln -s /proc/self/fd /dev/fd
	ln -s fd/0 /dev/stdin
	ln -s fd/1 /dev/stdout
	ln -s fd/2 /dev/stderr
	enter mkdir -p /host
	mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=131072 host /run/disk/host || fail "/host cannot be mounted"
	if [ ! -e /hwt/shell/run ]; then
		enter /usr/bin/setsid -c -w bash /hwt/scripts/shell.sh inside
		exit
	fi
	# The programs and commands see no terminal.
	stty -opost -echo
	set -o pipefail
	enter /usr/bin/setsid -w bash /hwt/scripts/shell.sh inside </dev/null 2>&1 | cat
}

# keep COMMAND...: run a command. $failed is the exit status of the first that fails.
failed=0
keep()
{
	local code=0
	"$@" || code=$?
	[ $code = 0 ] || echo "[hwt] $*: exit status $code"
	[ $failed != 0 ] || failed=$code
}

# log_of COMMAND...: run a command, then print the new lines of the kernel log.
log_of()
{
	local before code=0
	before=$(dmesg | wc -l)
	"$@" || code=$?
	dmesg | tail -n "+$((before + 1))" | sed 's/^/   | /'
	return $code
}

# Let modprobe give the device to the group hwt, as udev's rule does.
group()
{
	groupadd --system hwt
	echo 'install hwt modprobe --ignore-install hwt $CMDLINE_OPTS && chgrp hwt /dev/hwt && chmod 660 /dev/hwt' \
		>/etc/modprobe.d/hwt.conf
}

# shellcheck disable=SC2086 # parameters
load() { said=$(log_of modprobe hwt $SHELL_PARAMS 2>&1) || { echo "$said"; return 1; }; }
insert() { echo "# insmod $*"; log_of insmod "$@"; }
program() { echo "# ./$1 $SHELL_ARGS"; eval "./$1 $SHELL_ARGS"; }

interactive()
{
	printf '%s\n' "PS1='hwt \\w # '" ". /usr/local/share/bash-completion/completions/hwtctl" >>~/.bashrc
	cat <<END

Linux $(uname -r), hwt is$(grep -q "^hwt " /proc/modules || echo " not") loaded${SHELL_PARAMS:+ with $SHELL_PARAMS}.

  hwtctl info, stats, run, list ...      Tab completes; man hwtctl, man 4 hwt, man 9 hwt, man libhwt
  first, tour, hwt_first.py ...          samples: programs in C and Python
  modprobe hwt_retry, hwt_heartbeat ...  samples: modules; dmesg shows their messages
  hwt-lateness.bt, hwt-callbacks.bt      by bpftrace; perf and trace-cmd are there, too
  /host                                  $SHELL_HERE, read-only

Nothing is kept. Leave with 'exit', or at once with Ctrl-A X.
END
	bash
}

inside()
{
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="$SHELL_TERM" LANG=C.UTF-8
	modules=/lib/modules/$(uname -r)
	# shellcheck disable=SC2086 # words
	[ -e /hwt/shell/run ] || stty $SHELL_SIZE
	# Ctrl-C ends a program, but not this script.
	trap : INT
	cd && cp -a /hwt/shell/root/. / && cp -a /hwt/shell/files/. . && ldconfig &&
		mkdir -p "$modules" && cp /hwt/modules/*.ko "$modules" && depmod 2>/dev/null && group || exit
	keep load hwt.ko
	eval "$SHELL_INSERT"
	for name in $SHELL_PROGRAMS; do keep program "$name"; done
	if [ -e /hwt/shell/run ]; then
		bash /hwt/shell/run || failed=$?
		# What the commands have left in the background would keep the pipe open.
		trap '' TERM
		kill 0
		exit $failed
	fi
	interactive
	exit 0
}

"${1:-outside}"
