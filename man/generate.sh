#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# generate.sh KERNEL-DOC DIR: create a page of section 9 in DIR for each function and type of
# hwt.h, from the comments in the sources. KERNEL-DOC is scripts/kernel-doc of a kernel's source
# or headers.
set -eu
kernel_doc=$1
dir=$2
cd "$(dirname "$0")/.."
date=$(sed -n 's/^\.TH HWT 9 \([^ ]*\) .*/\1/p' man/hwt.9)

exporting() { grep -l '^EXPORT_SYMBOL_GPL' hwt_*.c core/*.c; }

# Types, macros and inline functions have their comments in hwt.h, all others in the sources.
pages()
{
	"$kernel_doc" -man hwt.h
	# shellcheck disable=SC2046 # names without blanks
	"$kernel_doc" -man -export $(exporting)
}

rm -rf "$dir"
mkdir -p "$dir"
pages | awk -v dir="$dir" -v date="$date" '
	function see_also() {
		if (file)
			printf ".SH SEE ALSO\n.BR hwt (9)\n" >file
	}
	/^\.TH / {
		see_also()
		match($0, /"((struct|enum) )?(hwt_|HWT_)[a-zA-Z0-9_]*"/)
		name = substr($0, RSTART + 1, RLENGTH - 2)
		gsub(" ", "_", name)
		if (file)
			close(file)
		file = dir "/" name ".9"
		print ".\\\" Made by man/generate.sh." >file
		printf ".TH %s 9 %s hwt \"hwt manual\"\n.ad l\n", name, date >file
		next
	}
	# Drop empty requests and preprocessor lines from a synopsis.
	/^\.BI "$/ || /^\.BI " *#/ { skip = 1; next }
	skip && /^\.br$/ { skip = 0; next }
	{ skip = 0 }
	# The name must be one word for whatis: the name of the file.
	heading ~ /NAME/ && /^(struct|enum) / { sub(" ", "_") }
	/^\.SH/ { $0 = toupper($0); heading = $0 }
	{ print >file }
	END { see_also() }'
# Write functions with (), and drop the blank before a comma.
sed -i -e 's/\\fB\(hwt_[a-z_]*\)\\fP/&()/g' -e 's/^\(\.BI .*[^ ]\) "  "/\1" "/' "$dir"/*.9
