#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# packages.sh: Debian's packages, in a Debian 12 that has never seen them: built, looked at by
# lintian, installed with dkms building the module, used in a guest, by another module of dkms's and
# by a program, upgraded, purged. And the module of the sources, by dkms and by hand. Prints TAP.
#
# All of it happens in build/packages: root/ is that Debian.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"

out=$HWT_BUILD/packages
root=$out/root
points=0

point() { points=$((points + 1)); echo "$1 $points - $2"; }
# check NAME COMMAND...: it succeeds; what it says is shown if not.
check()
{
	local name=$1
	shift
	if "$@" >"$out/log" 2>&1; then
		point ok "$name"
	else
		point "not ok" "$name"
		tail -n 40 "$out/log" | sed 's/^/# /'
	fi
}

# in_root COMMAND...: there, with a /proc of its own.
in_root()
{
	# shellcheck disable=SC2016 # words of that shell
	as_root unshare --mount --pid --fork sh -ec '
		mount -t proc proc "$0/proc"
		mount -t devpts devpts "$0/dev/pts"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive chroot "$0" "$@"' "$root" "$@"
}

# That Debian may have the headers of another release than the guest's kernel, which was fetched at
# another time: then those that are installed here take their place.
same_headers()
{
	local modules=usr/lib/modules dir
	[ ! -e "$root/$modules/$release/build" ] || return 0
	as_root rm -rf "$root/$modules"
	as_root mkdir -p "$root/$modules/$release"
	as_root cp -P "/lib/modules/$release/build" "/lib/modules/$release/source" "$root/$modules/$release/"
	for dir in "/usr/src/linux-headers-$release" "/usr/src/linux-headers-${release%-*}-common" \
		/usr/lib/linux-kbuild-*; do
		as_root cp -a "$dir" "$root$(dirname "$dir")/"
	done
}

# What there is, but for what keeps a log of what there was, and what depmod makes.
all_files()
{
	(cd "$root" && as_root find . \( -path ./proc -o -path ./dev -o -path ./run -o -path ./tmp \
		-o -path ./var/log -o -path ./var/cache -o -path ./var/lib/dpkg -o -path ./var/lib/apt \
		-o -path './usr/lib/modules/*/modules.*' -o -path './var/lib/dkms/mok.*' \) -prune -o -print | sort)
}

# build VERSION: packages of that version, in $out/VERSION.
build()
{
	local tree=$out/tree
	"$HWT_TOP/tools/copy.sh" "$tree"
	sed -i "1s/(.*)/($1)/" "$tree/debian/changelog"
	"$tree/tools/deb.sh" "$out/$1" && rm -rf "$tree"
}

