/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fixtures of fault_*.c: a user with limits, who has as much as ever afterwards; and a scene,
 * of whose call each point fails once.
 */
#ifndef HWT_FAULT_EACH_H
#define HWT_FAULT_EACH_H

#include "fault_scene.h"

FIXTURE(limited) { };

FIXTURE_SETUP(limited)
{
	scene_begin(_metadata);
}

FIXTURE_TEARDOWN(limited)
{
	scene_end(_metadata);
	EXPECT_TRUE(until(!hwt_users()));
}

FIXTURE(scene) { };

/* At least so many points of the call fail, and so many of them are noticed. */
FIXTURE_VARIANT(scene) {
	unsigned int hit, failed;
	struct scene scene;
};

FIXTURE_SETUP(scene)
{
	scene_begin(_metadata);
}

FIXTURE_TEARDOWN(scene)
{
	scene_end(_metadata);
	/* A ring of io_uring goes in its own time, and lets go of the file then. */
	EXPECT_TRUE(until(!hwt_users()));
}

TEST_F_TIMEOUT(scene, each_point, 400)
{
	scene_run(_metadata, &variant->scene, variant->scene.pid, variant->hit, variant->failed);
}

#endif /* HWT_FAULT_EACH_H */
