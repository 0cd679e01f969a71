# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Timers in the process; the package exports its classes.

The structures of libhwt lie in arrays of 64-bit words, so that to push a timer back is to store a word here,
as libhwt_timer_set() does in C. The library calls back only for timers that are due: with the address, by
list.append(). Callbacks of the program run after that.
"""
from __future__ import annotations

import array
import bisect
import contextvars
import ctypes
import functools
import operator
import os
import time
from typing import Any, Callable, TypeVar

from hwt import _abi

NEVER = _abi.HWT_NEVER

# Positions in a timer, in words. The first word is the time for which libhwt has linked the timer.
_DEADLINE = _abi.libhwt_timer.deadline.offset // 8
_WORDS = (ctypes.sizeof(_abi.libhwt_timer) + 7) // 8
# Positions of the timers of one array, which never moves. All arrays share these objects.
_POSITIONS = tuple(range(0, 1024 * _WORDS, _WORDS))


class _Chunk:
    """Timers for libhwt: their words, and whose they are."""
    __slots__ = ("words", "base", "owners")

    def __init__(self, one: bytes = b"", number: int = len(_POSITIONS)) -> None:
        self.words = array.array("Q", one.ljust(8 * _WORDS, b"\xff")) * number
        self.base = self.words.buffer_info()[0]
        self.owners: list[Timer | None] = [None] * number


def _number(value: int) -> int:
    """Return a number for C. TypeError: it is no integer; ValueError: it does not fit."""
    if not 0 <= operator.index(value) < 1 << 64:
        raise ValueError(f"{value} is not in 0..2**64 - 1")
    return value


def _time(seconds: float | None, ns: int | None = None) -> int:
    """Return nanoseconds. TypeError: both or none are given; ValueError: negative, or no number."""
    if ns is not None and seconds is None:
        return _number(ns)
    if seconds is None or ns is not None:
        raise TypeError("a time is either seconds or ns=nanoseconds")
    if not seconds >= 0:
        raise ValueError(f"{seconds} s is not a time")
    return round(seconds * 1_000_000_000) if seconds < 1e10 else NEVER


# What timers have that libhwt does not have: a timer that is linked for NEVER.
_NOWHERE = _Chunk(number=1)


class Timer:
    """A callback at some time: Timers.call_later() returns one. overruns: periods missed before the last call."""
    __slots__ = ("_timers", "_chunk", "_words", "_at", "_when_ns", "_period_ns", "_callback", "_args", "_context",
                 "overruns")

    def __init__(self, timers: Timers, when_ns: int, callback: Callable[..., object], args: tuple[Any, ...],
                 context: contextvars.Context | None, period_ns: int = 0) -> None:
        self._timers, self._chunk, self._words, self._at = timers, _NOWHERE, _NOWHERE.words, 0
        # None: the timer was cancelled.
        self._callback: Callable[..., object] | None = callback
        self._args, self._context, self._period_ns, self.overruns = args, context, period_ns, 0
        timers._arm(self, when_ns)

    def when(self) -> float:
        """Return the time of the callback, in seconds on the clock of the timers."""
        return self._when_ns / 1e9

    def cancel(self) -> None:
        """Cancel the callback for good, and free it. A timer that has called back keeps its callback until then."""
        # First, so that run() does not arm it again, whatever a signal handler raises.
        self._when_ns, self._period_ns = NEVER, 0
        self._timers._disarm(self)
        self._callback, self._args, self._context = None, (), None

    def reschedule(self, delay: float) -> None:
        """Move the callback to some time from now; arm a timer again that has called back.

        math.inf: it is not called until it is moved again. RuntimeError: it was cancelled, or the timers are closed.
        """
        when = self._timers.now_ns() + (int(delay * 1_000_000_000) if 0 <= delay < 1e9 else _time(max(delay, 0)))
        words, at = self._words, self._at
        if words[at] <= when < NEVER:
            words[at + _DEADLINE] = self._when_ns = when
        else:
            self._timers._arm(self, when)

    def reschedule_at(self, when: float) -> None:
        """Move the callback to a time, otherwise as reschedule()."""
        self._timers._arm(self, _time(max(when, 0)))


class _Set(ctypes.c_void_p):
    """A struct libhwt_timers *, freed with its last reference, before the memory of its timers."""

    def __init__(self, options: Any) -> None:
        super().__init__(_abi.timers().libhwt_timers_new(ctypes.byref(options)))
        if not self:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self.due: list[int] = []                # addresses of timers that are due
        self.fire = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.due.append)
        self.chunks: list[_Chunk] = []          # by address

    def owner(self, address: int) -> Timer | None:
        """Return the timer at an address. None: it was cancelled or armed after it came due."""
        chunk = self.chunks[bisect.bisect(self.chunks, address, key=lambda chunk: chunk.base) - 1]
        slot = (address - chunk.base) // (8 * _WORDS)
        return chunk.owners[slot] if chunk.words[slot * _WORDS] == NEVER else None

    def __del__(self) -> None:
        _abi.timers().libhwt_timers_free(self)
        # In garbage that is collected, timers may still refer to it.
        self.value = None


_Self = TypeVar("_Self", bound="Timers")

_FLAGS = {time.CLOCK_MONOTONIC: 0, time.CLOCK_BOOTTIME: _abi.LIBHWT_TIMERS_BOOTTIME,
          time.CLOCK_REALTIME: _abi.LIBHWT_TIMERS_REALTIME}


class Timers:
    """Timers in the process: no device, no thread, no permission needed. A context manager, which closes.

        with hwt.Timers() as timers:
            timers.call_later(0.5, print, "half a second has passed")
            while timers:
                selector.select(timers.wait())
                timers.run()

    They run in the order of their times, never early, and at most some 1 ms late if run() is called then. To
    push a timer back is a store. For the use of one thread; callbacks may do with any timer what they like.
    """
    def __init__(self, *, clock: int = time.CLOCK_MONOTONIC, granularity: float = 0) -> None:
        """Create timers on a clock: time.CLOCK_MONOTONIC, CLOCK_BOOTTIME, or CLOCK_REALTIME for dates.

        granularity: seconds by which all timers may be late, to save wake-ups; up to 1000.
        """
        if clock not in _FLAGS or not granularity <= 1000:
            raise ValueError(f"no timers are on clock {clock}, or with a granularity of {granularity} s")
        options = _abi.libhwt_timers_options(flags=_FLAGS[clock], granularity_ns=_time(granularity))
        options.size = ctypes.sizeof(options)
        self._set: _Set | None = _Set(options)
        self._lib = _abi.timers()
        self._link = self._lib.libhwt_timer_link
        self._count = 0                         # of the timers that are armed
        self._free: list[tuple[_Chunk, int]] = []
        self._newest, self._fresh = _NOWHERE, iter(_POSITIONS[:0])  # a chunk, and its unused positions
        self._running = False
        # A function in place of a method, for speed.
        self.now_ns: Callable[[], int] = functools.partial(time.clock_gettime_ns, clock)
        if clock == time.CLOCK_MONOTONIC:
            self.now_ns = time.monotonic_ns

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Return the number of timers that are going to call back."""
        return self._count

    def __bool__(self) -> bool:
        """Return whether a timer is going to call back."""
        return self._count > 0

    def close(self) -> None:
        """Cancel all timers that have not expired."""
        for chunk in self._set.chunks if self._set else ():
            for timer in filter(None, chunk.owners):
                timer.cancel()
        self._free.clear()
        self._set = None

    def now(self) -> float:
        """Return the time on the clock of the timers, in seconds."""
        return self.now_ns() / 1e9

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any,
                   context: contextvars.Context | None = None) -> Timer:
        """Call callback(*args) some seconds from now. A delay below 0 is taken as 0; math.inf never comes."""
        ns = int(delay * 1_000_000_000) if 0 <= delay < 1e9 else _time(max(delay, 0))
        return Timer(self, self.now_ns() + ns, callback, args, self._in(context))

    def call_at(self, when: float, callback: Callable[..., object], *args: Any,
                context: contextvars.Context | None = None) -> Timer:
        """Call callback(*args) at a time on the clock of now()."""
        return Timer(self, _time(max(when, 0)), callback, args, self._in(context))

    def call_every(self, period: float, callback: Callable[..., object], *args: Any,
                   context: contextvars.Context | None = None) -> Timer:
        """Call callback(*args) each period, the first time after one. Periods that were missed are not made up for."""
        period_ns = _time(period)
        if not period_ns:
            raise ValueError("the period is 0")
        return Timer(self, self.now_ns() + period_ns, callback, args, self._in(context), period_ns)

    def wait(self) -> float | None:
        """Return for how many seconds the loop may sleep. None: there is no timer.

        The loop may find nothing due afterwards, because a timer was pushed back or cancelled.
        """
        ms = self._lib.libhwt_timers_wait_ms(self._open())
        return ms / 1000 if self._count else None

    def fileno(self) -> int:
        """Return a descriptor that is readable when run() is to be called. It is not to be read, or closed."""
        fd: int = self._lib.libhwt_timers_fd(self._open())
        if fd < 0:
            raise OSError(-fd, os.strerror(-fd))
        return fd

    def run(self) -> int:
        """Call back what is due, and return the number of calls. What a callback makes due waits for the next run.

        An exception of a callback ends the run; the next run calls the others. Does nothing in a callback.
        """
        own = self._open()
        if self._running:
            return 0
        due: list[Timer] = []
        taken = called = 0
        # Meanwhile a signal handler or a destructor may cancel timers, or a KeyboardInterrupt end the run.
        try:
            self._running = True
            self._lib.libhwt_timers_run(own)
            for address in own.due:
                owner = own.owner(address)
                if owner:
                    due.append(owner)
                    self._disarm(owner)
            own.due.clear()
            for timer in due:
                taken += 1
                # Unless a callback has moved or cancelled it, or has closed the timers.
                if timer._chunk is _NOWHERE and timer._when_ns < NEVER and self._set:
                    called += 1
                    self._fire(timer)
        finally:
            self._running = False
            for owner in filter(None, map(own.owner, own.due)):
                due.append(owner)
                self._disarm(owner)
            own.due.clear()
            for place, timer in enumerate(due):
                # An exception of a signal handler may come before a periodic timer was armed again.
                if (place >= taken or timer._period_ns) and timer._chunk is _NOWHERE and timer._when_ns < NEVER:
                    self._arm_again(timer, timer._when_ns)
        return called

    def _fire(self, timer: Timer) -> None:
        """Call back."""
        period, callback, args = timer._period_ns, timer._callback, timer._args
        if period:
            # The clock may be set back meanwhile.
            timer.overruns = max(self.now_ns() - timer._when_ns, 0) // period
            self._arm_again(timer, timer._when_ns + (timer.overruns + 1) * period)
        if callback and timer._context is not None:
            timer._context.run(callback, *args)
        elif callback:
            callback(*args)

    def _in(self, context: contextvars.Context | None) -> contextvars.Context | None:
        """Return the context to call back in. None: that of run()."""
        return context

    def _open(self) -> _Set:
        if not self._set:
            raise ValueError("the timers are closed")
        return self._set

    def _grow(self, own: _Set) -> tuple[_Chunk, int]:
        """Add a chunk, and return a timer of it."""
        one = _abi.libhwt_timer(linked=NEVER, deadline=NEVER, fn=ctypes.cast(own.fire, ctypes.c_void_p))
        self._newest, self._fresh = _Chunk(bytes(one)), iter(_POSITIONS)
        bisect.insort(own.chunks, self._newest, key=lambda chunk: chunk.base)
        return self._newest, next(self._fresh)

    def _arm_again(self, timer: Timer, when_ns: int) -> None:
        """Arm a timer, unless it was cancelled or the timers were closed."""
        try:
            self._arm(timer, when_ns)
        except RuntimeError:
            pass

    def _arm(self, timer: Timer, when_ns: int) -> None:
        """Arm a timer, or move it."""
        if timer._callback is None:
            raise RuntimeError("the timer was cancelled")
        own = self._set
        if not own:
            raise RuntimeError("the timers are closed")
        if when_ns >= NEVER:
            timer._when_ns = NEVER
            self._disarm(timer)
            return
        timer._when_ns = when_ns
        if timer._chunk is _NOWHERE:
            chunk, at = self._free.pop() if self._free else (self._newest, next(self._fresh, -1))
            if at < 0:
                chunk, at = self._grow(own)
            timer._chunk, timer._words, timer._at = chunk, chunk.words, at
            chunk.owners[at // _WORDS] = timer
            self._count += 1
        words, at = timer._words, timer._at
        # The timer of a slot that was used before may be linked still, for the old time.
        if words[at] <= when_ns:
            words[at + _DEADLINE] = when_ns
        else:
            self._link(own, timer._chunk.base + 8 * at, when_ns)

    def _disarm(self, timer: Timer) -> None:
        """Give the slot back, by a store: libhwt unlinks it at the old deadline, unless it is used again before."""
        chunk, words, at = timer._chunk, timer._words, timer._at
        if chunk is not _NOWHERE:
            timer._chunk, timer._words, timer._at = _NOWHERE, _NOWHERE.words, 0
            words[at + _DEADLINE] = NEVER
            chunk.owners[at // _WORDS] = None
            self._count -= 1
            self._free.append((chunk, at))
