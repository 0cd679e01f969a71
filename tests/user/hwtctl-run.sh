#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwtctl run and sleep: scripts, their output, and errors in scripts.
#
# hwt-test: check stock
# hwt-test: only stock rt
# hwt-test: timeout 150
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=lib/hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

# run OPTIONS...: run /tmp/script, without values in its output that vary.
run()
{
	rc=0
	"$ctl" run "$@" /tmp/script >/tmp/printed 2>&1 || rc=$?
	sed -e 's/, [^,]* late//' -e 's/, id [0-9]*$/, id/' \
		-e 's/left: [0-9][^,]*/left/' /tmp/printed
	return $rc
}

# script NAME STATUS OUTPUT SCRIPT [OPTION...]
script()
{
	script_name=$1 script_status=$2 script_want=$3
	echo "$4" >/tmp/script
	shift 4
	expect "$script_name" "$script_status" "$script_want" run "$@"
}

# -- Commands --

script "verbose" 0 "scheduled a, id
modified a, was pending
cancelled a, was pending
scheduled a, id" "schedule a 1h
modify a 2h
cancel a
schedule a never" --verbose --no-wait
script "an event that was not read is withdrawn by a modify" 0 "scheduled a, id
a: one-shot, expired
modified a, was expired
a: one-shot, pending, left
a expired" "schedule a 0
idle 100ms
get a
modify a 200ms
get a
wait a" --verbose
script "a periodic timeout" 0 "b: fixed-rate, pending, left, period: 1h00m00s" "schedule b 1h every=1h
get b" --no-wait
script "keys, a move by a schedule, cancel all" 0 "scheduled a, id
scheduled a, was pending
scheduled b, id
b expired
cancelled 1
scheduled a, id
a expired" "schedule a 1h key=18446744073709551615
schedule a 2h
schedule b 0 key=7
wait b
cancel all
schedule a 0 every=1h key=7
wait a" --verbose --keys --no-wait
script "wait for a timeout, for the next event, for all" 0 "b expired
b has come
a expired
a has come
c expired
all have come" "schedule a 500ms
schedule b 100ms
schedule c 800ms
wait b
echo b has come
wait next
echo a has come
wait all
echo all have come"
script "nothing to wait for" 0 "done" "wait all
wait next
wait 0
wait 10ms
echo done"
script "a name can be used again" 0 "a expired
a expired" "schedule a 0
wait a
schedule a 0"
script "comments, blanks, no newline at the end" 0 "a b
last" "# nothing

	 # nothing
echo   a	b # c
 echo last
#"
printf 'echo a\r\necho b' >/tmp/script
expect "lines with CR, and a last line without LF" 0 "a
b" run
script "periods" 0 "p expired
p expired
p expired
d expired
d expired" "schedule p 10ms every=400ms
wait p
wait p
wait p
cancel p
schedule d 10ms pause=400ms
wait d
wait d
cancel d"
script "slack, data, a new period" 0 "a: fixed-rate, pending, left, period: 1m30s
s expired" "schedule a 1h every=1m data=0xff
modify a 1h period=1m30s data=7
get a
cancel a
schedule s 10ms slack=100ms"
script "absolute times" 0 "a expired
b: one-shot, pending, left" "schedule a @1.5
wait a
schedule b @4000000000
get b" --no-wait
script "dates" 0 "a expired
b: one-shot, pending, left
c: one-shot, pending, left
d: one-shot, pending, left" "schedule a 2001-02-03T04:05
wait a
schedule b 2100-01-01T00:00:00.5
get b
schedule c 2100-01-01T00:00Z
get c
schedule d 1h
get d" --no-wait --clock realtime
script "another clock and tick" 0 "a expired" "schedule a 30ms" --clock boottime --tick 20ms
script "never" 0 "a: one-shot, pending, left: never" "schedule a never
get a" --no-wait

