#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwtctl list, save and restore: its own context, that of another process, and invalid saves.
#
# hwt-test: long
# hwt-test: check stock
# hwt-test: timeout 150
# hwt-test: load max_timeouts=5000
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=lib/hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

# Replace numbers that vary.
still() { sed -e 's/"\(id\|[a-z]*_ns\)":[0-9][0-9]*/"\1":N/g'; }

# -- A context of its own --

cat >/tmp/script <<'END'
schedule late 2h data=7
schedule soon 10s
schedule often 20s every=2s
schedule pause 1h pause=1m
schedule no never data=18446744073709551615
schedule gone 0
idle 200ms
END
saved_own()
{
	"$ctl" save /tmp/script | sed -e 's/"period_ns":\([0-9]*\)/"period":\1/' \
		-e 's/"tick_ns":\([0-9]*\)/"tick":\1/' | still
}
expect "save" 0 '{"hwt_save":1,"clock":"monotonic","thread":false,"keys":false,"tick":1000000,"ticks_per_wheel":64,"levels":5,"count":6}
{"id":N,"name":"gone","data":0,"mode":"one-shot","pending":false,"event":true,"deadline_ns":N,"remaining_ns":N,"period":0,"overruns":0}
{"id":N,"name":"soon","data":0,"mode":"one-shot","pending":true,"event":false,"deadline_ns":N,"remaining_ns":N,"period":0,"overruns":0}
{"id":N,"name":"often","data":0,"mode":"fixed-rate","pending":true,"event":false,"deadline_ns":N,"remaining_ns":N,"period":2000000000,"overruns":0}
{"id":N,"name":"pause","data":0,"mode":"fixed-delay","pending":true,"event":false,"deadline_ns":N,"remaining_ns":N,"period":60000000000,"overruns":0}
{"id":N,"name":"late","data":7,"mode":"one-shot","pending":true,"event":false,"deadline_ns":N,"remaining_ns":N,"period":0,"overruns":0}
{"id":N,"name":"no","data":18446744073709551615,"mode":"one-shot","pending":true,"event":false,"deadline_ns":null,"remaining_ns":null,"period":0,"overruns":0}' \
	saved_own

expect "list" 0 "MODE STATE LEFT PERIOD OVERRUNS DATA ID NAME
one-shot expired - - 0 0 ID gone
one-shot pending L - 0 7 ID late
one-shot pending never - 0 9 ID no" sh -c "printf '%s\n' 'schedule late 2h data=7' \
	'schedule no never data=9' 'schedule gone 0' 'idle 200ms' | '$ctl' list - |
	sed -E 's/pending +[0-9.hms]+ /pending L /; s/ +/ /g; s/ [0-9]+ ([a-z]+)\$/ ID \1/'"
expect "list as JSON" 0 '{"id":N,"name":"a","data":5,"mode":"one-shot","pending":true,"event":false,"deadline_ns":N,"remaining_ns":N,"period_ns":N,"overruns":0}' \
	sh -c "echo schedule a 1h data=5 | '$ctl' list --json - |
	sed -E 's/\"(id|[a-z]+_ns)\":[0-9]+/\"\1\":N/g'"
expect "list of a script with an error" 1 "hwtctl: standard input:1: unknown command 'x'" \
	sh -c "echo x | '$ctl' list -"

cat >/tmp/script <<'END'
schedule second 400ms
schedule first 200ms data=3
schedule third 600ms
END
"$ctl" save --output /tmp/save /tmp/script
expect "restore: events" 0 "first expired
second expired
third expired" sh -c "'$ctl' restore /tmp/save | sed 's/,.*//'"
expect "restore from standard input, as JSON" 0 '"first","data":3
"second","data":0
"third","data":0' sh -c "'$ctl' restore --json <'/tmp/save' |
	sed 's/.*\"name\":\(\"[a-z]*\"\),\"id\":[0-9]*\(,\"data\":[0-9]*\).*/\1\2/'"
