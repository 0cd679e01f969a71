/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included before core/submit.c when it is built to be counted. Its functions that are inlined
 * into each entry point would be counted in each, where half of their branches have gone. Only
 * in what is defined from here on: what the kernel's headers define must be inlined.
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
