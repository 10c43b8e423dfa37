"""The control-flow graph of a PTX kernel: blocks, dominators, loops.

Source: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm" (2001); Cytron et al., "Efficiently Computing
Static Single Assignment Form" (1991).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxdsl.ptx.inline import Flat
from ptxdsl.ptx.module import Instruction, Label, Symbol
from ptxdsl.record import dataclass, field

_ENDS = frozenset(("bra", "brx", "exit", "ret"))


@dataclass(slots=True, eq=False)
class Wait:
    """A loop that only tests an mbarrier until its phase is complete: ``test`` is the instruction.

    known: registers that tell of the outcome, with what they hold behind the loop. lost: the others that it wrote, but
    for those that always get the same value: that happens before.
    """

    test: Instruction
    known: dict[str, int]
    lost: frozenset[str]

    @property
    def line(self) -> int:
        return self.test.line


Item = Instruction | Wait


@dataclass(slots=True, eq=False)
class Block:
    """Straight code. end: the branch at its end (None: it goes on to ``targets[0]``, or the kernel ends).

    targets: of a conditional branch first where it leads when it is taken; of ``brx.idx`` in the order of its table.
    line: of the PTX text, where it starts.
    """

    items: list[Item] = field(default_factory=list)
    end: Instruction | None = None
    targets: tuple[int, ...] = ()
    line: int = 0


class Irreducible(Exception):
    """A loop that is entered at two places. block: one of them."""

    def __init__(self, block: int) -> None:
        super().__init__(block)
        self.block = block


def blocks_of(flat: Flat) -> list[Block]:
    """The blocks of a body in the order of the text; the first is the entry, and nothing leads to it."""
    blocks = [Block(line=flat.kernel.line)]
    labels: dict[str, int] = {}
    open = True  # whether the last block may be appended to
    for item in flat.body:
        if isinstance(item, Label):
            # A block of its own for every label: of a polling loop at the head of another one, both have one.
            blocks.append(Block(line=item.line))
            open = True
            labels[item.name] = len(blocks) - 1
            continue
        if not open:
            blocks.append(Block(line=item.line))
        open = item.opcode.partition(".")[0] not in _ENDS
        if open:
            blocks[-1].items.append(item)
        else:
            blocks[-1].end = item
    if blocks[-1].end is not None and blocks[-1].end.guard is not None:
        blocks.append(Block(line=blocks[-1].end.line))  # running off the end is a return
    for number, block in enumerate(blocks):
        following = (number + 1,) if number + 1 < len(blocks) else ()
        block.targets = _targets(block, following, labels, flat)
    return blocks


def _targets(block: Block, following: tuple[int, ...], labels: dict[str, int], flat: Flat) -> tuple[int, ...]:
    end = block.end
    if end is None:
        return following
    first = end.opcode.partition(".")[0]
    if first == "brx":
        table = end.operands[-1]
        assert isinstance(table, Symbol)
        return tuple(labels[name] for name in flat.branch_targets[table.name])
    if first == "bra":
        target = end.operands[-1]
        assert isinstance(target, Symbol)
        taken = labels[target.name]
        if end.guard is None or following == (taken,):
            block.end = None
            return (taken,)
        return (taken, *following)
    return following if end.guard is not None else ()  # a conditional exit goes on only where it is not taken


class Graph:
    """Blocks that are reached, numbered in reverse postorder: a block comes after all that lead to it but in loops.

    Raises Irreducible.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        order = _reverse_postorder([block.targets for block in blocks])
        number = {old: new for new, old in enumerate(order)}
        self.blocks = [blocks[old] for old in order]
        for block in self.blocks:
            block.targets = tuple(number[target] for target in block.targets)
        count = len(self.blocks)
        self.sources: list[list[int]] = [[] for _ in range(count)]
        for source, block in enumerate(self.blocks):
            for target in dict.fromkeys(block.targets):
                self.sources[target].append(source)
        self.dominator = self._dominators()  # of the entry: itself
        self.children: list[list[int]] = [[] for _ in range(count)]
        for block_number in range(1, count):
            self.children[self.dominator[block_number]].append(block_number)
        self._place()
        self.loops = self._loops()

    def _dominators(self) -> list[int]:
        known = [-1] * len(self.blocks)
        known[0] = 0
        changed = True
        while changed:
            changed = False
            for block in range(1, len(self.blocks)):
                new = -1
                for source in self.sources[block]:
                    if known[source] < 0:
                        continue
                    if new < 0:
                        new = source
                        continue
                    other = source
                    while new != other:
                        while other > new:
                            other = known[other]
                        while new > other:
                            new = known[new]
                if known[block] != new:
                    known[block] = new
                    changed = True
        return known

    def _place(self) -> None:
        """Numbers of the dominator tree's nodes when it is entered and left."""
        self._entered = [0] * len(self.blocks)
        self._left = [0] * len(self.blocks)
        clock = 0
        stack = [(0, False)]
        while stack:
            block, done = stack.pop()
            clock += 1
            if done:
                self._left[block] = clock
                continue
            self._entered[block] = clock
            stack.append((block, True))
            stack.extend((child, False) for child in reversed(self.children[block]))

    def dominates(self, upper: int, lower: int) -> bool:
        return self._entered[upper] <= self._entered[lower] and self._left[lower] <= self._left[upper]

    def _loops(self) -> dict[int, set[int]]:
        """By header the blocks of each natural loop, headers included."""
        loops: dict[int, set[int]] = {}
        for source, block in enumerate(self.blocks):
            for target in block.targets:
                if target > source:
                    continue
                if not self.dominates(target, source):
                    raise Irreducible(target)
                loops.setdefault(target, {target}).update(self.natural_loop(target, source))
        return loops

    def natural_loop(self, header: int, source: int) -> set[int]:
        """The blocks of the loop that one jump back to a header makes."""
        body = {header}
        work = [source]
        while work:
            inner = work.pop()
            if inner not in body:
                body.add(inner)
                work.extend(self.sources[inner])
        return body

    def frontiers(self) -> list[set[int]]:
        """Of each block where its dominance ends."""
        found: list[set[int]] = [set() for _ in self.blocks]
        for block, sources in enumerate(self.sources):
            if len(sources) < 2:
                continue
            for source in sources:
                at = source
                while at != self.dominator[block]:
                    found[at].add(block)
                    at = self.dominator[at]
        return found


def _reverse_postorder(targets: Sequence[Iterable[int]]) -> list[int]:
    seen = {0}
    order: list[int] = []
    stack = [(0, iter(targets[0]))]
    while stack:
        block, following = stack[-1]
        for target in following:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(targets[target])))
                break
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    return order