# Events are printed when they come, while the script waits for input.
expect "standard input, and events before its next line" 0 "a expired
later" sh -c "{ echo 'schedule a 100ms'; sleep 1; echo 'echo later'; } | '$ctl' run |
	sed 's/,.*//'"
expect "standard input as -" 0 "x" sh -c "echo echo x | '$ctl' run -"

# -- JSON --

cat >/tmp/script <<'END'
schedule a 1s data=18446744073709551615
get a
schedule p 0 every=50ms
idle 500ms
wait p
cancel p
echo "x" \y
wait a
schedule n never
get n
cancel all
END
"$ctl" run --json --verbose /tmp/script >/tmp/json
# json KEY LINE: print the value of KEY.
json() { sed -n "$2s/.*\"$1\":\([^,}]*\).*/\1/p" /tmp/json; }
line() { grep -n "$1" /tmp/json | head -n 1 | cut -d : -f 1; }
note "$(cat /tmp/json)"
n=$(line '"event":"expired","name":"a"')
expect "data" 0 18446744073709551615 json data "$n"
expect "the last event" 0 true json last "$n"
check "never early" [ "$(json deadline_ns "$n")" -le "$(json fired_ns "$n")" ]
n=$(line '"event":"expired","name":"p"')
expect "not the last one" 0 false json last "$n"
check "overruns" [ "$(json overruns "$n")" -ge 5 ]
n=$(line '"get":true')
expect "pending" 0 true json pending "$n"
expect "mode" 0 '"one-shot"' json mode "$n"
check "remaining" [ "$(json remaining_ns "$n")" -le 1001000000 ]
check "echo" grep -qxF '{"echo":["\"x\"","\\y"]}' /tmp/json
check "never is null" grep -q '"name":"n",.*,"deadline_ns":null,' /tmp/json
check "cancel all" grep -qx '{"done":"cancelled","count":1}' /tmp/json
check "cancel" grep -qx '{"done":"cancelled","name":"p","id":[0-9]*,"was":"pending.*"}' \
	/tmp/json
check "one object a line" sh -c "! grep -qv '^{.*}\$' /tmp/json"

# -- Errors --

# wrong NAME MESSAGE LINE [OPTION...]: expect an error in LINE, the second of a script.
wrong()
{
	wrong_name=$1 wrong_message=$2
	printf 'echo first\n%s\necho third\n' "$3" >/tmp/script
	shift 3
	expect "$wrong_name" 1 "first
hwtctl: /tmp/script:2: $wrong_message" run "$@"
}
long=aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg
# NAME|MESSAGE|LINE|OPTIONS. For more bad durations and dates, see hwtctl_parse.c.
while IFS='|' read -r name message line options; do
	# shellcheck disable=SC2086 # words
	wrong "$name" "$message" "$line" $options