# Kinds of output: a file of another user and links, which are replaced; FIFOs; devices; descriptors.
chmod 1777 /tmp
chmod 666 /tmp/save
chown 7:8 /tmp/save
ln /tmp/save /tmp/target
ln -s target /tmp/link
ln -s new /tmp/dangling
ln -s cycle /tmp/cycle
mkfifo /tmp/fifo
mknod /tmp/null c 1 3
timeout 20 cat /tmp/fifo >/tmp/read &
echo "schedule other 1h" >/tmp/script
for path in save link dangling cycle fifo null; do
	"$ctl" save -o /tmp/$path /tmp/script || true
done
wait $! || true
# owned FILE...: print mode and owner.
owned() { (cd /tmp && stat -c '%A %u:%g' "$@") | xargs; }
expect "files and links are replaced by private files" 0 \
	"-rw------- 0:0 -rw------- 0:0 -rw------- 0:0 -rw------- 0:0" owned save link dangling cycle
expect "the new files are complete" 0 4 sh -c "cat /tmp/save /tmp/link /tmp/dangling /tmp/cycle | grep -c other"
expect "the old file, to which the link led, is unchanged" 0 "-rw-rw-rw- 7:8" owned target
check "its content, too" sh -c "grep -q third /tmp/target && ! grep -q other /tmp/target"
check "the target of a dangling link is not created" [ ! -e /tmp/new ]
expect "a FIFO and a device stay" 0 "prw-r--r-- 0:0 crw-r--r-- 0:0" owned fifo null
check "the FIFO is written" grep -q other /tmp/read
ln -s /proc/self/fd /dev/fd
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
for path in - /dev/stdout /dev/stderr /dev/fd/5; do
	expect "the descriptor $path" 0 1 sh -c "'$ctl' save -o $path /tmp/script 2>&1 5>&1 | grep -c other"
done
check "these names are not replaced" sh -c "[ ! -e ./- ] && [ -L /dev/stdout ] && [ -L /dev/stderr ]"
rm /dev/fd /dev/stdout /dev/stderr
protected=$(cat /proc/sys/fs/protected_fifos)
echo 1 >/proc/sys/fs/protected_fifos
chown 7:8 /tmp/fifo
expect "another user's FIFO that is protected" 1 "hwtctl: /tmp/fifo: Permission denied" \
	timeout 20 "$ctl" save -o /tmp/fifo /tmp/script
echo "$protected" >/proc/sys/fs/protected_fifos
long=$(head -c 300 /dev/zero | tr '\0' x)
expect "a name that is too long" 1 "hwtctl: /tmp/$long: File name too long" \
	"$ctl" save -o "/tmp/$long" /tmp/script
expect "a directory" 1 "hwtctl: /tmp: Is a directory" "$ctl" save -o /tmp /tmp/script
echo "save /dev/full" >/tmp/script
expect "a full device, in a script" 1 "hwtctl: /tmp/script:1: /dev/full: No space left on device" \
	"$ctl" run /tmp/script
check "no new file is left" sh -c "! ls /tmp/hwtctl.* /tmp/save.* 2>/dev/null"

# remade COUNT: restore a save of COUNT timeouts, and save it again to /tmp/again.
remade()
{
	"$ctl" restore /tmp/save >/tmp/printed &
	restored=$!
	wait_for 20 has "$1"
	"$ctl" save --pid $restored >/tmp/again
	kill $restored
	wait $restored || true
}
has() { [ "$("$ctl" list --json --pid $restored | grep -c .)" = "$1" ]; }
# values FILE KEY: print the values of KEY, of all timeouts.
values() { sed -n "s/.*\"$2\":\([a-z0-9]*\).*/\1/p" "$1"; }

