/* SPDX-License-Identifier: GPL-2.0-only */
/* What hwt.h needs and tools/include does not have. One thread: plain is enough. */
#ifndef _SHIM_LINUX_ATOMIC_H
#define _SHIM_LINUX_ATOMIC_H

#include <linux/compiler.h>
#include <linux/types.h>

struct shim_atomic64 {
	s64 counter;
};

#define atomic64_t	struct shim_atomic64

#define ATOMIC64_INIT(value)	{ (value) }

static inline s64 atomic64_read(const atomic64_t *atomic)
{
	return READ_ONCE(atomic->counter);
}

static inline void atomic64_set(atomic64_t *atomic, s64 value)
{
	WRITE_ONCE(atomic->counter, value);
}

#endif /* _SHIM_LINUX_ATOMIC_H */
