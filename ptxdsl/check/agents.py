"""Which threads go the same way through a kernel: the agents of a proof.

An agent is a set of threads that take the same branches wherever they may wait. It is found by halving: all threads are
one agent, and a branch (or a loop) that sends some of them one way, by their thread ids, splits it in two if there is
something in its arms that a thread may wait for, or if it sends whole warps to do different things. Branches without
such, as ``if lane == 0: arrive``, stay inside one agent; their operations are those of a part of its threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from ptxdsl.check import own_groups
from ptxdsl.check.contents import WAITS, contents
from ptxdsl.check.threads import WARP, Block, Mask, warps, whole_warps
from ptxdsl.effects import Kind
from ptxdsl.protocol.algebra import substitute
from ptxdsl.protocol.expressions import Expr, const
from ptxdsl.protocol.model import (
    Assign,
    Branch,
    Jump,
    Kernel,
    Loop,
    Node,
    Op,
    Return,
    Seq,
    expressions_of,
    walk,
)
from ptxdsl.source import Span

# More agents than this are no roles: a kernel where every thread waits for something of its own.
MAX_AGENTS = 40

# A condition of thread ids and unknown values that sends threads more ways than this may differ within each warp.
_FEW = 16

# Collectives of a warp that order memory as well; others make lanes wait for one another (PTX ISA, bar.warp.sync; CUDA
# C++ Programming Guide, "Warp Vote Functions": "these intrinsics do not imply a memory barrier").
ORDERING = frozenset({"warp_sync", "bar.warp.sync"})

_COLLECTIVE = frozenset({Kind.CTA_SYNC, Kind.NAMED_SYNC, Kind.NAMED_ARRIVE, Kind.CLUSTER_ARRIVE, Kind.CLUSTER_WAIT})

# What tells a barrier of what its threads have done.
_ARRIVALS = frozenset({Kind.BAR_ARRIVE, Kind.BAR_EXPECT, Kind.COMMIT, Kind.ASYNC_COPY})

_GUARD = "let all threads stay until the last barrier, and guard the accesses in place of the return: `if i < n:`"
_TURNS = "let all threads make the same number of turns, and guard the accesses of those with less to do: `if i < n:`"


class TooManyAgents(Exception):
    """span, why, remedy: of what makes them so many, where that can be told."""

    def __init__(self, span: Span | None = None, why: str = "", remedy: str = "") -> None:
        super().__init__()
        self.span = span
        self.why = why or f"threads go more than {MAX_AGENTS} different ways"
        self.remedy = remedy or "let threads that wait for different things be few roles, by branches on warps"


class Diverges(Exception):
    """A branch or loop that threads take as their ids and an unknown value say, before or around a collective."""

    def __init__(self, branch: Branch | Loop, collective: Op) -> None:
        super().__init__()
        self.branch = branch
        self.collective = collective


class Shape:
    """What of a program may wait, and which thread ids decide about it."""

    def __init__(self, kernel: Kernel, block: Block) -> None:
        self.kernel = kernel
        self.block = block
        self._contents = contents(kernel.program)
        self._read: dict[int, dict[int, int]] = {}
        self._parts: dict[Expr, tuple[Expr, ...]] = {}
        self._groups: dict[tuple[Expr, ...], list[Mask]] = {}
        self._assigned: dict[int, list[Expr]] = {}
        for node in kernel.nodes:
            if isinstance(node, Assign):
                for target, value in zip(node.targets, node.values, strict=True):
                    self._assigned.setdefault(target, []).append(value)
            elif isinstance(node, Loop) and node.range is not None:
                self._assigned.setdefault(node.range.index, []).append(node.range.start)

    @cached_property
    def arrive_apart(self) -> bool:
        """Whether threads arrive at barriers that their numbers tell."""
        arrivals = [node for node in self.kernel.nodes if isinstance(node, Op) and node.kind in _ARRIVALS]
        return any(self.parts(address) for op in arrivals for address in _barrier(op))

    def waits(self, node: Seq) -> bool:
        """Whether a thread may wait in a node, or leave it other than at its end."""
        there = self._contents[id(node)]
        return there.waits or there.leaves

    def acts(self, node: Seq | Loop) -> bool:
        """Whether there is more in a node than accesses to memory."""
        there = self._contents[id(node)]
        return there.acts or there.leaves

    def collects(self, node: Seq) -> bool:
        """Whether the lanes of a warp meet in a node."""
        return self._contents[id(node)].collects

    def leaves_behind(self, branch: Branch) -> bool:
        """Whether variables that an arm assigns are looked at outside of it: its threads have other values than the
        rest."""
        assigned = [self._contents[id(arm)].assigned for arm in (branch.then, branch.orelse)]
        if not any(assigned):
            return False
        if assigned[0] & assigned[1]:
            return True
        everywhere = self._reads(self.kernel.program)
        for arm, targets in zip((branch.then, branch.orelse), assigned, strict=True):
            inside = self._reads(arm) if targets else {}
            if any(everywhere.get(v, 0) > inside.get(v, 0) for v in targets):
                return True
        return False

    def _reads(self, node: Node) -> dict[int, int]:
        """How often expressions of a node look at each variable."""
        found = self._read.get(id(node))
        if found is None:
            found = self._read[id(node)] = {}
            for inner in walk(node):
                for expr in expressions_of(inner):
                    for v in expr.variables:
                        found[v] = found.get(v, 0) + 1
        return found

    def collective(self, branch: Branch) -> Op | None:
        """A collective in a branch, or behind one that some threads leave early. Raises TooManyAgents where threads
        return and others meet without them, as they may."""
        inside = walk(branch)
        for node in inside:
            if isinstance(node, Op) and node.kind in _COLLECTIVE:
                return node
        missed, behind = self._passed_over(branch, inside)
        for op in missed:
            if op.kind is Kind.WARP_SYNC and (op.mask is None or op.mask.value in (-1, 0xFFFFFFFF)):
                return op
        found = next((op for op in missed if op.kind in _COLLECTIVE), None)
        if found is not None and not any(op.kind in _COLLECTIVE for op in behind):
            why = f"threads return here as their numbers and other values say, and others meet at `{_name(found)}`"
            raise TooManyAgents(branch.span, f"{why} without them", _GUARD)
        return found

    def _passed_over(self, branch: Branch, inside: Sequence[Node]) -> tuple[list[Op], list[Op]]:
        """The operations to which threads do not come that leave by a branch, and those behind to which they do."""
        labels = {node.label for node in inside if isinstance(node, Jump)}
        nodes = self.kernel.nodes
        at = next(number for number, node in enumerate(nodes) if node is branch) + len(inside)
        end = len(nodes) if any(isinstance(node, Return) for node in inside) else at
        for number, node in enumerate(nodes[:at]):
            if isinstance(node, Loop) and node.label in labels:
                end = max(end, number + len(walk(node)))
                at = at if node.once else min(at, number)
        parts = nodes[at:end], nodes[end:]
        missed, behind = ([node for node in part if isinstance(node, Op)] for part in parts)
        return missed, behind

    def turns_differ(self, loop: Loop) -> None:
        """Looks at a loop whose range each thread has for itself. Raises Diverges or TooManyAgents where all threads
        must come to something in it."""
        found = next((n for n in walk(loop.body) if isinstance(n, Op) and n.kind in _COLLECTIVE), None)
        if found is None:
            return
        all_come = not any(isinstance(node, Return) for node in self.kernel.nodes[:-1])
        if all_come and loop in _at_top(self.kernel.program) and self._shown_to_differ(loop):
            raise Diverges(loop, found)
        why = "how often threads go round this loop is a matter of their numbers and of other values"
        raise TooManyAgents(loop.span, f"{why}, and all of them must come to `{_name(found)}` in it", _TURNS)

    def _shown_to_differ(self, loop: Loop) -> bool:
        """Whether some value of the kernel's parameters, the same for all of them, lets threads make unequal turns."""
        assert loop.range is not None
        ends = loop.range.start, loop.range.stop
        for number in (1, 2, 100):
            start, stop = (self.block.row(_where_all_are(number, end)) for end in ends)
            if start is None or stop is None:
                return False
            count = self.block.size
            starts, stops = (row if isinstance(row, list) else [row] * count for row in (start, stop))
            turns = {len(range(a, b, loop.range.step)) for a, b in zip(starts, stops, strict=True)}
            if len(turns) > 1:
                return True
        return False

    def parts(self, expr: Expr) -> tuple[Expr, ...]:
        """The largest parts of an expression, and of what its variables get, that are made of thread ids alone."""
        found = self._parts.get(expr)
        if found is None:
            parts: dict[Expr, None] = {}
            self._collect(expr, parts, set(), set())
            found = self._parts[expr] = tuple(parts)
        return found

    def _collect(self, expr: Expr, parts: dict[Expr, None], seen: set[int], done: set[Expr]) -> None:
        if expr in done:
            return
        done.add(expr)
        row = self.block.row(expr)
        if row is not None:
            if not isinstance(row, int):
                parts[expr] = None
            return
        if expr.op == "var" and expr.value not in seen:
            seen.add(expr.value)
            for value in self._assigned.get(expr.value, ()):
                self._collect(value, parts, seen, done)
        for arg in expr.args:
            self._collect(arg, parts, seen, done)

    def split(self, mask: Mask, exprs: tuple[Expr, ...]) -> list[Mask]:
        """The threads of a mask by what they have for each expression, in the order of their first threads."""
        groups = self._groups.get(exprs)
        if groups is None:
            rows = [row for expr in exprs if isinstance(row := self.block.row(expr), list)]
            found: dict[tuple[int, ...], int] = {}
            for t, key in enumerate(zip(*rows, strict=True)):
                found[key] = found.get(key, 0) | 1 << t
            groups = self._groups[exprs] = list(found.values())
        parts = [part for group in groups if (part := group & mask)]
        return sorted(parts, key=lambda part: part & -part) if groups else [mask]


