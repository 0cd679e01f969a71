#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the package for Python: TAP. python.sh runs all in a guest; the class Bare needs no device, only libhwt."""
import asyncio
import contextvars
import errno
import inspect
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import typing
import unittest
import weakref

import hwt
import hwt.aio

PATIENCE = 60
MAX_TIMEOUTS = 12000            # as python.sh loads hwt.ko
KEY = (1 << 64) - 1


class Tap(unittest.TestResult):
    """Runs tests, and prints a point for each."""

    def run(self, suite):
        suite.run(self)
        print(f"1..{self.testsRun}")
        return self

    def stopTest(self, test):
        wrong = [line for case, text in self.failures + self.errors if case is test for line in text.splitlines()]
        name = test._testMethodName.removeprefix("test_").replace("_", " ")
        print(f"{'not ok' if wrong else 'ok'} {self.testsRun} - {type(test).__name__}: {name}")
        print("".join(f"# {line}\n" for line in wrong), end="", flush=True)


def descriptors():
    return set(os.listdir("/proc/self/fd"))


class Bare(unittest.TestCase):
    """What needs no device."""

    def test_the_device_cannot_be_opened(self):
        before = descriptors()
        for path, number in ("/dev/no-hwt", errno.ENOENT), ("/dev/null", errno.ENOTTY):
            with self.assertRaises(OSError) as caught:
                hwt.open(path)
            self.assertEqual((number, path), (caught.exception.errno, caught.exception.filename))
        for bad in {"clock": 99}, {"tick_ns": -1}, {"max_pending": KEY + 1}:
            self.assertRaises(ValueError, hwt.open, **bad)
        self.assertEqual(before, descriptors())

    def test_samples_without_the_device(self):
        if os.path.exists("/dev/hwt"):
            self.skipTest("there is a device")
        samples = os.path.join(os.path.dirname(os.path.dirname(hwt.__path__[0])), "samples")
        for name in "hwt_first", "hwt_asyncio":
            ran = subprocess.run([sys.executable, f"{samples}/{name}.py"], stderr=subprocess.PIPE, text=True, check=False)
            self.assertIn("FileNotFoundError: [Errno 2] No such file or directory: '/dev/hwt'", ran.stderr)

    def test_times(self):
        for good, ns in (((0.5,), 500000000), ((3,), 3000000000), ((None, 7), 7), ((math.inf,), KEY), ((1e30,), KEY)):
            self.assertEqual(ns, hwt._time(*good))
        for bad in (-1,), (math.nan,), (None, -1), (None, KEY + 1):
            self.assertRaises(ValueError, hwt._time, *bad)
        for bad in (None, None), (1, 1), ("1",), (None, 0.5):
            self.assertRaises(TypeError, hwt._time, *bad)

    def test_all_is_documented_and_has_types(self):
        things = [getattr(module, name) for module in (hwt, hwt.aio) for name in module.__all__ if name != "NEVER"]
        things += [value for thing in things if inspect.isclass(thing) for name, value in vars(thing).items()
                   if name[0] != "_" and callable(value)]
        for thing in things:
            self.assertTrue(thing.__doc__, thing)
            if not inspect.isclass(thing):
                hints = typing.get_type_hints(inspect.unwrap(thing))
                self.assertEqual(set(inspect.signature(thing).parameters) - {"self"} | {"return"}, set(hints), thing)


