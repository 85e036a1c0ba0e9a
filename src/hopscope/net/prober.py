"""The probe thread: one poll loop that drives every series and trace of a process (architecture, "Running").

It never waits for names, disks or screens. Engines say when they want to be stepped; channels say what came back.
Records leave in batches through a callback that must not block. What breaks is handed to those whose job it was, for
nobody else would ever hear of it: an engine's error ends its job, any other all jobs of the moment, never the thread.
"""

import heapq
import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

from hopscope.analysis.delay import quantile
from hopscope.model.limits import MS, SECOND
from hopscope.model.record import Drop, Record, SelfCheck
from hopscope.net.clock import StepWatch
from hopscope.net.ports import Arrival, Channel, Clock, DropSeen, Flight, Job, SendFailedError

FLUSH_NS = 10 * MS
"""Records wait no longer than this before they leave the thread (the tape may lose 50 ms)."""
KEPT = 4096
ROUNDS = 8
SWITCH_S = 0.0005
IDLE_NS = 1000 * MS
USER_LATE_LIMIT_NS = MS
"""Method 1.6: with user-space stamps, a loop that wakes up later than this (p99) measures itself."""
USER_SHARE_LIMIT = 0.05

Deliver = Callable[[list[Record], SelfCheck | Exception | None], None]
"""Called in the probe thread with records of a job; with a self-check when it is over, or what broke it."""


class _Work(Struct, eq=False):
    """A job with what the thread keeps about it; `turn` grows so that stale heap entries are told."""

    job: Job
    deliver: Deliver
    late: deque[int]
    drops: int = 0
    step_ns: int = 0
    user: int = 0
    answers: int = 0
    turn: int = 0


