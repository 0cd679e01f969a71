// SPDX-License-Identifier: GPL-2.0-only
/*
 * samples/flows: of the flows on a veth pair, it closes those that are silent, and no others
 *
 * hwt-test: only stock
 * hwt-test: driver veth
 * hwt-test: timeout 120
 */
#include "guest.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "kselftest_harness.h"

#define SEEN		200	/* flows; every second one goes on */

static bool seen[SEEN], over[SEEN];

static struct packet {
	struct ethhdr	eth;
	struct iphdr	ip;
	struct udphdr	udp;
} __attribute__((packed)) packet = {
	.ip = { .ihl = 5, .version = 4, .protocol = IPPROTO_UDP },
};

/* Send a packet of each @step-th flow from one end of the pair; the daemon is at the other. */
static bool send_some(int fd, unsigned int step)
{
	unsigned int i;

	for (i = 0; i < SEEN; i += step) {
		packet.udp.source = htons(1000 + i);
		if (send(fd, &packet, sizeof(packet), 0) != sizeof(packet))
			return false;
	}
	return true;
}

/* Read what the daemon has said until @count flows have been @what, or until no more comes. */
static unsigned int said(FILE *from, const char *what, bool *flows, unsigned int count)
{
	unsigned int port, n = 0;
	char line[100], word[10];

	while (n < count && fgets(line, sizeof(line), from)) {
		if (sscanf(line, "%9s 10.0.0.1:%u 53", word, &port) != 2 || strcmp(word, what) ||
		    port - 1000 >= SEEN || flows[port - 1000])
			return ~0U;
		flows[port - 1000] = true;
		n++;
	}
	return n;
}

TEST(silent_flows_are_closed_and_no_others)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), i;
	FILE *daemon;

	ASSERT_EQ(0, system("insmod $HWT_DIR/network/*veth.ko && ip link add name va type veth"));
	ASSERT_EQ(0, system("ip link set va up && ip link set veth0 up"));
	memset(packet.eth.h_dest, 0xff, sizeof(packet.eth.h_dest));
	packet.eth.h_proto = htons(ETH_P_IP);
	packet.ip.saddr = htonl(0x0a000001);
	packet.udp.dest = htons(53);
	at.sll_ifindex = if_nametoindex("va");
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&at, sizeof(at)));
	daemon = popen("exec $HWT_BIN/flows veth0 $HWT_BIN/flows.bpf.o 3000", "r");
	ASSERT_NE(NULL, daemon);
	/* Until the daemon is ready, packets pass. */
	for (i = 0; i < 40; i++) {
		ASSERT_TRUE(send_some(fd, 1));
		sleep_ns(50 * MSEC);
	}
	EXPECT_EQ(SEEN, said(daemon, "opened", seen, SEEN));
	for (i = 0; i < 90; i++) {
		ASSERT_TRUE(send_some(fd, 2));
		sleep_ns(50 * MSEC);
	}
	EXPECT_EQ(SEEN / 2, said(daemon, "closed", over, SEEN / 2));
	for (i = 0; i < SEEN; i++)
		EXPECT_EQ(i % 2, over[i]);
	EXPECT_EQ(SEEN / 2, said(daemon, "closed", over, SEEN / 2));
	system("kill $(pidof flows); ip link del va; rmmod veth");
	pclose(daemon);
}

TEST_HARNESS_MAIN
