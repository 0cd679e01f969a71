// SPDX-License-Identifier: GPL-2.0-only
{
  A client of /dev/hwt that was written from its manual page, hwt(4), alone: the proof that a
  language without a header for it can use the device. Every number here is from there.

  Run by tests/user/manual-client.sh. Prints TAP.
}
program manual_client;

{$mode objfpc}
{$packrecords c}

uses
  BaseUnix, Linux, SysCall;

const
  IOC_INFO = $e700;
  IOC_SCHEDULE = $e702;
  IOC_MODIFY = $e703;
  IOC_CANCEL = $e704;
  IOC_GET = $e705;
  IOC_STOP = $e706;
  IOC_STATS = $e707;
  IOC_LIST = $e708;
  IOC_BATCH = $e709;
  IOC_RINGS = $e70a;
  IOC_ENTER = $e70b;

  MODE_ONE_SHOT = 0;
  MODE_FIXED_RATE = 1;
  ABSOLUTE_TIME = 1;
  STATE_PENDING = 1;
  STATE_EVENT = 2;
  KIND_EXPIRED = 1;
  KIND_STOPPED = 2;
  EVENT_LAST = 1;
  FEATURE_LIST = $8;
  FEATURE_BATCH = $10;
  FEATURE_RINGS = $20;
  OP_SCHEDULE = 1;
  OP_MODIFY = 2;
  OP_CANCEL = 3;
  OP_GET = 4;
  RINGS_MORE = 1;
  RINGS_END = 2;
  NEVER = QWord($ffffffffffffffff);

  MSEC = 1000000;
  HOUR = QWord(3600) * 1000 * MSEC;
  { How long to wait for what should come at once, in a guest that may be very slow. }
  PATIENCE_MS = 20000;

type
  TEvent = record
    id, user_data, deadline_ns, fired_ns, overruns: QWord;
    kind, flags: DWord;
    reserved: array[0..1] of QWord;
  end;
  PEvent = ^TEvent;

  TInfo = record
    size, flags, version: DWord;
    clock: LongInt;
    tick_ns: QWord;
    ticks_per_wheel, levels: DWord;
    now_ns, max_timeouts, max_pending, features: QWord;
    event_size, reserved: DWord;
    max_shared, max_user_timeouts: QWord;
    max_user_wheels, reserved2: DWord;
  end;

  TSchedule = record
    size, flags, mode, reserved: DWord;
    time_ns, period_ns, slack_ns, user_data, id: QWord;
  end;

  TModify = record
    size, flags: DWord;
    id, time_ns, period_ns, slack_ns, user_data: QWord;
    was, reserved: DWord;
  end;

  TCancel = record
    size, flags: DWord;
    id: QWord;
    was, reserved: DWord;
  end;

  TGet = record
    size, flags: DWord;
    id: QWord;
    state, mode: DWord;
    user_data, deadline_ns, remaining_ns, period_ns, overruns: QWord;
  end;

  TStop = record
    size, flags: DWord;
    stopped: QWord;
  end;

  TStats = record
    size, flags: DWord;
    timeouts, events, scheduled, modified, cancelled, stopped, expired: QWord;
    overruns, read, rejected: QWord;
  end;

  TListEntry = record
    id, user_data, deadline_ns, remaining_ns, period_ns, overruns: QWord;
    state, mode: DWord;
    reserved: QWord;
  end;

  TList = record
    size, flags: DWord;
    cursor, entries: QWord;
    count, entry_size: DWord;
  end;

  { time_ns is also deadline_ns, slack_ns also remaining_ns. }
  TOp = record
    opcode, flags, mode: DWord;
    result: LongInt;
    id, time_ns, period_ns, slack_ns, user_data, overruns: QWord;
  end;
  POp = ^TOp;

  TBatch = record
    size, flags: DWord;
    ops: QWord;
    count, op_size: DWord;
  end;

  TRings = record
    size, flags, op_entries, event_entries: DWord;
    map_size: QWord;
    ops_offset, events_offset, op_size, event_size: DWord;
  end;

  TEnter = record
    size, flags, submit, wait: DWord;
    timeout_ns: QWord;
  end;

  TRingsHead = record
    op_head, event_tail, flags: LongInt;
    reserved: array[1..13] of LongInt;
    op_tail: LongInt;
    reserved2: array[1..15] of LongInt;
    event_head: LongInt;
    reserved3: array[1..15] of LongInt;
  end;
  PRingsHead = ^TRingsHead;

