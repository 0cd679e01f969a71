#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# hwtctl: its help, its manual page and its completion for bash know the same commands and
# options; completion completes; "make install" puts everything where it belongs, and what it
# builds there runs. Prints what is wrong, else nothing.
set -eu
. "$(dirname "$0")/../lib.sh"

cd "$HWT_TOP/tools"
out=$HWT_BUILD/hwtctl
bad=0
wrong() { echo "$*"; bad=1; }

make -s OUT="$out" CFLAGS='-O2 -Werror'
ctl=$out/hwtctl
PATH=$out:$PATH

# -- Three lists of commands and options --

commands() { "$ctl" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'; }
options() { "$ctl" "$@" --help | grep -oE '^ .*--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u; }
# What the page has under "hwtctl COMMAND": heading and text
page()
{
	sed -n "/^\.SS hwtctl $1\b/,/^\.S[SH] /p" ../man/hwtctl.1 | sed '$d' |
		sed -e 's/\\f[A-Z]//g' -e 's/\\-/-/g'
}

# complete WORD...: what the last one may become
. ./hwtctl.bash-completion
complete_words()
{
	COMP_WORDS=(hwtctl "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	_hwtctl
	printf '%s\n' "${COMPREPLY[@]}" | sort
}

same()
{
	[ "$2" = "$3" ] || wrong "$1:" "$(diff <(echo "$2") <(echo "$3") | grep '^[<>]')"
}

same "commands of the help and the completion" "$(commands | sort)" "$(complete_words '')"
same "options of the help and the completion" "$(options)" "$(complete_words --)"
for command in $(commands); do
	same "$command: options of the help and the completion" \
		"$(options "$command")" "$(complete_words "$command" --)"
	heading=$(page "$command")
	[ -n "$heading" ] || wrong "hwtctl.1 has nothing on $command"
	for option in $(options "$command"); do
		[ "$option" = --help ] || grep -q -e "$option\b" <<<"$heading" ||
			wrong "hwtctl.1: $command $option is missing"
	done
done
# Words of scripts: those of the program are in its help and in the page.
for word in $(sed -n '/^} words\[\]/,/^};/s/^\t{ "\([a-z]*\)".*/\1/p' run.c); do
	"$ctl" run --help | grep -qE "^  (.* )?$word\b" || wrong "run --help: $word is missing"
	sed -n '/^\.SH SCRIPTS/,/^\.SH JSON/p' ../man/hwtctl.1 |
		grep -qE "^\.(B|BI) \"?$word\b" || wrong "hwtctl.1: $word is missing"
done

# -- Completion --

# completes WANT WORD...
completes()
{
	local want=$1
	shift
	same "completion of '$*'" "$want" "$(complete_words "$@" | xargs)"
}
cd "$(mktemp -d)"
touch one.script two.script
completes "save sleep stats stress" s
completes "--count" stats --c
completes "--verbose" run --v
completes "boottime" run --clock b
completes "one.script" run o
completes "one.script two.script" --device /dev/hwt restore ""
completes "one.script two.script" save --output ""
completes "" sleep ""
completes "" list --fd ""
completes "rings" bench --only r
rm -r "$PWD"
cd "$HWT_TOP/tools"

# -- Installation --

root=$out/root
rm -rf "$root"
make -s OUT="$out" CFLAGS='-O2 -Werror' DESTDIR="$root" PREFIX=/usr install
same "what is installed" "./lib/udev/rules.d/60-hwt.rules
./usr/bin/hwtctl
./usr/sbin/hwt-callbacks.bt
./usr/sbin/hwt-lateness.bt
./usr/share/bash-completion/completions/hwtctl
./usr/share/man/man1/hwtctl.1" "$(cd "$root" && find . -type f | sort)"
"$root/usr/bin/hwtctl" --version >/dev/null || wrong "what is installed does not run"
exit $bad
