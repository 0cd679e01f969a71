#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A driver with references and dozens of timers: the kernel's own bridge, which tools/timer_list.cocci
# converts. The kernel's selftests of its multicast run with the original and the converted module.
# In a storm, hosts join and leave groups, packets are lost, and ports and bridges come and go.
#
# hwt-test: only stock debug
# hwt-test: long
# hwt-test: driver bridge
# hwt-test: timeout 600
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=driver.inc
. "$HWT_DIR/scripts/driver.inc"
# The devices are in a network namespace of their own.
[ $# -gt 0 ] || exec unshare -n sh "$0" inside
cd "$HWT_DIR/selftests"
# The programs of packages, not those of busybox.
ip() { /usr/sbin/ip "$@"; }
bridge() { /usr/sbin/bridge "$@"; }

# -- The kernel's selftests --

# Most other tests fail on a slow machine, converted or not: a group of some seconds expires before it
# is checked. The first test has two results.
igmp="v2reportleave_test v3inc_block_test"
mld=mldv2inc_block_test
results=4
if [ "${HWT_SLOW:-0}" = 0 ]; then
	igmp="$igmp v3star_ex_auto_add_test"
	mld="$mld mldv2exc_allow_test"
	results=6
fi
# selftest NAME TESTS
selftest()
{
	PATH=/usr/sbin:/usr/bin:$PATH WAIT_TIME=1 TESTS=$2 \
		unshare -n /usr/bin/bash "bridge_$1.sh" veth0 veth1 veth2 veth3 >"/tmp/$1" 2>&1 || true
}
# selftests WHEN: a point for each result, and one for their number
selftests()
{
	selftest igmp "$igmp" &
	selftest mld "$mld"
	wait $!
	cat /tmp/igmp /tmp/mld >/tmp/said
	while read -r line; do
		name=$(echo "$line" | sed 's/^TEST: \(.*[^ ]\) *\[.*/\1/')
		case $line in
		'TEST: '*'[ OK ]') ok "$1: $name" ;;
		'TEST: '*) not_ok "$1: $name" ;;
		*) note "$line" ;;
		esac
	done </tmp/said
	check "$1: $results results" [ "$(grep -c '^TEST: ' /tmp/said)" = $results ]
}

load_network
begin=$(seconds)
selftests before
rmmod bridge
check "the converted module loads" insmod "$HWT_MODULES/bridge.ko"
check "it depends on hwt" grep -q '^hwt .*[ ,]bridge,' /proc/modules
selftests after
note "the selftests took $(($(seconds) - begin)) s"
check "the selftests leave nothing on the wheel" wait_for 10 nothing

# -- The storm: hosts h1 and h2 on br0; br1 and br2 have STP; br0 and br1 are queriers --

options="mcast_querier 1 mcast_igmp_version 3 mcast_mld_version 2 mcast_query_interval 100"
options="$options mcast_query_response_interval 50 mcast_membership_interval 300"
# bridges: create br0, br1 and br2, connected in a row
bridges()
{
	ip -force -batch - <<-END
		link add br0 type bridge $options mcast_last_member_interval 30
		link set p1 master br0 up
		link set p2 master br0 up
		link set br0 up
		link add br1 type bridge $options stp_state 1 forward_delay 200 hello_time 100
		link add br2 type bridge mcast_membership_interval 300 stp_state 1 forward_delay 200 hello_time 100
		link add a0 type veth peer name a1
		link add b1 type veth peer name b2
		link set a0 master br0 up
		link set a1 master br1 up
		link set b1 master br1 up
		link set b2 master br2 up
		link set br1 up
		link set br2 up
	END
	# The contexts of a VLAN have options of their own.
	# shellcheck disable=SC2086 # words
	bridge vlan global set dev br0 vid 1 $options
}
no_bridges() { printf 'link del %s\n' br0 br1 br2 a0 b1 | ip -force -batch -; }
# lose PERCENT: lose packets from the hosts and to them
lose()
{
	for device in h1 h2 p1 p2; do
		/usr/sbin/tc qdisc replace dev $device root netem loss "$1%" delay 5ms 5ms
	done
}