def _at_top(node: Node) -> Iterator[Node]:
    """What every thread comes to that starts the kernel."""
    if isinstance(node, Seq):
        for inner in node.nodes:
            yield from _at_top(inner)
    else:
        yield node


def _where_all_are(number: int, expr: Expr) -> Expr:
    """An expression where every value that is the same for all threads is this one."""
    return substitute(expr, lambda e: const(number, e.bits) if e.op == "uniform" else None, {})


def _name(op: Op) -> str:
    return op.called


def agents(shape: Shape) -> list[Mask]:
    """The agents of a kernel as sets of threads. Raises TooManyAgents."""
    kernel, block = shape.kernel, shape.block
    pending, found = [block.all], []
    while pending:
        mask = pending.pop()
        parts = next(_splits(kernel.program, mask, shape), None) or own_groups.parted(kernel.program, mask, block)
        if parts is None:
            found.append(mask)
        else:
            pending.extend(parts)
        if len(pending) + len(found) > MAX_AGENTS:
            raise TooManyAgents
    if any(isinstance(n, Op) and n.name in ORDERING for n in kernel.nodes):
        found = [part for mask in found for part in _by_warps(mask, block.all)]
        if len(found) > MAX_AGENTS:
            raise TooManyAgents
    if any(isinstance(n, Op) and n.kind is Kind.BAR_WAIT for n in kernel.nodes):
        found = _of_same_warps(found, block.all)
        if len(found) > MAX_AGENTS:
            raise TooManyAgents
    return sorted(found, key=lambda mask: mask & -mask)


