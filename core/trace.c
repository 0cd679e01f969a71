// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the tracepoints are defined; see core/trace.h
 */
#define CREATE_TRACE_POINTS
#include "core/trace.h"
