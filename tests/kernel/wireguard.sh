#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A client that was not written for hwt: the kernel's own WireGuard, which tools/timer_list.cocci
# converts. A veth pair joins two network namespaces, a and b, and carries a tunnel.
#
# hwt-test: only stock debug
# hwt-test: long
# hwt-test: driver wireguard
# hwt-test: timeout 400
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=driver.inc
. "$HWT_DIR/scripts/driver.inc"
# The package of wg has it there.
PATH=$PATH:/usr/bin

unshare -n sleep 100000 & net_a=$!
unshare -n sleep 100000 & net_b=$!
# a COMMAND..., b COMMAND...: run the command in that namespace
a() { nsenter -t $net_a -n "$@"; }
b() { nsenter -t $net_b -n "$@"; }

# of SIDE KEY TABLE [COLUMN]: print a value of a peer from "wg show"; the key is column 1
of() { "$1" wg show wg0 "$3" | awk -v key="$2" -v column="${4:-2}" '$1 == key { print $column }'; }
sent() { of a "$key_b" transfer 3; }
received() { of b "$key_a" transfer 2; }
# shaken TIME: both sides had their last handshake after TIME
shaken() { [ "$(of a "$key_b" latest-handshakes)" -gt "$1" ] && [ "$(of b "$key_a" latest-handshakes)" -gt "$1" ]; }

# A peer has five timeouts.
pending_of_one_peer_each() { [ "$(counter pending)" -le 10 ]; }

# side_up SIDE ADDRESS
side_up()
{
	"$1" ip link add name wg0 type wireguard
	"$1" wg set wg0 private-key "/tmp/$1.key" listen-port 51820
	"$1" ip addr add "$2/24" dev wg0
	"$1" ip link set wg0 up
}
peer_b() { a wg set wg0 peer "$key_b" allowed-ips 10.1.0.2/32 endpoint 10.0.0.2:51820 "$@"; }
peer_a() { b wg set wg0 peer "$key_a" allowed-ips 10.1.0.1/32 endpoint 10.0.0.1:51820 "$@"; }
tunnel()
{
	side_up a 10.1.0.1
	side_up b 10.1.0.2
	peer_b
	peer_a
}
ping_b() { a ping -q -c 1 -W 2 10.1.0.2; }
ping_a() { b ping -q -c 1 -W 2 10.1.0.1; }

# absent COUNT WORDS...: give a COUNT peers that never answer, or with "remove" remove them
absent()
{
	number=0
	head -n "$1" /tmp/absent >/tmp/some
	shift
	while read -r key; do
		number=$((number + 1))
		words="allowed-ips 10.2.0.$number/32 endpoint 10.0.0.2:$((6000 + number)) $*"
		[ "$*" != remove ] || words=remove
		echo "peer $key $words"
	done </tmp/some | a xargs wg set wg0
}

load_network
check "the module loads" insmod "$HWT_MODULES/wireguard.ko"
check "it depends on hwt" grep -q '^hwt .*[ ,]wireguard,' /proc/modules

umask 077
wg genkey >/tmp/a.key
wg genkey >/tmp/b.key
key_a=$(wg pubkey </tmp/a.key)
key_b=$(wg pubkey </tmp/b.key)
# Any 32 bytes serve as a public key.
for number in $(seq 100); do
	wg genkey
done >/tmp/absent
a ip link add name va type veth
vb=$(a ip -o link | sed -n 's/^[0-9]*: \(veth[0-9]*\)@.*/\1/p')
a ip link set "$vb" netns $net_b
a ip addr add 10.0.0.1/24 dev va
a ip link set va up
b ip addr add 10.0.0.2/24 dev "$vb"
b ip link set "$vb" up
tunnel

# -- Handshake and traffic --

check "a packet starts a handshake, and arrives" wait_for 30 ping_b
check "both sides have completed the handshake" shaken 0
check "a packet arrives from b, too" wait_for 30 ping_a
head -c 500000 /dev/urandom >/tmp/data
mkfifo /tmp/silence
# carried FROM TO ADDRESS: data arrives unchanged. (nc ends when the other end does.)
carried()
{
	"$2" nc -l -p 5000 <>/tmp/silence >/tmp/arrived &
	sleep 1
	"$1" timeout 60 nc "$3" 5000 </tmp/data
	wait $!
	cmp /tmp/data /tmp/arrived
}
check "data arrive from a to b" carried a b 10.1.0.2
check "data arrive from b to a" carried b a 10.1.0.1
check "timeouts are pending on the wheel" pending_at_least 2

