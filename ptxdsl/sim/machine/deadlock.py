"""The report of a deadlock: who waits where and for what, who could still come and why he does not, and the cycle.

All from what each blocked group and agent says of itself (``host.WaitsFor``), from who has served which barrier, and of
an mbarrier from its ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.barriers.mbarrier import Barrier
from ptxdsl.sim.machine.cta import AgentEntity
from ptxdsl.sim.machine.cycle import find_cycle
from ptxdsl.sim.machine.faults import DEADLOCK, Note
from ptxdsl.sim.machine.ledger import origin_text, share_text
from ptxdsl.sim.machine.waiting import (
    Alike,
    Waiting,
    alike_ones,
    all_waiting,
    divergent,
    lack_text,
    place,
    short_name,
    what_text,
)
from ptxdsl.sim.machine.waits import GATHER, POLL, WHOLE, lanes_text
from ptxdsl.sim.machine.warp import Warp
from ptxdsl.sim.machine.who import Entity, entities_text, plural

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine

MOST_NOTES = 12
MOST_UNREACHED = 3  # notes of arrivals that were never executed
_MEETINGS = (WHOLE, GATHER)
_OTHER_SIDE = {"producer_mbar": ".release", "consumer_mbar": ".commit"}  # methods that arrive there
_BRINGS = ("mbarrier.arrive", "mbarrier.arrive_drop", "cp.async.mbarrier.arrive", "tcgen05.commit")


def report(machine: Machine) -> Diagnostic:
    """The diagnostic: E1180 where lanes of a warp wait for one another at different places, else E1190."""
    if machine.host_turns is not None:
        machine.host_turns.take_in()
    waiting = list(all_waiting(machine))
    for warp in dict.fromkeys(w.entity for w in waiting if isinstance(w.entity, Warp)):
        if all(b.kind in _MEETINGS for b in warp.waits) and warp.waits:
            return divergent(machine, warp)
    kernel = machine.program.kernel.name
    if not waiting:  # lanes that neither run nor wait
        return Diagnostic(DEADLOCK, f"deadlock in kernel '{kernel}'")
    return Report(machine, waiting).diagnostic()


class Report:
    def __init__(self, machine: Machine, waiting: list[Waiting]) -> None:
        self.machine = machine
        self.places = machine.places
        self.alone = machine.cta_count == 1
        self.waiting = waiting
        self.of_entity: dict[Entity, list[Waiting]] = {}
        for one in waiting:
            self.of_entity.setdefault(one.entity, []).append(one)
        self.told: set[object] = set()

    def diagnostic(self) -> Diagnostic:
        # First those whose wait says most of the cause.
        groups = sorted(alike_ones(self.waiting), key=self._rank)
        main = groups[0]
        notes: list[Note] = []
        message = ""
        for group in groups:
            first = group.first
            known = self._key(first) in self.told
            words, about = ("", []) if known else (self._nobody(first), list(self._about(first, group is main)))
            if group is main:
                message = f"{self._who(group)} for {what_text(first)}{words}"
            else:
                notes.append(
                    (self.places.span(first.instruction), f"{self._who(group)} here for {what_text(first)}{words}")
                )
            notes += about
        if len(notes) > MOST_NOTES:
            left = len(notes) - MOST_NOTES + 1
            notes[MOST_NOTES - 1 :] = [
                (notes[MOST_NOTES - 1][0], f"and {left} more such notes, the first of them here")
            ]
        return Diagnostic(
            DEADLOCK,
            f"deadlock in kernel '{self.machine.program.kernel.name}': {message}",
            self.places.span(main.first.instruction),
            tuple(notes),
            "\n".join(self._help(main)) or None,
        )

    def _rank(self, group: Alike) -> tuple[bool, bool, bool, bool, int, tuple[int, int]]:
        first = group.first
        only_symptom = self._alive(first)
        consistent = not isinstance(first.waits.key, Barrier) or not _inconsistent(first.waits.key)
        few = len(group.members)  # the odd one out says more than the many that wait for him at a barrier
        return (
            isinstance(first.entity, AgentEntity), first.kind in (POLL, *_MEETINGS), consistent, only_symptom, few,
            place(first),
        )  # fmt: skip

    def _alive(self, one: Waiting) -> bool:
        """Whether somebody is left who could still end a wait, if only he came on."""
        return any(server in self.of_entity for server in self._missing(one))

    def _help(self, main: Alike) -> Iterable[str]:
        barrier = main.first.waits.key
        if isinstance(barrier, Barrier) and (_inconsistent(barrier) or not self._alive(main.first)):
            yield from _verdict(barrier, self._exited(main.first, barrier))
        if isinstance(barrier, Barrier) and isinstance(main.first.entity, Warp):
            yield from self._left_behind(main.first.entity, barrier)
        cycle = find_cycle(self._edges())
        if cycle is not None:
            yield "the cycle: " + "; ".join(
                f"{entities_text([one], self.alone)} waits for {entities_text([other], self.alone)} at {what}"
                for one, what, other in cycle
            )
        machine = self.machine
        if machine.next_cluster < machine.cluster_count:
            left = (machine.cluster_count - machine.next_cluster) * machine.cluster_size
            yield f"{left} of {machine.cta_count} CTAs have not been started"

    def _left_behind(self, warp: Warp, barrier: Barrier) -> Iterable[str]:
        """A warp for which phases have passed unseen: a parity tells only two phases in a row apart."""
        last = barrier.last_seen_by(warp)
        if barrier.phase - last > 2:
            yield (
                f"phases {last + 1} to {barrier.phase - 1} of {barrier.name} were completed before "
                f"{entities_text([warp], self.alone)} waited for the first of them: now its wait means phase "
                f"{barrier.phase}; a stage was released, or a phase completed, without it"
            )

    def _exited(self, one: Waiting, barrier: Barrier) -> str:
        """Warps of the CTA that have never come to a barrier and will not."""
        touched = self.machine.touches.get(barrier, {})
        warps = [w for w in one.entity.cta.warps if not w.live and w not in touched]
        return f"{entities_text(warps, True)} {'have' if plural(warps) else 'has'} exited" if warps else ""

    def _edges(self) -> dict[Entity, list[tuple[Entity, str]]]:
        edges: dict[Entity, list[tuple[Entity, str]]] = {}
        for one in self.waiting:
            edges.setdefault(one.entity, []).extend(
                (server, short_name(one.waits)) for server in self._missing(one) if server is not one.entity
            )
        return edges

    # Who has to come

    def _missing(self, one: Waiting) -> list[Entity]:
        """Those who have to do something before a wait can end, as far as that is known."""
        waits = one.waits
        if waits.by is not None:
            found = [self._entity_of(by) for by in waits.by]
            return [by for by in found if by is not None]
        if waits.key is None:
            return []
        touched = self.machine.touches.get(waits.key)
        if touched is None:
            like: list[Entity] = [entity for _, by in self._siblings(one) for entity in by]
            return list(dict.fromkeys(like)) or self._others(one)
        return [warp for warp in touched if not self._has_come(warp, waits.key)]

    def _entity_of(self, one: object) -> Entity | None:
        """The schedule's entity of an agent."""
        if isinstance(one, Warp | AgentEntity):
            return one
        return next((e for e in self.of_entity if isinstance(e, AgentEntity) and e.agent is one), None)

    def _has_come(self, warp: Warp, key: object) -> bool:
        """Whether a warp that serves a barrier has done in this phase what it had to: as much as in the phase before,
        as far as can be seen. One that waits for the barrier itself has, too."""
        own = self.of_entity.get(warp, [])
        if own and not warp.live & ~warp.blocked and all(w.waits.key is key for w in own):
            return True
        if not isinstance(key, Barrier):
            return False
        now = key.ledger.arrivals_of(warp)
        return now > 0 and (key.before is None or now >= key.before.arrivals_of(warp))

    def _siblings(self, one: Waiting) -> list[tuple[str, dict[Warp, Instruction]]]:
        """Of an mbarrier of a RolePipeline those of its side to which somebody has come: by name, who and where."""
        key = one.waits.key
        if not isinstance(key, Barrier) or not key.side:
            return []
        like = [b for b in key.table.live.values() if b.side == key.side and b is not key and b.rank == key.rank]
        touches = self.machine.touches
        return [(b.place, touches[b]) for b in like if b in touches]

    def _others(self, one: Waiting) -> list[Entity]:
        """If nobody has come so far: those of the same CTA that wait too, for something else."""
        cta, key = one.entity.cta, one.waits.key
        entities = {w.entity: None for w in self.waiting if w.entity.cta is cta and w.waits.key is not key}
        entities.pop(one.entity, None)
        return list(entities)

    # Why they do not come

    def _key(self, one: Waiting) -> object:
        return one.waits.key if one.waits.key is not None else one.waits.by

    def _nobody(self, one: Waiting) -> str:
        """To follow what is said of a wait: who is known to be missing, or that nobody has come yet."""
        waits = one.waits
        if waits.by is not None:
            missing = [entity for entity in self._missing(one) if entity is not one.entity]
            return f"; {entities_text(missing, self.alone)} {lack_text(missing, waits)}" if missing else ""
        if waits.key is None or self.machine.touches.get(waits.key):
            return ""
        if self._missing(one):
            return "; no thread has come to it so far"
        others = [w for w in one.entity.cta.warps if w is not one.entity and not w.live]
        left = f": {entities_text(others, True)} {'have' if plural(others) else 'has'} exited" if others else ""
        return f"; no thread has come to it so far, and nobody is left who could{left}"

    def _about(self, one: Waiting, main: bool) -> Iterable[Note]:
        """Who has come to what somebody waits for, who has not, and why; once."""
        waits, key = one.waits, self._key(one)
        if key is None:
            return
        self.told.add(key)
        touched = self.machine.touches.get(key, {})
        name, when = short_name(waits), ""
        if isinstance(key, Barrier):
            if key.ledger.shares:
                yield self.places.span(key.origin), origin_text(key)
            yield from self._shares(one, key)
            touched = {w: i for w, i in touched.items() if not any(w in s.by for s in key.ledger.shares.values())}
            when = f", not in phase {key.phase}"
        there: dict[tuple[Instruction, str], list[Entity]] = {}
        # Of a cluster's only barrier it says nothing that somebody came to it at another time.
        for entity in self._missing(one) if waits.what != "cluster barrier" else ():
            at = touched.get(entity) if isinstance(entity, Warp) else None
            if at is not None:
                there.setdefault((at, self._now([entity], one)), []).append(entity)
        for (at, _), alike in there.items():
            who, now = entities_text(alike, self.alone), self._now(alike, one)
            yield self.places.span(at), f"{who} came to {name} here before{when}; {now}"
        if main and isinstance(key, Barrier):
            yield from self._elsewhere(one)
            if key.pending and (not touched or not self._alive(one)):
                yield from self._unreached(key)

    def _shares(self, one: Waiting, barrier: Barrier) -> Iterable[Note]:
        """What has come in the phase under way, and where those are now who brought it."""
        for share in barrier.ledger.shares.values():
            text = share_text(barrier, share, barrier.phase, self.alone)
            warps = [entity for entity in share.by if isinstance(entity, Warp)]
            yield self.places.span(share.origin), f"{text}; {self._now(warps, one)}" if warps else text

    def _now(self, entities: Sequence[Entity], one: Waiting) -> str:
        """``now it waits for X in line 3``, ``they have exited``; of several, what most of them do. one: the wait in
        question."""
        it, has, waits = ("they", "have", "wait") if plural(entities) else ("it", "has", "waits")
        texts: dict[str, int] = {}
        for entity in entities:
            own = self.of_entity.get(entity)
            if own:
                text = f"now {it} {waits} for " + " and ".join(
                    dict.fromkeys(f"{short_name(w.waits)} {self._line(w.instruction, one.instruction)}" for w in own)
                )
            elif isinstance(entity, AgentEntity):
                text = f"{it} {has} done that"
            else:
                text = f"{it} {has} exited" + ("" if entity.cta.live_warps else ", as the whole CTA")
            texts[text] = texts.get(text, 0) + 1
        first, *others = sorted(texts, key=lambda text: -texts[text])
        return first + (" (or elsewhere)" if others else "")

    def _elsewhere(self, one: Waiting) -> Iterable[Note]:
        """Those who have come to another mbarrier of the same side, if nobody has come to this one."""
        if self.machine.touches.get(one.waits.key):
            return
        there: dict[tuple[int, int], tuple[Instruction, list[Entity], list[str]]] = {}
        for name, by in self._siblings(one):
            for entity, at in by.items():
                span = self.places.span(at)
                _, entities, names = there.setdefault((span.start, span.end), (at, [], []))
                entities.append(entity)
                names.append(name)
        for at, entities, names in there.values():
            yield (
                self.places.span(at),
                f"{entities_text(entities, self.alone)} came here to {names[0]}; {self._now(entities, one)}",
            )

    def _line(self, instruction: Instruction, near: Instruction) -> str:
        there, here = self.places.span(instruction), self.places.span(near)
        return f"in line {there.line}" if there.source is here.source else f"at {self.places.line_text(instruction)}"

    def _unreached(self, barrier: Barrier) -> Iterable[Note]:
        """The source's arrivals that nobody has executed: the one that is missed may be among them."""
        executed: dict[tuple[int, int], bool] = {}
        spans = {}
        for site in self.machine.sites:
            if site.handler is None or not site.instruction.opcode.startswith(_BRINGS):
                continue
            span = self.places.span(site.instruction)
            if barrier.side and _OTHER_SIDE[barrier.side] in span.text:
                continue
            where = (span.start, span.end)
            executed[where] = executed.get(where, False) or site.executed
            spans[where] = span
        unreached = [spans[where] for where, reached in executed.items() if not reached]
        for span in unreached[:MOST_UNREACHED]:
            yield span, "no thread has executed this arrival so far"

    # Words

    def _who(self, group: Alike) -> str:
        """``warps 4-7 wait``, ``warp 1, lanes 0-3 of CTA (1, 0, 0) waits``."""
        entities = [member.entity for member in group.members]
        first = group.first
        who = entities_text(entities, self.alone)
        if isinstance(first.entity, Warp) and len(entities) == 1 and first.lanes != first.entity.live:
            who = f"{lanes_text(first.lanes)} of {who}"
        lanes = first.lanes.bit_count() if who.startswith("lane") else 1
        several = isinstance(first.entity, Warp) and (plural(entities) or lanes > 1)
        return f"{who} {'wait' if several else 'waits'}"


