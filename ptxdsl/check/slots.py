"""Slots: accesses to shared memory, each ordered with whatever touches the same bytes.

An access is an event of its site, agent and bytes. Before it happens, everything that conflicts with it (the same
bytes, one of both writes, not the same threads in program order) must be known to the agent: it happened before in
every schedule. Where it is not, the two race, and what is missing between them says which class of fault it is:

* the access is outside the bracket of its role (after the commit, after the release): it comes too late;
* it is on another stage than the one that its role holds: a stale index;
* the reader does not wait for the writer: read before full; the writer does not wait for the reader: overwritten;
* the other one is asynchronous and its own thread has not waited for it: undrained.

Threads' own accesses that the async proxy must see, or may overwrite, need a proxy fence on the way as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ptxdsl.check.addresses import BEYOND, WITHIN, Part
from ptxdsl.check.brackets import describe
from ptxdsl.check.cluster import Apart
from ptxdsl.check.context import Context
from ptxdsl.check.expressions import Environment
from ptxdsl.check.findings import Fault, Unproved
from ptxdsl.check.guards import Guard
from ptxdsl.check.held import overwritten
from ptxdsl.check.intervals import Intervals, Places, by_one_thread, merged, written_twice
from ptxdsl.check.layout import SHARED_BYTES
from ptxdsl.check.parts import Agent, Touch
from ptxdsl.check.program import Step
from ptxdsl.check.states import State
from ptxdsl.check.supposed import INSIDE
from ptxdsl.check.threads import Mask
from ptxdsl.check.written import clash, suppose
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import ARRAY_SHIFT, CTA_SHIFT, TENSOR, TENSOR_GROUP
from ptxdsl.protocol.model import Array, Written

_AT = (1 << CTA_SHIFT) - 1


def _blame() -> Any:
    from ptxdsl.check import blame_slots  # where there is a fault

    return blame_slots


def touches_of(
    step: Step,
    parts: list[Part],
    context: Context,
    agent: Agent,
    env: Environment,
    *,
    writes: bool,
    mask: Mask,
    atomic: bool = False,
    asynchronous: bool = False,
    cta: int | None = None,
    pipe: bool = False,
    grouped: bool = False,
    together: bool = False,
    bounded: bool = False,
    when: Guard | None = None,
    path: Any = None,
) -> list[Touch]:
    """The events of accesses, one for each array. cta: whose memory it is where the address names none (None: own).

    bounded: to raise Unproved for what reaches out of its array; path: the decisions that lead here, to raise Fault for
    what is sure to do so.
    """
    own = agent.cta if cta is None else cta
    found = _pieces(parts, context, env, own, bounded, path if when is None else None)
    numbers = (value for part in parts if type(value := part.slot(env)) is int)
    slot = next((number for number in numbers if number < 1 << ARRAY_SHIFT), None)  # more is an address
    elsewhere = _elsewhere(parts, context, env, own, bounded, found)
    made = []
    for (array, at_cta), pieces in found.items():
        touch = context.touch(
            step,
            agent,
            array,
            at_cta,
            pieces.intervals,
            writes=writes,
            mask=mask,
            atomic=atomic,
            asynchronous=asynchronous,
            slot=slot,
            places=pieces.places,
            exact=not pieces.anywhere,
            pipe=pipe,
            grouped=grouped,
            together=together,
            when=when,
            certain=not pieces.anywhere and all(part.certain for part, *_ in pieces.parts),
            used=pieces.used,
            elsewhere=elsewhere.get((array, at_cta), ()),
            spans=tuple([part.span for part in pieces.all]),
            says=pieces.says if writes and not (atomic or asynchronous) else None,
        )
        if writes and not atomic and context.races and not touch.tensor:
            touch.clash = clash(context, touch, pieces.written)
            for part in pieces.unknown:
                suppose(context, part, env, mask, when)
        made.append(touch)
    return made


class _Pieces:
    """What an access touches of one array of one CTA. parts: each with its address and width; anywhere: bytes any of
    which it may be, where that is not known, by the parts ``unknown``. written: what is, by each of the others. used:
    whether it is certain that somebody looks at what is read."""

    def __init__(self) -> None:
        self.parts: list[tuple[Part, int, int]] = []
        self.written: list[tuple[Part, Written | None]] = []
        self.anywhere: list[Intervals] = []
        self.unknown: list[Part] = []
        self.used = True

    @property
    def intervals(self) -> Intervals:
        return merged([*([self.parts[0][0].all_bytes(self.parts)] if self.parts else []), *self.anywhere])

    @property
    def places(self) -> Places:
        return tuple([(part.lanes, at, width) for part, at, width in self.parts])

    @property
    def says(self) -> Written | None:
        """What one statement writes, and nothing else."""
        says = {written for _, written in self.written}
        return says.pop() if len(says) == 1 and not self.anywhere else None

    @property
    def all(self) -> list[Part]:
        return [*(part for part, *_ in self.parts), *self.unknown]

    def like(self, other: _Pieces) -> bool:
        """Whether as much is known of another block's."""
        own, theirs = ([(part.certain, width) for part, _, width in one.parts] for one in (self, other))
        return own == theirs and len(self.anywhere) == len(other.anywhere)


