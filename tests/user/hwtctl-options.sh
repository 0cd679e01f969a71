#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwtctl: help, version, errors of usage, and permissions.
#
# hwt-test: check stock
# hwt-test: only stock rt
# hwt-test: timeout 120
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=lib/hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

# first COMMAND...: print the first line of a help, which must be all on standard output.
first() { "$@" >/tmp/help 2>/tmp/errors && [ ! -s /tmp/errors ] && head -n 1 /tmp/help; }
expect "help" 0 "Usage: hwtctl [--device PATH] COMMAND [OPTION]... [OPERAND]" first "$ctl" --help
for command in "info" "stats" "top" "run [FILE]" "sleep DURATION..." "list [SCRIPT]" \
	"save [SCRIPT]" "restore [FILE]" "help [COMMAND]"; do
	name=${command%% *}
	operands=${command#"$name"}
	for option in --help -h; do
		expect "$name $option" 0 "Usage: hwtctl $name [OPTION]...$operands" \
			first "$ctl" "$name" $option
	done
	expect "help $name" 0 "$("$ctl" "$name" --help)" "$ctl" help "$name"
done
expect "help, as a command" 0 "$("$ctl" --help)" "$ctl" help
version() { "$ctl" "$1" | grep -qx 'hwtctl [0-9.]*'; }
check "version" version --version

# NAME|MESSAGE|WORDS. For more bad durations, see hwtctl_parse.c.
while IFS='|' read -r name message words; do
	# shellcheck disable=SC2086 # words
	refused "$name" "$message" "$ctl" $words
done <<'END'
no command|a command is missing|
unknown option|unrecognized option '--nonsense'|--nonsense
unknown command|unknown command 'nonsense'|nonsense
info: clock|--clock: 'tai' is not monotonic, boottime or realtime|info --clock tai
info: pid and set-up|--pid excludes --clock, --tick and --thread|info --pid 1 --thread
info: tick|--tick: '1y' is not a duration of 1 ns or more|info --tick 1y
pid 0|--pid: '0' is not a number from 1 to 2147483647|list --pid 0
stats: wheels and pid|--wheels excludes --pid|stats --wheels --pid 1
top: interval|--interval: 'x' is not a duration from 10.000 ms to 213503d23h34m|top --interval x
top: count 0|--count: '0' is not a number from 1 to 18446744073709551615|top --count 0
run: two files|unexpected operand 'b'|run a b
sleep: no duration|a duration is missing|sleep
list: no context|a context is missing: give --pid or a script|list
list: pid and script|--pid excludes a script, --clock, --tick and --thread|list --pid 1 script
END
for command in info stats top list save restore; do
	refused "$command: fd without pid" "--fd requires --pid" "$ctl" $command --fd 3
done

expect "buckets" 0 "64 + 64 + 64 + 64 + 64" sh -c "'$ctl' info | sed -n 's/^buckets *//p'"
for command in "info" "run /dev/null" "list /dev/null" "save /dev/null"; do
	# shellcheck disable=SC2086 # words
	expect "$command: a short tick" 1 \
		"hwtctl: /dev/hwt: a tick of 5 ns is too short: the shortest is 1.000 ms (min_tick_us)" \
		"$ctl" $command --tick 5ns
done
expect "a long tick" 1 "hwtctl: /dev/hwt: a tick of 2083d08h00m is too long: the longest is 1667d23h59m" \
	"$ctl" info --tick 50000h

for command in info stats top "sleep 1" "run /dev/null"; do
	# shellcheck disable=SC2086 # words
	expect "$command without the device" 1 \
		"hwtctl: /dev/nothing: No such file or directory" \
		"$ctl" --device /dev/nothing $command
done
expect "output to a full device" 1 "hwtctl: standard output: No space left on device" \
	sh -c "'$ctl' info >/dev/full"

# -- A device that a udev rule has given to a group (for the rule, see commands/packages/use.sh) --

mkdir -p /etc
printf '%s\n' root:x:0:0::/:/bin/sh member:x:1001:1001::/:/bin/sh \
	stranger:x:1002:1002::/:/bin/sh >/etc/passwd
printf '%s\n' root:x:0: member:x:1001: stranger:x:1002: hwt:x:900:member >/etc/group

as() { user=$1; shift; su -s /bin/sh "$user" -c "$*"; }
expect "without the rule, members are refused" 1 "hwtctl: /dev/hwt: Permission denied: only root may use it" \
	as member "$ctl" sleep 0
chgrp hwt /dev/hwt
chmod 660 /dev/hwt
expect "members are accepted" 0 "" as member "$ctl" sleep 10ms
expect "members get no thread" 1 "hwtctl: /dev/hwt: setting up a context with a thread (requires CAP_SYS_NICE): Operation not permitted" \
	as member "$ctl" info --thread
expect "strangers are refused" 1 "hwtctl: /dev/hwt: Permission denied: only group hwt may use it" \
	as stranger "$ctl" sleep 0

# Members see nothing of another user's process.
writer_begin
echo "schedule a 1h" >&7
writer_sync 1
expect "no list of root's" 1 "hwtctl: process $writer_pid: Permission denied: access requires root or the right to trace the process" \
	as member "$ctl" list --pid $writer_pid
expect "no list by --fd" 1 "hwtctl: descriptor 3 of process $writer_pid: Operation not permitted: access requires root or the right to trace the process" \
	as member "$ctl" list --pid $writer_pid --fd 3
expect "not in the statistics" 0 "" \
	as member "$ctl stats --json | grep '\"pid\":$writer_pid,\"fd\"' || true"
check "root sees it" sh -c "'$ctl' stats --json | grep -q '\"pid\":$writer_pid,\"fd\"'"
writer_end

unload hwt
expect "no module" 1 "hwtctl: /dev/hwt: No such file or directory: the module is not loaded; run 'modprobe hwt'" \
	"$ctl" info
load hwt
plan
