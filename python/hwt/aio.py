# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Timers for asyncio, in the process: hwt.Timers in a loop. Python 3.11 or later.

    with hwt.aio.HwtTimers() as timers:
        timers.call_later(1.5, print, "1.5 s have passed")
        async with timers.timeout(5):
            await reader.readline()

To push a timer back, or to cancel it, is a store: the loop's heap is not touched. Callbacks run in the order
of their times, and never early; their exceptions go to the loop's exception handler. As asyncio's, these
classes are for the thread of the loop. Times are seconds; those of call_at() are on the clock of
loop.time(), which is CLOCK_MONOTONIC. ValueError: a time is not a number.
"""
from __future__ import annotations

import asyncio
import contextlib
import contextvars
from typing import AsyncIterator

import hwt
from hwt import Timer

__all__ = ["HwtTimers", "Timer"]


class HwtTimers(hwt.Timers):
    """Timers of one loop, which watches their descriptor. A context manager, which closes."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, *, granularity: float = 0) -> None:
        """Add timers to a loop, by default the running one.

        granularity: seconds by which all timers may be late, to save turns of the loop.
        """
        super().__init__(granularity=granularity)
        self._loop = loop or asyncio.get_running_loop()
        self._loop.add_reader(self.fileno(), self.run)

    def close(self) -> None:
        """Cancel all timers that have not expired; also after loop.close()."""
        if self._set:
            self._loop.remove_reader(self.fileno())
        super().close()

    async def sleep(self, delay: float) -> None:
        """Return after some time."""
        expired = asyncio.Event()
        timer = self.call_later(delay, expired.set)
        try:
            await expired.wait()
        finally:
            timer.cancel()

    @contextlib.asynccontextmanager
    async def timeout(self, delay: float) -> AsyncIterator[Timer]:
        """Cancel the block after some time and raise TimeoutError, as asyncio.timeout().

        The target of "as" is a Timer: its reschedule() moves the deadline, its cancel() removes it for good.
        """
        async with asyncio.timeout(None) as scope:
            def expire() -> None:
                if not scope.expired():
                    scope.reschedule(self._loop.time())

            timer = self.call_later(delay, expire)
            try:
                yield timer
            finally:
                timer.cancel()

    def _in(self, context: contextvars.Context | None) -> contextvars.Context:
        return contextvars.copy_context() if context is None else context

    def _fire(self, timer: Timer) -> None:
        try:
            super()._fire(timer)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._loop.call_exception_handler({"message": "Exception in callback of a timer", "exception": error})