def _of_same_warps(masks: list[Mask], block: Mask) -> list[Mask]:
    """Agents of which two that have lanes in one warp have lanes in the same warps: where lanes of all of these meet,
    each of the two knows what the other has waited for."""
    found: list[Mask] = []
    pending = list(masks)
    while pending:
        mask = pending.pop()
        warps_of_it = whole_warps(mask, block)
        for other in (*pending, *found):
            warps_of_other = whole_warps(other, block)
            if warps_of_it & warps_of_other and warps_of_it & ~warps_of_other:
                pending += [mask & warps_of_other, mask & ~warps_of_other]
                break
        else:
            found.append(mask)
    return found


def _by_warps(mask: Mask, block: Mask) -> list[Mask]:
    """Parts of several warps, each of which meets the rest of its own warp."""
    if whole_warps(mask, block) == mask:
        return [mask]
    return [part for number in warps(mask) if (part := mask & 0xFFFFFFFF << WARP * number)]


def _splits(node: Node, mask: Mask, shape: Shape) -> Iterator[list[Mask]]:
    """Ways in which the threads of a mask part."""
    if isinstance(node, Seq):
        for inner in node.nodes:
            yield from _splits(inner, mask, shape)
    elif isinstance(node, Loop):
        if node.range is not None and shape.acts(node):
            ends = node.range.start, node.range.stop
            for parts in _parted(mask, tuple(part for end in ends for part in shape.parts(end)), shape):
                if len(parts) > _FEW and any(shape.block.row(end) is None for end in ends):
                    shape.turns_differ(node)
                yield parts
        yield from _splits(node.body, mask, shape)
    elif isinstance(node, Branch):
        yield from _branch(node, mask, shape)
    elif isinstance(node, Op):
        yield from _operation(node, mask, shape)


