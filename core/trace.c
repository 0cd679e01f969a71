// SPDX-License-Identifier: GPL-2.0-only
/* The definitions of the tracepoints; core/trace.h describes them */
#define CREATE_TRACE_POINTS
#include "core/trace.h"
