#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The documentation shows real code. Each C block of README.md and docs/ names the file
# it is taken from ("```c samples/first.c") and must stand there word for word; that
# file is compiled and run by other tests. README.md must have a kernel client and a
# program. And no link in these files may lead nowhere. Says what is wrong, else nothing.
set -eu
cd "$(dirname "$0")/../.."

bad=0
wrong() { echo "$*"; bad=1; }

# blocks FILE: "line source" of each C block.
blocks() { sed -n '/^```c/{=;p}' "$1" | paste - - | sed 's/```c *//'; }

# text FILE LINE: the block that begins there.
text() { sed -n "$2,\$p" "$1" | sed '1d;/^```$/,$d'; }

# Does FILE contain these lines, one after the other?
contains()
{
	local block
	block=$(cat; echo .)
	block=${block%.}
	[ -n "$block" ] && [[ $(cat "$1") == *"${block%$'\n'}"* ]]
}

for page in README.md docs/*.md; do
	while read -r line source; do
		if [ ! -f "$source" ]; then
			wrong "$page:$line: a C block of no file ('$source')"
		elif ! text "$page" "$line" | contains "$source"; then
			wrong "$page:$line: this is not what $source says"
		fi
	done < <(blocks "$page")

	while read -r target; do
		[ -e "$(dirname "$page")/$target" ] || wrong "$page: a link to '$target'"
	done < <(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '://' || true)
done

for source in samples/hwt_first.c samples/first.c; do
	blocks README.md | grep -q "[[:space:]]$source\$" || wrong "README.md does not show $source"
done
exit $bad
