"""One turn of a warp: what waited and is ready goes on, then compiled code up to the next host instruction.

Divergent lanes are groups of their own: one group's wait leaves the others running. Groups that come to the same
``.aligned`` instruction, or to a warp collective that names them all, become one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.ptx.module import Instruction
from ptxdsl.sim import layout
from ptxdsl.sim.host import Fault, Wait
from ptxdsl.sim.layout import ALONE, APART, CHANGED, FUEL, GATHER, HOST, LAUNCH, TRAPPED, UNFINISHED, offset
from ptxdsl.sim.machine.faults import ACCESS_CODES, TRAP, SimulationFault, access_text
from ptxdsl.sim.machine.group import WarpGroup
from ptxdsl.sim.machine.memory import AccessFault
from ptxdsl.sim.machine.polling import Polling
from ptxdsl.sim.machine.waits import GATHER as GATHER_WAIT
from ptxdsl.sim.machine.waits import HANDLER, POLL, WHOLE, Blocked, NotWhole
from ptxdsl.sim.machine.warp import (
    FUEL_WORD,
    ISSUED_QUAD,
    MASK_WORD,
    MEMBERS_WORD,
    RETIRED_QUAD,
    SITE_WORD,
    TOLD_ISSUED_QUAD,
    TOLD_RETIRED_QUAD,
    WAIT_QUAD,
    Warp,
)

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine

CLOCK_QUAD = offset(LAUNCH, "clock") // 8
WRITES_QUAD = offset(LAUNCH, "writes") // 8


class Turns:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.run = machine.code.run
        self.quads = machine.launch_quads
        self.watch = machine.watch
        self.polling = Polling(machine, self)
        self.changed = False  # by this turn, so that others may be ready now

    def turn(self, warp: Warp) -> None:
        machine = self.machine
        self.changed = False
        quads = self.quads
        writes = quads[WRITES_QUAD]
        if warp.waits:
            self._resume(warp)
        if warp.live & ~warp.blocked:
            parked = warp.parked
            if warp.probe:
                warp.probe = False
                warp.patience_left = 1
                code = self.polling.probe(warp, machine.version)
            else:
                quads[CLOCK_QUAD] = warp.clock
                warp.words[FUEL_WORD] = warp.fuel
                code = self.run(warp.address)
                self.count(warp)
            self._came_back(warp, code, writes)
            if parked:
                warp.parked &= ~parked
                warp.release(parked)
        self._end(warp, writes)

    def finish(self, warp: Warp, reason: int, code: int, writes: int) -> None:
        """A turn that began in host code (``layout.TURNS``). writes: the counter of memory's changes before it."""
        self.changed = reason == CHANGED
        if reason == UNFINISHED:
            self._came_back(warp, code, writes)
        elif reason == APART:
            self.changed = bool(code)
            self._park(warp, warp.words[MASK_WORD])
        self._end(warp, writes)

    def _came_back(self, warp: Warp, code: int, writes: int) -> None:
        if code == HOST:
            words = warp.words
            self.host(warp, words[MASK_WORD], words[SITE_WORD])
        elif code >= 0:
            self._stopped(warp, code, writes)

    def _end(self, warp: Warp, writes: int) -> None:
        """Of a turn: who may move now."""
        machine = self.machine
        if self.quads[WRITES_QUAD] != writes:
            warp.changes += 1
            self.tell(quiet=True)  # nobody but loops that look at it waits for memory
        cluster = warp.cta.cluster
        if self.changed:
            machine.wake(cluster, warp.clock)
        if machine.host_turns is not None:
            machine.host_turns.settle(warp)
        if warp.live & ~warp.blocked or self.any_ready(warp):
            warp.queued = True
            machine.picker.add(warp)
        elif warp.live:
            if warp.parked:
                self._unpark(warp)
            else:
                cluster.blocked[warp] = None
        elif not warp.waits:
            machine.warp_exited(warp)

    def count(self, warp: Warp) -> None:
        """Instructions executed by compiled code since, and the time that they took."""
        quads = warp.quads
        issued, retired = quads[ISSUED_QUAD], quads[RETIRED_QUAD]
        more = issued - quads[TOLD_ISSUED_QUAD]
        statistics = self.machine.statistics
        warp.clock += more
        statistics.warp_instructions += more
        statistics.thread_instructions += retired - quads[TOLD_RETIRED_QUAD]
        quads[TOLD_ISSUED_QUAD], quads[TOLD_RETIRED_QUAD] = issued, retired
        if self.watch is not None:
            self.watch.ran(warp)

    def tell(self, quiet: bool) -> None:
        """Something has changed. quiet: so that nobody is ready by it but loops that only look."""
        if not quiet or self.machine.pollers:
            self.changed = True

    # Host instructions

    def host(self, warp: Warp, mask: int, site: int) -> None:
        """The lanes of ``mask`` execute the host instruction that they stand before."""
        machine = self.machine
        info = machine.sites[site]
        handler = info.handler
        assert handler is not None, info.instruction.opcode
        group = WarpGroup(machine, warp, info.instruction, mask)
        machine.statistics.host_instructions += 1
        info.executed = True
        if self.watch is not None:
            self.watch.stands(group)
        try:
            wait = handler(group)
        except NotWhole:
            self._whole(warp, group, site)
            return
        except AccessFault as fault:
            raise group.access_fault(fault) from None
        except Fault as fault:
            raise group.fault(fault.code, fault.message, fault.help, fault.notes) from None
        if wait is None:
            warp.advance(mask, info.next_block)
            if group.polling is not None:
                self.polling.looked(warp, group, site)
            else:
                if self.watch is not None:
                    self.watch.executed(group)
                warp.changes += 1
                machine.changes += 1
                self.tell(group.quiet)
            if mask != warp.live and not warp.blocked & mask:
                self._others_first(warp, mask)
            return
        warp.block(mask)
        self._wait(warp, Blocked(HANDLER, group, site, wait=wait))

    def _wait(self, warp: Warp, blocked: Blocked) -> None:
        warp.waits.append(blocked)
        wait = blocked.wait
        if wait is not None and wait.give_up is None:
            # its instruction has done something already (an arrival), unless it is a timed one
            warp.changes += 1
            self.machine.changes += 1
            self.changed = True
        if self.machine.trace is not None:
            self.trace(warp, blocked, "wait")

    def trace(self, warp: Warp, blocked: Blocked, kind: str) -> None:
        trace = self.machine.trace
        assert trace is not None
        detail = ""
        if blocked.wait is not None:
            waits = blocked.wait.describe()
            detail = f"{waits.what} {waits.place}".strip()
        elif blocked.kind == POLL:
            detail = "memory"
        trace.add(warp.clock, warp.name, kind, detail, blocked.instruction.line)

    def _others_first(self, warp: Warp, mask: int) -> None:
        """Lanes that come back again and again must not keep other lanes of the warp from running. (Of lanes that do
        not come back, compiled code itself takes care.)"""
        others = warp.live & ~warp.blocked & ~mask
        if not others:
            warp.turns_alone = 0
            return
        warp.turns_alone += 1
        if warp.turns_alone >= ALONE:
            self._park(warp, mask)

    def _park(self, warp: Warp, mask: int) -> None:
        warp.turns_alone = 0
        warp.parked |= mask
        warp.block(mask)

    def _unpark(self, warp: Warp) -> None:
        parked, warp.parked = warp.parked, 0
        warp.release(parked)
        warp.queued = True
        self.machine.picker.add(warp)

    def _whole(self, warp: Warp, group: WarpGroup, site: int) -> None:
        """Lanes of an .aligned instruction wait for the others; with the last ones it is executed."""
        warp.block(group.mask)
        warp.waits.append(Blocked(WHOLE, group, site))
        self._merge(warp, site)

    def _merge(self, warp: Warp, site: int) -> None:
        here = [b for b in warp.waits if b.kind is WHOLE and b.site == site]
        union = 0
        for blocked in here:
            union |= blocked.mask
        if here and union == warp.live:
            warp.waits = [b for b in warp.waits if b not in here]
            warp.release(union)
            self.host(warp, union, site)

    # Coming back

    def any_ready(self, warp: Warp) -> bool:
        if warp.quads[WAIT_QUAD]:
            assert self.machine.host_turns is not None
            return self.machine.host_turns.ready(warp)
        for blocked in warp.waits:
            wait = blocked.wait
            if blocked.kind is HANDLER:
                if wait.ready():  # type: ignore[union-attr]  # of this kind each has one
                    return True
            elif blocked.kind is POLL and blocked.may_have_changed(self.machine.version):
                return True
        return False

    def _resume(self, warp: Warp) -> None:
        for blocked in list(warp.waits):
            wait = blocked.wait
            if blocked.kind is HANDLER:
                assert wait is not None
                if wait.ready():
                    warp.waits.remove(blocked)
                    self._continue(warp, blocked, wait)
            elif blocked.kind is POLL and blocked.may_have_changed(self.machine.version):
                self.look_again(warp, blocked)

    def look_again(self, warp: Warp, blocked: Blocked) -> None:
        """A loop that waited for something to happen goes round once more."""
        warp.waits.remove(blocked)
        warp.release(blocked.mask)
        version = self.machine.version
        if blocked.site < 0:
            warp.probe = True
        else:
            poll = warp.polls.get((blocked.site, blocked.mask))
            if poll is not None and poll.snapshot is not None:
                poll.snapshot.version = version
        if not any(b.kind is POLL for b in warp.waits):
            self.machine.pollers.pop(warp, None)
        if self.machine.trace is not None:
            self.trace(warp, blocked, "resume")

    def _continue(self, warp: Warp, blocked: Blocked, wait: Wait) -> None:
        """What the group of a handler waited for is there."""
        group = blocked.group
        machine = self.machine
        time = wait.at() if wait.at is not None else warp.woken_at
        if time > warp.clock:
            warp.clock = time
        info = machine.sites[blocked.site]
        again = wait.then or info.handler
        assert again is not None
        if self.watch is not None:
            self.watch.stands(group)
        try:
            more = again(group)
        except AccessFault as fault:
            raise group.access_fault(fault) from None
        except Fault as fault:
            raise group.fault(fault.code, fault.message, fault.help, fault.notes) from None
        if more is not None:
            self._wait(warp, Blocked(HANDLER, group, blocked.site, wait=more))
            return
        if self.watch is not None:
            self.watch.executed(group)
        warp.release(blocked.mask, info.next_block)
        warp.changes += 1
        machine.changes += 1
        self.tell(group.quiet)
        if machine.trace is not None:
            self.trace(warp, blocked, "resume")

    # Other ways in which compiled code comes back

    def _stopped(self, warp: Warp, code: int, writes: int) -> None:
        if code == FUEL:
            code = self.polling.out_of_fuel(warp, writes)
            if code == HOST:
                self.host(warp, warp.words[MASK_WORD], warp.words[SITE_WORD])
            elif code >= 0 and code != FUEL:
                self._stopped(warp, code, writes)
            return
        words = warp.words
        if code == GATHER:
            site = words[SITE_WORD]
            group = WarpGroup(self.machine, warp, self.machine.sites[site].instruction, words[MASK_WORD])
            warp.block(group.mask)
            warp.waits.append(Blocked(GATHER_WAIT, group, site, members=words[MEMBERS_WORD]))
            self._gather(warp)
        elif code == layout.FAULT:
            raise self._fault(warp)
        elif code == TRAPPED:
            raise self._trap(warp, words[MASK_WORD], self.machine.sites[words[SITE_WORD]].instruction)
        else:
            before = warp.live
            warp.refresh()
            if warp.live != before:
                warp.changes += 1
                self.machine.changes += 1
                self.changed = True
                self._gather(warp)
                for site in {b.site for b in warp.waits if b.kind is WHOLE}:
                    self._merge(warp, site)

    def _gather(self, warp: Warp) -> None:
        """Lets those at a warp collective go on with which all living members are."""
        gathered = [b for b in warp.waits if b.kind is GATHER_WAIT]
        if not gathered:
            return
        warp.refresh()
        for blocked in gathered:
            if blocked not in warp.waits:
                continue
            info = self.machine.sites[blocked.site]
            if info.warp_barrier:
                # bar.warp.sync joins lanes that stand at different ones with the same members
                there = [
                    b for b in gathered if b.members == blocked.members and self.machine.sites[b.site].warp_barrier
                ]
            else:
                there = [b for b in gathered if b.site == blocked.site and b.members == blocked.members]
            there = [b for b in there if b in warp.waits]
            union = 0
            for b in there:
                union |= b.mask
            if blocked.members & warp.live & ~union:
                continue
            if self.watch is not None and info.warp_barrier:
                self.watch.joined(warp, union)
            for b in there:
                warp.waits.remove(b)
                warp.release(b.mask, self.machine.sites[b.site].next_block if info.warp_barrier else None)

    def _fault(self, warp: Warp) -> SimulationFault:
        fields = warp.storage.fields
        kind, lane = int(fields["fault_kind"][0]), int(fields["fault_lane"][0])
        address = int(fields["fault_address"][0])
        instruction = self.machine.sites[int(fields["site"][0])].instruction
        group = WarpGroup(self.machine, warp, instruction, 1 << lane)
        return group.fault(
            ACCESS_CODES.get(kind, "E1120"),
            f"{instruction.opcode}: {access_text(self.machine.memory, warp.cta, instruction.parts, kind, address)}",
        )

    def _trap(self, warp: Warp, mask: int, instruction: Instruction) -> SimulationFault:
        notes = self.machine.stall.notes_of_stall()
        diagnostic = self.machine.places.diagnostic(
            TRAP, f"'{instruction.opcode}' executed", instruction, warp, mask, notes=notes
        )
        return SimulationFault(diagnostic)
