"""A machine small enough to execute single tcgen05 instructions on registers given as numbers, without compiled code.

Work that is asynchronous is carried out by ``run``, or before the next instruction of the bench when it is ``eager``.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ptxdsl.ptx.module import Address, Immediate, Not, Register
from ptxdsl.ptx.reader import read
from ptxdsl.sim.barriers.mbarrier import barriers_of
from ptxdsl.sim.host import EXIT_CHECKS, HANDLERS, handler_prefix
from ptxdsl.sim.layout import RANK_SHIFT, SHARED_START
from ptxdsl.sim.machine.memory import Memory
from ptxdsl.sim.program.symbols import lay_out
from ptxdsl.sim.tcgen05 import alloc as tcgen05_alloc  # noqa: F401  (register their handlers)
from ptxdsl.sim.tcgen05 import mma as tcgen05_mma  # noqa: F401  (register their handlers)
from ptxdsl.sim.tcgen05 import move as tcgen05_move  # noqa: F401  (register their handlers)
from ptxdsl.sim.tcgen05 import sync as tcgen05_sync  # noqa: F401  (register their handlers)
from ptxdsl.sim.tcgen05.tensor_memory import TensorMemory, tensor_memory

TYPES = {"b32": np.uint32, "u32": np.uint32, "b64": np.uint64, "u64": np.uint64, "u16": np.uint16, "pred": np.bool_}
HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"
REGISTERS = ".reg .b32 %r<200>; .reg .b64 %d<20>; .reg .pred %p<9>; .reg .b16 %h<9>;\n"


def instructions(text: str) -> list[Any]:
    """The instructions of PTX text that uses the registers %r, %d, %p and %h."""
    return read(HEADER + REGISTERS + text + "\nret;\n}\n").kernels["k"].body[:-1]


class Cluster:
    def __init__(self) -> None:
        self.states: dict[Any, Any] = {}
        self.ctas: list[Cta] = []


class Cta:
    def __init__(self, cluster: Cluster, rank: int, shared: int) -> None:
        self.cluster = cluster
        self.rank = rank
        self.window = np.zeros(shared, np.uint8)
        self.exited = False
        self.states: dict[Any, Any] = {}
        self.warps: list[Warp] = []


class Warp:
    def __init__(self, cta: Cta, index: int) -> None:
        self.cta = cta
        self.index = index
        self.storage = SimpleNamespace(lanes=0xFFFFFFFF)
        self.states: dict[Any, Any] = {}


class Group:
    def __init__(self, bench: Bench, warp: Warp, instruction: Any, registers: dict[str, Any], mask: int) -> None:
        self.machine = bench
        self.cta = warp.cta
        self.warp = warp
        self.instruction = instruction
        self.registers = registers
        self.mask = mask
        self.time = 0

    def read(self, operand: Any, type: str) -> Any:
        if isinstance(operand, Not):
            return ~self.read(operand.operand, type)
        if isinstance(operand, Immediate):
            return np.full(32, operand.value).astype(TYPES[type])
        if isinstance(operand, Address):
            assert isinstance(operand.base, Register)
            return (self.read(operand.base, "b64") + np.uint64(operand.offset)).astype(np.uint64)
        return np.broadcast_to(np.asarray(self.registers[operand.name]), 32).astype(TYPES[type])

    def values(self, operand: Any, type: str) -> list[Any]:
        found = self.read(operand, type).tolist()
        return [found[lane] for lane in range(32) if self.mask >> lane & 1]

    def uniform(self, operand: Any, type: str) -> int:
        values = set(self.values(operand, type))
        assert len(values) == 1
        return int(values.pop())

    def read_many(self, operands: Any, type: str) -> Any:
        return np.stack([self.read(operand, type) for operand in operands])

    def write(self, operand: Any, values: Any, type: str) -> None:
        self.registers[operand.name] = np.asarray(values)

    def write_many(self, operands: Any, values: Any, type: str) -> None:
        for operand, row in zip(operands, values, strict=True):
            self.write(operand, row, type)

    def require_whole_warp(self) -> None:
        assert self.mask == 0xFFFFFFFF

    def touch(self, key: object) -> None:
        pass


class Bench:
    """One cluster. agents: asynchronous work not carried out yet."""

    def __init__(self, ctas: int = 1, warps: int = 4, shared: int = 1 << 17, *, eager: bool = True) -> None:
        self.memory = Memory(lay_out((), ()))
        self.states: dict[Any, Any] = {}
        self.agents: list[Any] = []
        self.eager = eager
        self.trace = self.current = self.watch = self.host_turns = None
        self.cta_count = ctas
        self.last_registers: dict[str, Any] = {}
        cluster = Cluster()
        for rank in range(ctas):
            cta = Cta(cluster, rank, shared)
            cta.warps = [Warp(cta, index) for index in range(warps)]
            cluster.ctas.append(cta)
        self.ctas = cluster.ctas

    # What a machine has

    def state(self, owner: Any, key: object, factory: Any) -> Any:
        if key not in owner.states:
            owner.states[key] = factory()
        return owner.states[key]

    def accesses(self, *told: Any) -> None:
        pass

    def event(self, *told: Any, **more: Any) -> None:
        pass

    def start(self, agent: Any) -> None:
        self.agents.append(agent)

    # What a test does

    def execute(self, text: str, registers: dict[str, Any] | None = None, *, cta: int = 0, warp: int = 0) -> Any:
        """Executes instructions one after the other; the last one's Wait, or None. The work of one thread is executed
        by lane 0 alone, that of a warp by all lanes."""
        registers = self.last_registers = registers if registers is not None else {}
        result = None
        for instruction in instructions(text):
            mask = 0xFFFFFFFF if "aligned" in instruction.parts else 1
            group = Group(self, self.ctas[cta].warps[warp], instruction, registers, mask)
            result = HANDLERS[handler_prefix(instruction.opcode)](group)
            if result is not None:
                result.group = group
            if self.eager:
                self.run()
        return result

    def run(self, *, committed: bool = True) -> int:
        """Carries out what is ready, until nothing is. How much that was. committed: as if a commit followed."""
        count = 0
        while True:
            ready = next((agent for agent in self.agents if agent.ready()), None)
            if ready is None:
                return count
            if ready.step():
                self.agents.remove(ready)
                if committed:
                    ready.pipe.complete(ready.warp, ready.threads)
            count += 1

    def exit(self, cta: int = 0) -> None:
        """The last thread of a CTA exits. Raises what the checks then find."""
        self.ctas[cta].exited = True
        for check in EXIT_CHECKS:
            found = check(self, self.ctas[cta])
            if found is not None:
                raise found[0]

    def tensor(self, cta: int = 0) -> TensorMemory:
        return tensor_memory(self, self.ctas[cta])

    def allocated(self, columns: int = 512) -> Bench:
        """Allocates in all CTAs, beside the instructions."""
        for cta in range(len(self.ctas)):
            self.tensor(cta).reserve(0, columns, instructions("ret;")[0])
        return self

    def words(self, cta: int = 0) -> Any:
        return self.tensor(cta).words

    def put(self, offset: int, data: Any, cta: int = 0) -> None:
        """Bytes into shared memory."""
        octets = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
        assert offset >= SHARED_START
        self.ctas[cta].window[offset : offset + octets.size] = octets

    def barrier(self, offset: int, count: int = 1, cta: int = 0) -> Any:
        table = barriers_of(self, self.ctas[cta])
        return table.init(self.ctas[cta], cta << RANK_SHIFT | offset, count, instructions("ret;")[0])
