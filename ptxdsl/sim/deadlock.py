"""The report of a deadlock: who waits where and for what, who could still come and why he does not, and the cycle.

All from what each blocked group and agent says of itself (``host.WaitsFor``) and from who has served which barrier.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.ptx.module import Instruction
from ptxdsl.record import dataclass, field
from ptxdsl.sim.cta import AgentEntity, Warp
from ptxdsl.sim.faults import DEADLOCK, DIVERGENT, Note, cta_text
from ptxdsl.sim.host import WaitsFor
from ptxdsl.sim.waits import GATHER, POLL, WHOLE, Blocked, lanes_text

if TYPE_CHECKING:
    from ptxdsl.sim.machine import Machine

Entity = Warp | AgentEntity

MOST_NOTES = 12
_MEETINGS = (WHOLE, GATHER)


@dataclass(slots=True, eq=False)
class Waiting:
    """One group or agent that waits. lanes: 0 of an agent."""

    entity: Entity
    lanes: int
    instruction: Instruction
    waits: WaitsFor
    kind: str


@dataclass(slots=True, eq=False)
class Alike:
    """Those that wait at one instruction for the same."""

    first: Waiting
    members: list[Waiting] = field(default_factory=list)


def report(machine: Machine) -> Diagnostic:
    """The diagnostic: E1180 where lanes of a warp wait for one another at different places, else E1190."""
    waiting = list(_waiting(machine))
    for warp in {w.entity for w in waiting if isinstance(w.entity, Warp)}:
        if all(b.kind in _MEETINGS for b in warp.waits) and warp.waits:
            return _divergent(machine, warp)
    groups = _alike(waiting)
    # First those whose wait says most of the cause: not an agent, not a loop, not lanes that only wait for others.
    groups.sort(key=_rank)
    if not groups:  # lanes that neither run nor wait
        return Diagnostic(DEADLOCK, f"deadlock in kernel '{machine.program.kernel.name}'")
    places = machine.places
    notes: list[Note] = []
    told: set[object] = set()
    for group in groups:
        first = group.first
        if group is not groups[0]:
            notes.append((places.span(first.instruction), f"{_who(group)} {_verb(group)} here for {_what(first)}"))
        notes += _servers(machine, first, waiting, told)
    if len(notes) > MOST_NOTES:
        left = len(notes) - MOST_NOTES + 1
        notes[MOST_NOTES - 1 :] = [(notes[MOST_NOTES - 1][0], f"and {left} more such notes, the first of them here")]
    cycle = _cycle(machine, waiting)
    help = [f"the cycle: {cycle}"] if cycle else []
    if machine.next_cluster < machine.cluster_count:
        left = (machine.cluster_count - machine.next_cluster) * machine.cluster_size
        help.append(f"{left} of {machine.cta_count} CTAs have not been started")
    main = groups[0]
    message = f"deadlock in kernel '{machine.program.kernel.name}': {_who(main)} {_verb(main)} for {_what(main.first)}"
    return Diagnostic(DEADLOCK, message, places.span(main.first.instruction), tuple(notes), "\n".join(help) or None)


def _place(one: Waiting) -> tuple[int, int]:
    return one.entity.cta.linear, one.entity.index if isinstance(one.entity, Warp) else 0


def _rank(group: Alike) -> tuple[bool, bool, tuple[int, int]]:
    first = group.first
    return isinstance(first.entity, AgentEntity), first.kind in (POLL, *_MEETINGS), _place(first)


def _waiting(machine: Machine) -> Iterable[Waiting]:
    for cluster in machine.resident.values():
        for entity in cluster.blocked:
            if isinstance(entity, AgentEntity):
                yield Waiting(entity, 0, entity.agent.origin, entity.agent.describe(), "agent")
                continue
            for blocked in entity.waits:
                yield Waiting(
                    entity, blocked.mask, blocked.instruction, _describe(machine, entity, blocked), blocked.kind
                )


def _describe(machine: Machine, warp: Warp, blocked: Blocked) -> WaitsFor:
    if blocked.wait is not None:
        return blocked.wait.describe()
    if blocked.kind == POLL:
        return WaitsFor("memory", "", "a loop that reads the same again and again, and nobody writes any more")
    if blocked.kind == GATHER:
        missing = blocked.members & warp.live & ~blocked.mask
        return WaitsFor("lanes", lanes_text(missing).partition(" ")[2], "named in its member mask", by=(warp,))
    return WaitsFor(
        "lanes", lanes_text(warp.live & ~blocked.mask).partition(" ")[2], "as it needs the whole warp", by=(warp,)
    )


def _divergent(machine: Machine, warp: Warp) -> Diagnostic:
    first, *others = warp.waits
    missing = (first.members & warp.live if first.kind == GATHER else warp.live) & ~first.mask
    needs = f"names {lanes_text(first.members)}" if first.kind == GATHER else "needs all lanes of its warp"
    notes = [
        (machine.places.span(other.instruction), f"{lanes_text(other.mask)} wait at this '{other.instruction.opcode}'")
        for other in others
    ]
    return machine.places.diagnostic(
        DIVERGENT,
        f"'{first.instruction.opcode}' {needs}, but {lanes_text(missing)} will never come",
        first.instruction,
        warp,
        first.mask,
        "let all lanes reach the same instruction: move it out of the branch",
        tuple(notes),
    )


def _alike(waiting: list[Waiting]) -> list[Alike]:
    groups: dict[object, Alike] = {}
    for one in sorted(waiting, key=_place):
        waits = one.waits
        key = (one.instruction.line, waits.what, waits.place, waits.parity, waits.state, one.entity.unit)
        groups.setdefault(key, Alike(one)).members.append(one)
    return list(groups.values())


def _who(group: Alike) -> str:
    """``warps 4-7 of CTA (0, 0, 0)``, ``warp 1, lanes 0-3 of CTA …``, ``… and in 3 more CTAs``."""
    first = group.first
    cta = first.entity.cta
    if isinstance(first.entity, AgentEntity):
        here = f"{first.entity.unit} work of {cta_text(cta)}"
    else:
        indices = sorted({m.entity.index for m in group.members if m.entity.cta is cta and isinstance(m.entity, Warp)})
        lanes = "" if first.lanes == first.entity.live or len(indices) > 1 else f", {lanes_text(first.lanes)}"
        here = f"{_numbers('warp', indices)}{lanes} of {cta_text(cta)}"
    others = len({m.entity.cta for m in group.members}) - 1
    return here + (f" (and the same in {others} more CTA{'' if others == 1 else 's'})" if others else "")


def _numbers(noun: str, numbers: list[int]) -> str:
    mask = sum(1 << n for n in numbers)
    text = lanes_text(mask) if mask >> 32 == 0 else f"lanes {numbers[0]}-{numbers[-1]}"
    if text == "all lanes":
        text = "lanes 0-31"
    return noun + ("s " if len(numbers) > 1 else " ") + text.partition(" ")[2]


def _verb(group: Alike) -> str:
    if isinstance(group.first.entity, AgentEntity):
        return "waits"
    return "wait" if len({m.entity for m in group.members}) > 1 else "waits"


def _what(one: Waiting) -> str:
    waits = one.waits
    parity = f", parity {waits.parity}" if waits.parity is not None else ""
    state = f": {waits.state}" if waits.state else ""
    return f"{waits.what} {waits.place}".strip() + parity + state


def _entity_of(machine: Machine, one: object) -> object:
    """The schedule's entity of an agent."""
    if isinstance(one, Warp | AgentEntity):
        return one
    for cluster in machine.resident.values():
        for entity in cluster.blocked:
            if isinstance(entity, AgentEntity) and entity.agent is one:
                return entity
    return None


