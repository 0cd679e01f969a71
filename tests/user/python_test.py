#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the package for Python: TAP. The class Contexts needs the device, the others only libhwt."""
import asyncio
import contextvars
import errno
import inspect
import itertools
import math
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import typing
import unittest
import unittest.mock
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
        event, = (context or self.hwt).read(PATIENCE, 1)
        self.assertLessEqual(event.deadline_ns, event.fired_ns)
        return event

    def test_after_at_and_what_an_event_says(self):
        now = self.hwt.now_ns()
        for schedule, ns in ((lambda: self.hwt.after(0.02, 42), now + 20000000),
                             (lambda: self.hwt.after(ns=20000000, user_data=42, slack=0.01), now + 20000000),
                             (lambda: self.hwt.at(self.hwt.now() + 0.1, 42), now + 99999999),
                             (lambda: self.hwt.at(ns=now, user_data=42), now)):
            timeout, event = schedule(), self.one()
            self.assertEqual((timeout, 42, 0, 1), (event.id, event.user_data, event.overruns, event.kind))
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

    def test_iteration(self):
        timeouts = [self.hwt.after(0), self.hwt.after(0.1)]
        self.assertEqual(timeouts, [event.id for event in itertools.islice(self.hwt, 2)])

    def test_keys(self):
        context = self.enterContext(hwt.open(keys=True))
        self.assertEqual([KEY, KEY], [context.after(3600, KEY), context.after(0.001, KEY)])
        self.assertEqual((KEY, KEY), self.one(context)[:2])
        self.assertRaises(hwt.NoTimeout, context.cancel, KEY)
        self.assertEqual([KEY, KEY], [context.every(0.001, KEY), context.read(PATIENCE, count=1)[0].id])

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


