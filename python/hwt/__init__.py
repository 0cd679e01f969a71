# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Many coarse timers: in the process, and on descriptors of /dev/hwt, by libhwt. For asyncio see hwt.aio.

Timers calls back, and needs no device. All else is for contexts of the device, which give events:

    with hwt.open() as context:
        context.after(1.5, 42)
        for event in context:
            print("1.5 s have passed for", event.user_data)

Times
    A function takes seconds (int or float) or, by keyword, nanoseconds: after(0.5), after(ns=500_000_000).
    Events and timeouts have nanoseconds. A delay counts from the call; a deadline is on the clock of
    now(). No timeout fires early. A time of 2**63 ns or more (math.inf) never comes.

Ids and keys
    The kernel gives each timeout an id; user_data, a number of 64 bits, is the program's. In a context with
    keys, open(keys=True), user_data is the key and the id: to schedule a key that exists moves that timeout.

Errors
    OSError, and its classes NoTimeout, LimitReached: the kernel refuses. ValueError: a number is
    out of range, or the context is closed. After an error nothing has changed.

Threads, processes
    Threads may share a context. A read() that waits in one thread keeps the descriptor open until it
    returns. A child after os.fork() has the same context; exec closes the descriptor.
"""
from __future__ import annotations

import contextlib
import ctypes
import enum
import errno
import os
import time
import warnings
from typing import Any, Iterator, NamedTuple

from hwt import _abi
from hwt._timers import NEVER, Timer, Timers, _number, _time

__all__ = ["Context", "Event", "LimitReached", "NEVER", "NoTimeout", "State", "Timeout", "Timer", "Timers", "open"]


class NoTimeout(OSError):
    """ENOENT: the context has no such timeout (any more)."""


class LimitReached(OSError):
    """ENOSPC: a limit is met; stats()["limit"] is its HWT_LIMIT_ number."""


_ERRORS: dict[int, tuple[type[OSError], str]] = {
    errno.ENOENT: (NoTimeout, "no such timeout"), errno.ENOSPC: (LimitReached, "a limit is met")}


class State(enum.IntFlag):
    """The state of a timeout: it will fire; it has an event that was not read."""
    PENDING = _abi.HWT_STATE_PENDING
    EVENT = _abi.HWT_STATE_EVENT


class Event(NamedTuple):
    """An expiry: struct hwt_event of hwt(4)."""
    id: int
    user_data: int
    deadline_ns: int
    fired_ns: int
    overruns: int
    kind: int
    flags: int


class Timeout(NamedTuple):
    """A timeout: struct hwt_get_args of hwt(4). A one-shot has the period 0."""
    id: int
    user_data: int
    deadline_ns: int
    remaining_ns: int
    period_ns: int
    overruns: int
    state: State


class _Handle(ctypes.c_void_p):
    """A struct libhwt *, closed with its last reference. A call under way has a reference."""

    def __del__(self) -> None:
        if self:
            _abi.library().libhwt_close(self)


def _checked(result: int) -> int:
    """Return the result of a function of libhwt; raise the exception of a negative one."""
    if result < 0:
        kind, text = _ERRORS.get(-result, (OSError, os.strerror(-result)))
        raise kind(-result, text)
    return result


def _sized(kind: Any, **members: Any) -> Any:
    """Return a structure that begins with its size."""
    return kind(size=ctypes.sizeof(kind), **members)


def _timeout(args: Any) -> Timeout:
    timeout = Timeout._make(getattr(args, name) for name in Timeout._fields)
    return timeout._replace(state=State(timeout.state))


class Context:
    """Timeouts on one descriptor of /dev/hwt; open() returns one. A context manager, which closes."""

    def __init__(self, handle: _Handle) -> None:
        self._handle: _Handle | None = handle
        self._lib = _abi.library()
        self._key = "id" if self.info()["keys"] else "user_data"

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._handle is not None:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)

    def _call(self, name: str, *args: Any) -> int:
        """Call a function of libhwt."""
        handle = self._handle
        if handle is None:
            raise ValueError("the context is closed")
        return _checked(getattr(self._lib, name)(handle, *args))

    def _ask(self, name: str, kind: Any) -> dict[str, int]:
        args = _sized(kind)
        self._call(name, ctypes.byref(args))
        return {name: getattr(args, name) for name, _ in args._fields_ if name not in ("size", "flags", "reserved")}

    def close(self) -> None:
        """Close the descriptor. When the last process has closed it, all timeouts are cancelled."""
        self._handle = None

    def fileno(self) -> int:
        """Return the descriptor, which is readable when there are events. Read them by read(timeout=0) only.

        A loop calls read() once each time that it reports the descriptor, which it reports again if events are left.
        """
        return self._call("libhwt_fd")

    def now(self) -> float:
        """Return the time on the context's clock, in seconds."""
        return self.now_ns() / 1e9

    def now_ns(self) -> int:
        """Return the time on the context's clock, in nanoseconds."""
        return self._call("libhwt_now")

    def info(self) -> dict[str, int]:
        """Return clock, tick_ns, limits and others: the members of struct hwt_info_args of hwt(4)."""
        return self._ask("libhwt_info", _abi.hwt_info_args)

    def stats(self) -> dict[str, int]:
        """Return what the context has and has done: the members of struct hwt_stats_args of hwt(4)."""
        return self._ask("libhwt_stats", _abi.hwt_stats_args)

    def _schedule(self, user_data: int, **members: int) -> int:
        args = _sized(_abi.hwt_schedule_args, **{self._key: _number(user_data)}, **members)
        self._call("libhwt_schedule", ctypes.byref(args))
        return int(args.id)

    def after(self, seconds: float | None = None, user_data: int = 0, *, ns: int | None = None, slack: float = 0) -> int:
        """Schedule a timeout some time from now, and return its id.

        user_data: 0 to 2**64 - 1, comes back with the event; with keys, the key. slack: seconds that it
        may fire later, if that saves a wake-up. LimitReached; OSError with ENOMEM.
        """
        return self._schedule(user_data, time_ns=_time(seconds, ns), slack_ns=_time(slack))

    def at(self, seconds: float | None = None, user_data: int = 0, *, ns: int | None = None, slack: float = 0) -> int:
        """Schedule a timeout at a deadline, otherwise as after()."""
        return self._schedule(user_data, flags=_abi.HWT_ARM_ABSOLUTE, time_ns=_time(seconds, ns), slack_ns=_time(slack))

    def every(self, seconds: float | None = None, user_data: int = 0, *, ns: int | None = None,
              fixed_delay: bool = False) -> int:
        """Schedule a timeout that fires each period, the first time after one, otherwise as after().

        The rate is fixed; with fixed_delay, the time from one firing to the next is. An event that was not
        read counts the periods that follow it (overruns). OSError with EINVAL: the period is 0.
        """
        period = _time(seconds, ns)
        return self._schedule(user_data, time_ns=period, period_ns=period,
                              mode=_abi.HWT_MODE_FIXED_DELAY if fixed_delay else _abi.HWT_MODE_FIXED_RATE)

    def modify(self, id: int, seconds: float | None = None, *, ns: int | None = None) -> State:
        """Move a timeout to some time from now, and return its state of before.

        Its period stays. An event that was not read is withdrawn, and a one-shot that has fired is pending
        again. NoTimeout: the last event was read, or the timeout was cancelled. LimitReached.
        """
        return State(self._call("libhwt_modify", _number(id), _time(seconds, ns)))

    def modify_at(self, id: int, seconds: float | None = None, *, ns: int | None = None) -> State:
        """Move a timeout to a deadline, otherwise as modify()."""
        return State(self._call("libhwt_modify_at", _number(id), _time(seconds, ns)))

    def cancel(self, id: int) -> State:
        """End a timeout, withdraw its event, and return its state of before. NoTimeout: as of modify()."""
        return State(self._call("libhwt_cancel", _number(id)))

    def cancel_all(self) -> int:
        """End all timeouts as cancel(), and return their number."""
        return self._call("libhwt_cancel_all")

    def get(self, id: int) -> Timeout:
        """Return a timeout. NoTimeout: as of modify()."""
        args = _sized(_abi.hwt_get_args)
        self._call("libhwt_get", _number(id), ctypes.byref(args))
        return _timeout(args)

    def timeouts(self) -> list[Timeout]:
        """Return all timeouts, in no order."""
        found: list[Timeout] = []
        cursor, entries, count = ctypes.c_uint64(), (_abi.hwt_list_entry * 256)(), 1
        while count:
            with contextlib.suppress(InterruptedError):
                count = self._call("libhwt_list", ctypes.byref(cursor), entries, len(entries))
                found += [_timeout(entry) for entry in entries[:count]]
        return found

    def read(self, timeout: float | None = None, count: int = 64) -> list[Event]:
        """Return the next events, in the order in which they came up; [] if none came in time.

        timeout: seconds to wait for the first event; None: no limit. count: most events to return, 1 to 65536.
        Handlers of signals run meanwhile; if none raises, the wait goes on.
        """
        if not 0 < count <= 65536:
            raise ValueError(f"count={count} is not in 1..65536")
        wait = NEVER if timeout is None else _time(timeout)
        events, end = (_abi.hwt_event * count)(), time.monotonic_ns() + wait
        while True:
            try:
                got = self._call("libhwt_next", events, count, wait)
                return [Event(e.id, e.user_data, e.deadline_ns, e.fired_ns, e.overruns, e.kind, e.flags)
                        for e in events[:got]]
            except InterruptedError:
                wait = max(0, end - time.monotonic_ns())

    def __iter__(self) -> Iterator[Event]:
        """Wait for events, one at a time, without end. read() is faster for many."""
        while True:
            yield self.read(count=1)[0]