done <<END
an unknown word|unknown command 'nonsense'|nonsense a
too few words|too few words for 'schedule'|schedule a
too many words|too many words for 'cancel'|cancel a b
too many words for any command|more than 64 words|echo $(seq -s ' ' 100)
no time|'soon' is not a time|schedule a soon
a date on the wrong clock|'2100-01-01T00:00' is a date, which requires --clock realtime|schedule a 2100-01-01T00:00
an invalid date|'2100-02-30T00:00' is not a date|schedule a 2100-02-30T00:00|--clock realtime
an option of another command|'period=1s' is not an option of schedule|schedule a 1s period=1s
an option without a value|'soon' is not an option of schedule|schedule a 1s soon
a bad value|slack: 'x' is not a duration|schedule a 1s slack=x
bad data|data: '-1' is not a number from 0 to 18446744073709551615|schedule a 1s data=-1
data with --keys|'data=1' is not an option of schedule with --keys|schedule a 1s key=1 data=1|--keys
a period of 0|every: '0' is not a duration of 1 ns or more|schedule a 1s every=0
a pause of 0|pause: '0' is not a duration of 1 ns or more|schedule a 1s pause=0
a period and a pause|every excludes pause|schedule a 1s pause=1s every=1s
slack of a periodic timeout|slack excludes every and pause|schedule a 1s slack=1s every=1s
a key without --keys|'key=1' is not an option of schedule|schedule a 1s key=1
no key|'a': a new timeout requires key=N|schedule a 1s|--keys
key 0|key: '0' is not a number from 1 to 18446744073709551615|schedule a 1s key=0|--keys
an invalid name|'1a': a name begins with a letter or _|schedule 1a 1s
an invalid character in a name|'a/b': a name consists of letters, digits, _ - . :|schedule a/b 1s
a name that is reserved|'all': this word is reserved|schedule all 1s
a name that is a duration|'inf': this word is reserved|schedule inf 1s
a long name|'$long': the name is too long|schedule $long 1s
an unknown name|cancel a: no timeout has this name|cancel a
an unknown name to get|get $long: no timeout has this name|get $long
an unknown name to wait for|wait a: no timeout has this name|wait a
no time to be idle|'never' is not a duration from 0 ns to 213503d23h34m|idle never
a save to a missing directory|/nowhere/file: No such file or directory|save /nowhere/file
END
script "a name twice" 1 "hwtctl: /tmp/script:2: 'a': a timeout with this name exists" \
	"schedule a 1s
schedule a 1s"
script "a new period of 0" 1 "hwtctl: /tmp/script:2: period: '0' is not a duration of 1 ns or more" \
	"schedule a 1h every=1h
modify a 1h period=0"
modify="hwtctl: /tmp/script:2: modify a: a one-shot has no period, a periodic timeout no slack"
script "a period of a one-shot" 1 "$modify" "schedule a 1h
modify a 1h period=1s"
script "a new slack of a periodic timeout" 1 "$modify" "schedule a 1h every=1h
modify a 1h slack=1s"
script "the key of another name" 1 "hwtctl: /tmp/script:2: 'b': the name and the key belong to different timeouts" \
	"schedule a 1h key=1
schedule b 1h key=1" --keys
script "errors with --keep-going" 1 "hwtctl: /tmp/script:1: unknown command 'nonsense'
hwtctl: /tmp/script:2: cancel a: no timeout has this name
a expired" "nonsense
cancel a
schedule a 0" --keep-going
head -c 5000 /dev/zero | tr '\0' x >/tmp/script
expect "a long line" 1 "hwtctl: /tmp/script: a line has more than 4096 bytes" run
printf 'echo a\0b\n' >/tmp/script
expect "a binary file" 1 "hwtctl: /tmp/script: this is not a text file" run
expect "a missing file" 1 'hwtctl: /tmp/no\n\x1b[m: No such file or directory' "$ctl" run "$(printf '/tmp/no\n\033[m')"
expect "a directory" 1 "hwtctl: /tmp: Is a directory" "$ctl" run /tmp

# -- The end of a script --

script "--no-wait ends a script at once" 0 "" "schedule a 1h" --no-wait
echo "schedule a never" >/tmp/script
expect "ended by an interrupt" 130 "" timeout -s INT 1 "$ctl" run /tmp/script

# -- sleep --

# The uptime, in hundredths of a second
now() { cut -d ' ' -f 1 /proc/uptime | tr -d .; }
# slept LEAST COMMAND...: run a command, which must take at least LEAST hundredths of a second.
slept()
{
	least=$1 begin=$(now)
	shift
	"$@" || return 1
	# The uptime is rounded down.
	[ $(($(now) - begin + 1)) -ge "$least" ]
}
check "sleep, seconds" slept 100 "$ctl" sleep 1
check "sleep, units and sums" slept 50 "$ctl" sleep 250ms 249000us 1000000ns 0.0s
check "sleep, not at all" slept 0 "$ctl" sleep 0
expect "sleep for ages, until interrupted" 130 "" timeout -s INT 1 "$ctl" sleep 200000d 1d
plan
