"""Makes TIR small: what elaboration writes conservatively, this pass removes.

A *join* is a value that several places hand over: a loop parameter, or a result of an ``if``, a ``scope`` or a loop.
Where all of them hand over one value, the join is that value. ``if`` on a constant becomes its branch, operations on
constants become constants, a ``scope`` left only at its end is spliced into its parent, code after an operation that
never ends is cut, and what nothing needs is removed. ``pipe.*`` operations stay: the checker reads them.
"""

from __future__ import annotations

from ptxdsl.effects import Kind
from ptxdsl.intrinsics import ROWS
from ptxdsl.record import dataclass, field
from ptxdsl.tir import TERMINATORS, Block, Const, Kernel, Module, Op, Ty, Value
from ptxdsl.tir.fold import fold
from ptxdsl.tir.verify import RULES

PURE = frozenset(RULES) - {
    "load", "store", "alloca", "shared.alloc", "shared.dynamic", "asm", "print", "assert", "trap",
    "pipe.new", "pipe.wait", "pipe.arrive", "pipe.commit_mma", "pipe.step",
}  # fmt: skip

# What does nothing where its results are unused; of `load` and `asm`, `removable` knows.
REMOVABLE = PURE | {"alloca"} | {name for name, row in ROWS.items() if row.effect.kind is Kind.PURE}

# What writes its results after it was executed: in registers that are somebody else's where nobody waits for them.
_PENDING = {
    name
    for name, row in ROWS.items()
    if (row.effect.kind, row.effect.completes_on) in ((Kind.ASYNC_MMA, "wgmma-group"), (Kind.READ, "tcgen05-wait-ld"))
}

# Rounds of finding what joins are, each finer than the one before: nested branches and loops take a few a level.
MAX_ROUNDS = 32


def simplify(tree: Module | Kernel) -> list[Op]:
    """Simplifies a module or a kernel in place. Gives the operations whose pending results nobody takes."""
    lost: list[Op] = []
    for kernel in tree.kernels if isinstance(tree, Module) else [tree]:
        while True:
            graph = _Graph(kernel)
            _resolve_joins(graph)
            rewrite = _Rewrite(graph, _live(graph))
            rewrite.block(kernel.body, None)
            if not rewrite.changed:
                break
        lost += _lost(graph)
    return lost


def _lost(graph: _Graph) -> list[Op]:
    pending = [op for op in graph.roots if op.name in _PENDING]
    if not pending:
        return []
    graph.roots = [op for op in graph.roots if op.name not in _PENDING]
    live, _ = _live(graph)
    return [op for op in pending if op not in live]


def removable(op: Op) -> bool:
    """Whether an operation whose results are unused does nothing."""
    if op.name == "load":
        return not op.attrs.get("volatile")
    if op.name == "asm":
        return not op.attrs["side_effects"]
    return op.name in REMOVABLE


@dataclass(slots=True)
class _Join:
    owner: Op
    incoming: list[Value] = field(default_factory=list)
    users: list[Value] = field(default_factory=list)  # joins that take this one