def _pieces(
    parts: list[Part], context: Context, env: Environment, own: int, bounded: bool, path: Any = None
) -> dict[tuple[Array | None, int], _Pieces]:
    """By array and CTA. own: whose memory it is where the address names none."""
    found: dict[tuple[Array | None, int], _Pieces] = {}
    for part in parts:
        width = part.bytes_of(env)
        addresses = part.addresses(env)
        if addresses is None or width is None:
            context.supposed.note(INSIDE, part.span)
            for where, whole in _somewhere(context, addresses[0] if addresses else part.root, own, part.ranked):
                pieces = found.setdefault(where, _Pieces())
                pieces.anywhere.append(whole)
                pieces.unknown.append(part)
                pieces.used = pieces.used and part.place.used
            continue
        least = part.least
        for number, address in enumerate(addresses):
            cta = part.cta(address, own, context.ctas, said=context.kernel.cluster is not None)
            first = address + least & _AT
            if context.untagged(first):
                first = context.tagged(first)
            at, array = first - least, context.array(first)
            if not _inside(context, array, at, part, width):
                if array is not None and array.bytes is not None:
                    if part.fixed:
                        raise Fault(_blame().beyond(array, at, part, width))
                    if path is not None and _is_of_a_ring(context, part):
                        raise Fault(_blame().beyond(array, at, part, width, path))
                if bounded or (array is not None and array.base & TENSOR):
                    raise Unproved(part.span, BEYOND, WITHIN)
            place = array, cta
            pieces = found[place] if place in found else found.setdefault(place, _Pieces())
            pieces.parts.append((part, at, width))
            pieces.used = pieces.used and part.place.used
            pieces.written.append((part, part.written[0 if part.spread else number]))
    return found


def _elsewhere(
    parts: list[Part],
    context: Context,
    env: Environment,
    own: int,
    bounded: bool,
    found: dict[tuple[Array | None, int], _Pieces],
) -> dict[tuple[Array | None, int], tuple[tuple[Intervals, Places], ...]]:
    """Intervals and places in the other blocks that the followed one stands for, where they are not the same.

    Raises Apart where those touch other arrays, as seen from each.
    """
    blocks = context.blocks
    made: dict[tuple[Array | None, int], list[tuple[Intervals, Places]]] = {}
    if blocks.count == 1 or not any(part.elsewhere or part.names_block(env) for part in parts):
        return {}
    for rank in range(1, blocks.count):
        others = _pieces([part.of(rank) for part in parts], context, env, blocks.rank(rank, own), bounded)
        there = {(array, blocks.place(rank, cta)): pieces for (array, cta), pieces in others.items()}
        if there.keys() != found.keys() or not all(pieces.like(found[where]) for where, pieces in there.items()):
            raise Apart
        for where, pieces in there.items():
            made.setdefault(where, []).append((pieces.intervals, pieces.places))
    return {
        where: tuple(others)
        for where, others in made.items()
        if any(other != (found[where].intervals, found[where].places) for other in others)
    }


def _is_of_a_ring(context: Context, part: Part) -> bool:
    """Whether an access that happens whenever a role comes to it is no further on after more turns: how many there are
    may be what keeps others within their arrays."""
    address = part.place.address
    if address is None or part.spread or not (part.certain and part.happens):
        return False
    rates = context.counters.rates(address)
    return -1 not in rates and all(growth == 0 for _, growth in rates.values())


def _inside(context: Context, array: Array | None, at: int, part: Part, width: int) -> bool:
    """Whether all threads' accesses lie in the array, which is that of the first of them."""
    if array is None:
        return False
    if array.base & TENSOR:
        groups, columns = divmod(array.bytes or 0, TENSOR_GROUP)  # the number of the last group of lanes
        offset, last = at - array.base, columns - width
        if (offset + part.most) // TENSOR_GROUP > groups:
            return False
        if part.lanes is None:
            return offset >= 0 and offset % TENSOR_GROUP <= last
        first, furthest = offset % TENSOR_GROUP, _furthest_column(part.lanes)
        if offset + part.least < 0 or first + furthest <= last:
            return offset + part.least >= 0
        return all((offset + lane) % TENSOR_GROUP <= last for lane in part.lanes)
    first, last = at + part.least, at + part.most + width
    return array.base <= first and last <= array.base + (SHARED_BYTES if array.bytes is None else array.bytes)


@lru_cache(256)
def _furthest_column(lanes: tuple[int, ...]) -> int:
    """Of what threads touch in tensor memory, from where the first of them does."""
    return max(lane % TENSOR_GROUP for lane in lanes)


