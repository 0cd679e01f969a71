# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Debian packages: which are missing, and getting them. Sourced after lib.sh.

packages_missing()
{
	local p
	for p in "$@"; do
		case $(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null) in
		?i*) ;;
		*) echo "$p" ;;
		esac
	done
}

# apt waits for another one that installs, but not for one that updates, as a new machine may.
apt_update()
{
	local end=$((SECONDS + 300))
	while [ $SECONDS -lt $end ]; do
		if as_root apt-get update 2>&1 | tee "$1"; then
			return
		fi
		grep -q "Could not get lock" "$1" || return
		sleep 5
	done
	return 1
}

packages_update()
{
	mkdir -p "$HWT_CACHE"
	logged "$HWT_CACHE/apt-update.log" "apt-get update" apt_update "$HWT_CACHE/apt-update.last" ||
		say "apt-get update failed; going on with the lists there are"
}

# packages_known PACKAGE...: fetches the package lists if one is not in them,
# as on a machine whose lists are empty.
packages_known()
{
	local p
	for p in "$@"; do
		if ! apt-cache show "$p" >/dev/null 2>&1; then
			packages_update
			return
		fi
	done
}

packages_get()
{
	logged "$HWT_CACHE/apt-install.log" "installing: $*" \
		as_root env DEBIAN_FRONTEND=noninteractive apt-get \
		-o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
}

# packages_install PACKAGE...: installs those that are missing.
packages_install()
{
	have dpkg-query || die "this set-up is for Debian: dpkg-query not found"
	[ -z "$(packages_missing "$@")" ] || with_lock packages packages_add "$@"
}

packages_add()
{
	local missing
	mapfile -t missing < <(packages_missing "$@")
	[ "${#missing[@]}" -gt 0 ] || return 0
	packages_known "${missing[@]}"
	# Lists that are old name versions which are gone: once more with new ones.
	packages_get "${missing[@]}" || { packages_update && packages_get "${missing[@]}"; }
}