_CLOCKS = {time.CLOCK_MONOTONIC: 0, time.CLOCK_BOOTTIME: _abi.HWT_SETUP_BOOTTIME,
           time.CLOCK_REALTIME: _abi.HWT_SETUP_REALTIME}


def open(device: str | os.PathLike[str] = "/dev/hwt", *, keys: bool = False, clock: int = time.CLOCK_MONOTONIC,
         thread: bool = False, tick_ns: int = 0, max_pending: int = 0) -> Context:
    """Open a context.

    keys: the program names its timeouts. clock: time.CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME. thread:
    a kernel thread drives the timeouts, not the program; this requires CAP_SYS_NICE. tick_ns: 0 for the
    module's default. max_pending: most timeouts pending at once, 0 for no limit.

    FileNotFoundError: there is no device. PermissionError: it, or a thread, is not for this user. OSError with
    ENOTTY: it is another device; with EINVAL: a number is out of range.
    """
    if clock not in _CLOCKS:
        raise ValueError(f"no context is on clock {clock}")
    flags = _CLOCKS[clock] | keys * _abi.HWT_SETUP_KEYS | thread * _abi.HWT_SETUP_THREAD
    options = _sized(_abi.libhwt_options, device=os.fsencode(device), flags=flags, tick_ns=_number(tick_ns),
                     max_pending=_number(max_pending))
    handle = _Handle()
    result = _abi.library().libhwt_open(ctypes.byref(handle), ctypes.byref(options))
    if result:
        raise OSError(-result, os.strerror(-result), os.fspath(device))
    return Context(handle)