lint() { lintian --allow-root --fail-on error "$1"/*.changes; }

# install VERSION
install_packages()
{
	as_root rm -f "$root"/tmp/*.deb
	as_root cp "$out/$1"/{hwt-dkms,hwt-tools,libhwt1,libhwt-dev}_*.deb "$root/tmp/" &&
		in_root sh -c 'apt-get install -y --no-install-recommends /tmp/*.deb'
}

# built VERSION: dkms has it, and no other.
built()
{
	[ "$(in_root dkms status hwt)" = "hwt/$1, $release, x86_64: installed" ] &&
		[ -e "$root/lib/modules/$release/updates/dkms/hwt.ko" ] &&
		[ "$(readlink "$root/usr/src/hwt")" = "hwt-$1" ]
}

# As docs/packages.md says.
client()
{
	# shellcheck disable=SC2016 # words of that shell
	in_root sh -ec '
cp -r /usr/share/doc/hwt-dkms/examples/dkms /usr/src/hwt-first-1.0
dkms install hwt-first/1.0 -k "$1"
' client "$release" && in_root modprobe -S "$release" --show-depends hwt_first | grep -q /hwt.ko
}

program()
{
	# shellcheck disable=SC2016 # as above
	as_root cp "$HWT_TOP/samples/libhwt_first.c" "$root/tmp/program.c" &&
		in_root sh -ec '
cc -Wall -Werror -o /usr/local/bin/program /tmp/program.c $(pkg-config --cflags --libs hwt)
ldd /usr/local/bin/program | grep -q libhwt.so.1
'
}

# use ARGUMENTS...: use.sh in a guest, which has that Debian's disk. Its results are lines like ours.
use()
{
	local dir
	dir=$("$HWT_TOP/tests/vm/kernels/get.sh" stock)
	mkdir -p "$out/overlay/hwt/scripts"
	cp "$here/use.sh" "$out/overlay/hwt/scripts/"
	"$HWT_TOP/tests/vm/debian/disk.sh" "$root" "$out/disk.ext4"
	echo "use|script|300|1||packages|use.sh|$*" >"$out/list"
	HWT_TREE=none HWT_OVERLAY=$out/overlay "$HWT_TOP/tests/vm/pack.sh" stock "$out/list" \
		"$out/initramfs.gz"
	rm -f "$out/results"
	python3 "$HWT_TOP/tests/vm/run_guest.py" --kernel stock --arch x86_64 \
		--vmlinuz "$dir/vmlinuz" --initrd "$out/initramfs.gz" --out "$out" --planned 1 \
		--results "$out/results" --disk "$out/disk.ext4" --silence 300 >"$out/use.log" 2>&1 || true
	rm -f "$out/disk.ext4"
	if ! grep -qs '^ok ' "$out/results"; then
		tail -n 40 "$out/use.log" | sed 's/^/# /'
		point "not ok" "in a guest, $1"
		return
	fi
	while read -r line; do
		case $line in
		"ok "*) point ok "in a guest, $1: ${line#*: }" ;;
		"not ok "*) point "not ok" "in a guest, $1: ${line#*: }" ;;
		esac
	done <"$out/results"
}

purge()
{
	in_root dkms remove hwt-first/1.0 --all &&
		as_root rm -r "$root/usr/src/hwt-first-1.0" "$root/usr/local/bin/program" &&
		in_root apt-get purge -y hwt-dkms hwt-tools libhwt1 libhwt-dev
}

# Of the sources, without packages.
by_dkms()
{
	"$HWT_TOP/tools/copy.sh" "$out/hwt" &&
		as_root cp -r "$out/hwt" "$root/tmp/hwt" &&
		in_root dkms install /tmp/hwt -k "$release" &&
		[ "$(in_root dkms status hwt)" = "hwt/$version, $release, x86_64: installed" ] &&
		in_root dkms remove "hwt/$version" --all &&
		as_root rm -r "$root/usr/src/hwt-$version"
}

# But for the group: a package does not take that away.
nothing_left()
{
	all_files | diff "$out/before" - && ! in_root sh -c 'dkms status | grep hwt; dpkg -l | grep hwt'
}

# As README.md and docs/packages.md say, by a user who has sudo. That Debian's kernel does not run here.
by_hand()
{
	as_root rm -rf "$root/tmp/hwt"
	as_root cp -r "$out/hwt" "$root/tmp/hwt"
	script "$root/usr/local/bin/uname" 'case $* in -r) echo "'"$release"'" ;; *) exec /bin/uname "$@" ;; esac'
	script "$root/usr/local/sbin/modprobe" 'exec /sbin/modprobe -S "'"$release"'" --show-depends "$@"'
	script "$root/usr/local/sbin/modinfo" 'exec /sbin/modinfo -k "'"$release"'" "$@"'
	# shellcheck disable=SC2016 # words of that shell
	in_root sh -ec '
groupdel hwt
useradd --create-home somebody
echo "somebody ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/somebody
chown -R somebody /tmp/hwt
cd /tmp/hwt
exec setpriv --reuid=somebody --regid=somebody --init-groups env USER=somebody HOME=$PWD \
	PATH=/usr/local/bin:/usr/bin:/bin tests/vm/packages/by-hand.sh' &&
		as_root rm "$root"/usr/local/bin/uname "$root"/usr/local/sbin/{modprobe,modinfo}
}

# script FILE COMMANDS
script()
{
	printf '#!/bin/sh\n%s\n' "$2" | as_root tee "$1" >/dev/null
	as_root chmod 755 "$1"
}

version=$(sed -n '1s/^hwt (\(.*\)) .*/\1/p' "$HWT_TOP/debian/changelog")
release=$(cat "$("$HWT_TOP/tests/vm/kernels/get.sh" stock)/release")
as_root rm -rf "$out"
mkdir -p "$root"
# It is root's, and nobody else could remove it.
trap 'as_root rm -rf "$root"' EXIT
as_root tar -C "$root" -xf "$("$HWT_TOP/tests/vm/debian/root.sh" packages)"
same_headers
all_files >"$out/before"

check "packages of version $version" build "$version"
check "lintian finds no error" lint "$out/$version"
check "they are installed" install_packages "$version"
check "dkms has built the module for $release" built "$version"
check "another module is built on it" client
check "a program is linked with libhwt" program
use packages "$version"
check "packages of another version" build "$version.1"
check "they take the place of the first ones" install_packages "$version.1"
check "dkms has built that one" built "$version.1"
check "they are purged" purge
check "dkms builds the module of the sources, too" by_dkms
check "and nothing is left of it all" nothing_left
check "it is installed by hand, as the documentation says" by_hand
use by-hand
echo "1..$points"
