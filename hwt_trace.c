// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the tracepoints are defined; see hwt_trace.h
 */
#define CREATE_TRACE_POINTS
#include "hwt_trace.h"
