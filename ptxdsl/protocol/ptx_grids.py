"""Loads of a PTX kernel that may come before the grid before it has ended, which may still write there.

A kernel that waits for the grid before it (``griddepcontrol.wait``) has begun while that one runs: until a thread has
waited, two loads from one place need not give the same. Source: PTX ISA, ``griddepcontrol``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.protocol.ptx_graph import Graph, Wait
from ptxdsl.ptx.module import Instruction

_Place = tuple[int, int]  # the number of a block, and of an item in it


def unsettled_loads(graph: Graph) -> frozenset[_Place]:
    """Loads from global memory before which a thread may not have waited, where the kernel waits at all."""
    waits = [(place, item) for place, item in _instructions(graph) if item.opcode == "griddepcontrol.wait"]
    if not waits:
        return frozenset()
    always = [place for place, item in waits if item.guard is None]
    return frozenset(
        place
        for place, item in _instructions(graph)
        if item.parts[0] == "ld" and "global" in item.parts and not any(_is_before(graph, one, place) for one in always)
    )


def _instructions(graph: Graph) -> Iterator[tuple[_Place, Instruction]]:
    for number, block in enumerate(graph.blocks):
        for index, item in enumerate(block.items):
            if not isinstance(item, Wait):
                yield (number, index), item


def _is_before(graph: Graph, one: _Place, other: _Place) -> bool:
    """Whether every way to a place leads through another one."""
    return one[1] < other[1] if one[0] == other[0] else graph.dominates(one[0], other[0])