# packets: print the reports of the selftests, as arguments of mausezahn
packets()
{
	sed -n 's/^MZPKT_.*="\(.*\)"/-b 01:00:5e:00:00:01 -B 224.0.0.1 -t ip proto=2,p=\1/p' bridge_igmp.sh
	sed -n '/^MZPKT_/{:a;/\\$/{N;s/\\\n//;ba};s/.*"\(.*\)"/\1/p}' bridge_mld.sh
}
# reports DEVICE: send reports with sources
reports()
{
	while [ ! -e /tmp/quiet ]; do
		# shellcheck disable=SC2086 # words
		packets | while read -r packet; do /usr/sbin/mausezahn "$1" -c 1 -q $packet; done
	done >/dev/null 2>&1
}
# members: the kernel joins and leaves groups on the hosts and on br0, and answers queries
members()
{
	while [ ! -e /tmp/quiet ]; do
		awk -v seed="$(tr -cd 0-9 </proc/uptime)" 'BEGIN {
			srand(seed)
			split("h1 h2 br0", devices, " ")
			for (i = 0; i < 60; i++) {
				number = 1 + int(rand() * 200)
				print "addr", rand() < 0.7 ? "add" : "del", rand() < 0.5 ? "239.20.0." number "/32" : "ff15::" number "/128",
				      "dev", devices[1 + int(rand() * 3)], "autojoin"
			}
		}' | ip -force -batch - || sleep 0.2
	done >/dev/null 2>&1
}
load_begin()
{
	rm -f /tmp/quiet
	reports h1 & loaders=$!
	reports h2 & loaders="$loaders $!"
	members & loaders="$loaders $!"
}
groups() { bridge mdb show | awk '/ grp /{ number++ } END { print 0 + number }'; }
groups_at_least() { [ "$(groups)" -ge "$1" ]; }
no_groups() { [ "$(groups)" = 0 ]; }

ip -batch - <<-END
	link add p1 type veth peer name h1
	link add p2 type veth peer name h2
	link set h1 up
	link set h2 up
	addr add 10.0.0.1/24 dev h1
	addr add 10.0.0.2/24 dev h2
END
echo 10000 >/proc/sys/net/ipv4/igmp_max_memberships
bridges
lose 30
expired=$(counter expired)
load_begin
check "br0 has 200 groups" wait_for 60 groups_at_least 200
rounds=0
most=0
end=$(($(seconds) + 30))
while [ $rounds -lt 4 ] || [ "$(seconds)" -lt $end ]; do
	rounds=$((rounds + 1))
	ip link set p2 down
	[ $((rounds % 2)) = 0 ] || ip link set p1 nomaster
	ip link set br0 type bridge vlan_filtering $((rounds % 2)) mcast_vlan_snooping $((rounds % 2))
	[ $((rounds % 3)) != 0 ] || { no_bridges; bridges; }
	[ $((rounds % 4)) != 0 ] || { ip link set br0 down; ip link set br0 up; }
	ip link set p1 master br0
	ip link set p2 up
	sleep 1
	now=$(groups)
	[ "$now" -le "$most" ] || most=$now
done
note "$rounds rounds, at most $most groups; expired: $(($(counter expired) - expired)), cancels: $(counter cancelled)"
check "the wheel has fired" [ $(($(counter expired) - expired)) -ge 200 ]

# In new bridges, because a group whose timer fires while its bridge is down stays, converted or not.
no_bridges
bridges
check "new bridges have 200 groups" wait_for 60 groups_at_least 200
load_end
lose 100
# br0 itself is a member of groups of IPv6.
echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
ip addr flush dev br0
check "all packets are lost: all groups expire" wait_for 60 no_groups

lose 30
load_begin
check "groups come back: timeouts are pending" wait_for 60 pending_at_least 100
check "the module is unloaded under load" rmmod bridge
check "it leaves nothing on the wheel" nothing
load_end
ip link del p1
ip link del p2
unload_network
plan