class _Graph:
    """One walk over a kernel: its joins, who defines what where, and where control leaves early."""

    def __init__(self, kernel: Kernel) -> None:
        self.joins: dict[Value, _Join] = {}
        self.definition: dict[Value, Op] = {}
        self.param_of: dict[Value, Block] = {}
        self.home: dict[Op, Block] = {}
        self.owner: dict[Block, Op | None] = {}
        self.extent: dict[Block, tuple[int, int]] = {}
        self.roots: list[Op] = []
        self.exits: dict[Op, list[Op]] = {}  # loop or scope: the operations whose blocks end by going to it
        self.plain: dict[Value, Value] = {}  # what is handed to joins and is none, by itself
        self.found: dict[Value, Value] = {}  # joins that are another value
        self.with_param: dict[Value, Value] = {}  # what a `for` carries, to its result: they stay or go together
        self.clock = 0
        for param in kernel.params:
            self.param_of[param] = kernel.body
        self.walk(kernel.body, None)
        constants: dict[tuple[Ty, str], Value] = {}  # equal ones are one object at joins
        for value, join in self.joins.items():
            for i, incoming in enumerate(join.incoming):
                if incoming in self.joins:
                    self.joins[incoming].users.append(value)
                    continue
                if isinstance(incoming, Const):
                    incoming = constants.setdefault((incoming.ty, repr(incoming.value)), incoming)
                    join.incoming[i] = incoming
                self.plain[incoming] = incoming
        # What is in a scope left only at its end will be in the block around it.
        for block, owner in self.owner.items():
            if owner is not None and owner.name == "scope" and owner not in self.exits:
                self.extent[block] = self.extent[self.home[owner]]

    def walk(self, block: Block, owner: Op | None) -> None:
        start = self.clock = self.clock + 1
        self.owner[block] = owner
        self.extent[block] = (start, start)  # before those inside: an enclosing block stands first
        for param in block.params:
            self.param_of[param] = block
        home, definition = self.home, self.definition
        for op in block.ops:
            home[op] = block
            for result in op.results:
                definition[result] = op
            if op.blocks:
                self.control(op)
            elif op.name in TERMINATORS:
                self.terminator(op, owner)
            elif op.name not in REMOVABLE and not removable(op):
                self.roots.append(op)
        self.clock += 1
        self.extent[block] = (start, self.clock)

    def control(self, op: Op) -> None:
        for result in op.results:
            self.joins[result] = _Join(op)
        if op.name in ("loop", "for"):
            carried, inits = carried_params(op), carried_inits(op)
            for param, init in zip(carried, inits, strict=True):
                self.joins[param] = _Join(op, [init])
            if op.name == "for":
                self.definition[op.blocks[0].params[0]] = op
                for result, param in zip(op.results, carried, strict=True):
                    self.joins[result].incoming.append(param)
                    self.with_param[param] = result
            else:
                self.roots.append(op)
        for block in op.blocks:
            self.walk(block, op)

    def terminator(self, op: Op, owner: Op | None) -> None:
        if owner is None:
            return
        target: Op | None = owner if op.name == "yield" else op.attrs.get("target")
        if target is None:
            self.roots.append(owner)
            return
        if target is not owner:
            self.exits.setdefault(target, []).append(owner)
        into = carried_params(target) if op.name == "repeat" else target.results
        for join, value in zip(into, op.operands, strict=True):
            self.joins[join].incoming.append(value)

    def visible(self, value: Value, owner: Op) -> bool:
        """Whether a value may be used where the results of an operation can."""
        if isinstance(value, Const):
            return True
        first, last = self.extent[self.param_of.get(value) or self.home[self.definition[value]]]
        inner_first, inner_last = self.extent[self.home[owner]]
        return first <= inner_first and inner_last <= last


def carried_params(op: Op) -> list[Value]:
    """The block parameters that a loop carries; the index of a ``for`` is not one."""
    return op.blocks[0].params[1:] if op.name == "for" else op.blocks[0].params


def carried_inits(op: Op) -> list[Value]:
    return op.operands[2:] if op.name == "for" else op.operands


