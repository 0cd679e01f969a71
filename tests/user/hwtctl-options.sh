#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwtctl: how it is called. Help, version, what is refused, and how it says so.
#
# hwt-test: check stock
# hwt-test: only stock rt
# hwt-test: timeout 120
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

# First lines of the helps: exit status 0, on standard output.
first() { "$@" 2>/dev/null | head -n 1; }
helps() { "$@" >/dev/null 2>/tmp/errors && [ ! -s /tmp/errors ]; }
expect "help" 0 "Usage: hwtctl [--device PATH] COMMAND [OPTION]... [OPERAND]" first "$ctl" --help
for command in "info" "stats [SECONDS]" "run [FILE]" "sleep DURATION..." "list [SCRIPT]" \
	"save [SCRIPT]" "restore [FILE]" "stress" "bench"; do
	name=${command%% *}
	operands=${command#"$name"}
	expect "help of $name" 0 "Usage: hwtctl $name [OPTION]...$operands" \
		first "$ctl" "$name" --help
	check "help of $name is no error" helps "$ctl" "$name" --help
	check "-h of $name" helps "$ctl" "$name" -h
done
check "every command is in the help" sh -c "
	for c in info stats run sleep list save restore stress bench; do
		'$ctl' --help | grep -q \"^  \$c \" || exit 1
	done"
version() { "$ctl" "$1" | grep -qx 'hwtctl [0-9.]* (ABI version [0-9]*)'; }
check "version" version --version
check "version, short" version -V

refused "no command" "which command?" "$ctl"
refused "unknown command" "'nonsense' is no command" "$ctl" nonsense
expect "unknown option" 2 "hwtctl: unrecognized option '--nonsense'
Try 'hwtctl --help'." "$ctl" --nonsense
expect "unknown option of a command" 2 "hwtctl: unrecognized option '--nonsense'
Try 'hwtctl info --help'." "$ctl" info --nonsense
expect "unknown letter" 2 "hwtctl: invalid option -- 'x'
Try 'hwtctl stats --help'." "$ctl" stats -x
expect "no argument" 2 "hwtctl: option '--pid' requires an argument
Try 'hwtctl list --help'." "$ctl" list --pid
expect "an argument too much" 2 "hwtctl: option '--json' doesn't allow an argument
Try 'hwtctl info --help'." "$ctl" info --json=1

refused "info: operand" "'x' is too much" "$ctl" info x
refused "info: clock" "--clock: 'tai' is none of monotonic, boottime, realtime" \
	"$ctl" info --clock tai
refused "info: tick" "--tick: '1y' is no duration" "$ctl" info --tick 1y
refused "info: tick 0" "--tick: '0' is no tick" "$ctl" info --tick 0
refused "info: pid and wheel" "--pid, or a wheel, not both" \
	"$ctl" info --pid $$ --tick 10ms
refused "pid 0" "--pid: '0' is no number from 1 to 2147483647" "$ctl" list --pid 0
refused "pid negative" "--pid: '-1' is no number from 1 to 2147483647" "$ctl" list --pid -1
refused "pid no number" "--pid: 'init' is no number from 1 to 2147483647" \
	"$ctl" list --pid init
refused "fd out of range" "--fd: '2147483648' is no number from 0 to 2147483647" \
	"$ctl" list --fd 2147483648
for command in info stats list save restore; do
	refused "$command: fd without pid" "--fd wants --pid" "$ctl" $command --fd 3
done
refused "stats: operand" "'5' is too much without --watch" "$ctl" stats 5
refused "stats: two operands" "'6' is too much" "$ctl" stats --watch 5 6
refused "stats: interval" "'x' is no duration" "$ctl" stats --watch x
refused "stats: interval 0" "--watch: every 10 ms at most" "$ctl" stats --watch=0
refused "stats: no interval" "--watch: every 10 ms at most" "$ctl" stats --watch=never
refused "stats: count" "--count wants --watch" "$ctl" stats --count 2
refused "stats: count 0" "--count: '0' is no number from 1 to 18446744073709551615" \
	"$ctl" stats --watch --count 0
refused "run: two files" "'b' is too much" "$ctl" run a b
refused "sleep: how long" "how long?" "$ctl" sleep
for bad in '' x 1x -1 1s2 . 1e3 1..2 ' 1' '1 ' 0x10 1hm infinityx 99999999999999999999; do
	refused "sleep: '$bad'" "'$bad' is no duration" "$ctl" sleep -- "$bad"
done
refused "list: of what" "of which context? --pid, or a script" "$ctl" list
refused "list: of both" "--pid, or a script, not both" "$ctl" list --pid $$ script
refused "save: of what" "of which context? --pid, or a script" "$ctl" save
refused "restore: two files" "'b' is too much" "$ctl" restore a b
refused "stress: seconds" "--seconds: '0' is no number from 1 to 31536000" \
	"$ctl" stress --seconds 0
refused "stress: threads" "--threads: '1025' is no number from 1 to 1024" \
	"$ctl" stress --threads 1025
refused "stress: contexts" "--contexts: 'x' is no number from 1 to 100000" \
	"$ctl" stress --contexts x
refused "stress: timeouts" "--timeouts: '' is no number from 1 to 16777216" \
	"$ctl" stress --timeouts ''
for mix in 1 1:2:3 1:2:3:4:5 1:2:3:x 1:2:3:1001 1:2::4; do
	refused "stress: mix $mix" "--mix: four numbers up to 1000, as 40:30:20:10" \
		"$ctl" stress --mix $mix
done
refused "stress: empty mix" "--mix: something has to be scheduled" \
	"$ctl" stress --mix 0:1:1:1
refused "stress: operand" "'x' is too much" "$ctl" stress x
refused "bench: timeouts" "--timeouts: '0' is no number from 1 to 100000000" \
	"$ctl" bench --timeouts 0
refused "bench: repetitions" "--repetitions: '1001' is no number from 1 to 1000" \
	"$ctl" bench --repetitions 1001
refused "bench: way" "--only: 'poll' is none of ioctl, batch, rings, timerfd" \
	"$ctl" bench --only ioctl,poll

for command in info stats "sleep 1" "run /dev/null" stress bench; do
	# shellcheck disable=SC2086 # words
	expect "$command without the device" 1 \
		"hwtctl: /dev/nothing: No such file or directory" \
		"$ctl" --device /dev/nothing $command
done
expect "another device" 1 \
	"hwtctl: /dev/null: what it is: Inappropriate ioctl for device" \
	"$ctl" -d /dev/null info
expect "nowhere to print to" 1 "hwtctl: standard output: No space left on device" \
	sh -c "'$ctl' info >/dev/full"
expect "nowhere to print the help to" 1 "hwtctl: standard output: No space left on device" \
	sh -c "'$ctl' run --help >/dev/full"
plan