var
  points: Integer = 0;
  failed: Integer = 0;

procedure Check(good: Boolean; const what: String);
begin
  points := points + 1;
  if not good then
  begin
    failed := failed + 1;
    Write('not ');
  end;
  WriteLn('ok ', points, ' - ', what);
end;

{ 0, or a negative error number. }
function Call(fd: cint; request: TIOCtlRequest; args: Pointer): cint;
begin
  Call := fpIOCtl(fd, request, args);
  if Call < 0 then
    Call := -fpgeterrno;
end;

function Now: QWord;
var
  t: TTimeSpec;
begin
  clock_gettime(CLOCK_MONOTONIC, @t);
  Now := QWord(t.tv_sec) * 1000 * MSEC + t.tv_nsec;
end;

function Open: cint;
begin
  Open := fpOpen('/dev/hwt', O_RDWR);
  if Open < 0 then
  begin
    WriteLn('Bail out! /dev/hwt: error ', fpgeterrno);
    Halt(1);
  end;
end;

function Schedule(fd: cint; flags: DWord; time, data: QWord; out id: QWord): cint;
var
  args: TSchedule;
begin
  FillChar(args, SizeOf(args), 0);
  args.size := SizeOf(args);
  args.flags := flags;
  args.mode := MODE_ONE_SHOT;
  args.time_ns := time;
  args.user_data := data;
  Schedule := Call(fd, IOC_SCHEDULE, @args);
  id := args.id;
end;

{ The HWT_STATE_ bits of before, or a negative error number. }
function Cancel(fd: cint; id: QWord): cint;
var
  args: TCancel;
begin
  FillChar(args, SizeOf(args), 0);
  args.size := SizeOf(args);
  args.id := id;
  Cancel := Call(fd, IOC_CANCEL, @args);
  if Cancel = 0 then
    Cancel := args.was;
end;

function Modify(fd: cint; id, delay: QWord): cint;
var
  args: TModify;
begin
  FillChar(args, SizeOf(args), 0);
  args.size := SizeOf(args);
  args.id := id;
  args.time_ns := delay;
  Modify := Call(fd, IOC_MODIFY, @args);
  if Modify = 0 then
    Modify := args.was;
end;

{ What poll() says; 0 if nothing came for so long. }
function Poll(fd: cint; timeout_ms: cint): cshort;
var
  p: pollfd;
begin
  p.fd := fd;
  p.events := POLLIN;
  p.revents := 0;
  if fpPoll(@p, 1, timeout_ms) < 0 then
    Poll := -1
  else
    Poll := p.revents;
end;

{ The numbers of the page, as this compiler lays them out. }
procedure Layout;
begin
  Check((SizeOf(TEvent) = 64) and (SizeOf(TInfo) = 96) and (SizeOf(TSchedule) = 56) and
        (SizeOf(TModify) = 56) and (SizeOf(TCancel) = 24) and (SizeOf(TGet) = 64) and
        (SizeOf(TStop) = 16) and (SizeOf(TStats) = 88) and (SizeOf(TList) = 32) and
        (SizeOf(TListEntry) = 64) and (SizeOf(TBatch) = 24) and (SizeOf(TOp) = 64) and
        (SizeOf(TRings) = 40) and (SizeOf(TEnter) = 24) and (SizeOf(TRingsHead) = 192),
        'all structures have the size that the page says');
end;

procedure OneByOne;
var
  fd, n: cint;
  info: TInfo;
  get: TGet;
  stats: TStats;
  stop: TStop;
  again: TSchedule;
  list: TList;
  entries: array[0..7] of TListEntry;
  events: array[0..3] of TEvent;
  id, other, before: QWord;