def _serves(machine: Machine, one: Waiting, waiting: list[Waiting]) -> list[Entity]:
    """Those who have to do something before a wait can end, as far as that is known."""
    waits = one.waits
    if waits.by is not None:
        found = [_entity_of(machine, by) for by in waits.by]
        return [by for by in found if isinstance(by, Warp | AgentEntity)]
    touched = machine.touches.get(waits.key)
    if touched is None:
        return _others(waiting, one) if waits.key is not None else []
    # One that waits for the barrier itself has done what it had to.
    return [warp for warp in touched if waits.key not in _waits_of(warp)]


def _others(waiting: list[Waiting], one: Waiting) -> list[Entity]:
    """If nobody has come so far: those of the same CTA that wait too, for something else."""
    entities = {w.entity: None for w in waiting if w.entity.cta is one.entity.cta and w.waits.key is not one.waits.key}
    entities.pop(one.entity, None)
    return list(entities)


def _waits_of(warp: Warp) -> set[object]:
    """What all living lanes of a warp wait for."""
    if warp.live & ~warp.blocked:
        return set()
    return {blocked.wait.describe().key for blocked in warp.waits if blocked.wait is not None}


def _servers(machine: Machine, one: Waiting, waiting: list[Waiting], told: set[object]) -> Iterable[Note]:
    """Who else touches what is waited for, and why they do not come."""
    waits = one.waits
    key = waits.key if waits.key is not None else waits.by
    if key is None or key in told:
        return
    told.add(key)
    places = machine.places
    here = places.span(one.instruction)
    servers = _serves(machine, one, waiting)
    arrivals = machine.touches.get(waits.key, {}) if waits.key is not None else {}
    there: dict[tuple[int, str], list[Entity]] = {}  # by the line of the arrival, 0 if there was none, and the reason
    for server in servers:
        origin = arrivals.get(server) if isinstance(server, Warp) else None
        line = origin.line if origin is not None else 0
        there.setdefault((line, _why_not(machine, server, waiting)), []).append(server)
    words = []
    if waits.by is None and not arrivals:
        words.append("no thread has arrived on it so far" + ("" if servers else ", and nobody is left who could"))
    elif waits.by is None and not servers:
        words.append("all that arrived on it before wait here too")
    for (line, reason), alike in there.items():
        names = _names(alike)
        if line:
            origin = arrivals[alike[0]]  # type: ignore[index]
            yield places.span(origin), f"{names} arrived on it here before; {reason}"
        else:
            words.append(f"{names} {'has' if len(alike) == 1 else 'have'} not come: {reason}")
    if words:
        yield here, "; ".join(words)


