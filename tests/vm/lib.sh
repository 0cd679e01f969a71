# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# For scripts in the guest (busybox sh): ". $HWT_DIR/lib.sh". See tests/README.md.

hwt_points=0

note() { echo "# $*"; }
fail() { echo "# FAILED: $*"; exit 1; }

ok()
{
	hwt_points=$((hwt_points + 1))
	echo "ok $hwt_points - $*"
}

not_ok()
{
	hwt_points=$((hwt_points + 1))
	echo "not ok $hwt_points - $*"
}

# check NAME COMMAND...: a point that the command succeeds. If it fails, print its output.
check()
{
	hwt_name=$1
	shift
	if "$@" >/tmp/hwt-said 2>&1; then
		ok "$hwt_name"
	else
		not_ok "$hwt_name"
		sed 's/^/# /' /tmp/hwt-said
	fi
}

plan() { echo "1..$hwt_points"; }

# hwt.ko gets the guest's parameters, then those of the test.
insmod()
{
	hwt_file=$1
	shift
	# shellcheck disable=SC2086 # parameters
	case $hwt_file in
	*/hwt.ko) set -- ${HWT_PARAMS:-} "$@" ;;
	esac
	command insmod "$hwt_file" "$@"
}

# load NAME [param=value...]
load()
{
	hwt_name=$1
	shift
	insmod "$HWT_MODULES/$hwt_name.ko" "$@" || {
		note "insmod $hwt_name $* failed"
		return 1
	}
}

unload()
{
	rmmod "$1" || {
		note "rmmod $1 failed"
		return 1
	}
}

# wait_for SECONDS COMMAND...
wait_for()
{
	hwt_tries=$(($1 * 10))
	shift
	while ! "$@" >/dev/null 2>&1; do
		hwt_tries=$((hwt_tries - 1))
		if [ $hwt_tries -le 0 ]; then
			note "waited too long for: $*"
			return 1
		fi
		sleep 0.1
	done
}

# log_mark writes a line to the kernel log; log_since prints the log after that line.
log_mark()
{
	hwt_mark="hwt-log-mark $$ $(cut -d ' ' -f 1 /proc/uptime)"
	echo "$hwt_mark" >/dev/kmsg
}

log_since() { dmesg | sed "1,/$hwt_mark/d"; }

expect_begin() { echo "hwt-expect-begin: $*" >/dev/kmsg; }
expect_end() { echo "hwt-expect-end" >/dev/kmsg; }

# enter COMMAND...: run a command in the Debian on the disk (directive "disk"), with this guest's
# /proc, /sys, /dev and /hwt.
enter()
{
	hwt_root=/run/disk
	if [ ! -d $hwt_root ]; then
		mkdir $hwt_root
		for hwt_file in /hwt/disk/*; do
			# Some modules exist for several kinds of processor, and not all of those load.
			insmod "$hwt_file" 2>/dev/null || true
		done
		wait_for 20 test -b /dev/vda || fail "there is no disk"
		mount -t ext4 /dev/vda $hwt_root || fail "the disk cannot be mounted"
		for hwt_file in proc sys dev hwt; do
			mkdir -p $hwt_root/$hwt_file
			mount --rbind /$hwt_file $hwt_root/$hwt_file || fail "mount $hwt_file"
		done
		# Keep a /tmp that has files, such as a source tree.
		[ -n "$(ls -A $hwt_root/tmp)" ] || mount -t tmpfs tmpfs $hwt_root/tmp
	fi
	PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot $hwt_root "$@"
}
