"""Branches of a PTX kernel that end in a trap or a failed assertion are left out of the model.

A trap ends the whole grid with an error (PTX ISA, ``trap``): what the other threads would have waited for, and what
they would have read, nobody misses. What is proved is so of every run in which no thread comes to one, as with
``abort()`` and ``debug_assert`` in the language.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.protocol.ptx_graph import Block, Item, Wait
from ptxdsl.ptx.module import Instruction

_TRAPS = frozenset(("trap", "call.__assertfail", "call.__assert_fail"))


def is_trap(instruction: Instruction) -> bool:
    return instruction.opcode in _TRAPS


def leave_out_traps(blocks: Sequence[Block]) -> None:
    """Conditional branches to blocks that all end so become jumps to where else they lead."""
    doomed = _doomed(blocks)
    if not doomed or 0 in doomed:
        return
    for number, block in enumerate(blocks):
        left = tuple(target for target in block.targets if target not in doomed)
        if number in doomed or left == block.targets or block.end is None or block.end.opcode.startswith("brx"):
            continue
        block.end, block.targets = None, left


def _doomed(blocks: Sequence[Block]) -> set[int]:
    """The blocks from which every path comes to a trap."""
    found = {number for number, block in enumerate(blocks) if any(map(_ends_the_grid, block.items))}
    before = -1
    while found and len(found) > before:
        before = len(found)
        found |= {number for number, block in enumerate(blocks) if _leads_only_to(found, block)}
    return found


def _leads_only_to(doomed: set[int], block: Block) -> bool:
    leaves = block.end is not None and not block.end.opcode.startswith(("bra", "brx"))  # for some threads, or all
    return bool(block.targets) and not leaves and doomed.issuperset(block.targets)


def _ends_the_grid(item: Item) -> bool:
    return not isinstance(item, Wait) and item.guard is None and is_trap(item)
