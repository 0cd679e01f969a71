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

/* Store the deadline if the place at @index has the flow. */
static __always_inline bool flow_seen(__u32 index, __u64 key)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, &index);

	if (!flow || flow->key != key)
		return false;
	flow->deadline = bpf_ktime_get_ns() + idle_ns;
	return true;
}

/* Give the flow the place at @index, if it is free. Another CPU may do so at the same time. */
static __always_inline bool flow_open(__u32 index, __u64 key)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, &index);
	__u64 old;

	if (!flow)
		return false;
	old = __sync_val_compare_and_swap(&flow->key, 0, key);
	if (old)
		return old == key;
	flow->deadline = bpf_ktime_get_ns() + idle_ns;
	/* If the ring is full, give the place back: the next packet tries again. */
	if (bpf_ringbuf_output(&opened, &index, sizeof(index), 0))
		flow->key = 0;
	return true;
}

SEC("xdp")
int see(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	__u32 i, first;
	__u64 key;

	if ((void *)(udp + 1) > (void *)(long)ctx->data_end ||
	    eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 || ip->protocol != IPPROTO_UDP)
		return XDP_PASS;
	key = (__u64)ip->saddr << 32 | (__u32)udp->source << 16 | udp->dest;
	first = key * 0x9e3779b97f4a7c15 >> 32;
	for (i = 0; i < PROBES; i++)
		if (flow_seen((first + i) % FLOWS, key))
			return XDP_PASS;
	/* Only now: the flow may be behind a place that has become free since it was opened. */
	for (i = 0; i < PROBES; i++)
		if (flow_open((first + i) % FLOWS, key))
			return XDP_PASS;
	return XDP_PASS;
}

char flows_license[] SEC("license") = "Dual MIT/GPL";