begin
  fd := Open;
  FillChar(info, SizeOf(info), 0);
  info.size := SizeOf(info);
  n := Call(fd, IOC_INFO, @info);
  Check((n = 0) and (info.version >= 3) and (info.clock = 1) and (info.tick_ns > 0) and
        (info.event_size = 64) and (info.now_ns <= Now), 'info');
  Check((info.features and (FEATURE_LIST or FEATURE_BATCH or FEATURE_RINGS)) =
        (FEATURE_LIST or FEATURE_BATCH or FEATURE_RINGS), 'info tells of what is used here');

  before := Now;
  Check(Schedule(fd, 0, 50 * MSEC, 42, id) = 0, 'schedule with a delay');
  n := fpRead(fd, events, SizeOf(events));
  Check((n = 64) and (events[0].id = id) and (events[0].user_data = 42) and
        (events[0].kind = KIND_EXPIRED) and (events[0].flags = EVENT_LAST) and
        (events[0].deadline_ns >= before + 50 * MSEC) and
        (events[0].deadline_ns mod info.tick_ns = 0) and
        (events[0].fired_ns >= events[0].deadline_ns) and (events[0].fired_ns <= Now),
        'read waits, and gives its event');
  Check(Cancel(fd, id) = -ESysENOENT, 'its id has ended');

  Check(Schedule(fd, ABSOLUTE_TIME, Now, 1, id) = 0, 'schedule at a deadline');
  Check(Poll(fd, PATIENCE_MS) = POLLIN, 'poll waits for it');
  Check(Modify(fd, id, HOUR) = STATE_EVENT, 'modify withdraws the event, and says so');
  Check(Poll(fd, 0) = 0, 'there is none any more');
  FillChar(get, SizeOf(get), 0);
  get.size := SizeOf(get);
  get.id := id;
  Check((Call(fd, IOC_GET, @get) = 0) and (get.state = STATE_PENDING) and
        (get.remaining_ns > HOUR div 2) and (get.remaining_ns <= HOUR + info.tick_ns) and
        (get.user_data = 1), 'get tells that it is pending again');
  Check(Schedule(fd, 0, NEVER, 2, other) = 0, 'schedule for never');
  get.id := other;
  Check((Call(fd, IOC_GET, @get) = 0) and (get.deadline_ns = NEVER) and
        (get.remaining_ns = NEVER), 'get tells that it never comes');

  FillChar(list, SizeOf(list), 0);
  list.size := SizeOf(list);
  list.entries := PtrUInt(@entries);
  list.count := 8;
  list.entry_size := 64;
  Check((Call(fd, IOC_LIST, @list) = 0) and (list.count = 2) and
        (entries[0].user_data + entries[1].user_data = 3) and
        (entries[0].state = STATE_PENDING), 'list tells of both');
  Check(Cancel(fd, other) = STATE_PENDING, 'cancel');

  FillChar(again, SizeOf(again), 0);
  again.size := SizeOf(again);
  again.mode := MODE_FIXED_RATE;
  again.period_ns := 20 * MSEC;
  again.user_data := 3;
  Check((Call(fd, IOC_SCHEDULE, @again) = 0) and
        (fpRead(fd, events, 64) = 64) and (events[0].flags = 0) and
        (fpRead(fd, events[1], 64) = 64) and (events[1].id = again.id) and
        (events[1].deadline_ns >= events[0].deadline_ns + 20 * MSEC),
        'a fixed rate fires again and again');
  Check((fpRead(fd, events, 63) = -1) and (fpgeterrno = ESysEINVAL),
        'read into less than an event is EINVAL');
  again.reserved := 1;
  Check(Call(fd, IOC_SCHEDULE, @again) = -ESysEINVAL, 'reserved must be zero');
  again.size := 8;
  Check(Call(fd, IOC_SCHEDULE, @again) = -ESysEINVAL, 'a size that is too small is EINVAL');
  Check(Call(fd, $e7ff, @again) = -ESysENOTTY, 'an unknown ioctl is ENOTTY');

  FillChar(stop, SizeOf(stop), 0);
  stop.size := SizeOf(stop);
  Check((Call(fd, IOC_STOP, @stop) = 0) and (stop.stopped = 2), 'stop');
  { The hourly one was stopped; the other may have an event of before. }
  n := fpRead(fd, events, SizeOf(events));
  Check((n = 128) and (events[0].flags = EVENT_LAST) and (events[1].flags = EVENT_LAST) and
        ((events[0].kind = KIND_STOPPED) or (events[1].kind = KIND_STOPPED)),
        'read gives each its last event');
  Check((fpRead(fd, events, 64) = 0) and (Poll(fd, 0) = POLLIN or POLLHUP),
        'then there is the end of the file');
  Check(Schedule(fd, 0, 1, 0, id) = -ESysESHUTDOWN, 'scheduling is ESHUTDOWN now');
  FillChar(stats, SizeOf(stats), 0);
  stats.size := SizeOf(stats);
  Check((Call(fd, IOC_STATS, @stats) = 0) and (stats.timeouts = 0) and
        (stats.scheduled = 4) and (stats.modified = 1) and (stats.cancelled = 1) and
        (stats.stopped = 2) and (stats.rejected = 1), 'stats');
  fpClose(fd);