class Contexts(unittest.TestCase):
    """A context, by ids and by keys."""

    def setUp(self):
        self.hwt = self.enterContext(hwt.open())

    def one(self, context=None):
        event, = (context or self.hwt).read(PATIENCE)
        self.assertLessEqual(event.deadline_ns, event.fired_ns)
        return event

    def test_after_at_and_what_an_event_says(self):
        now = self.hwt.now_ns()
        for schedule, ns in ((lambda: self.hwt.after(0.02, 42), now + 20000000),
                             (lambda: self.hwt.after(ns=20000000, user_data=42, slack=0.01), now + 20000000),
                             (lambda: self.hwt.at(self.hwt.now() + 0.1, 42), now + 99999999),
                             (lambda: self.hwt.at(ns=now, user_data=42), now)):
            timeout, event = schedule(), self.one()
            self.assertEqual((timeout, 42, 0, hwt.Kind.EXPIRED), (event.id, event.user_data, event.overruns, event.kind))
            self.assertGreaterEqual(event.deadline_ns, ns)
            for call in self.hwt.get, self.hwt.cancel, lambda id: self.hwt.modify(id, 1):
                self.assertRaises(hwt.NoTimeout, call, timeout)

    def test_periodic(self):
        for fixed_delay in False, True:
            timeout = self.hwt.every(0.01, 7, fixed_delay=fixed_delay)
            self.assertEqual(10000000, self.hwt.get(timeout).period_ns)
            while not self.hwt.get(timeout).overruns:
                time.sleep(0.01)
            event = self.one()
            self.assertEqual((timeout, 7, True), (event.id, event.user_data, event.overruns > 0))
            self.assertEqual(timeout, self.one().id)
            self.hwt.cancel(timeout)

    def test_modify_and_cancel(self):
        timeout = self.hwt.after(0)
        self.assertTrue(select.select([self.hwt], [], [], PATIENCE)[0])
        self.assertEqual(hwt.State.EVENT, self.hwt.modify(timeout, 3600))
        self.assertEqual([], self.hwt.read(0))
        self.assertEqual(hwt.State.PENDING, self.hwt.modify_at(timeout, ns=self.hwt.now_ns()))
        self.assertEqual(timeout, self.one().id)
        self.assertEqual(hwt.State.PENDING, self.hwt.cancel(self.hwt.after(math.inf)))
        timeouts = {(self.hwt.after(3600, n), n, hwt.State.PENDING) for n in range(600)}
        self.assertEqual(timeouts, {(t.id, t.user_data, t.state) for t in self.hwt.timeouts()})
        self.assertEqual((600, 600), (self.hwt.stats()["timeouts"], self.hwt.cancel_all()))
        self.assertEqual([[], []], [self.hwt.timeouts(), self.hwt.read(0.01)])

    def test_stop(self):
        timeouts = {self.hwt.after(3600), self.hwt.after(ns=hwt.NEVER)}
        self.assertEqual(2, self.hwt.stop())
        self.assertEqual({(t, hwt.Kind.STOPPED) for t in timeouts}, {(event.id, event.kind) for event in self.hwt})
        self.assertRaises(hwt.Stopped, self.hwt.read)
        self.assertRaises(hwt.Stopped, self.hwt.after, 1)

    def test_keys(self):
        context = self.enterContext(hwt.open(keys=True))
        self.assertEqual([KEY, KEY], [context.after(3600, KEY), context.after(0.001, KEY)])
        self.assertEqual((KEY, KEY), self.one(context)[:2])
        self.assertRaises(hwt.NoTimeout, context.cancel, KEY)
        self.assertEqual([KEY, KEY], [context.every(0.001, KEY), self.one(context).id])

    def test_limits(self):
        wheel = self.enterContext(hwt.open(max_pending=2, clock=time.CLOCK_REALTIME, tick_ns=10000000))
        self.assertEqual((time.CLOCK_REALTIME, 10000000), (wheel.info()["clock"], wheel.info()["tick_ns"]))
        for context, most, limit in (wheel, 2, 3), (self.hwt, MAX_TIMEOUTS, 1):
            for _ in range(most):
                context.after(3600)
            with self.assertRaises(hwt.LimitReached) as caught:
                context.after(3600)
            self.assertEqual((errno.ENOSPC, limit), (caught.exception.errno, context.stats()["limit"]))

    def test_bad_values_change_nothing(self):
        after, cancel, read = self.hwt.after, self.hwt.cancel, self.hwt.read
        for kind, call, *args in (
                (ValueError, after, 1, -1), (ValueError, after, 1, KEY + 1), (TypeError, after, 1, 0.5), (ValueError, after, -1),
                (ValueError, self.hwt.at, math.nan), (OSError, self.hwt.every, 0), (ValueError, cancel, -1),
                (TypeError, cancel, "1"), (hwt.NoTimeout, cancel, 0), (ValueError, read, 0, 0), (ValueError, read, -1)):
            self.assertRaises(kind, call, *args)
        self.assertEqual(0, self.hwt.stats()["scheduled"])

    def test_closed(self):
        got, begun = [], threading.Event()
        with self.hwt:
            thread = threading.Thread(target=lambda: begun.set() or got.append(self.hwt.read(1)))
            thread.start()
            begun.wait()
            time.sleep(0.3)
        self.hwt.close()
        thread.join()
        self.assertEqual([[]], got)
        for call in self.hwt.fileno, self.hwt.now, self.hwt.stats, self.hwt.timeouts, self.hwt.read, lambda: self.hwt.after(1):
            self.assertRaises(ValueError, call)

    def test_signals(self):
        handled = []
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, lambda *_: handled.append(1)))
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        begin = time.monotonic()
        self.assertEqual([], self.hwt.read(0.2))
        self.assertGreaterEqual(time.monotonic(), begin + 0.2)
        self.assertTrue(handled)

        def raise_once(*_):             # A later signal would raise outside of assertRaises().
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise ZeroDivisionError

        def read():
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            self.hwt.read()

        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, raise_once)
        self.assertRaises(ZeroDivisionError, read)