class Prober:
    """Runs jobs in a thread of its own, started by the first one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._incoming: deque[_Work] = deque()
        self._stopping: deque[int] = deque()
        self._heap: list[tuple[int, int, _Work]] = []
        self._turns = 0
        self._works: dict[int, _Work] = {}
        self._channels: dict[int, Channel] = {}
        self._poll = select.epoll()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._thread: threading.Thread | None = None
        self._closing = False
        self._flushed = 0
        self._heard = 0
        self._watch = StepWatch(clock.offset())
        self._wake_late: deque[int] = deque(maxlen=KEPT)

    def add(self, job: Job, deliver: Deliver) -> None:
        """Take a job; thread-safe."""
        self._incoming.append(_Work(job, deliver, deque(maxlen=KEPT)))
        if self._thread is None:
            self._poll.register(self._wake_read, select.EPOLLIN)
            # Each system call gives up the interpreter; a busy event loop would keep it for 5 ms every time.
            sys.setswitchinterval(SWITCH_S)
            self._thread = threading.Thread(target=self._run, name="probes", daemon=True)
            self._thread.start()
        self._nudge()

    def drop(self, task: int) -> None:
        """Stop a task now: what is in the air stays unsettled, and out of every count. Thread-safe."""
        self._stopping.append(task)
        self._nudge()

    def close(self) -> None:
        """End the thread."""
        self._closing = True
        self._nudge()
        if self._thread is not None:
            self._thread.join()
        self._poll.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _nudge(self) -> None:
        try:
            os.write(self._wake_write, b".")
        except BlockingIOError:
            return

    def _run(self) -> None:
        """The loop: take jobs, hear, step what is due, wait.

        Engines are stepped with the instant up to which everything was heard: however late this thread runs, a
        reply that has arrived is never counted as lost.
        """
        while not self._closing:
            with self._blaming():
                self._take_orders()
                self._hear_all()
                self._step_due()
                self._flush(self._clock.now())
                self._wait()

    def _take_orders(self) -> None:
        """New jobs and jobs to drop."""
        while self._incoming:
            work = self._incoming.popleft()
            self._works[work.job.task] = work
            channel = work.job.channel
            if channel.fileno() not in self._channels:
                self._poll.register(channel.fileno(), select.EPOLLIN)
                self._channels[channel.fileno()] = channel
            self._schedule(work)
        while self._stopping:
            stopped = self._works.get(self._stopping.popleft())
            if stopped is not None:
                self._finish(stopped)

    @contextmanager
    def _blaming(self, culprit: _Work | None = None) -> Iterator[None]:
        """End the culprit's job with the error, if one comes; without a culprit all jobs, and hear no channel more."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - handed on: the task of each job raises it, and `run` sees to it
            for work in [culprit] if culprit is not None else list(self._works.values()):
                self._works.pop(work.job.task, None)
                work.turn = 0
                work.deliver([], error)
            while culprit is None and self._channels:
                fd, _ = self._channels.popitem()
                with suppress(OSError):
                    self._poll.unregister(fd)

    def _schedule(self, work: _Work) -> None:
        """Put a job's next wish on the heap, or finish it when it has none."""
        when = work.job.engine.wake_at()
        if when is None:
            self._finish(work)
            return
        self._turns += 1
        work.turn = self._turns
        heapq.heappush(self._heap, (when, work.turn, work))

    def _finish(self, work: _Work) -> None:
        """Deliver the last records of a job with our own exam."""
        self._works.pop(work.job.task, None)
        work.turn = 0
        work.deliver(work.job.engine.take(), self._exam(work))

    def _exam(self, work: _Work) -> SelfCheck:
        """Method 1.6: lateness against the schedule, drops, steps; limited where they could have spoiled the result."""
        late = quantile(sorted(work.late), 0.99) if work.late else None
        woke = quantile(sorted(self._wake_late), 0.99) if self._wake_late else 0
        by_user = work.answers > 0 and work.user / work.answers > USER_SHARE_LIMIT
        return SelfCheck(
            late_p99_ns=None if late is None else int(late),
            drops=work.drops,
            clock_step_ns=work.step_ns,
            limited=by_user and woke > USER_LATE_LIMIT_NS,
        )

    def _step_due(self) -> None:
        """Step every engine whose time has come, and send what it names."""
        now = self._heard
        while self._heap and self._heap[0][0] <= now:
            _, turn, work = heapq.heappop(self._heap)
            if turn != work.turn:
                continue
            with self._blaming(work):
                self._send(work, now)
                self._schedule(work)

    def _send(self, work: _Work, now: int) -> None:
        """Step one engine and send what it names."""
        for shot in work.job.engine.step(now):
            try:
                at = work.job.channel.send(Flight(work.job, shot))
            except SendFailedError as failed:
                work.job.engine.unsent(shot, self._clock.now(), str(failed))
                continue
            work.job.engine.sent(shot, at)
            work.late.append(max(0, at - shot.slot))

    def _flush(self, now: int) -> None:
        """Let records go, at most every FLUSH_NS."""
        if now - self._flushed < FLUSH_NS:
            return
        self._flushed = now
        self._watch_clock()
        for work in self._works.values():
            records = work.job.engine.take()
            if records:
                work.deliver(records, None)

    def _watch_clock(self) -> None:
        """Tell every job of a step of the wall clock (method 1.6)."""
        before, epoch = self._watch.last, self._watch.epoch
        if self._watch.see(self._clock.offset()) != epoch:
            step = abs(self._watch.last - before)
            for work in self._works.values():
                work.step_ns = max(work.step_ns, step)

    def _next(self) -> int:
        """When the loop must run again, anchored ns."""
        now = self._clock.now()
        wishes = [now + IDLE_NS]
        if self._heap:
            wishes.append(self._heap[0][0])
        if self._works:
            wishes.append(self._flushed + FLUSH_NS)
        wishes += [when for channel in self._channels.values() if (when := channel.wake_at()) is not None]
        return min(wishes)

    def _wait(self) -> None:
        """Sleep until something is due or readable."""
        until = self._next()
        now = self._clock.now()
        # select keeps microseconds where epoll rounds up to milliseconds; it only watches the epoll descriptor.
        readable, _, _ = select.select([self._poll], [], [], max(0, until - now) / SECOND)
        if not readable and until > now:
            self._wake_late.append(max(0, self._clock.now() - until))

    def _hear_all(self) -> None:
        """Hear every channel that has something to tell until none has, or for so many rounds."""
        for _ in range(ROUNDS):
            now = self._clock.now()
            ready = {fd for fd, _ in self._poll.poll(0)}
            due = {fd for fd, channel in self._channels.items() if (at := channel.wake_at()) is not None and at <= now}
            for fd in ready | due:
                if fd == self._wake_read:
                    os.read(self._wake_read, 4096)
                else:
                    self._hear(self._channels[fd])
            if not ready:
                self._heard = now
                return

    def _hear(self, channel: Channel) -> None:
        """Pass on what a channel has matched."""
        touched: dict[int, _Work] = {}
        for event in channel.receive():
            match event:
                case Arrival():
                    work = self._works.get(event.flight.job.task)
                    if work is not None:
                        touched[work.job.task] = work
                        with self._blaming(work):
                            self._tell(work, event)
                case DropSeen():
                    self._dropped(channel, event)
        for work in touched.values():
            if work.job.task in self._works:
                self._schedule(work)

    def _tell(self, work: _Work, arrival: Arrival) -> None:
        """Tell an engine about a reply."""
        now = self._clock.now()
        if not arrival.asked:
            work.job.engine.strange(arrival.flight.shot, arrival.answer, now)
            return
        work.answers += 1
        # A refusal is always timed in user space; it is evidence of a closed port, not of a delay.
        work.user += arrival.answer.clock == "user" and arrival.answer.kind != "rst"
        work.job.engine.answered(arrival.flight.shot, arrival.answer, now)

    def _dropped(self, channel: Channel, seen: DropSeen) -> None:
        """Every task on the channel hears that packets were dropped under it."""
        for work in self._works.values():
            if work.job.channel is channel:
                work.drops += seen.count
                drop = Drop(task=work.job.task, since=seen.since, until=seen.until, count=seen.count)
                work.deliver([drop], None)
