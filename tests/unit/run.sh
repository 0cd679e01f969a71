#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh COMMAND...: runs them one after the other and makes one TAP stream of
# their "ok - text" and "not ok - text" lines. A command that fails, or reports
# nothing, is a test that failed. Other lines become diagnostics.
set -u

number=0 failed=0

point()
{
	number=$((number + 1))
	[ "$1" = ok ] || failed=$((failed + 1))
	echo "$1 $number - $2"
}

echo "TAP version 13"
for command in "$@"; do
	before=$number failed_before=$failed
	while IFS= read -r line; do
		case $line in
		"ok - "*) point ok "${line#ok - }" ;;
		"not ok - "*) point "not ok" "${line#not ok - }" ;;
		"exit code "*) code=${line##* } ;;
		"#"*) echo "$line" ;;
		*) echo "# $line" ;;
		esac
	done < <(bash -o pipefail -c "$command" 2>&1; echo "exit code $?")
	if [ "$code" -ne 0 ] && [ $failed -eq $failed_before ]; then
		point "not ok" "$command: exit code $code"
	elif [ $number -eq "$before" ]; then
		point "not ok" "$command: no test reported"
	fi
done
echo "1..$number"
[ $failed -eq 0 ]