# The remaining time of a delay does not run while it is saved. Pretend that this was long ago.
echo "schedule a 60s" >/tmp/script
"$ctl" save -o /tmp/save /tmp/script
sed -i 's/"deadline_ns":[0-9][0-9]*/"deadline_ns":1/' /tmp/save
remade 1
left=$(values /tmp/again remaining_ns)
asked=$(values /tmp/save remaining_ns)
note "saved with $asked ns left, restored with $left"
check "the remaining time is kept" [ "$left" -gt $((asked - 20000000000)) ]
check "the remaining time does not grow" [ "$left" -le $((asked + 1000000)) ]

# A date does not change.
printf 'schedule %s\n' "a 2100-01-01T00:00:00Z" "b 1h" "c 1h every=1d" "d never" >/tmp/script
"$ctl" save --clock realtime --tick 10ms --thread -o /tmp/save /tmp/script
check "dates are saved" grep -q '"clock":"realtime","thread":true,"keys":false,"tick_ns":10000000,"ticks_per_wheel":8192,"levels":3,' /tmp/save
check "the date" grep -q '"name":"a",.*"deadline_ns":4102444800000000000,' /tmp/save
sed -i '2,$s/"remaining_ns":[0-9][0-9]*/"remaining_ns":1/' /tmp/save
remade 4
expect "dates are kept" 0 "$(values /tmp/save deadline_ns)" values /tmp/again deadline_ns
expect "the context is set up again" 0 "$(head -n 1 /tmp/save)" head -n 1 /tmp/again

# -- The context of another process --

writer_begin
echo "schedule a 1h data=11
schedule b 2h every=3s data=12
schedule c never data=13" >&7
writer_sync 1
expect "list of a process" 0 "MODE STATE LEFT PERIOD OVERRUNS DATA ID
one-shot pending L - 0 11 N
fixed-rate pending L 3.000 s 0 12 N
one-shot pending never - 0 13 N" sh -c "'$ctl' list --pid $writer_pid |
	sed -E 's/pending +[0-9hms]+ /pending L /; s/ +/ /g; s/ [0-9]+\$/ N/'"
"$ctl" save --pid $writer_pid --output /tmp/save
expect "save of a process" 0 '{"hwt_save":1,"clock":"monotonic","thread":false,"keys":false,"tick_ns":N,"ticks_per_wheel":64,"levels":5,"count":3}
{"id":N,"data":11,"mode":"one-shot","pending":true,"event":false,"deadline_ns":N,"remaining_ns":N,"period_ns":N,"overruns":0}
{"id":N,"data":12,"mode":"fixed-rate","pending":true,"event":false,"deadline_ns":N,"remaining_ns":N,"period_ns":N,"overruns":0}
{"id":N,"data":13,"mode":"one-shot","pending":true,"event":false,"deadline_ns":null,"remaining_ns":null,"period_ns":N,"overruns":0}' \
	still </tmp/save
"$ctl" save --pid $writer_pid >/tmp/again
check "save to standard output" [ "$(still </tmp/again)" = "$(still </tmp/save)" ]
expect "restore into a process" 0 "" "$ctl" restore --pid $writer_pid /tmp/save
expect "the process has the timeouts twice" 0 "11 11 12 12 13 13 " sh -c "'$ctl' list --json \
	--pid $writer_pid | sed 's/.*\"data\":\([0-9]*\).*/\1/' | sort | tr '\n' ' '"
echo '{"hwt_save":1,"clock":"monotonic","thread":false,"keys":false,"tick_ns":1000000,"ticks_per_wheel":64,"levels":5,"count":1}
{"data":99,"mode":"one-shot","deadline_ns":0,"remaining_ns":0,"period_ns":0}' >/tmp/now
expect "restore of the required members only" 0 "" "$ctl" restore --pid $writer_pid /tmp/now
wait_for 20 writer_said '#[0-9]* expired' || true
check "the process gets the event" writer_said '#[0-9]* expired'
echo "cancel a" >&7
writer_sync 2
check "the process keeps its names" sh -c "! grep hwtctl: $writer_output"

