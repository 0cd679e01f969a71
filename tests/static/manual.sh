#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# manual.sh KERNEL-DOC: all manual pages, those made from comments too, render without a
# warning; hwt(4) has what hwt_uapi.h has, hwt(9) what hwt.h has. Prints what is wrong.
set -eu
. "$(dirname "$0")/../lib.sh"

cd "$HWT_TOP"
made=$HWT_BUILD/static/man
bad=0

# NAME and what it is, of each page that was made.
pages()
{
	awk '/^\.SH NAME/ {
		getline
		sub(/ \\- /, "\t")
		if (/^(struct|enum)_/)
			sub("_", " ")
		print
	}' "$made"/*.9
}

# The same of the tables of hwt(9), where the second column may be a text block.
table()
{
	awk -F '\t' '
		/^((struct|enum) )?(hwt|HWT)_[a-zA-Z0-9_]*\t/ {
			text = $2
			if (text == "T{")
				getline text
			print $1 "\t" text
		}' man/hwt.9
}

exported() { sed -n 's/^EXPORT_SYMBOL_GPL(_*\(.*\));/\1/p' hwt_*.c; }

man/generate.sh "$1" "$made"
for page in man/*.[0-9] "$made"/*.9; do
	errors=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 \
		man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null) || bad=1
	[ -z "$errors" ] || { printf '%s: %s\n' "${page#"$HWT_TOP/"}" "$errors"; bad=1; }
	lexgrog "$page" >/dev/null || { echo "${page#"$HWT_TOP/"}: whatis does not know it"; bad=1; }
done

python3 tests/static/abi.py page || bad=1

# "<" is missing in hwt(9) or says something else there, ">" is there only.
diff <(pages | sort) <(table | sort) | grep '^[<>]' && bad=1
while read -r symbol; do
	table | cut -f 1 | grep -qxF "$symbol" || { echo "man/hwt.9: $symbol is missing"; bad=1; }
done < <(exported)
exit $bad
