/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included before core/submit.c in builds for gcov. Functions that are inlined into each entry
 * point would be counted in each, where half of their branches are gone. The headers below come
 * first, because their functions must be inlined.
 */
#include <linux/hardirq.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/timekeeping.h>

#include "core/clock.h"
#include "core/debug.h"
#include "core/submit.h"

#undef __always_inline
#define __always_inline inline
