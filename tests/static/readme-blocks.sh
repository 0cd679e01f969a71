#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The documentation shows real code. Each block of README.md, CONTRIBUTING.md and docs/ names its
# language and the file it is taken from ("```c samples/first.c"), and stands there word for word;
# that file is compiled and run by other tests. Of a block in sh ("```sh tests/vm/...") each
# command is one of that test, perhaps with more behind it there, or a comment here. Only what is no
# code ("```text") is from nowhere. README.md must have a kernel client and a program. And no link in
# these files may lead nowhere. Says what is wrong, else nothing.
set -eu
cd "$(dirname "$0")/../.."

bad=0
wrong() { echo "$*"; bad=1; }

# blocks FILE: "line language source" of each block in that. What is indented outside of a list is a
# block, too, of no language.
blocks()
{
	awk '/^```/ { if (!inside) print NR, substr($0, 4); inside = !inside; next }
		inside || /^$/ { next }
		/^    / && !list { print NR }
		/^[^ ]/ { list = /^([-*]|[0-9]+\.) / }' "$1"
}

# text FILE LINE: the block that begins there.
text() { sed -n "$2,\$p" "$1" | sed '1d;/^```$/,$d'; }

# begins COMMAND FILE: is there a line that begins so?
begins()
{
	COMMAND=$1 awk '{ sub(/^[ \t]+/, "") }
		index($0, ENVIRON["COMMAND"]) == 1 { found = 1 }
		END { exit !found }' "$2"
}

# Does FILE contain these lines, one after the other?
contains()
{
	local block
	block=$(cat; echo .)
	block=${block%.}
	[ -n "$block" ] && [[ $(cat "$1") == *"${block%$'\n'}"* ]]
}

for page in ./*.md docs/*.md; do
	while read -r line language source; do
		case $language:$source in
		text:) ;;
		*:)
			wrong "$page:$line: a block of no file, or of no language" ;;
		sh:*)
			while IFS= read -r command; do
				begins "$command" "$source" ||
					wrong "$page:$line: not in $source: $command"
			done < <(text "$page" "$line" | sed 's/  *# .*//') ;;
		*)
			text "$page" "$line" | contains "$source" ||
				wrong "$page:$line: this is not what $source says" ;;
		esac
	done < <(blocks "$page")

	while read -r target; do
		[ -e "$(dirname "$page")/$target" ] || wrong "$page: a link to '$target'"
	done < <(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '://' || true)
done

for source in samples/hwt_first.c samples/first.c; do
	blocks README.md | grep -q " c $source\$" || wrong "README.md does not show $source"
done
exit $bad
