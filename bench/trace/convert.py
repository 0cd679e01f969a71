#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Convert a recorded trace to the file that bench_trace.c replays.

convert.py HZ ARCHIVE OUTPUT

ARCHIVE has "raw", the pages of the kernel's ring buffer of the only CPU, and the formats of its
events. OUTPUT is in this machine's byte order:

    char magic[8]       "hwttrace"
    u32 tick_ns         unit of the deadlines
    u32 timers          number of timers
    u32 records         number of records
    u32 expired         number of expiries in the recording
    u32 phase           jiffies at the beginning, mod 512
    { u32 what, u32 value } records[]

    what >> 30          value
    0  wait             until so many us since the beginning; the operations that follow were
                        recorded in the tick that ended LAG_US before
    1  start            deadline in ticks since the beginning; what & 0x3fffffff is the timer
    2  re-arm           the same, of a pending timer
    3  cancel           not used

The order of the events tells starts, re-arms and cancels apart. mod_timer() of a pending timer is
timer_cancel and then timer_start. If the timer stays in its bucket, only the probe on mod_timer()
shows the call. An expiry is timer_cancel and then timer_expire_entry, and is no operation: in a
replay timers expire by themselves, exact ones up to LAG_US after the tick.
"""

import array
import collections
import re
import struct
import sys
import tarfile

PAGE = 4096
LAG_US = 1500
PHASES = 512
WAIT, START, REARM, CANCEL = range(4)
EVENTS = ("mod_timer", "timer_start", "timer_cancel", "timer_expire_entry")

Event = collections.namedtuple("Event", "time name timer expires now")


def read_format(text):
    """Return an event's number and the offsets of its fields."""
    fields = {name: int(offset) for name, offset in
              re.findall(r"field:[^;]*?(\w+);\s*offset:(\d+);", text)}
    return int(re.search(r"^ID: (\d+)", text, re.M).group(1)), fields


def raw_events(data):
    """Yield (time, offset of the data) of all events in the pages of a ring buffer."""
    for page in range(0, len(data) - PAGE + 1, PAGE):
        time, commit = struct.unpack_from("=QQ", data, page)
        at = page + 16
        end = at + (commit & 0xfffff)
        while at < end:
            head, more = struct.unpack_from("=II", data, at)
            kind, delta = head & 31, head >> 5
            if kind == 29:          # padding
                if not delta:
                    break
                at += 4 + more
                time += delta
            elif kind == 30:        # a long time since the last event
                time += delta + (more << 27)
                at += 8
            elif kind == 31:        # an absolute time
                time = (time & ~((1 << 59) - 1)) | delta | more << 27
                at += 8
            else:
                time += delta
                yield time, at + (4 if kind else 8)
                at += 4 + (kind * 4 if kind else more)


def read_events(archive):
    """Return the events of the archive."""
    with tarfile.open(archive, "r:") as tar:
        data = tar.extractfile("./raw").read()
        formats = {}
        for name in EVENTS:
            number, fields = read_format(tar.extractfile("./" + name).read().decode())
            formats[number] = name, fields["timer"], fields.get("expires"), fields.get("now")
    events = []
    for time, at in raw_events(data):
        name, timer, expires, now = formats[struct.unpack_from("=H", data, at)[0]]
        events.append(Event(time, name, *(
            None if offset is None else struct.unpack_from("=Q", data, at + offset)[0]
            for offset in (timer, expires, now))))
    return events


def operations(events):
    """Return a list of (time, operation, timer, expires), and counts of all kinds of events."""
    following, last = [None] * len(events), {}
    for i, event in enumerate(events):
        if event.timer in last:
            following[last[event.timer]] = i
        last[event.timer] = i

    def replaced(i):
        """Return true if event i removes a timer, and the next event adds it again."""
        return events[i].name == "timer_cancel" and following[i] == i + 1 and \
            events[i + 1].name == "timer_start"

    result, pending, count = [], set(), collections.Counter()
    for i, event in enumerate(events):
        after = following[i]
        timer = event.timer
        operation = None
        if event.name == "mod_timer":
            stays = after is None or not (events[after].name == "timer_start" or replaced(after))
            if stays and timer in pending:
                operation = REARM
                count["re-armed in place"] += 1
        elif event.name == "timer_start":
            operation = REARM if timer in pending else START
            pending.add(timer)
        elif event.name == "timer_cancel" and not replaced(i):
            if timer not in pending:
                count["older than the trace"] += 1
            elif after is not None and events[after].name == "timer_expire_entry":
                count["expired"] += 1
            else:
                operation = CANCEL
            pending.discard(timer)
        if operation is not None:
            count[("", "started", "re-armed", "cancelled")[operation]] += 1
            result.append((event.time, operation, timer, event.expires))
    return result, count


def beginning(events, tick):
    """Return the time at which the tick of the first event began, and its jiffies.

    A tick is never early, so the most prompt of the events that have jiffies gives the best time.
    """
    told = [event for event in events if event.now is not None]
    first = told[0].now
    return min(event.time - (event.now - first) * tick for event in told), first


def main():
    """See above."""
    hertz, archive, output = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    tick = 1000000000 // hertz
    events = read_events(archive)
    found, count = operations(events)
    began, first = beginning(events, tick)
    timers = {}
    records = array.array("I")
    window = -1
    for time, operation, timer, expires in found:
        now = max(time - began, 0) // tick
        if now != window:
            window = now
            records.extend((WAIT << 30, (window + 1) * tick // 1000 + LAG_US))
        ticks = 0 if operation == CANCEL else expires - first
        index = timers.setdefault(timer, len(timers))
        records.extend((operation << 30 | index, min(max(ticks, 0), 0xffffffff)))
    with open(output, "wb") as out:
        out.write(struct.pack("=8sIIIII", b"hwttrace", tick, len(timers), len(records) // 2,
                              count["expired"], first % PHASES))
        records.tofile(out)
        size = out.tell()
    print(f"{len(events)} events in {(events[-1].time - events[0].time) / 1e9:.1f} s: "
          f"{len(found)} operations on {len(timers)} timers, {size} bytes")
    print(", ".join(f"{name}: {number}" for name, number in sorted(count.items())))


if __name__ == "__main__":
    main()
