/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What core/buckets.c uses of the kernel, in standard C, and the system headers of timers.c. These
 * come first, because in C++ they remove macros like min().
 */
#ifndef LIBHWT_PORT_H
#define LIBHWT_PORT_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __linux__
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#endif
#ifdef LIBHWT_DEBUG
#include <pthread.h>
#include <stdio.h>
#endif

#include "libhwt_timers.h"

typedef uint32_t u32;
typedef uint64_t u64;

#ifdef __GNUC__
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define prefetchw(at)	__builtin_prefetch((at), 1)
/* vendor.sh makes the functions of core/buckets.c static. Not all of them are used. */
#define hwt_unused	__attribute__((unused))
/* Not inline, so that the functions that call it stay short */
#define hwt_cold	__attribute__((cold, noinline))
#else
#define likely(x)	(x)
#define unlikely(x)	(x)
#define prefetchw(at)	((void)(at))
#define hwt_unused
#define hwt_cold
#endif

#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define max_t(type, a, b)	max((type)(a), (type)(b))

#define container_of(pointer, type, member)	\
	((type *)(void *)((char *)(pointer) - offsetof(type, member)))

/* -- Timers, as the buckets see them --------------------------------------- */

#define list_head		libhwt_link
#define hwt_timeout		libhwt_timer
#define HWT_TICK_SHIFT		LIBHWT_TICK_SHIFT
#define HWT_TICK_NEVER		(LIBHWT_NEVER >> LIBHWT_TICK_SHIFT)

/* The tick of a timer, shifted by HWT_TICK_SHIFT. */
static inline u64 hwt_timeout_state(const struct libhwt_timer *timer)
{
	return timer->linked;
}

/* -- Lists ----------------------------------------------------------------- */

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_add_tail(struct list_head *node, struct list_head *list)
{
	node->next = list;
	node->prev = list->prev;
	list->prev->next = node;
	list->prev = node;
}

static inline void list_del(struct list_head *node)
{
	node->next->prev = node->prev;
	node->prev->next = node->next;
}

static inline void __list_del_entry(struct list_head *node)
{
	list_del(node);
}

/* Move the nodes of @list, which becomes empty, between @prev and @next. */
static inline void list_splice_between(struct list_head *list, struct list_head *prev,
				       struct list_head *next)
{
	if (list_empty(list))
		return;
	list->next->prev = prev;
	prev->next = list->next;
	list->prev->next = next;
	next->prev = list->prev;
	INIT_LIST_HEAD(list);
}

static inline void list_splice_init(struct list_head *list, struct list_head *head)
{
	list_splice_between(list, head, head->next);
}

static inline void list_splice_tail_init(struct list_head *list, struct list_head *head)
{
	list_splice_between(list, head->prev, head);
}

#define list_entry(node, type, member)	container_of(node, type, member)

/* All lists are those of timers. */
#define list_for_each_entry_safe(pos, n, list, member)				\
	for (pos = list_entry((list)->next, struct hwt_timeout, member),	\
	     n = list_entry(pos->member.next, struct hwt_timeout, member);	\
	     &pos->member != (list);						\
	     pos = n, n = list_entry(n->member.next, struct hwt_timeout, member))

/* -- Bits ------------------------------------------------------------------ */

#define BITS_PER_LONG	((unsigned int)(sizeof(long) * CHAR_BIT))

/* Return the number of the lowest set bit; @word is not 0. */
static inline unsigned int __ffs(unsigned long word)
{
#ifdef __GNUC__
	return (unsigned int)__builtin_ctzl(word);
#else
	unsigned int n = 0;

	for (; !(word & 1); word >>= 1)
		n++;
	return n;
#endif
}

/* Return the number of the highest set bit, from 1; 0 if there is none. */
static inline int fls64(u64 word)
{
#ifdef __GNUC__
	return word ? 64 - __builtin_clzll(word) : 0;
#else
	int n = 0;

	for (; word; word >>= 1)
		n++;
	return n;
#endif
}

static inline unsigned int hweight_long(unsigned long word)
{
	unsigned int n = 0;

	for (; word; word &= word - 1)
		n++;
	return n;
}

static inline void __set_bit(size_t bit, unsigned long *map)
{
	map[bit / BITS_PER_LONG] |= 1UL << (bit % BITS_PER_LONG);
}

static inline void __clear_bit(size_t bit, unsigned long *map)
{
	map[bit / BITS_PER_LONG] &= ~(1UL << (bit % BITS_PER_LONG));
}

/* Return the first set bit from @bit on, or @size or more if there is none below @size. */
static inline unsigned long find_next_bit(const unsigned long *map, unsigned long size,
					  unsigned long bit)
{
	unsigned long at = bit / BITS_PER_LONG, word;

	if (bit >= size)
		return size;
	word = map[at] & (~0UL << (bit % BITS_PER_LONG));
	while (!word) {
		if (++at * BITS_PER_LONG >= size)
			return size;
		word = map[at];
	}
	return at * BITS_PER_LONG + __ffs(word);
}

#define for_each_set_bit(bit, map, size)			\
	for (bit = find_next_bit(map, size, 0); bit < (size);	\
	     bit = find_next_bit(map, size, bit + 1))

#endif /* LIBHWT_PORT_H */
