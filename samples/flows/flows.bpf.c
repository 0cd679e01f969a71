// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The program in the kernel: for each packet of UDP over IPv4, store the deadline of its flow. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "flows.h"

#define PROBES	8

/* The daemon sets it. */
const volatile __u64 idle_ns = 1;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

/* Indices of new flows, for the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} opened SEC(".maps");

/* Store the deadline if the place at @index has the flow, or is free. Return false if neither. */
static __always_inline bool flow_seen(__u32 index, __u64 key)
{
	__u64 deadline = bpf_ktime_get_ns() + idle_ns, old;
	struct flow *flow = bpf_map_lookup_elem(&flows, &index);

	if (!flow)
		return false;
	old = flow->key;
	if (!old) {
		old = __sync_val_compare_and_swap(&flow->key, 0, key);
		if (!old) {
			flow->deadline = deadline;
			/* If the ring is full, give the place back: the next packet tries again. */
			if (bpf_ringbuf_output(&opened, &index, sizeof(index), 0))
				flow->key = 0;
			return true;
		}
	}
	if (old == key)
		flow->deadline = deadline;
	return old == key;
}

SEC("xdp")
int see(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	__u64 key;
	__u32 i;

	if ((void *)(udp + 1) > (void *)(long)ctx->data_end ||
	    eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 || ip->protocol != IPPROTO_UDP)
		return XDP_PASS;
	key = (__u64)ip->saddr << 32 | (__u32)udp->source << 16 | udp->dest;
	for (i = 0; i < PROBES; i++)
		if (flow_seen(((key * 0x9e3779b97f4a7c15 >> 32) + i) % FLOWS, key))
			break;
	return XDP_PASS;
}

char flows_license[] SEC("license") = "Dual MIT/GPL";