class Loop(unittest.IsolatedAsyncioTestCase):
    """Timers of asyncio. called has what was called; early, what was called too early."""

    async def asyncSetUp(self):
        self.loop = asyncio.get_running_loop()
        self.loop.set_debug(False)      # It is slow, and asyncio.run() does without.
        self.timers = self.enterContext(hwt.aio.HwtTimers())
        self.called, self.early, self.errors = [], [], []
        self.loop.set_exception_handler(lambda loop, context: self.errors.append(type(context["exception"])))

    def later(self, delay, name, what=lambda: None):
        def call():
            if self.loop.time() < timer.when():
                self.early.append(name)
            self.called.append(name)
            what()

        timer = self.timers.call_later(delay, call)
        return timer

    async def until(self, count):
        """Wait for so many calls; return what was called."""
        end = self.loop.time() + PATIENCE
        while len(self.called) < count and self.loop.time() < end:
            await asyncio.sleep(0.01)
        self.assertEqual([], self.early)
        return self.called

    async def test_order_and_arguments(self):
        begin = self.loop.time()
        for n in range(10):
            self.timers.call_at(begin + 1 - n * 0.002, self.called.append, n)
        self.timers.call_later(-1, self.called.append, "first")
        self.timers.call_later(math.inf, self.called.append, "never")
        self.assertEqual(["first", *range(9, -1, -1)], await self.until(11))
        self.assertRaises(ValueError, self.timers.call_later, math.nan, print)

    async def test_cancel(self):
        pair = [self.later(0.5, n, lambda n=n: pair[1 - n].cancel()) for n in range(2)]
        self.later(0.5, "never").cancel()
        pending = self.later(3600, "never")
        self.timers._flush()
        pending.cancel()
        self.later(1, "end")
        self.assertEqual([0, "end"], await self.until(2))
        self.assertEqual(0, self.timers._hwt.stats()["timeouts"])

    async def test_reschedule(self):
        timers = [self.later(3600 + n, n) for n in range(2)]
        await self.timers.sleep(0.01)
        for _ in range(2):              # pending, then called
            timers[1].reschedule(0.5)
            timers[0].reschedule(1)
            self.assertEqual([1, 0], await self.until(2))
            self.called.clear()
        timers[1].cancel()
        self.assertRaises(RuntimeError, timers[1].reschedule, 1)

    async def test_what_is_cancelled_or_closed_is_freed(self):
        class Thing:
            def call(self, other):
                pass

        def timer_of(timers, delay):
            context, variable = contextvars.Context(), contextvars.ContextVar("variable")
            things = [Thing() for _ in range(3)]
            context.run(variable.set, things[2])
            return timers.call_later(delay, things[0].call, things[1], context=context), [weakref.ref(thing) for thing in things]

        for expired in False, True:     # without gc.collect(): freed at once
            timer, things = timer_of(self.timers, 0 if expired else 3600)
            await self.timers.sleep(0.1)
            timer.cancel()
            self.assertEqual([None] * 3, [thing() for thing in things])
        timers = hwt.aio.HwtTimers()
        timer, things = timer_of(timers, 3600)
        things.append(weakref.ref(timers))
        timers.close()
        del timer, timers
        self.assertEqual([None] * 4, [thing() for thing in things])

    async def test_an_event_in_the_ring_is_stale(self):
        timer = self.later(0.01, "moved")
        self.timers._flush()
        time.sleep(0.05)
        self.later(0.5, "other")
        self.timers._flush()            # lets the event into the ring
        timer.reschedule(1)
        self.assertEqual(["other", "moved"], await self.until(2))

    async def test_one_operation_for_a_timer_in_a_turn(self):
        operations, submit = [], self.timers._submit
        self.timers._submit = lambda timers: (operations.extend(timers), submit(timers))
        for _ in range(3000):
            self.timers.call_later(3600, print).reschedule(7200)
            self.timers.call_later(3600, print).cancel()
        await asyncio.sleep(0.01)
        self.assertEqual([3000, 3000], [len(operations), self.timers._hwt.stats()["scheduled"]])

    async def test_other_descriptors_get_their_turns(self):
        def again():                    # The timer is due again before its callback returns.
            if len(self.called) < 20:
                timer.reschedule(0)
                self.timers._flush()
                while self.timers._hwt.stats()["expired"] <= len(self.called):
                    time.sleep(0.001)

        ends, turns = socket.socketpair(), []
        for end in ends:
            self.addCleanup(end.close)
        ends[0].send(b"x")
        self.loop.add_reader(ends[1], turns.append, None)
        timer = self.later(0, "due", again)
        await self.until(20)
        self.assertLessEqual(20, len(turns))
        self.loop.remove_reader(ends[1])

    async def test_timeout_and_sleep(self):
        with self.assertRaises(TimeoutError):
            async with self.timers.timeout(0.02):
                await asyncio.sleep(3600)
        async with self.timers.timeout(3600), self.timers.timeout(0.02) as timer:
            timer.reschedule(3600)
            await asyncio.sleep(0.1)
        task = asyncio.ensure_future(self.timers.sleep(3600))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        self.assertEqual((True, {}), (task.cancelled(), self.timers._armed))

    async def test_exceptions_and_context_variables(self):
        variable = contextvars.ContextVar("variable", default=0)
        variable.set(1)
        self.later(0.5, "raises", lambda: 1 // 0)
        for context in None, contextvars.Context():
            self.timers.call_later(1, lambda: self.called.append(variable.get()), context=context)
        variable.set(2)
        self.assertEqual((["raises", 1, 0], [ZeroDivisionError]), (await self.until(3), self.errors))

    async def test_beyond_the_limit_the_loop_helps(self):
        for n in range(MAX_TIMEOUTS + 500):
            timer = self.later(1, n)
        timer.cancel()
        self.assertEqual(MAX_TIMEOUTS + 499, len(set(await self.until(MAX_TIMEOUTS + 499))))

    def test_close(self):
        before = descriptors()
        for order in (0, 1), (1, 0):
            loop = asyncio.new_event_loop()
            timers = hwt.aio.HwtTimers(loop)
            timer, other = timers.call_later(3600, print), timers.call_later(3600, print)
            loop.run_until_complete(asyncio.sleep(0.01))
            for n in order:
                (timers, loop)[n].close()
            timer.cancel()
            self.assertRaises(RuntimeError, other.reschedule, 1)
            timers.close()
        self.assertEqual(before, descriptors())


class Samples(unittest.TestCase):
    def test_first_and_asyncio(self):
        said = subprocess.check_output([sys.executable, f"{sys.path[0]}/hwt_first.py"], text=True)
        self.assertEqual((5, 1), (len(said.splitlines()), said.count("an event for 42")))
        with subprocess.Popen([sys.executable, f"{sys.path[0]}/hwt_asyncio.py", "--port=0", "--idle=3"],
                              stdout=subprocess.PIPE, text=True) as server:
            port = int(server.stdout.readline().split()[1])
            clients = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(3)]
            clients.pop().close()
            begin = time.monotonic()
            clients[0].send(b"x")
            self.assertEqual([b"x", b"", b""], [clients[n].recv(1) for n in (0, 1, 0)])
            self.assertGreaterEqual(time.monotonic(), begin + 3)
            server.terminate()
            self.assertIn("2 connections were silent, 1 were closed", server.stdout.read())


if __name__ == "__main__":
    unittest.main(testRunner=Tap())
