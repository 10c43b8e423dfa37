"""A control-flow graph as a structured program, without repeating a block.

Source: Ramsey, "Beyond Relooper: Recursive Translation of Unstructured Control Flow to Structured Control Flow" (2022).
The dominator tree gives the nesting: a block where paths meet stands behind a block (``Loop`` with ``once``) around all
that lead to it, which they leave by a ``Jump``. What follows a loop stands behind it, not in it.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.protocol.algebra import plain
from ptxdsl.protocol.expressions import const
from ptxdsl.protocol.model import Assign, Branch, Jump, Loop, Node, Return, Seq
from ptxdsl.protocol.ptx_graph import Graph
from ptxdsl.protocol.ptx_operations import Operations
from ptxdsl.protocol.ptx_values import Values
from ptxdsl.source import Span

MAX_DEPTH = 150


class TooDeep(Exception):
    """Control flow nested deeper than MAX_DEPTH."""


class Structure:
    def __init__(self, graph: Graph, values: Values, operations: Operations, span_of: Callable[[int], Span]) -> None:
        self.graph = graph
        self.values = values
        self.operations = operations
        self.span_of = span_of
        self.labels = 0
        self.meets = [self._forward_sources(number) > 1 for number in range(len(graph.blocks))]
        self.inner: list[list[int]] = [[] for _ in graph.blocks]  # blocks that stand behind what a block begins
        self.behind: list[list[int]] = [[] for _ in graph.blocks]  # and those that stand behind the loop it heads
        self._arrange()
        self.jumps: dict[int, Jump] = {}  # by block, in the scope that is being written

    def program(self) -> Seq:
        """Raises TooDeep."""
        return self._tree(0, 0)

    def _forward_sources(self, number: int) -> int:
        """Edges that come from before, those of a branch with equal targets counted twice."""
        blocks = self.graph.blocks
        return sum(blocks[source].targets.count(number) for source in self.graph.sources[number] if source < number)

    def _arrange(self) -> None:
        graph = self.graph
        for number in range(1, len(graph.blocks)):
            head = graph.dominator[number]
            # Of the loops around the dominator that this block is not in, the outermost.
            left = [h for h, body in graph.loops.items() if head in body and number not in body]
            if left:
                self.behind[min(left)].append(number)
            elif self.meets[number]:
                self.inner[head].append(number)

    def _tree(self, number: int, depth: int) -> Seq:
        """A block with all that it dominates."""
        if depth > MAX_DEPTH:
            raise TooDeep
        if number not in self.graph.loops:
            return self._within(number, depth)
        label = self._label()
        with_loop = self._scoped({number: Jump(label, True)}, lambda: self._within(number, depth + 1))
        return Seq((Loop(with_loop, self.span_of(self.graph.blocks[number].line), label=label),))

    def _whole(self, number: int, depth: int) -> Seq:
        """A block, the loop that it heads, and what stands behind it."""
        return self._followed(self.behind[number], depth, lambda deeper: self._tree(number, deeper))

    def _within(self, number: int, depth: int) -> Seq:
        return self._followed(self.inner[number], depth, lambda deeper: self._block(number, deeper))

    def _followed(self, followers: list[int], depth: int, first: Callable[[int], Seq]) -> Seq:
        """What ``first`` writes, each follower behind a block around all before it."""
        if not followers:
            return first(depth)
        *before, last = sorted(followers)
        label = self._label()
        body = self._scoped({last: Jump(label, False)}, lambda: self._followed(before, depth + 1, first))
        block = Loop(body, self.span_of(self.graph.blocks[last].line), once=True, label=label)
        return Seq((block, *self._whole(last, depth).nodes))

    def _scoped(self, jumps: dict[int, Jump], write: Callable[[], Seq]) -> Seq:
        before = {number: self.jumps.get(number) for number in jumps}
        self.jumps.update(jumps)
        written = write()
        for number, jump in before.items():
            if jump is None:
                del self.jumps[number]
            else:
                self.jumps[number] = jump
        return written

    def _label(self) -> int:
        self.labels += 1
        return self.labels

    def _block(self, number: int, depth: int) -> Seq:
        block = self.graph.blocks[number]
        nodes: list[Node] = []
        for index, item in enumerate(block.items):
            nodes.extend(self.operations.nodes(number, index, item))
        line = block.end.line if block.end is not None else block.line
        nodes.extend(self._leave(number, self.span_of(line), depth + 1).nodes)
        return Seq(tuple(nodes))

    def _leave(self, number: int, span: Span, depth: int) -> Seq:
        block = self.graph.blocks[number]
        end, targets = block.end, block.targets
        if end is None:
            return self._edge(number, targets[0], depth) if targets else Seq((Return(span),))
        if end.opcode.startswith("brx"):
            return self._table(number, span, depth)
        if end.guard is None:
            return self._edge(number, targets[0], depth) if targets else Seq((Return(span),))
        condition = self.values.condition(number)
        if end.opcode.startswith("bra"):
            taken = self._edge(number, targets[0], depth)
            other = self._edge(number, targets[1], depth) if len(targets) > 1 else Seq((Return(span),))
        else:
            taken = Seq((Return(span),))
            other = self._edge(number, targets[0], depth) if targets else Seq((Return(span),))
        return Seq((Branch(condition, taken, other, span),))

    def _table(self, number: int, span: Span, depth: int) -> Seq:
        """``brx.idx``: one comparison after the other; an index behind the table's end is undefined."""
        block = self.graph.blocks[number]
        assert block.end is not None
        self.values.look(number, len(block.items))
        index = self.values.read(block.end.operands[0], 32)
        written = self._edge(number, block.targets[-1], depth)
        for position in reversed(range(len(block.targets) - 1)):
            chosen = plain("eq", index, const(position), bits=1)
            here = self._edge(number, block.targets[position], depth)
            written = Seq((Branch(chosen, here, written, span),))
        return written

    def _edge(self, source: int, target: int, depth: int) -> Seq:
        joins = self.values.joins[target]
        pairs = [(join.variable.value, join.values[source]) for join in joins.values()]
        pairs = [(number, value) for number, value in pairs if not (value.op == "var" and value.value == number)]
        nodes: list[Node] = []
        if pairs:
            nodes.append(Assign(tuple(number for number, _ in pairs), tuple(value for _, value in pairs)))
        jump = self.jumps.get(target)
        if jump is not None:
            return Seq((*nodes, jump))
        return Seq((*nodes, *self._whole(target, depth).nodes))
