#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""aio.py [N...]: the timers of hwt.aio beside those of asyncio: ns of CPU time an operation, turns of the loop included.

Each timer is pushed back ten times, 100 in a turn of the loop. "put off by it": until all deadlines of before
have come, for each timer. "lazy": a store for each push, and a callback of asyncio that looks.
"""
import asyncio
import random
import sys
import time

import hwt.aio


class Asyncio:
    """call_later(), and cancel() to move a timer."""
    name = "asyncio"

    def __init__(self, loop, delay):
        self.loop, self.delay, self.fired = loop, delay, 0

    def fire(self):
        self.fired += 1

    def create(self, delay):
        return [self.loop.call_later(delay, self.fire)]

    def push(self, timer):
        timer[0].cancel()
        timer[0] = self.loop.call_later(self.delay, self.fire)

    def cancel(self, timer):
        timer[0].cancel()

    def close(self):
        """Nothing is left."""


class Lazy(Asyncio):
    """The object of a timer is a list: the last push, the delay, and the timer of asyncio."""
    name = "lazy"

    def create(self, delay):
        timer = [self.loop.time(), delay, None]
        timer[2] = self.loop.call_later(delay, self.look, timer)
        return timer

    def look(self, timer):
        rest = timer[0] + timer[1] - self.loop.time()
        if rest > 0:
            timer[2] = self.loop.call_later(rest, self.look, timer)
        else:
            self.fired += 1

    def push(self, timer):
        timer[0], timer[1] = self.loop.time(), self.delay

    def cancel(self, timer):
        timer[2].cancel()


class Hwt(Asyncio):
    """call_later() and reschedule()."""
    name = "hwt"

    def __init__(self, loop, delay, granularity=0):
        super().__init__(loop, delay)
        self.timers = hwt.aio.HwtTimers(loop, granularity=granularity)

    def create(self, delay):
        return self.timers.call_later(delay, self.fire)

    def push(self, timer):
        timer.reschedule(self.delay)

    def cancel(self, timer):
        timer.cancel()

    def close(self):
        self.timers.close()


class Coarse(Hwt):
    """The same with a granularity of 30 ms."""
    name = "hwt-30ms"

    def __init__(self, loop, delay):
        super().__init__(loop, delay, 0.03)


async def measure(kind, number):
    """Print the costs of one kind of timers."""
    loop, delay = asyncio.get_running_loop(), max(2, number / 5000)
    begin = 0

    def note(operation, operations):
        nonlocal begin
        now = time.process_time_ns()
        if operation:
            print(f"@bench bench=aio peer={kind.name} op={operation} n={number} unit=ns "
                  f"value={(now - begin) / operations:.1f}", flush=True)
        begin = time.process_time_ns()

    peer = kind(loop, delay)
    start = loop.time()
    spans = [delay / 2 * (1 + random.random()) for _ in range(number)]
    note("", 1)
    timers = [peer.create(span) for span in spans]
    note("create", number)
    random.shuffle(timers)
    note("", 1)
    for _ in range(10):
        for first in range(0, number, 100):
            for timer in timers[first:first + 100]:
                peer.push(timer)
            await asyncio.sleep(0)
    note("push-back", 10 * number)
    await asyncio.sleep(start + delay - loop.time())
    note("put-off-by-it", number)
    for timer in timers:
        peer.cancel(timer)
    assert not peer.fired, f"{peer.fired} are early"
    await asyncio.sleep(0.1)
    note("", 1)
    for first in range(0, number, 100):
        for timer in [peer.create(delay) for _ in range(100)]:
            peer.cancel(timer)
        await asyncio.sleep(0)
    note("create+cancel", number)
    timers = [peer.create(number / 50000) for _ in range(number)]
    time.sleep(number / 50000)
    note("", 1)
    while peer.fired < number:
        await asyncio.sleep(0)
    note("expire", number)
    peer.close()


for count in map(int, sys.argv[1:] or ("1000", "10000", "100000")):
    for each in (Asyncio, Lazy, Hwt, Coarse) * 2:
        asyncio.run(measure(each, count))