def _operation(op: Op, mask: Mask, shape: Shape) -> Iterator[list[Mask]]:
    """Threads that wait for or arrive at different barriers, or have the tensor cores read different memory, are
    different roles."""
    exprs = [e for e in (op.parity, op.id) if e is not None] if op.kind in WAITS else []
    if op.kind is Kind.BAR_WAIT or (op.kind in _ARRIVALS and shape.arrive_apart):
        exprs += _barrier(op)
    if op.kind is Kind.ASYNC_MMA:
        exprs += [place.address for place in (*op.reads, *op.writes) if place.address is not None]
    if exprs:
        yield from _parted(mask, tuple(part for e in exprs for part in shape.parts(e)), shape)


def _tell_apart(node: Node, mask: Mask, shape: Shape) -> Iterator[list[Mask]]:
    """Ways in which threads of an arm, of which some may go another way in it, arrive at different barriers."""
    if isinstance(node, Seq):
        for inner in node.nodes:
            yield from _tell_apart(inner, mask, shape)
    elif isinstance(node, Loop):
        yield from _tell_apart(node.body, mask, shape)
    elif isinstance(node, Branch):
        held = shape.block.holds(node.condition)
        for arm, some in ((node.then, mask if held is None else mask & held), (node.orelse, mask & ~(held or 0))):
            for parts in _tell_apart(arm, some, shape) if some else ():
                yield [*parts, mask & ~some] if mask & ~some else parts
    elif isinstance(node, Op) and node.kind in _ARRIVALS:
        yield from _operation(node, mask, shape)


def _barrier(op: Op) -> list[Expr]:
    """Which barrier it is, in whatever block."""
    address = None if op.barrier is None else op.barrier.address
    return [] if address is None else [address.args[0] if address.op == "mapa" else address]


def _parted(mask: Mask, exprs: tuple[Expr, ...], shape: Shape) -> Iterator[list[Mask]]:
    if exprs:
        parts = shape.split(mask, exprs)
        if len(parts) > 1:
            yield parts


def _branch(node: Branch, mask: Mask, shape: Shape) -> Iterator[list[Mask]]:
    held = shape.block.holds(node.condition)
    if held is None:
        if shape.acts(node.then) or shape.acts(node.orelse):
            for parts in _parted(mask, shape.parts(node.condition), shape):
                if len(parts) > _FEW:
                    collective = shape.collective(node)
                    if collective is not None:
                        raise Diverges(node, collective)
                yield parts
        yield from _splits(node.then, mask, shape)
        yield from _splits(node.orelse, mask, shape)
        return
    taken = held & mask
    rest = mask & ~taken
    if taken and rest:
        arms = node.then, node.orelse
        parted = whole_warps(taken, mask) & rest  # warps of which some lanes go each way
        differ = any(shape.waits(arm) or (shape.collects(arm) if parted else shape.acts(arm)) for arm in arms)
        if differ or shape.leaves_behind(node):
            yield [taken, rest]
        for arm, some in ((node.then, taken), (node.orelse, rest)) if shape.arrive_apart else ():
            for parts in _tell_apart(arm, some, shape):
                yield [*parts, mask & ~some]
        return
    yield from _splits(node.then if taken else node.orelse, mask, shape)
