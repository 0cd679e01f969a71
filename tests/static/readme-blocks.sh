#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The documentation shows real code. Each C block of README.md and docs/ names the file
# it is taken from ("```c samples/first.c") and must stand there word for word; that
# file is compiled and run by other tests. README.md must have a kernel client and a
# program. Each command of a block in sh is one of the test that the block names ("```sh
# tests/guest/..."), perhaps with more behind it. And no link in these files may lead nowhere. Says what is wrong, else nothing.
set -eu
cd "$(dirname "$0")/../.."

bad=0
wrong() { echo "$*"; bad=1; }

# blocks LANGUAGE FILE: "line source" of each block in that.
blocks() { sed -n "/^\`\`\`$1\( \|\$\)/{=;p}" "$2" | paste - - | sed "s/\`\`\`$1 *//"; }

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
	while read -r line source; do
		if [ ! -f "$source" ]; then
			wrong "$page:$line: a C block of no file ('$source')"
		elif ! text "$page" "$line" | contains "$source"; then
			wrong "$page:$line: this is not what $source says"
		fi
	done < <(blocks c "$page")

	while read -r line source; do
		if [ ! -f "$source" ]; then
			wrong "$page:$line: commands that nobody carries out ('$source')"
			continue
		fi
		while IFS= read -r command; do
			begins "$command" "$source" || wrong "$page:$line: not in $source: $command"
		done < <(text "$page" "$line")
	done < <(blocks sh "$page")

	while read -r target; do
		[ -e "$(dirname "$page")/$target" ] || wrong "$page: a link to '$target'"
	done < <(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '://' || true)
done

for source in samples/hwt_first.c samples/first.c; do
	blocks c README.md | grep -q "[[:space:]]$source\$" || wrong "README.md does not show $source"
done
exit $bad
