#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A first program with hwt for Python."""
import time

import hwt

with hwt.Timers() as timers:
    timers.call_later(0.5, print, "half a second has passed")
    tick = timers.call_every(0.2, print, "tick")
    timers.call_later(0.9, tick.cancel)
    while timers:
        time.sleep(timers.wait() or 0)
        timers.run()