end;

procedure Batches;
var
  fd, n, i: cint;
  batch: TBatch;
  ops: array[0..99] of TOp;
  events: array[0..99] of TEvent;
  good: Boolean;
  sum: QWord;
begin
  fd := Open;
  FillChar(ops, SizeOf(ops), 0);
  for i := 0 to 98 do
  begin
    ops[i].opcode := OP_SCHEDULE;
    ops[i].time_ns := HOUR;
    ops[i].user_data := i;
  end;
  ops[50].opcode := 99;
  ops[99].opcode := OP_CANCEL;
  ops[99].id := 12345;
  FillChar(batch, SizeOf(batch), 0);
  batch.size := SizeOf(batch);
  batch.ops := PtrUInt(@ops);
  batch.count := 100;
  batch.op_size := 64;
  n := Call(fd, IOC_BATCH, @batch);
  good := (n = 0) and (batch.count = 100);
  for i := 0 to 98 do
    good := good and ((i = 50) or ((ops[i].result = 0) and (ops[i].id <> 0)));
  Check(good, 'a batch schedules');
  Check((ops[50].result = -ESysEINVAL) and (ops[99].result = -ESysENOENT),
        'those that fail do so alone');

  { 0 to 9: cancel; 10 to 19: move to now; 20: get. }
  for i := 0 to 20 do
  begin
    sum := ops[i].id;
    FillChar(ops[i], 64, 0);
    ops[i].id := sum;
    if i < 10 then
      ops[i].opcode := OP_CANCEL
    else if i < 20 then
      ops[i].opcode := OP_MODIFY
    else
      ops[i].opcode := OP_GET;
  end;
  batch.count := 21;
  n := Call(fd, IOC_BATCH, @batch);
  good := (n = 0) and (batch.count = 21);
  for i := 0 to 20 do
    good := good and (ops[i].result = STATE_PENDING);
  Check(good, 'a batch cancels, modifies and gets');
  Check((ops[20].user_data = 20) and (ops[20].slack_ns > HOUR div 2) and
        (ops[20].time_ns > Now) and (ops[20].mode = MODE_ONE_SHOT), 'get tells all');
  n := 0;
  sum := 0;
  while (n < 10) and (Poll(fd, PATIENCE_MS) = POLLIN) do
  begin
    i := fpRead(fd, events, SizeOf(events)) div 64;
    while i > 0 do
    begin
      i := i - 1;
      n := n + 1;
      sum := sum + events[i].user_data;
    end;
  end;
  Check((n = 10) and (sum = 145), 'those that were moved fire');
  fpClose(fd);
end;

{ Memory that the kernel writes too. These are full barriers, more than is needed. }
function LoadAcquire(var from: LongInt): DWord;
begin
  LoadAcquire := DWord(InterlockedExchangeAdd(from, 0));
end;

procedure StoreRelease(var whereto: LongInt; value: DWord);
begin
  InterlockedExchange(whereto, LongInt(value));
end;

procedure Rings;
const
  COUNT = 40;
