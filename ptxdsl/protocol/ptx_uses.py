"""Loads of PTX of which it is certain that somebody looks at what they give.

A compiler may load what it turns out not to need: before the branch that decides, or with a selection in its place. Of
such a load it is no fault that nobody has written what it reads. So registers are followed backwards from the
instructions that do something with them (a store, a barrier, a branch): on every way on, or it does not count.
"""

from __future__ import annotations

from ptxdsl.effects import Kind
from ptxdsl.protocol.ptx_graph import Graph, Item, Wait
from ptxdsl.protocol.ptx_values import reads_and_writes_of
from ptxdsl.ptx.liveness import reads_and_writes
from ptxdsl.ptx.module import Register
from ptxdsl.ptx.opcodes import effect

# What gives one operand or the other; two conditions that are both computed may have been one after the other.
_CHOICES = frozenset(("selp", "slct", "and", "or"))


def used_loads(graph: Graph) -> set[tuple[int, int]]:
    """The instructions, as block and number, whose result is looked at wherever they are done."""
    before: list[frozenset[str] | None] = [None] * len(graph.blocks)  # None: it is not known yet
    work = list(range(len(graph.blocks)))
    while work:
        number = work.pop()
        behind = _wanted_behind(graph, number, before)
        if behind is None:
            continue
        wanted = _wanted_before(graph, number, behind)
        if wanted != before[number]:
            before[number] = wanted
            work.extend(graph.sources[number])
    found: set[tuple[int, int]] = set()
    for number in range(len(graph.blocks)):
        _wanted_before(graph, number, _wanted_behind(graph, number, before) or set(), found)
    return found


def _wanted_behind(graph: Graph, number: int, before: list[frozenset[str] | None]) -> set[str] | None:
    """What is looked at on every way on from a block; None where none of them is known yet."""
    block = graph.blocks[number]
    ways = [known for target in block.targets if (known := before[target]) is not None]
    if block.targets and not ways:
        return None
    wanted: set[str] = set(frozenset.intersection(*ways)) if ways else set()
    if block.end is not None and block.end.guard is not None and not block.end.opcode.startswith(("bra", "brx")):
        wanted.clear()  # it may end here
    if block.end is not None:
        wanted.update(reads_and_writes(block.end)[0])
    return wanted


def _wanted_before(
    graph: Graph, number: int, wanted: set[str], found: set[tuple[int, int]] | None = None
) -> frozenset[str]:
    """found: gets the instructions of the block whose result is wanted behind them."""
    for index in reversed(range(len(graph.blocks[number].items))):
        item = graph.blocks[number].items[index]
        reads, writes = reads_and_writes_of(item)
        is_wanted = not wanted.isdisjoint(writes)
        if is_wanted and found is not None:
            found.add((number, index))
        guard = None if isinstance(item, Wait) else item.guard
        if guard is None:
            wanted.difference_update(writes)
            if _does_something(item) or (is_wanted and not _may_choose(item)):
                wanted.update(reads)
        elif _does_something(item) or is_wanted:
            wanted.add(guard[0].name)
    return frozenset(wanted)


def _does_something(item: Item) -> bool:
    """Whether it is more than a value that nobody may want."""
    return isinstance(item, Wait) or effect(item).kind not in (Kind.PURE, Kind.READ)


def _may_choose(item: Item) -> bool:
    """Whether what it gives may hang on one of its operands alone."""
    if isinstance(item, Wait) or item.parts[0] not in _CHOICES:
        return False
    return all(isinstance(operand, Register) for operand in item.operands[1:3])