def _inconsistent(barrier: Barrier) -> bool:
    """Whether no arrival can help any more: bytes are missing or too many."""
    return barrier.tx < 0 or (not barrier.pending and barrier.tx != 0)


def _verdict(barrier: Barrier, exited: str) -> Iterable[str]:
    """What is wrong with a barrier to which nobody comes any more. exited: who has done so without an arrival on it."""
    got = barrier.ledger
    if barrier.pending and barrier.phase == 0 and got.arrivals:
        gets = f"{barrier.name} counts {barrier.expected} arrivals per phase and gets {got.arrivals}"
        if exited:
            yield f"{gets}; {exited} without arriving on it"
        else:
            yield f"{gets}: initialise it with the number of arrivals that come, or let the missing ones come"
    if barrier.tx > 0 and not barrier.pending:
        yield (
            f"all arrivals have come to {barrier.name}, but {got.came} of {got.expected} expected bytes: expect as "
            "many as the copies bring, on every path"
        )
    if barrier.seen < barrier.phase - 1:
        last = barrier.phase - 1
        yield (
            f"phase {last} of {barrier.name} is complete and nobody has waited for it, with parity {last & 1}: is the "
            "parity of this wait right?"
        )
    if barrier.tx < 0:
        yield (
            f"{barrier.name} got {got.came} bytes and expects {got.expected}: expect as many as the copies bring, in "
            "every CTA where they arrive"
        )
