"""What registers hold at each place of a kernel: static single assignment, with expressions in the place of names.

Only what is wanted is evaluated: a register that feeds a barrier's address or a branch, and what it is made of. Where
paths with different values meet, a variable of the model takes the value on each way in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ptxdsl.protocol import expressions
from ptxdsl.protocol.algebra import mentions, plain, size, substitute
from ptxdsl.protocol.expressions import Expr, const, wrap
from ptxdsl.protocol.ptx_graph import Graph, Item, Wait
from ptxdsl.protocol.ptx_grids import unsettled_loads
from ptxdsl.protocol.ptx_registers import POINTER_BITS, Registers, is_integer, root_of
from ptxdsl.ptx.liveness import reads_and_writes
from ptxdsl.record import dataclass

_MAX_TREE = 400  # nodes of an expression that is copied into a selection
# What may have another value when it is looked at again.
_CHANGING = frozenset(("unknown", "test", "load"))
_MOMENTARY = frozenset(("unknown", "test"))


@dataclass(slots=True, eq=False)
class Joined:
    """A register where paths meet: the variable that it is from there on, and its value on the way from each block."""

    register: str
    variable: Expr
    values: dict[int, Expr]


class Values(Registers):
    """symbols: of shared variables their addresses. parameters: of the kernel's parameters the names.

    wanted: the registers whose values are asked for. After ``run``, ``at`` has the registers that an item of a block
    reads, and ``joins`` what an edge assigns.
    """

    def __init__(
        self,
        graph: Graph,
        registers: Mapping[str, str],
        symbols: Mapping[str, int],
        parameters: Mapping[str, str],
        wanted: set[str],
        quiet: Sequence[bool],
    ) -> None:
        super().__init__(registers, symbols, parameters)
        self.graph = graph
        self.quiet = quiet  # of each block whether it has nothing of the protocol
        self.unsettled = unsettled_loads(graph)
        self.flows = [[reads_and_writes_of(item) for item in block.items] for block in graph.blocks]
        self.needed = self._closure(wanted)
        self.joins: list[dict[str, Joined]] = [{} for _ in graph.blocks]
        self.starts: dict[Expr, tuple[Expr, ...]] = {}  # of variables: values that they begin with
        self.turns: set[int] = set()  # the variables that number the turns of loops
        self._variables = 0

    # -------------------------------------------------------------------------------------------- what is needed

    def _closure(self, wanted: set[str]) -> set[str]:
        made_of: dict[str, set[str]] = {}
        for block, flow in zip(self.graph.blocks, self.flows, strict=True):
            for item, (reads, writes) in zip(block.items, flow, strict=True):
                if writes and is_integer(item, self.registers):
                    for name in writes:
                        made_of.setdefault(name, set()).update(reads)
        needed: set[str] = set()
        work = list(wanted)
        while work:
            name = work.pop()
            if name not in needed:
                needed.add(name)
                work.extend(made_of.get(name, ()))
        # The conditions of branches decide which value a join has; they are wanted by whoever made ``wanted``.
        return needed & self.registers.keys()

    def _live(self) -> list[set[str]]:
        """Of each block the needed registers whose values it, or what follows, reads."""
        graph = self.graph
        count = len(graph.blocks)
        read: list[set[str]] = []
        written: list[set[str]] = []
        for number, block in enumerate(graph.blocks):
            reads: set[str] = set()
            writes: set[str] = set()
            for names, made in self.flows[number]:
                reads.update(name for name in names if name in self.needed and name not in writes)
                writes.update(name for name in made if name in self.needed)
            if block.end is not None:
                names = reads_and_writes(block.end)[0]
                reads.update(name for name in names if name in self.needed and name not in writes)
            read.append(reads)
            written.append(writes)
        live = [set(names) for names in read]
        work = list(range(count))
        while work:
            number = work.pop()
            out: set[str] = set()
            for target in graph.blocks[number].targets:
                out |= live[target]
            new = read[number] | (out - written[number])
            if new != live[number]:
                live[number] = new
                work.extend(graph.sources[number])
        self._written = written
        return live

    def _place_joins(self) -> list[list[str]]:
        live = self._live()
        frontiers = self.graph.frontiers()
        writers: dict[str, set[int]] = {}
        for number, names in enumerate(self._written):
            for name in names:
                writers.setdefault(name, set()).add(number)
        joins: list[list[str]] = [[] for _ in self.graph.blocks]
        for name in sorted(writers):
            work, placed = list(writers[name]), set()
            while work:
                for meeting in frontiers[work.pop()]:
                    if meeting not in placed and name in live[meeting]:
                        placed.add(meeting)
                        joins[meeting].append(name)
                        work.append(meeting)
        return joins

    # ------------------------------------------------------------------------------------------------ evaluation

    def run(self) -> None:
        graph = self.graph
        joins = self._place_joins()
        out: dict[tuple[int, int, str], Expr] = {}  # source block, target block, register
        conditions: dict[int, Expr] = {}
        undo: list[tuple[str, Expr | None]] = []
        stack: list[tuple[int, int | None]] = [(0, None)]
        while stack:
            number, mark = stack.pop()
            if mark is not None:
                while len(undo) > mark:
                    name, before = undo.pop()
                    if before is None:
                        self._env.pop(name, None)
                    else:
                        self._env[name] = before
                continue
            stack.append((number, len(undo)))
            for name in joins[number]:
                value = self._joined(number, name, out, conditions)
                undo.append((name, self._env.get(name)))
                self._env[name] = value
            block = graph.blocks[number]
            for index, item in enumerate(block.items):
                self._item(number, index, item, undo)
            if block.end is not None:
                names = reads_and_writes(block.end)[0]
                self.at[number, len(block.items)] = {n: self._env[n] for n in names if n in self._env}
                if block.end.guard is not None:
                    conditions[number] = self.condition(number)
            for target in block.targets:
                for name in joins[target]:
                    out[number, target, name] = self._value(name)
            stack.extend((child, None) for child in reversed(graph.children[number]))
        for number, at_join in enumerate(self.joins):
            for name, join in at_join.items():
                join.values = {source: out[source, number, name] for source in graph.sources[number]}
        self._resolve()
        self._count()

    def condition(self, number: int) -> Expr:
        """Of a block that ends in a conditional branch: when it is taken."""
        end = self.graph.blocks[number].end
        assert end is not None and end.guard is not None
        return self.guard(end, self.at[number, len(self.graph.blocks[number].items)])

    def _joined(
        self, number: int, name: str, out: Mapping[tuple[int, int, str], Expr], conditions: Mapping[int, Expr]
    ) -> Expr:
        sources = self.graph.sources[number]
        known = {source: out[source, number, name] for source in sources if (source, number, name) in out}
        if len(known) == len(sources):
            values = list(known.values())
            if all(value is values[0] for value in values):
                return values[0]
            chosen = self._selected(number, known, conditions)
            if chosen is not None:
                return chosen
        width = max((value.bits for value in known.values()), default=self._width(name))
        variable = expressions.var(self._variables, width)
        self._variables += 1
        self.starts[variable] = tuple(known.values())
        if width == POINTER_BITS:
            roots = {root_of(value, self.roots) for value in known.values()}
            self.roots[variable] = roots.pop() if len(roots) == 1 else None
        self.joins[number][name] = Joined(name, variable, {})
        return variable

    def _selected(self, number: int, known: Mapping[int, Expr], conditions: Mapping[int, Expr]) -> Expr | None:
        """A selection in the place of two ways that differ in nothing else."""
        head = self.graph.dominator[number]
        condition = conditions.get(head)
        targets = self.graph.blocks[head].targets
        if len(known) != 2 or condition is None or len(targets) != 2 or targets[0] == targets[1]:
            return None
        if mentions(condition, _CHANGING):
            return None
        arms: list[Expr] = []
        for target in targets:
            if target == number:
                arms.append(known[head])
            elif target in known and self.quiet[target] and self.graph.sources[target] == [head]:
                arms.append(known[target])
            else:
                return None
        if arms[0].bits != arms[1].bits or any(size(arm, _MAX_TREE) >= _MAX_TREE for arm in arms):
            return None
        return plain("select", condition, *arms, bits=arms[0].bits)

    def _item(self, number: int, index: int, item: Item, undo: list[tuple[str, Expr | None]]) -> None:
        reads, writes = self.flows[number][index]
        env = self._env
        wanted = [name for name in writes if name in self.needed]
        self.at[number, index] = {name: self._value(name) for name in reads if name in self.needed}
        if not wanted:
            return
        if isinstance(item, Wait):
            for name in wanted:
                undo.append((name, env.get(name)))
                width = self._width(name)
                env[name] = const(item.known[name], width) if name in item.known else self.unknown(width)
            return
        made = self._made(item) if (number, index) not in self.unsettled else {}
        condition = None if item.guard is None else self.guard(item, self.at[number, index])
        for name in wanted:
            value = made.get(name)
            value = self.unknown(self._width(name)) if value is None else self._fitted(value, name, item)
            if condition is not None:
                before = self._value(name)
                if before.bits == value.bits:
                    value = plain("select", condition, value, before, bits=value.bits)
                else:
                    value = self.unknown(self._width(name))
            undo.append((name, env.get(name)))
            env[name] = value

    # ----------------------------------------------------------------------------------------------- afterwards

    def _resolve(self) -> None:
        """Variables that only ever have one value are that value."""
        all_joins = [join for at_join in self.joins for join in at_join.values()]
        replaced: dict[Expr, Expr] = {}
        while True:
            known: dict[Expr, Expr] = {}
            found = False
            for join in all_joins:
                if join.variable in replaced:
                    continue
                join.values = {s: substitute(v, replaced.get, known) for s, v in join.values.items()}
                values = {value for value in join.values.values() if value is not join.variable}
                if len(values) == 1:
                    (value,) = values
                    if value.bits == join.variable.bits and not mentions(value, _CHANGING):
                        replaced[join.variable] = value
                        known = {}
                        found = True
            if not found:
                break
        if replaced:
            self.rewrite(replaced.get)
            for at_join in self.joins:
                for name in [name for name, join in at_join.items() if join.variable in replaced]:
                    del at_join[name]

    def _count(self) -> None:
        """What a loop advances by a constant every turn is its start and that many times the number of the turn."""
        replaced: dict[Expr, Expr] = {}
        for header in sorted(self.graph.loops):
            body = self.graph.loops[header]
            advancing: list[tuple[str, Expr, int]] = []
            for name, join in self.joins[header].items():
                back = {value for source, value in join.values.items() if source in body}
                start = {value for source, value in join.values.items() if source not in body}
                if len(back) == len(start) == 1:
                    step = _step(join.variable, *back)
                    (begins,) = start
                    if step and begins.bits == join.variable.bits and not mentions(begins, _MOMENTARY):
                        advancing.append((name, begins, step))
            if not advancing:
                continue
            turn = expressions.var(self._variables)
            self.turns.add(self._variables)
            self._variables += 1
            for name, begins, step in advancing:
                join = self.joins[header].pop(name)
                bits = join.variable.bits
                turns = plain("ext.u" if bits > turn.bits else "trunc", turn, bits=bits)
                grown = plain("mul", turns, const(wrap(step, bits), bits), bits=bits)
                replaced[join.variable] = plain("add", substitute(begins, replaced.get, {}), grown, bits=bits)
            after = plain("add", turn, const(1))
            values = {source: after if source in body else const(0) for source in self.graph.sources[header]}
            self.joins[header][f"turn of {header}"] = Joined("", turn, values)
        if replaced:
            self.rewrite(replaced.get)

    def rewrite(self, of: Callable[[Expr], Expr | None]) -> None:
        """Puts other expressions in the place of some, everywhere."""
        known: dict[Expr, Expr] = {}
        for values in self.at.values():
            for name, value in values.items():
                values[name] = substitute(value, of, known)
        for at_join in self.joins:
            for join in at_join.values():
                join.values = {s: substitute(v, of, known) for s, v in join.values.items()}

    def forget_loads(self, written: frozenset[str | None]) -> None:
        """Loads from what the kernel writes are unknown. written: the parameters; None among them: any."""
        everywhere = None in written

        def of(expr: Expr) -> Expr | None:
            if expr.op != "load" or expr in self.constant or not (everywhere or expr.value in written):
                return None
            return self.unknown(expr.bits)

        if written:
            self.rewrite(of)

    @property
    def variables(self) -> int:
        return self._variables


def _step(variable: Expr, after: Expr) -> int:
    """What a variable grows by; 0: not by a constant."""
    if after.op == "add" and after.args[0] is variable and after.args[1].op == "const":
        return int(after.args[1].value)
    return 0


def reads_and_writes_of(item: Item) -> tuple[list[str], list[str]]:
    if isinstance(item, Wait):
        reads, _ = reads_and_writes(item.test)
        return reads, [*item.known, *sorted(item.lost)]
    return reads_and_writes(item)
