# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Packages of another suite than the system's: fetched, not installed, and what the
# system knows of packages stays as it is. That needs no root. Sourced after lib.sh.

# The exit code that says: the suite cannot be had here at all. All others are failures.
suite_none=77

# suite_sources DIRECTORY SUITE: where that suite can be had, as files in the directory. SUITE: as
# of suite_begin.
suite_sources()
{
	local codename from to file
	codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	from=$codename
	case $2 in
	'') from="$codename(-updates|-security)?" to= ;;
	-*) to=$codename$2 ;;
	*) to=$2 ;;
	esac
	suite_name=${to:-$codename}

	# The system's own sources, with that suite in the place of its own.
	for file in /etc/apt/sources.list.d/*.sources; do
		[ -e "$file" ] || continue
		awk -v suite="$from" -v to="$to" 'BEGIN { RS = ""; ORS = "\n\n" }
			$0 ~ "(^|\n)Suites:([^\n]*[ \t])?" suite "([ \t\n]|$)" {
				if (to != "")
					sub("Suites:[^\n]*", "Suites: " to)
				print
			}' "$file" >"$1/${file##*/}"
	done
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -e "$file" ] || continue
		sed -nE "/^deb[[:space:]].*[[:space:]]${from}[[:space:]]/{
			${to:+s/([[:space:]])${from}([[:space:]])/\1$to\2/}
			p
		}" "$file" >"$1/${file##*/}"
	done
}

# suite_begin DIRECTORY SUITE [ARCHITECTURE]: what follows is about that suite, and works in
# the directory. -SUITE: the system's own with that at the end of its name; "": just that, with
# its updates. What is said meanwhile is in DIRECTORY.log.
suite_begin()
{
	suite_dir=$1
	rm -rf "$suite_dir"
	mkdir -p "$suite_dir"/{sources,lists/partial,cache/archives/partial}
	suite_sources "$suite_dir/sources" "$2"
	suite_arch=${3:-$(dpkg --print-architecture)}
	# Others' sources may not have that suite: what could be had will do.
	logged "$suite_dir.log" "fetching the list of $suite_name" suite_apt get update ||
		say "not all of $suite_name could be had; going on with what could"
	compgen -G "$suite_dir/lists/*_Packages*" >/dev/null || {
		say "error: $suite_name cannot be had here"
		exit $suite_none
	}
}

# suite_apt TOOL ARGS...: apt-TOOL, with those sources and lists of its own; what the system
# has installed, pins or prefers does not matter.
suite_apt()
{
	"apt-$1" -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$suite_dir/sources" \
		-o Dir::State::Lists="$suite_dir/lists" -o Dir::Cache="$suite_dir/cache" \
		-o Dir::State::status=/dev/null -o APT::Default-Release= \
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
		-o APT::Architecture="$suite_arch" -o APT::Architectures="$suite_arch" "${@:2}"
}