# Keys do not change, and are only for contexts with keys.
echo '{"hwt_save":1,"clock":"monotonic","thread":false,"keys":true,"tick_ns":1000000,"ticks_per_wheel":64,"levels":5,"count":1}
{"id":77,"data":77,"mode":"one-shot","pending":true,"event":false,"deadline_ns":null,"remaining_ns":null,"period_ns":0,"overruns":0}' >/tmp/keys
"$ctl" restore /tmp/keys &
keyed=$!
restored() { "$ctl" list --pid $keyed 2>/dev/null | grep -q ' 77$'; }
wait_for 20 restored || fail "nothing with keys is restored"
expect "a save with keys" 0 "$(cat /tmp/keys)" "$ctl" save --pid $keyed
expect "no restore of keys into a context without keys" 1 \
	"hwtctl: /tmp/keys: saved with keys; the context of process $writer_pid is without" \
	"$ctl" restore --pid $writer_pid /tmp/keys
# keyed_save FIRST COUNT: print a save of COUNT timeouts, with the keys from FIRST on.
keyed_save()
{
	head -n 1 /tmp/keys | sed "s/\"count\":1/\"count\":$2/"
	seq "$1" $(($1 + $2 - 1)) | sed 's/.*/{"id":&,"data":&,"mode":"one-shot","deadline_ns":5,"remaining_ns":3600000000000,"period_ns":0}/'
}
keyed_save 77 5000 >/tmp/exists
expect "no restore of a key that exists" 1 \
	"hwtctl: /tmp/exists:2: the context of process $keyed has a timeout of key 77" \
	"$ctl" restore --pid $keyed /tmp/exists
expect "the timeout of that key is as it was" 0 "$(cat /tmp/keys)" "$ctl" save --pid $keyed
keyed_save 78 5000 >/tmp/exists
expect "a restore of keys beyond a limit" 1 "hwtctl: /tmp/exists: restoring: No space left on device: a limit is reached; 'hwtctl info' shows the limits" \
	"$ctl" restore --pid $keyed /tmp/exists
expect "only the timeout from before is left" 0 "$(cat /tmp/keys)" "$ctl" save --pid $keyed
kill $keyed
wait $keyed 2>/dev/null || true

# A restore is all or nothing.
awk 'BEGIN { for (i = 0; i < 4998; i++) print "schedule n" i " 1h" }' >/tmp/script
"$ctl" save -o /tmp/many /tmp/script
expect "many" 0 4999 grep -c . /tmp/many
expect "a restore beyond a limit" 1 "hwtctl: /tmp/many: restoring: No space left on device: a limit is reached; 'hwtctl info' shows the limits" \
	"$ctl" restore --pid $writer_pid /tmp/many
expect "none of them is restored" 0 5 sh -c "'$ctl' list --json --pid $writer_pid | grep -c ."
expect "no dates on another clock" 1 "hwtctl: /tmp/dates: saved on the realtime clock; the context of process $writer_pid uses the monotonic clock" \
	sh -c "sed 's/monotonic/realtime/' /tmp/save >/tmp/dates
	'$ctl' restore --pid $writer_pid /tmp/dates"
expect "a bad descriptor" 1 \
	"hwtctl: descriptor 99 of process $writer_pid: Bad file descriptor" \
	"$ctl" save --pid $writer_pid --fd 99
check "the process succeeds" writer_end

expect "no such process, with a descriptor" 1 \
	"hwtctl: descriptor 3 of process 999999: No such process" \
	"$ctl" list --pid 999999 --fd 3

# This shell has two contexts.
exec 5<>/dev/hwt 6<>/dev/hwt
expect "two contexts, without --fd" 1 "hwtctl: process $$ has /dev/hwt open 2 times, first as descriptor 5; choose with --fd" \
	"$ctl" list --pid $$
expect "restore by --fd" 0 "" "$ctl" restore --pid $$ --fd 6 /tmp/save
expect "the context has the timeouts" 0 3 sh -c "'$ctl' list --json --pid $$ --fd 6 | grep -c ."
expect "not the other context" 0 0 sh -c "'$ctl' list --json --pid $$ --fd 5 | grep -c . || true"
exec 5>&- 6>&-

