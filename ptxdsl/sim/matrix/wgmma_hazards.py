"""Registers of a ``wgmma.mma_async`` that are touched before it is waited for, found in the program's text.

The ISA leaves what happens undefined, but ptxas sees such code (compilers copy accumulators around), and makes the
instruction wait for its result at once ("wgmma.mma_async instructions are serialized"). So does the simulator.

Source: PTX ISA, "wgmma.wait_group"; ptxas notes C7510 to C7514.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxdsl.ptx.liveness import all_registers, reads_and_writes, register_names
from ptxdsl.ptx.module import Immediate, Instruction, Vector
from ptxdsl.sim.program.program import HOST, Block

_MOST_COMMITS = 8  # after as many wgmma-groups a product counts as waited for


Uses = dict[int, tuple[set[str], set[str]]]  # of each block that was looked at: registers it reads, and writes


def touched_early(blocks: Sequence[Block], product: Instruction, uses: Uses | None = None) -> Instruction | None:
    """The first instruction found that touches registers of a ``wgmma.mma_async`` on a way without its wait.

    uses: kept between calls for one program.

    Any use of accumulators counts, but by a ``wgmma.mma_async`` as its accumulators; of A's registers only writes do.
    """
    uses = {} if uses is None else uses
    start = next(number for number, block in enumerate(blocks) if product in block.instructions)
    d = set(register_names(product.operands[0]))
    a = set(register_names(product.operands[1])) if isinstance(product.operands[1], Vector) else set()
    todo = [(next_block, 0) for next_block in _successors(blocks, start)]
    seen = set(todo)
    while todo:
        number, commits = todo.pop()
        block = blocks[number]
        if block.kind == HOST:
            instruction = block.instructions[0]
            opcode = instruction.opcode
            if opcode.startswith("wgmma.commit_group"):
                commits += 1
            elif opcode.startswith("wgmma.wait_group"):
                allowed = instruction.operands[0]
                if isinstance(allowed, Immediate) and commits > allowed.value:
                    continue
            elif _host_touches(instruction, d, a):
                return instruction
        elif _block_touches(number, block, uses, d, a):
            return next(i for i in block.instructions if _touches(reads_and_writes(i), d, a))
        if commits > _MOST_COMMITS:
            continue
        for next_block in _successors(blocks, number):
            state = next_block, commits
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return None


def _block_touches(number: int, block: Block, uses: Uses, d: set[str], a: set[str]) -> bool:
    found = uses.get(number)
    if found is None:
        reads: set[str] = set()
        writes: set[str] = set()
        for instruction in block.instructions:
            read, written = reads_and_writes(instruction)
            reads.update(read)
            writes.update(written)
        found = uses[number] = reads, writes
    return _touches(found, d, a)


def _touches(uses: tuple[Iterable[str], Iterable[str]], d: set[str], a: set[str]) -> bool:
    reads, writes = uses
    return not d.isdisjoint(reads) or not d.isdisjoint(writes) or not a.isdisjoint(writes)


def _host_touches(instruction: Instruction, d: set[str], a: set[str]) -> bool:
    if instruction.opcode.startswith("wgmma.mma_async"):
        # Accumulators of products follow each other in order; A's registers and descriptors are read.
        others = [name for operand in instruction.operands[1:] for name in register_names(operand)]
        return not d.isdisjoint(others) or not a.isdisjoint(register_names(instruction.operands[0]))
    names = all_registers(instruction)
    return not d.isdisjoint(names) or not a.isdisjoint(names)


def _successors(blocks: Sequence[Block], number: int) -> tuple[int, ...]:
    block = blocks[number]
    return (*block.targets, number + 1) if block.falls and number + 1 < len(blocks) else block.targets