def _somewhere(
    context: Context, root: int, own: int, ranked: bool
) -> Iterator[tuple[tuple[Array | None, int], Intervals]]:
    """All of the array that an address is derived from; where the text does not tell, of all arrays."""
    at = root & _AT
    known = context.array(at) if at >> ARRAY_SHIFT or at & TENSOR else None
    shared = [array for array in context.kernel.arrays if not array.base & TENSOR]
    for array in (known,) if known is not None else (*shared, None):
        base, size = (0, None) if array is None else (array.base, array.bytes)
        for cta in range(context.ctas) if ranked or root >> CTA_SHIFT else (own,):
            yield (array, cta), ((base, base + (SHARED_BYTES if size is None else size)),)


def check(context: Context, state: State, agent: Agent, touch: Touch, mask: Mask, *, fenced: bool = True) -> None:
    """Raises Fault where something that conflicts with a touch is not known to have happened before.

    fenced: of tensor memory, whether that takes the fences of tcgen05.
    """
    for barrier in context.under(touch):
        if state.phases[barrier.number].expected:
            raise _blame().over_barrier(context, state, agent, touch, barrier)
    if touch.writes and state.held:
        overwritten(state, touch)
    if not context.races:
        return
    if touch.clash is not None:
        raise _blame().written_at_once(state, touch)
    number = agent.number
    known = state.known[number] & ~context.hidden(state, agent, mask)
    missing = touch.conflicts & state.live & ~known
    own = state.fresh[number]
    if own:
        missing |= touch.across & own | touch.within & own & ~state.met[number]
    if missing:
        raise _blame().race(context, state, agent, touch, missing)
    if touch.writes:
        state.fill.write(context, touch)
    else:
        state.fill.read(context, state, agent, touch)
    if touch.tensor:
        unseen = touch.conflicts & state.live & ~state.fenced[number] if fenced else 0
        while unseen:
            bit = unseen & -unseen
            unseen ^= bit
            if bit not in context.touches or context.touches[bit].agent != number:  # another one's, or another block's
                raise _blame().unordered_tensor(context, state, agent, touch, bit)
        return
    if touch.asynchronous and not touch.bit & context.plain:
        unseen = touch.conflicts & state.live & context.plain & ~state.proxied[number]
        if unseen:
            raise _blame().unfenced(context, state, agent, touch, unseen)


class Access(Step):
    """Reads or writes of an agent's threads between two other steps, in any order."""

    def __init__(self, parts: list[Part], writes: bool, atomic: bool, when: Guard | None = None) -> None:
        """when: of whom it is known that they do it."""
        super().__init__(parts[0].span)
        self.when = when
        self.parts = parts
        self.writes = writes
        self.atomic = atomic
        turning = {v for part in parts for v, _ in part.spread}
        self.variables = tuple(sorted(frozenset[int]().union(*(part.variables for part in parts)) - turning))
        self._known: dict[tuple[object, ...], list[Touch]] = {}

    def touches(self, context: Context, state: State, agent: Agent) -> list[Touch]:
        env = state.environments[agent.number]
        key = tuple([env[v] for v in self.variables])
        found = self._known.get(key)
        if found is None:
            found = touches_of(
                self,
                self.parts,
                context,
                agent,
                env,
                writes=self.writes,
                mask=self.mask,
                atomic=self.atomic,
                bounded=True,
                when=self.when,
                path=None if context.coarse else state.path,
            )
            for touch in found:
                if self.writes and not self.atomic and context.races:
                    self._written_once(state, agent, touch)
                describe(context, state, agent, touch)
            self._known[key] = found
        return found

    @staticmethod
    def _written_once(state: State, agent: Agent, touch: Touch) -> None:
        """Raises Fault where threads write the same byte at different places of the step, and in no order."""
        for form in (touch, *touch.elsewhere):
            twice = written_twice(form.form) if form.exact else None
            if not form.exact and len(form.spans) > 1 and not by_one_thread(form.form):
                raise _blame().inexact(form)
            if twice is not None:
                first, second, across = twice
                raise _blame().unordered_writes(state, agent, touch, form.spans[first], form.spans[second], across)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        found = self.touches(context, state, agent)
        bits = begin(context, state, agent, found, self.mask)
        happen(context, state, agent.number, bits)
        return self.number + 1


def begin(context: Context, state: State, agent: Agent, touches: list[Touch], mask: Mask) -> int:
    """Checks what threads touch; gives the events. In the other blocks that do the same at once they happen before they
    are looked at here."""
    bits = 0
    for touch in touches:
        bits |= touch.bit
    context.happens_elsewhere(state, bits)
    for touch in touches:
        check(context, state, agent, touch, mask)
        state.count(touch)
    return bits


def happen(context: Context, state: State, number: int, bits: int) -> None:
    """Accesses of an agent's own threads: known to them, and anew to all others."""
    everywhere = context.blocks.everywhere(bits)
    keep = context.events ^ everywhere
    state.known = [k & keep for k in state.known]
    if context.proxies:
        state.proxied = [k & keep for k in state.proxied]
    state.known[number] |= bits
    state.live |= everywhere
    state.fresh[number] |= bits
    state.met[number] &= keep
