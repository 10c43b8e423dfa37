"""Which registers an instruction reads and writes, and which ones have a value that a later block wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ptxdsl.ptx.module import Address, Instruction, Operand, Register, named

# First parts of opcodes whose first operand is no destination.
NO_DESTINATION = frozenset((
    "st", "red", "bra", "brx", "exit", "ret", "trap", "brkpt", "prefetch", "prefetchu", "membar", "fence",
    "nanosleep", "pmevent", "discard", "applypriority", "griddepcontrol", "setmaxnreg", "bar", "barrier",
))  # fmt: skip

# The carry flag: a predicate register that add.cc and the like write and addc reads; read and written as any other.
CARRY = Register("%cc")
_READ_CARRY = frozenset(("addc", "subc", "madc"))


def register_names(operand: Operand) -> Iterator[str]:
    """The registers that an operand names, special ones too."""
    return (leaf.name for leaf in named(operand) if isinstance(leaf, Register))


def all_registers(instruction: Instruction) -> list[str]:
    """The registers of all operands and of the guard."""
    names = [name for operand in instruction.operands for name in register_names(operand)]
    if instruction.guard is not None:
        names.append(instruction.guard[0].name)
    return names


def reads_and_writes(instruction: Instruction) -> tuple[list[str], list[str]]:
    """Of a lane-wise instruction or a warp collective. A guarded write reads what it may leave as it is."""
    operands = instruction.operands
    first = instruction.opcode.partition(".")[0]
    writes: list[str] = []
    if operands and first not in NO_DESTINATION and not isinstance(operands[0], Address):
        writes.extend(register_names(operands[0]))
        operands = operands[1:]
    reads = [name for operand in operands for name in register_names(operand)]
    if instruction.guard is not None:
        reads.append(instruction.guard[0].name)
        reads.extend(writes)
    if ".cc" in instruction.opcode:
        writes.append(CARRY.name)
    if first in _READ_CARRY:
        reads.append(CARRY.name)
    return reads, writes


class Liveness:
    """The registers of blocks that have a slot, and of each block those that are wanted after it.

    blocks: of each its instructions' (reads, writes) in order; pinned: registers that have a slot in any case;
    successors: by block. Registers that never leave one block have no slot.
    """

    def __init__(
        self,
        blocks: Sequence[Sequence[tuple[list[str], list[str]]]],
        successors: Sequence[Sequence[int]],
        declared: dict[str, str],
        pinned: Iterable[str],
    ) -> None:
        home: dict[str, int] = {}
        slots = set(pinned)
        upward: list[list[str]] = []  # of each block: read before it is written
        killed: list[set[str]] = []
        for number, instructions in enumerate(blocks):
            written: set[str] = set()
            exposed: dict[str, None] = {}
            for reads, writes in instructions:
                for name in reads:
                    if name not in declared:
                        continue
                    if name not in written:
                        exposed[name] = None
                    if home.setdefault(name, number) != number:
                        slots.add(name)
                for name in writes:
                    if name not in declared:
                        continue
                    written.add(name)
                    if home.setdefault(name, number) != number:
                        slots.add(name)
            slots.update(exposed)
            upward.append(list(exposed))
            killed.append(written)
        self.slots = [name for name in declared if name in slots]
        self._bit = {name: 1 << i for i, name in enumerate(self.slots)}
        self._flow(upward, killed, successors)

    def _flow(
        self, upward: Sequence[Sequence[str]], killed: Sequence[set[str]], successors: Sequence[Sequence[int]]
    ) -> None:
        bit = self._bit
        count = len(upward)
        if count * len(self.slots) > 1 << 31:  # as bit sets 256 MiB: let all be live
            self.live_out = [(1 << len(self.slots)) - 1] * count
            return
        gen = [sum({bit[name] for name in names}) for names in upward]
        keep = [~sum(bit[name] for name in names if name in bit) for names in killed]
        predecessors: list[list[int]] = [[] for _ in range(count)]
        for block, targets in enumerate(successors):
            for target in targets:
                predecessors[target].append(block)
        live_in = list(gen)
        live_out = [0] * count
        work = list(range(count))
        queued = [True] * count
        while work:
            block = work.pop()
            queued[block] = False
            out = 0
            for target in successors[block]:
                out |= live_in[target]
            live_out[block] = out
            new = gen[block] | (out & keep[block])
            if new != live_in[block]:
                live_in[block] = new
                for before in predecessors[block]:
                    if not queued[before]:
                        queued[before] = True
                        work.append(before)
        self.live_out = live_out

    def wanted_after(self, block: int, name: str) -> bool:
        """Whether a register has a slot whose value some block after this one reads."""
        return bool(self.live_out[block] & self._bit.get(name, 0))