class Timers(unittest.TestCase):
    """Timers in the process, without a loop. called has what was called."""

    def setUp(self):
        self.timers = self.enterContext(hwt.Timers())
        self.called = []

    def until(self, count):
        while len(self.called) < count:
            time.sleep(self.timers.wait())
            self.timers.run()
        return self.called

    def test_each_fires_once_and_in_order(self):
        """A model: the deadline of each timer, or None. Slots are used again while libhwt has them linked."""
        random.seed(1)
        model, fired, end = {}, [], time.monotonic() + 1.5

        def fire(number):
            self.assertLessEqual(model[number].when(), self.timers.now())
            fired.append((model.pop(number).when(), number))

        def change(number):
            timer, delay = model.get(number), random.choice((0.001, 0.01, 0.1, random.random(), 3600))
            if timer is None:
                model[number] = self.timers.call_later(delay, fire, number)
            elif random.random() < 0.4:
                model.pop(number).cancel()
            elif random.random() < 0.5:
                timer.reschedule(delay)
            else:
                timer.reschedule_at(self.timers.now() + delay)

        while time.monotonic() < end:
            for _ in range(20):
                change(random.randrange(3000))
            self.assertEqual(len(model), len(self.timers))
            fired.clear()
            now = self.timers.now()
            self.timers.run()
            self.assertEqual(sorted(fired, key=lambda one: one[0]), fired)
            self.assertFalse([timer for timer in model.values() if timer.when() < now - 0.01])
        for timer in model.values():
            timer.reschedule(0)
        time.sleep(0.01)
        self.assertEqual((len(model), 0), (self.timers.run(), len(self.timers)))
        self.assertEqual(((), None), (tuple(model), self.timers.wait()))

    def test_callbacks_change_those_that_are_due(self):
        def first():
            self.assertEqual(0, self.timers.run())
            timers[0].cancel()
            timers[1].reschedule(0.05)
            timers[2].reschedule(math.inf)
            self.timers.call_later(-1, self.called.append, "set")
            self.called.append("first")

        self.timers.call_later(0, first)
        timers = [self.timers.call_later(0, self.called.append, n) for n in range(4)]
        time.sleep(0.01)
        self.assertEqual((2, ["first", 3]), (self.timers.run(), self.called))
        self.assertEqual(["first", 3, "set", 1], self.until(4))
        timers[2].reschedule(0)
        self.assertEqual(2, self.until(5)[4])
        self.assertRaises(RuntimeError, timers[0].reschedule, 1)

    def test_an_exception_loses_no_timer(self):
        for what in lambda: 1 // 0, lambda: self.called.append(1), self.timers.close, lambda: self.called.append(2):
            self.timers.call_later(0, what)
        time.sleep(0.01)
        self.assertRaises(ZeroDivisionError, self.timers.run)
        self.assertEqual((2, [1]), (self.timers.run(), self.called))
        self.assertRaises(ValueError, self.timers.run)
        self.assertRaises(RuntimeError, self.timers.call_later, 1, print)

    def test_cancelled_while_run_looks_for_timers(self):
        own, timers = self.timers._set, [self.timers.call_later(0, self.called.append, n) for n in range(4)]
        find, later = own.owner, []

        def owner(address):
            timers[0].cancel()
            timers[2].cancel()
            later[:] = later or [self.timers.call_later(3600, self.called.append, "later")]
            return find(address)

        time.sleep(0.01)
        with unittest.mock.patch.object(own, "owner", owner):
            self.assertEqual((2, [1, 3], 1), (self.timers.run(), self.called, len(self.timers)))
        timer = self.timers.call_later(0, self.called.append, 4)
        time.sleep(0.01)
        with unittest.mock.patch.object(own, "owner", side_effect=(KeyboardInterrupt, timer)):
            self.assertRaises(KeyboardInterrupt, self.timers.run)
        self.assertEqual(0, self.timers.wait())
        self.assertEqual((1, 4), (self.timers.run(), self.called[2]))

    def test_garbage_that_uses_its_timers(self):
        timer = self.timers.call_later(1, print)
        self.timers._set.__del__()
        self.assertRaises(RuntimeError, timer.reschedule, 2)
        self.assertRaises(ValueError, self.timers.wait)

    def test_periodic(self):
        timer = self.timers.call_every(0.02, lambda: self.called.append((timer.overruns, timer.when())))
        begin = timer.when()
        time.sleep(0.09)
        self.until(3)
        self.assertLessEqual(3, self.called[0][0])
        for _, when in self.called:
            self.assertAlmostEqual(0, (when - begin + 0.01) % 0.02 - 0.01)
        # The clock is set back between the look at the timers and the call.
        time.sleep(0.03)
        with unittest.mock.patch.object(self.timers, "now_ns", lambda: 0):
            self.assertEqual((1, 0), (self.timers.run(), self.called[-1][0]))
        timer.cancel()
        self.assertEqual((None, False), (self.timers.wait(), bool(self.timers)))

    def test_descriptor_clocks_and_bad_values(self):
        for clock in time.CLOCK_BOOTTIME, time.CLOCK_REALTIME:
            with hwt.Timers(clock=clock, granularity=0.01) as timers:
                timers.call_at(time.clock_gettime(clock) + 1000, self.called.append, 0)
                self.assertEqual([], select.select([timers], [], [], 0)[0])
                timers.call_at(time.clock_gettime(clock) + 0.02, self.called.append, clock)
                self.assertTrue(select.select([timers], [], [], PATIENCE)[0])
                self.assertEqual((1, clock), (timers.run(), self.called.pop()))
        for kind, call, *args in ((ValueError, self.timers.call_later, math.nan, print), (ValueError, self.timers.call_every, 0, print),
                                  (TypeError, self.timers.call_later, "1", print)):
            self.assertRaises(kind, call, *args)
        for bad in {"clock": 99}, {"granularity": -1}, {"granularity": 1e9}:
            self.assertRaises(ValueError, hwt.Timers, **bad)
        self.assertEqual(0, len(self.timers))


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
        self.later(1, "end")
        self.assertEqual([0, "end"], await self.until(2))
        self.assertEqual(0, len(self.timers))

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

    async def test_other_descriptors_get_their_turns(self):
        def again():                    # The timer is due again before its callback returns.
            if len(self.called) < 20:
                timer.reschedule(0)
                time.sleep(0.002)

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
        self.assertEqual((True, 0), (task.cancelled(), len(self.timers)))

    async def test_exceptions_and_context_variables(self):
        variable = contextvars.ContextVar("variable", default=0)
        variable.set(1)
        self.later(0.5, "raises", lambda: 1 // 0)
        for context in None, contextvars.Context():
            self.timers.call_later(1, lambda: self.called.append(variable.get()), context=context)
        variable.set(2)
        self.assertEqual((["raises", 1, 0], [ZeroDivisionError]), (await self.until(3), self.errors))

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
        samples = os.path.join(os.path.dirname(os.path.dirname(hwt.__path__[0])), "samples")
        said = subprocess.check_output([sys.executable, f"{samples}/hwt_first.py"], text=True)
        # On a busy machine, ticks are missed.
        self.assertEqual(["half a second has passed"], [line for line in said.splitlines() if line != "tick"])
        self.assertIn(said.count("tick"), range(1, 5))
        with subprocess.Popen([sys.executable, f"{samples}/hwt_asyncio.py", "--port=0", "--idle=3"],
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