# -- Retries: an initiation has 148 bytes, and a dropped retry ends the series --

expired=$(counter expired)
absent 100 persistent-keepalive 3600
tried() { a wg show wg0 transfer | awk '$3 >= 6 * 148 { peers++ } END { exit peers < 100 }'; }
check "100 absent peers: five retries for each" wait_for 90 tried
fired() { [ $(($(counter expired) - expired)) -ge 500 ]; }
check "the wheel has fired for each retry" fired
absent 100 remove
check "removed peers leave nothing on the wheel" pending_of_one_peer_each

last=$(of a "$key_b" latest-handshakes)
b ip link set wg0 down
before=$(sent)
ping_b >/dev/null || true
retried() { [ "$(sent)" -ge $((before + 3 * 148)) ]; }
check "b does not answer: a begins handshakes" wait_for 90 retried
b ip link set wg0 up
check "b is up: a handshake completes without traffic" wait_for 60 shaken "$last"
check "packets arrive after that" wait_for 30 ping_b

# -- Keepalives: 32 bytes each --

sleep 12
peer_b persistent-keepalive 2
begin=$(seconds)
before_a=$(sent)
before_b=$(received)
sleep 24
a_sent=$((($(sent) - before_a) / 32))
b_received=$((($(received) - before_b) / 32))
took=$(($(seconds) + 1 - begin))
note "a keepalive each 2 s, for $took s: $a_sent sent, $b_received received"
check "a sends keepalives" [ $a_sent -ge 6 ]
check "they are not early" [ $a_sent -le $((took / 2 + 2)) ]
check "b receives them" [ $b_received -ge 5 ]

# -- Peers are added and removed under load --

# traffic PID ADDRESS SIZE: ping from the namespace of that process. (ping ends without a peer.)
traffic()
{
	while [ ! -e /tmp/quiet ]; do
		nsenter -t "$1" -n ping -q -i 0.02 -w 8 -s "$3" "$2" || sleep 0.1
	done >/dev/null 2>&1
}
load_begin()
{
	loaders=
	rm -f /tmp/quiet
	for size in 40 1300; do
		traffic $net_a 10.1.0.2 $size & loaders="$loaders $!"
		traffic $net_b 10.1.0.1 $size & loaders="$loaders $!"
	done
}
packets() { a sed -n 's/^ *va: *//p' /proc/net/dev | awk '{ print $10 }'; }
changes_of_b()
{
	while [ ! -e /tmp/quiet ]; do
		b wg set wg0 peer "$key_a" remove
		peer_a persistent-keepalive 1
		sleep 0.2
	done
}

load_begin
changes_of_b & loaders="$loaders $!"
before=$(packets)
rounds=0
end=$(($(seconds) + 15))
while [ $rounds -lt 3 ] || [ "$(seconds)" -lt $end ]; do
	absent 10 persistent-keepalive 1
	[ $((rounds % 3)) != 0 ] || a wg set wg0 peer "$key_b" remove
	peer_b persistent-keepalive 1
	[ $((rounds % 5)) != 0 ] || { a ip link set wg0 down; a ip link set wg0 up; }
	absent 10 remove
	rounds=$((rounds + 1))
done
load_end
note "$rounds rounds, $(($(packets) - before)) packets; schedules: $(counter scheduled), cancels: $(counter cancelled)"
check "after additions and removals of peers, packets arrive" wait_for 60 ping_b
check "removed peers leave no timeout on the wheel" pending_of_one_peer_each

# -- The end of the module, and of a namespace --

load_begin
absent 20 persistent-keepalive 1
check "20 more peers, and traffic: timeouts are pending" wait_for 20 pending_at_least 20
check "the module is unloaded" rmmod wireguard
check "it leaves nothing on the wheel" nothing
load_end

check "the module loads again" insmod "$HWT_MODULES/wireguard.ko"
tunnel
check "a handshake completes" wait_for 30 ping_b
absent 20 persistent-keepalive 1
check "timeouts are pending again" wait_for 20 pending_at_least 20
kill $net_a
wait $net_a || true
check "a namespace that ends leaves nothing on the wheel" wait_for 20 pending_of_one_peer_each
check "the module is unloaded again" rmmod wireguard
check "no timeout is left on the wheel" nothing

kill $net_b
wait $net_b || true
unload_network
plan
