"""Which threads go the same way through a kernel: the agents of a proof.

An agent is a set of threads that take the same branches wherever they may wait. It is found by halving: all threads are
one agent, and a branch (or a loop) that sends some of them one way, by their thread ids, splits it in two if there is
something in its arms that a thread may wait for, or if it sends whole warps to do different things. Branches without
such, as ``if lane == 0: arrive``, stay inside one agent; their operations are those of a part of its threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxdsl.check import own_groups
from ptxdsl.check.threads import WARP, Block, Mask, warps, whole_warps
from ptxdsl.effects import ACCESSES, Kind
from ptxdsl.protocol.expressions import Expr
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
    Unmodelled,
    expressions_of,
    walk,
)

# More agents than this are no roles: a kernel where every thread waits for something of its own.
MAX_AGENTS = 40

_WAITS = frozenset({Kind.BAR_WAIT, Kind.BAR_TEST, Kind.CTA_SYNC, Kind.NAMED_SYNC, Kind.CLUSTER_WAIT})

# A condition of thread ids and unknown values that sends threads more ways than this may differ within each warp.
_FEW = 16

# Collectives of a warp that order memory as well; others make lanes wait for one another (PTX ISA, bar.warp.sync; CUDA
# C++ Programming Guide, "Warp Vote Functions": "these intrinsics do not imply a memory barrier").
ORDERING = frozenset({"warp_sync", "bar.warp.sync"})

_COLLECTIVE = frozenset({Kind.CTA_SYNC, Kind.NAMED_SYNC, Kind.NAMED_ARRIVE, Kind.CLUSTER_ARRIVE, Kind.CLUSTER_WAIT})


class TooManyAgents(Exception):
    pass


class Diverges(Exception):
    """A branch that threads take as their ids and an unknown value say, before or around a collective."""

    def __init__(self, branch: Branch, collective: Op) -> None:
        super().__init__()
        self.branch = branch
        self.collective = collective


class Shape:
    """What of a program may wait, and which thread ids decide about it."""

    def __init__(self, kernel: Kernel, block: Block) -> None:
        self.kernel = kernel
        self.block = block
        self._waits: dict[int, bool] = {}
        self._acts: dict[int, bool] = {}
        self._collects: dict[int, bool] = {}
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

    def waits(self, node: Node) -> bool:
        """Whether a thread may wait in a node, or leave it other than at its end."""
        found = self._waits.get(id(node))
        if found is None:
            found = self._waits[id(node)] = self._does(node, _waits, True)
        return found

    def acts(self, node: Node) -> bool:
        """Whether there is more in a node than accesses to memory."""
        found = self._acts.get(id(node))
        if found is None:
            found = self._acts[id(node)] = self._does(node, _acts, True)
        return found

    def collects(self, node: Node) -> bool:
        """Whether the lanes of a warp meet in a node."""
        found = self._collects.get(id(node))
        if found is None:
            found = self._collects[id(node)] = self._does(node, _collects, False)
        return found

    def leaves_behind(self, branch: Branch) -> bool:
        """Whether variables that an arm assigns are looked at outside of it: its threads have other values than the
        rest."""
        assigned = [self._targets(arm) for arm in (branch.then, branch.orelse)]
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

    def _targets(self, node: Node) -> set[int]:
        return {v for inner in walk(node) if isinstance(inner, Assign) for v in inner.targets}

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

    @staticmethod
    def _does(node: Node, does: Callable[[Op], bool], jumps: bool) -> bool:
        nodes = walk(node)
        inner = {n.label for n in nodes if isinstance(n, Loop)}
        for n in nodes:
            if isinstance(n, Op):
                if does(n):
                    return True
            elif not jumps:
                continue
            elif isinstance(n, (Return, Unmodelled)) or (isinstance(n, Jump) and n.label not in inner):
                return True
        return False

    def collective(self, branch: Branch) -> Op | None:
        """A collective in a branch, or behind one that some threads leave early."""
        for arm in (branch.then, branch.orelse):
            for node in walk(arm):
                if isinstance(node, Op) and node.kind in _COLLECTIVE:
                    return node
        if any(isinstance(node, (Return, Jump)) for arm in (branch.then, branch.orelse) for node in walk(arm)):
            for node in self.kernel.nodes:
                if isinstance(node, Op) and node.kind in _COLLECTIVE and node.span.start > branch.span.start:
                    return node
        return None

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


def _waits(op: Op) -> bool:
    return op.kind in _WAITS or (op.kind is Kind.WAIT_GROUP and op.what.completes_on not in own_groups.MECHANISMS)


def _acts(op: Op) -> bool:
    return op.kind not in ACCESSES


def _collects(op: Op) -> bool:
    return op.kind is Kind.WARP_SYNC


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
        if node.range is not None and shape.acts(node.body):
            exprs = (*shape.parts(node.range.start), *shape.parts(node.range.stop))
            yield from _parted(mask, exprs, shape)
        yield from _splits(node.body, mask, shape)
    elif isinstance(node, Branch):
        yield from _branch(node, mask, shape)
    elif isinstance(node, Op):
        yield from _operation(node, mask, shape)


def _operation(op: Op, mask: Mask, shape: Shape) -> Iterator[list[Mask]]:
    """Threads that wait for different barriers, or have the tensor cores read different memory, are different roles."""
    exprs = [e for e in (op.parity, op.id) if e is not None] if op.kind in _WAITS else []
    if op.kind is Kind.BAR_WAIT and op.barrier is not None and op.barrier.address is not None:
        exprs.append(op.barrier.address)
    if op.kind is Kind.ASYNC_MMA:
        exprs += [place.address for place in (*op.reads, *op.writes) if place.address is not None]
    if exprs:
        yield from _parted(mask, tuple(part for e in exprs for part in shape.parts(e)), shape)


def _parted(mask: Mask, exprs: tuple[Expr, ...], shape: Shape) -> Iterator[list[Mask]]:
    if exprs:
        parts = shape.split(mask, exprs)
        if len(parts) > 1:
            yield parts


def _branch(node: Branch, mask: Mask, shape: Shape) -> Iterator[list[Mask]]:
    row = shape.block.row(node.condition)
    if row is None:
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
    taken = shape.block.where(row) & mask
    rest = mask & ~taken
    if taken and rest:
        arms = node.then, node.orelse
        parted = whole_warps(taken, mask) & rest  # warps of which some lanes go each way
        differ = any(shape.waits(arm) or (shape.collects(arm) if parted else shape.acts(arm)) for arm in arms)
        if differ or shape.leaves_behind(node):
            yield [taken, rest]
        return
    yield from _splits(node.then if taken else node.orelse, mask, shape)
