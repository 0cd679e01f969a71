# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Timers for asyncio, all on one descriptor of /dev/hwt. Python 3.11 or later.

    with hwt.aio.HwtTimers() as timers:
        timers.call_later(1.5, print, "1.5 s have passed")
        async with timers.timeout(5):
            await reader.readline()

The loop watches the descriptor. The operations of one turn of the loop are submitted together, by one
system call; for a timer that changed several times, only the last change. Callbacks run in the order of
their times, but for times that have passed when they are submitted, and never early. They run by
loop.call_soon(), so their exceptions go to the loop's exception handler.

If a limit is met, the loop's own timers take what the device refuses. As asyncio's, these classes are for
the thread of the loop. Times are seconds; those of call_at() are on the clock of loop.time(), which is
CLOCK_MONOTONIC. ValueError: a time is not a number.
"""
from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import itertools
import time
from typing import Any, AsyncIterator, Callable

import hwt
from hwt import _abi

__all__ = ["HwtTimers", "Timer"]

# Operations of one system call, and events of one read.
_BATCH = 1024

# A callback, its arguments, and the context to call it in.
_Call = tuple[Callable[..., object], tuple[Any, ...], contextvars.Context]


class Timer:
    """A callback at some time, like asyncio.TimerHandle: HwtTimers.call_later() returns one."""
    __slots__ = ("_timers", "_key", "_call", "_when_ns", "_known", "_handle")

    def __init__(self, timers: HwtTimers, when_ns: int, callback: Callable[..., object], args: tuple[Any, ...],
                 context: contextvars.Context | None) -> None:
        self._timers, self._key, self._when_ns = timers, next(timers._keys), when_ns
        # None: the timer was cancelled.
        self._call: _Call | None = callback, args, contextvars.copy_context() if context is None else context
        self._known = False                             # The kernel may have a timeout of this key.
        self._handle: asyncio.Handle | None = None      # of the loop, for the callback
        timers._arm(self, when_ns)

    def when(self) -> float:
        """Return the time of the callback, on the clock of loop.time()."""
        return self._when_ns / 1e9

    def cancel(self) -> None:
        """Cancel the callback for good, and free it. A timer that has called back keeps its callback until then."""
        self._timers._disarm(self)

    def reschedule(self, delay: float) -> None:
        """Move the callback to some time from now; arm a timer again that has called back.

        math.inf: it is not called until it is moved again. RuntimeError: it was cancelled, or the timers are closed.
        """
        self._timers._arm(self, time.monotonic_ns() + hwt._time(max(delay, 0)))


class HwtTimers:
    """Timers of one loop, on one descriptor. A context manager, which closes."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, device: str = "/dev/hwt") -> None:
        """Open the device for a loop, by default the running one. Errors are those of hwt.open()."""
        self._loop = loop or asyncio.get_running_loop()
        self._lib, self._hwt = _abi.library(), hwt.open(device, keys=True)
        self._queue = ctypes.c_void_p()
        sizes = hwt._sized(_abi.libhwt_queue_options, ops=_BATCH, events=_BATCH)
        hwt._checked(self._lib.libhwt_queue_new(ctypes.byref(self._queue), self._hwt._handle, ctypes.byref(sizes)))
        self._ops, self._results = (_abi.hwt_op * _BATCH)(), (_abi.hwt_op * _BATCH)()
        self._events = (_abi.hwt_event * _BATCH)()
        self._keys = itertools.count(1)
        self._armed: dict[int, Timer] = {}
        self._changed: dict[int, Timer] = {}            # since the last submission
        self._flushing: asyncio.Handle | None = None    # the next submission
        self._loop.add_reader(self._hwt.fileno(), self._on_readable)

    def __enter__(self) -> HwtTimers:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel all timers that have not expired, and close the descriptor; also after loop.close()."""
        if self._hwt._handle is None:
            return
        for timer in list(self._armed.values()):
            timer.cancel()
        self._changed.clear()
        if self._flushing:
            self._flushing.cancel()
        self._loop.remove_reader(self._hwt.fileno())
        self._hwt.close()

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any,
                   context: contextvars.Context | None = None) -> Timer:
        """Call callback(*args) some time from now, as loop.call_later(). A delay below 0 is taken as 0."""
        return Timer(self, time.monotonic_ns() + hwt._time(max(delay, 0)), callback, args, context)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any,
                context: contextvars.Context | None = None) -> Timer:
        """Call callback(*args) at a time on the clock of loop.time(), as loop.call_at()."""
        return Timer(self, hwt._time(max(when, 0)), callback, args, context)

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

    # --- Operations and events ---

    def _arm(self, timer: Timer, when_ns: int) -> None:
        if self._hwt._handle is None:
            raise RuntimeError("the timers are closed")
        if timer._call is None:
            raise RuntimeError("the timer was cancelled")
        self._change(timer)
        timer._when_ns = min(when_ns, hwt.NEVER)
        self._armed[timer._key] = timer

    def _disarm(self, timer: Timer) -> None:
        if self._armed.pop(timer._key, None) and not self._loop.is_closed():
            self._change(timer)
        if timer._handle:
            timer._handle.cancel()
        timer._call = timer._handle = None

    def _change(self, timer: Timer) -> None:
        """Submit an operation for the timer, in the next turn of the loop at the latest."""
        if not self._changed:
            self._flushing = self._loop.call_soon(self._flush)
        if timer._handle:
            timer._handle.cancel()
        self._changed[timer._key] = timer

    def _flush(self) -> None:
        """Submit the operations. A timer that was armed and cancelled meanwhile needs none."""
        changed = [timer for timer in self._changed.values() if timer._known or timer._key in self._armed]
        self._changed.clear()
        for first in range(0, len(changed), _BATCH):
            self._submit(changed[first:first + _BATCH])

    def _submit(self, timers: list[Timer]) -> None:
        for op, timer in zip(self._ops, timers):
            timer._known = timer._key in self._armed
            op.opcode, op.flags, op.time_ns = ((_abi.HWT_OP_SCHEDULE, _abi.HWT_ARM_ABSOLUTE, timer._when_ns)
                                               if timer._known else (_abi.HWT_OP_CANCEL, 0, 0))
            op.id = timer._key
        hwt._checked(self._lib.libhwt_queue_add(self._queue, self._ops, len(timers)))
        hwt._checked(self._lib.libhwt_queue_submit(self._queue))
        hwt._checked(self._lib.libhwt_queue_results(self._queue, self._results, len(timers)))
        for op, timer in zip(self._results, timers):
            # ENOSPC or ENOMEM. The cancel of a timer that has fired fails, too, which does not matter.
            if op.result < 0 and timer._known:
                timer._known = False
                timer._handle = self._loop.call_later((timer._when_ns - time.monotonic_ns()) / 1e9,
                                                      self._expire, timer)

    def _on_readable(self) -> None:
        expired: list[Timer] = []
        count = _BATCH
        # This ends: callbacks run in later turns, so each timer has at most one event here.
        while count == _BATCH:
            count = self._hwt._call("libhwt_next", self._events, _BATCH, 0)
            for event in self._events[:count]:
                timer = self._armed.get(event.id)
                # An event that was in the ring before the timer was moved is stale.
                if timer and timer._when_ns <= event.deadline_ns:
                    timer._known = False
                    expired.append(timer)
        for timer in sorted(expired, key=lambda timer: (timer._when_ns, timer._key)):
            self._expire(timer)

    def _expire(self, timer: Timer) -> None:
        if self._armed.pop(timer._key, None) and timer._call:
            if timer._handle:
                timer._handle.cancel()
            callback, args, context = timer._call
            timer._handle = self._loop.call_soon(callback, *args, context=context)