var
  fd, n, i, done: cint;
  args: TRings;
  enter: TEnter;
  stop: TStop;
  memory: Pointer;
  head: PRingsHead;
  op: POp;
  event: PEvent;
  tail, at: DWord;
  good: Boolean;
  sum: QWord;
  buffer: TEvent;

  function DoEnter(submit, wait: DWord): cint;
  begin
    FillChar(enter, SizeOf(enter), 0);
    enter.size := SizeOf(enter);
    enter.submit := submit;
    enter.wait := wait;
    enter.timeout_ns := QWord(PATIENCE_MS) * MSEC;
    DoEnter := Call(fd, IOC_ENTER, @enter);
  end;

  { All that is there. Returns how many. }
  function Reap: cint;
  begin
    Reap := 0;
    at := DWord(head^.event_head);
    while at <> LoadAcquire(head^.event_tail) do
    begin
      event := memory + args.events_offset + 64 * (at and (args.event_entries - 1));
      sum := sum + event^.user_data;
      good := good and (event^.kind = KIND_EXPIRED) and (event^.flags = EVENT_LAST);
      at := at + 1;
      StoreRelease(head^.event_head, at);
      Reap := Reap + 1;
    end;
  end;

begin
  fd := Open;
  FillChar(args, SizeOf(args), 0);
  args.size := SizeOf(args);
  args.op_entries := 50;
  args.event_entries := 5;
  n := Call(fd, IOC_RINGS, @args);
  Check((n = 0) and (args.op_entries = 64) and (args.event_entries = 8) and
        (args.op_size = 64) and (args.event_size = 64), 'rings, rounded up');
  memory := fpMmap(nil, args.map_size, PROT_READ or PROT_WRITE, MAP_SHARED, fd, 0);
  Check(memory <> Pointer(-1), 'their memory can be mapped');
  head := memory;
  Check((fpRead(fd, buffer, 64) = -1) and (fpgeterrno = ESysEBUSY), 'read is EBUSY');

  tail := DWord(head^.op_tail);
  for i := 0 to COUNT - 1 do
  begin
    op := memory + args.ops_offset + 64 * (tail and (args.op_entries - 1));
    FillChar(op^, 64, 0);
    op^.opcode := OP_SCHEDULE;
    op^.time_ns := 10 * MSEC;
    op^.user_data := i;
    tail := tail + 1;
  end;
  StoreRelease(head^.op_tail, tail);
  Check((DoEnter(COUNT, 1) = 0) and (enter.submit = COUNT), 'enter carries all out, and waits');
  good := LoadAcquire(head^.op_head) = tail;
  for i := 0 to COUNT - 1 do
  begin
    op := memory + args.ops_offset + 64 * i;
    good := good and (op^.result = 0) and (op^.id <> 0);
  end;
  Check(good, 'the results are in their places');

  { More than the ring of events has room for. }
  done := 0;
  sum := 0;
  good := true;
  repeat
    done := done + Reap;
    if done < COUNT then
      good := good and (DoEnter(0, 1) = 0) and
              (LoadAcquire(head^.event_tail) <> DWord(head^.event_head));
  until (done >= COUNT) or not good;
  Check(good and (done = COUNT) and (sum = COUNT * (COUNT - 1) div 2),
        'all events come by a ring that has room for eight');
  Check((LoadAcquire(head^.flags) and RINGS_MORE) = 0, 'no more wait for room');

  op := memory + args.ops_offset + 64 * (tail and (args.op_entries - 1));
  FillChar(op^, 64, 0);
  op^.opcode := OP_CANCEL;
  op^.id := POp(memory + args.ops_offset)^.id;
  StoreRelease(head^.op_tail, tail + 1);
  Check((DoEnter(1, 0) = 0) and (op^.result = -ESysENOENT),
        'an id has ended when its event is in the ring');

  FillChar(stop, SizeOf(stop), 0);
  stop.size := SizeOf(stop);
  Check((Call(fd, IOC_STOP, @stop) = 0) and
        ((LoadAcquire(head^.flags) and RINGS_END) <> 0), 'the end is told in the ring');
  StoreRelease(head^.op_tail, tail + 1000);
  Check(DoEnter(1, 0) = -ESysEINVAL, 'nonsense is EINVAL');
  { The mapping keeps the memory. }
  fpClose(fd);
  Check((LoadAcquire(head^.flags) and RINGS_END) <> 0, 'the mapping outlives the descriptor');
  fpMunmap(memory, args.map_size);
end;

begin
  Layout;
  OneByOne;
  Batches;
  Rings;
  WriteLn('1..', points);
  if failed > 0 then
    Halt(1);
end.