# -- Invalid saves --

# header CLOCK LEVELS COUNT: print the first line of a save.
header()
{
	echo "{\"hwt_save\":1,\"clock\":\"$1\",\"thread\":false,\"keys\":false,\"tick_ns\":1000000," \
		"\"ticks_per_wheel\":64,\"levels\":$2,\"count\":$3}"
}
head=$(header monotonic 3 1)
times='"deadline_ns":5,"remaining_ns":5'
good="{\"data\":1,\"mode\":\"one-shot\",$times,\"period_ns\":0}"
printf '%s\n' "$head" "$good" >/tmp/bad
expect "a valid save" 0 "" sh -c "'$ctl' restore /tmp/bad >/dev/null"
header monotonic 3 1 | sed 's/"tick_ns":1000000/"tick_ns":500000/' >/tmp/bad
echo "$good" >>/tmp/bad
expect "a tick that the module raises" 0 "hwtctl: /dev/hwt: a tick of 500.000 us is too short: using 1.000 ms (min_tick_us)" \
	sh -c "'$ctl' restore /tmp/bad >/dev/null"
expect "an empty file" 1 "hwtctl: /dev/null: this is not a save" "$ctl" restore /dev/null
# NAME|MESSAGE|LINES, with a semicolon between them
while IFS='|' read -r name message lines; do
	echo "$lines" | tr ';' '\n' >/tmp/bad
	expect "$name" 1 "hwtctl: $message" "$ctl" restore /tmp/bad
done <<END
text|/tmp/bad:1: this is not a line of a save|hello
another object|/tmp/bad:1: this is not a save|$good
a later version|/tmp/bad:1: the save has another version|{"hwt_save":2}
no clock|/tmp/bad:1: "clock" is missing or has another type|{"hwt_save":1}
an unknown clock|/tmp/bad:1: "clock" is unknown|{"hwt_save":1,"clock":"tai"}
too few timeouts|/tmp/bad: there are fewer timeouts than the first line says|$head
too many timeouts|/tmp/bad:3: there are more timeouts than the first line says|$head;$good;$good
two objects|/tmp/bad:2: this is not a line of a save|$head;$good$good
a list|/tmp/bad:2: this is not a line of a save|$head;[1]
cut off|/tmp/bad:2: this is not a line of a save|$head;{"data":1,"mode":"one-sh
no mode|/tmp/bad:2: "mode" is missing or has another type|$head;{"data":1}
an unknown mode|/tmp/bad:2: "mode" is unknown|$head;{"mode":"often"}
a number that is a string|/tmp/bad:2: "data" is missing or has another type|$head;{"mode":"one-shot","data":"1"}
a negative number|/tmp/bad:2: "data" is out of range|$head;{"mode":"one-shot","data":-1}
a fraction|/tmp/bad:2: "data" is missing or has another type|$head;{"mode":"one-shot","data":1.5}
no period|/tmp/bad:2: "period_ns" does not fit "mode"|$head;{"mode":"fixed-rate","data":1,$times,"period_ns":0}
a period of a one-shot|/tmp/bad:2: "period_ns" does not fit "mode"|$head;{"mode":"one-shot","data":1,$times,"period_ns":1}
an invalid name|/tmp/bad:2: 'a b': a name consists of letters, digits, _ - . :|$head;{"name":"a b","mode":"one-shot","data":1,$times,"period_ns":0}
a count out of range|/tmp/bad:1: "count" is out of range|$(header monotonic 3 4000000000)
invalid levels|/dev/hwt: setting up a context (see HWT_IOC_SETUP in hwt(4)): Invalid argument|$(header monotonic 7 1);$good
END
expect "an output that cannot be opened" 1 "hwtctl: /dev/full/x: Not a directory" \
	"$ctl" save -o /dev/full/x /dev/null
expect "an output that is full" 1 "hwtctl: standard output: No space left on device" \
	sh -c "'$ctl' save /dev/null >/dev/full"
plan