def _resolve_joins(graph: _Graph) -> None:
    """Optimistic partition refinement: a join is taken for the first value that reaches it. Where two values meet, it
    is itself; then all others are found anew, for what they took may have been too coarse. Values that differ in a
    coarse round differ in a finer one too, so what is a true join stays one.
    """
    true_joins: set[Value] = set()
    for number in range(MAX_ROUNDS):
        now = _round(graph, true_joins)
        more = _more_true_joins(graph, now, true_joins, number < MAX_ROUNDS // 2)
        if not more:
            graph.found = {v: now[v] for v in graph.joins if v in now and v not in true_joins}
            return
        true_joins |= more
    # Never seen: all joins stay as they are.


def _round(graph: _Graph, true_joins: set[Value]) -> dict[Value, Value]:
    """What every value at a join is, as far as something reaches it: the first that does."""
    joins = graph.joins
    now = graph.plain | {v: v for v in true_joins}
    work = [v for v in reversed(joins) if v not in true_joins]
    while work:
        value = work.pop()
        if value not in now:
            for incoming in joins[value].incoming:
                if incoming in now:
                    now[value] = now[incoming]
                    work += joins[value].users
                    break
    return now


def _more_true_joins(graph: _Graph, now: dict[Value, Value], true_joins: set[Value], thorough: bool) -> set[Value]:
    """The joins that two values reach. ``thorough`` takes more rounds and finds fewer joins that are not needed."""
    given = {v: j for v, j in graph.joins.items() if v in now and v not in true_joins}
    met = {v for v, join in given.items() if len({*map(now.get, join.incoming)} - {None, v}) > 1}
    if met:
        return met
    # A value that is defined deeper inside. The join that first carries it out is true, and carries it further.
    hidden = {v for v, join in given.items() if not graph.visible(now[v], join.owner)}
    return {v for v in hidden if not thorough or any(i not in hidden for i in given[v].incoming)}


# How many of a structured operation's operands are its own; the others are handed to joins.
_OWN_OPERANDS = {"if": 1, "for": 2, "loop": 0, "scope": 0}


def _live(graph: _Graph) -> tuple[set[Op], set[Value]]:
    """The operations and joins that something needs, wave by wave: the next needs what is used in the one before."""
    ops: set[Op] = set()
    values: set[Value] = set()
    found, definition, joins = graph.found, graph.definition, graph.joins
    wave, handed = set(graph.roots), set[Value]()
    while wave or handed:
        ops |= wave
        used, needed = handed, set[Op]()
        for op in wave:
            owner = graph.owner[graph.home[op]]
            if owner is not None:
                needed.add(owner)
            if op.blocks:
                needed.update(graph.exits.get(op, ()))
                used.update(op.operands[: _OWN_OPERANDS[op.name]])
            else:
                used.update(op.operands)
        used = {found.get(value, value) for value in used} - values
        values |= used
        needed.update([definition[value] for value in used if value in definition])
        handed = set()
        for value in used & joins.keys():
            needed.add(joins[value].owner)
            handed.update(joins[value].incoming)
            if value in graph.with_param:
                handed.update(joins[graph.with_param[value]].incoming)
        wave = needed - ops
    return ops, values & joins.keys()


class _Rewrite:
    """Applies what was found, from the top down; ``changed`` where another round may find more."""

    def __init__(self, graph: _Graph, live: tuple[set[Op], set[Value]]) -> None:
        self.graph = graph
        self.live_ops, self.live_joins = live
        self.replaced = dict(graph.found)
        self.kept: dict[tuple[Op, str], list[bool]] = {}  # which values go to a target by this terminator
        self.early: dict[Op, int] = {}  # leaves to a loop or scope from anywhere but a scope's own end
        self.changed = False

    def value(self, value: Value) -> Value:
        while value in self.replaced:
            value = self.replaced[value]
        return value

    def handed(self, value: Value) -> Value:
        """A value at a join. Where it was found here what it is, the join may be found to be something too."""
        value = self.graph.found.get(value, value)
        if value not in self.replaced:
            return value
        self.changed = True
        return self.value(value)

    def block(self, block: Block, owner: Op | None) -> None:
        block.ops = self.ops(block.ops, owner)

    def ops(self, ops: list[Op], owner: Op | None) -> list[Op]:
        out: list[Op] = []
        replaced = self.replaced
        for i, op in enumerate(ops):
            if op.name in TERMINATORS:
                self.terminator(op, owner)
                out.append(op)
                break
            if op not in self.live_ops:
                continue
            if op.blocks:
                op.operands = [self.handed(v) for v in op.operands]
                tail = self.control(op)
            else:
                if not replaced.keys().isdisjoint(op.operands):
                    op.operands = [self.value(v) for v in op.operands]
                constants = self.constant(op) if op.operands and op.operands[0].__class__ is Const else None
                if constants is None:
                    out.append(op)
                    continue
                replaced.update(zip(op.results, constants, strict=True))
                # What a `select` does not take may be needed by nobody else.
                self.changed = self.changed or any(v.__class__ is not Const for v in op.operands)
                continue
            out += tail
            if tail and tail[-1].name in TERMINATORS:  # nothing after this is reached
                self.changed = self.changed or [later.name for later in ops[i + 1 :]] != ["unreachable"]
                break
        return out

    def constant(self, op: Op) -> list[Value] | None:
        """What an operation whose first operand is a constant gives, if that is known."""
        operands = op.operands
        if op.name not in PURE:
            return None
        if op.name == "select" and isinstance(operands[0], Const) and operands[0].ty.lanes == 1:
            return [operands[1 if operands[0].value else 2]]
        folded = fold(op.name, operands, op.attrs, [r.ty for r in op.results])  # None where another is no constant
        return None if folded is None else list(folded)

    def control(self, op: Op) -> list[Op]:
        """The operations that stand for one with blocks; a terminator at their end where its end is never reached."""
        if op.name == "if" and isinstance(op.operands[0], Const):
            self.changed = True
            return self.splice(op, op.blocks[0 if op.operands[0].value else 1])
        self.decide(op)
        for block in op.blocks:
            self.block(block, op)
        ends = [block.ops[-1] for block in op.blocks]
        yields = any(end.name == "yield" for end in ends)
        if op.name == "scope" and not self.early.get(op):
            # One that was left early before may hide values that a join could be.
            self.changed = self.changed or op in self.graph.exits
            return self.unwrap(op)
        if op.name == "for" or yields or self.early.get(op):
            return [op]
        return [op, Op("unreachable", [], [], {}, op.span)]

    def decide(self, op: Op) -> None:
        """Which joins of an operation stay; its own lists of them are cut here, its terminators' as they come."""
        results = [r in self.live_joins for r in op.results]
        if op.name in ("loop", "for"):
            carried = carried_params(op)
            params = [p in self.live_joins for p in carried]
            if op.name == "for":  # a result is what is carried when the range ends
                params = results = [a or b for a, b in zip(params, results, strict=True)]
            fixed = len(op.operands) - len(carried)
            op.operands[fixed:] = pick(op.operands[fixed:], params)
            op.blocks[0].params[len(op.blocks[0].params) - len(carried) :] = pick(carried, params)
            self.kept[op, "repeat"] = params
        op.results = pick(op.results, results)
        self.kept[op, "leave"] = self.kept[op, "yield"] = results

    def splice(self, op: Op, block: Block) -> list[Op]:
        self.kept[op, "yield"] = [True] * len(op.results)
        return self.open(op, self.ops(block.ops, op))

    def unwrap(self, op: Op) -> list[Op]:
        return self.open(op, op.blocks[0].ops)

    def open(self, op: Op, ops: list[Op]) -> list[Op]:
        """A block's operations in the place of the operation that has it."""
        end = ops[-1]
        if end.name == "yield":
            self.replaced.update(zip(op.results, end.operands, strict=True))
            return ops[:-1]
        return ops

    def terminator(self, op: Op, owner: Op | None) -> None:
        target: Op | None = owner if op.name == "yield" else op.attrs.get("target")
        if target is not None:
            op.operands = [self.handed(v) for v in pick(op.operands, self.kept[target, op.name])]
            if op.name == "leave":
                if target is owner and target.name == "scope":
                    op.name, op.attrs = "yield", {}
                else:
                    self.early[target] = self.early.get(target, 0) + 1


def pick(values: list[Value], kept: list[bool]) -> list[Value]:
    return [v for v, keep in zip(values, kept, strict=True) if keep]
