/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has any of the tests before lost memory? Included behind all of them: the last fixture runs last.
 */
#ifndef HWT_FAULT_LOST_H
#define HWT_FAULT_LOST_H

#include "fault.h"

FIXTURE(lost) { };
FIXTURE_SETUP(lost) { }
FIXTURE_TEARDOWN(lost) { }

TEST_F_TIMEOUT(lost, nothing, 200)
{
	fault_no_leaks(_metadata);
}

#endif /* HWT_FAULT_LOST_H */
