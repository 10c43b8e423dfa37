"""When nothing can move: more CTAs, waits that may give up, clocks that run on, or a deadlock.

In this order. A timed wait (``mbarrier.try_wait``) gives up once; when its lanes are back at it with the same registers
and nothing else has happened in the machine, giving up again is of no use. Where the kernel reads a clock, the clocks
of all who wait then leap, ever further: a time-out in the program is reached within some fifty rounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.sim.limits import LimitReached
from ptxdsl.sim.machine.deadlock import report
from ptxdsl.sim.machine.faults import Note
from ptxdsl.sim.machine.polling import Snapshot
from ptxdsl.sim.machine.waits import HANDLER, POLL, Blocked
from ptxdsl.sim.machine.warp import Warp

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine

_FIRST_LEAP, _LAST_LEAP = 10, 61  # powers of two, cycles; a clock has 63 bits, and the leaps add up to half of that


class Stall:
    """diagnostic: of the deadlock, once there is one."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.diagnostic: Diagnostic | None = None
        self._version = -1
        self._rounds = 0  # in which nothing but giving up has happened
        self._leap = _FIRST_LEAP
        self._tried: dict[tuple[str, int, int], Snapshot] = {}  # by warp, mask, site: its state when it gave up
        self._no_more_memory = False
        self._before_leap: Diagnostic | None = None

    def resolve(self) -> bool:
        """Gets something to move again; False: it is a deadlock, and ``diagnostic`` tells of it."""
        machine = self.machine
        if machine.pollers and self.start_cluster():
            return True
        self._recheck()
        if len(machine.picker):
            return True
        version = machine.version
        if version != self._version:
            self._version = version
            self._rounds = 0
            self._leap = _FIRST_LEAP
            self._tried.clear()
            self._before_leap = None
        self._rounds += 1
        if self._rounds <= machine.limits.idle_rounds and self._give_up(version):
            return True
        if machine.snapshots.reads_clock and self._leap <= _LAST_LEAP:
            if self._before_leap is None:
                self._before_leap = report(machine)
            self._leap_ahead()
            if len(machine.picker):
                return True
        self.diagnostic = self._before_leap or report(machine)
        return False

    def notes_of_stall(self) -> tuple[Note, ...]:
        """If clocks had to leap and nothing has happened since: the deadlock that a time-out of the program found."""
        found = self._before_leap
        if found is None or found.span is None or self.machine.version != self._version:
            return ()
        return ((found.span, f"nothing could move any more: {found.message}"), *found.notes)

    def start_cluster(self) -> bool:
        """Lets one more cluster begin, for which those that run may wait. False if there is none, or no memory."""
        machine = self.machine
        if machine.next_cluster == machine.cluster_count or self._no_more_memory:
            return False
        try:
            machine.start_cluster()
        except LimitReached:
            if not machine.resident:
                raise
            self._no_more_memory = True
            return False
        return True

    def _recheck(self) -> None:
        """Looks again at all that waits, with what is known of exited lanes brought up to date."""
        machine = self.machine
        for cluster in list(machine.resident.values()):
            for cta in cluster.ctas:
                for warp in cta.warps:
                    if warp.live:
                        warp.refresh()
            machine.wake(cluster, 0)

    def _waiting(self) -> list[tuple[Warp, Blocked]]:
        return [
            (entity, blocked)
            for cluster in self.machine.resident.values()
            for entity in cluster.blocked
            if isinstance(entity, Warp)
            for blocked in entity.waits
        ]

    def _give_up(self, version: int) -> bool:
        """Timed waits that have not been seen to come back in the same state return without success."""
        machine = self.machine
        some = False
        for warp, blocked in self._waiting():
            wait = blocked.wait
            if blocked.kind is not HANDLER or wait is None or wait.give_up is None:
                continue
            snapshot = machine.snapshots.take(warp, blocked.mask, version)
            key = (warp.name, blocked.mask, blocked.site)
            before = self._tried.get(key)
            if before is not None and before.state == snapshot.state:
                continue
            self._tried[key] = snapshot
            self._fail(warp, blocked)
            some = True
        return some

    def _fail(self, warp: Warp, blocked: Blocked) -> None:
        """A timed wait comes back without success."""
        wait = blocked.wait
        assert wait is not None and wait.give_up is not None
        wait.give_up(blocked.group)
        warp.waits.remove(blocked)
        warp.release(blocked.mask, self.machine.sites[blocked.site].next_block)
        self._run(warp)

    def _leap_ahead(self) -> None:
        """Time passes for all who look at something in vain."""
        leap = 1 << self._leap
        self._leap += 1
        for warp, blocked in self._waiting():
            wait = blocked.wait
            if blocked.kind is POLL:
                warp.clock += leap
                self.machine.turns.look_again(warp, blocked)
                self._run(warp)
            elif blocked.kind is HANDLER and wait is not None and wait.give_up is not None:
                warp.clock += leap
                self._fail(warp, blocked)

    def _run(self, warp: Warp) -> None:
        if not warp.queued:
            warp.cta.cluster.blocked.pop(warp, None)
            warp.queued = True
            self.machine.picker.add(warp)