def _names(entities: list[Entity]) -> str:
    cta = entities[0].cta
    if all(isinstance(e, Warp) and e.cta is cta for e in entities):
        return f"{_numbers('warp', sorted(e.index for e in entities if isinstance(e, Warp)))} of {cta_text(cta)}"
    first = entities[0]
    name = f"warp {first.index} of {cta_text(cta)}" if isinstance(first, Warp) else f"{first.unit} of {cta_text(cta)}"
    return name + (f" (and {len(entities) - 1} more)" if len(entities) > 1 else "")


def _why_not(machine: Machine, entity: Entity, waiting: list[Waiting]) -> str:
    if isinstance(entity, Warp) and not entity.live:
        return "it has exited" if entity.cta.live_warps else "it has exited, as its whole CTA"
    own = [w for w in waiting if w.entity is entity]
    if not own:
        return "it is done" if isinstance(entity, AgentEntity) else "it has exited"
    return " and ".join(
        f"it waits for {f'{w.waits.what} {w.waits.place}'.strip()} at {machine.places.line_text(w.instruction)}"
        for w in own
    )


def _cycle(machine: Machine, waiting: list[Waiting]) -> str | None:
    """A way from a waiting entity over those that it waits for back to itself, in words."""
    edges: dict[Entity, list[tuple[Entity, str]]] = {}
    for one in waiting:
        what = f"{one.waits.what} {one.waits.place}".strip()
        edges.setdefault(one.entity, []).extend(
            (server, what) for server in _serves(machine, one, waiting) if server is not one.entity
        )
    done: set[Entity] = set()
    for start in sorted(edges, key=lambda entity: (entity.cta.linear, entity.name)):
        path: list[tuple[Entity, str]] = []
        found = _search(start, edges, done, path, set())
        if found is not None:
            return found
    return None


def _search(
    start: Entity,
    edges: dict[Entity, list[tuple[Entity, str]]],
    done: set[Entity],
    path: list[tuple[Entity, str]],
    on_path: set[Entity],
) -> str | None:
    """Depth first without recursion: a grid may have ten thousand CTAs in a chain."""
    stack = [(start, iter(edges.get(start, ())))]
    on_path.add(start)
    while stack:
        entity, following = stack[-1]
        step = next(following, None)
        if step is None:
            stack.pop()
            on_path.discard(entity)
            done.add(entity)
            if path:
                path.pop()
            continue
        target, what = step
        if target in on_path:
            path.append((entity, what))
            begin = next(i for i, (e, _) in enumerate(path) if e is target)
            loop = path[begin:]
            after = [*(e.name for e, _ in loop[1:]), target.name]
            return "; ".join(f"{e.name} waits for {w}, which {n} serves" for (e, w), n in zip(loop, after, strict=True))
        if target in done or target not in edges:
            continue
        path.append((entity, what))
        on_path.add(target)
        stack.append((target, iter(edges.get(target, ()))))
    return None
