"""A program translated: one host function that runs one warp of the kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from ptxdsl.diagnostics import CompileError
from ptxdsl.ptx.module import Instruction
from ptxdsl.record import dataclass
from ptxdsl.sim.program.program import Program
from ptxdsl.sim.translate import access, atomics
from ptxdsl.sim.translate.emitter import Unsupported
from ptxdsl.sim.translate.host_code import HostCode, compile_ir
from ptxdsl.sim.translate.kernel_ir import kernel_ir
from ptxdsl.sim.translate.lanes import LaneEmitter
from ptxdsl.sim.translate.meetings import SCRATCH
from ptxdsl.sim.translate.part import Kernel
from ptxdsl.sim.translate.runtime import declarations, link
from ptxdsl.sim.translate.slots import Slot, lay_out_slots

# Warp-instructions for each instruction of the program. At some 200 million a second they take the 0.4 ms in which one
# is compiled better. Time itself has no part in it, so that a run takes the same way every time.
IMPROVED_AFTER = 100_000

_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class Site:
    """An instruction at which compiled code may come back: its block and the block that follows it."""

    instruction: Instruction
    block: int
    next_block: int


@dataclass(slots=True, eq=False)
class WarpCode:
    """run: the host function, from the address of a warp's record to an exit code of ``layout``.

    slots: the registers that have a place in the register file, which has ``register_bytes`` bytes a warp, zero at the
    start. sites: by the number that compiled code gives.
    """

    program: Program
    slots: dict[str, Slot]
    register_bytes: int
    sites: list[Site]
    run: Callable[[int], int]
    address: int
    _text: str
    _codes: list[HostCode]  # the first has `run` and `current`, what `run` calls; they live as long as this object
    _executed: int = 0

    @property
    def improved(self) -> bool:
        return len(self._codes) > 1

    def has_executed(self, warp_instructions: int) -> None:
        """To be told now and then, while the code runs and when it has run. Code that has run before for as long as
        compiling it better takes is compiled better."""
        if not self.improved and self._executed > IMPROVED_AFTER * len(self.program.instructions):
            self.improve()
        self._executed += warp_instructions

    def improve(self) -> None:
        """Compiles the program again, into code that is about twice as fast and does the same to the bit, and has
        ``run`` call that."""
        better = compile_ir(self._text, 2, KEPT)
        self._codes.append(better)
        cell = ctypes.c_void_p.from_address(self._codes[0].address("current"))
        cell.value = better.address("kernel")


KEPT = "simulator-code"  # a name in the user's cache: the same PTX again is not compiled again

MEMORY_OPS: dict[str, Callable[[LaneEmitter, Instruction], None]] = {
    "ld": access.emit_ld,
    "ldu": access.emit_ld,
    "st": access.emit_st,
    "mov": access.emit_mov,
    "cvta": access.emit_cvta,
    "isspacep": access.emit_isspacep,
    "mapa": access.emit_mapa,
    "getctarank": access.emit_getctarank,
    "createpolicy": access.emit_createpolicy,
    "atom": atomics.emit_atom,
    "red": atomics.emit_atom,
}


def operations() -> dict[str, Callable[[LaneEmitter, Instruction], None]]:
    """The lane-wise instructions by the first part of their opcodes."""
    from ptxdsl.sim.translate.ops_table import LANE_OPS

    return {**LANE_OPS, **MEMORY_OPS}


def translate(program: Program, *, trace: bool = False, optimise: int = 0) -> WarpCode:
    """The host code of a program.

    trace: memory accesses are appended to the launch's access log. optimise: the code generator's level, 0 to 2; 0 is
    what takes least time at first (see ``WarpCode.improve``). Raises CompileError E1110 with all that is not supported.
    """
    try:
        slots, scratch = lay_out_slots(program.registers, program.liveness.slots)
    except Unsupported as refused:
        raise CompileError(program.flat.problem("E1110", str(refused), program.kernel.line)) from None
    emitter = LaneEmitter(program.registers, slots, program.symbols, trace)
    kernel = Kernel(program, slots, scratch, operations(), emitter)
    text = kernel_ir(kernel)
    if kernel.problems:
        raise CompileError(kernel.problems)
    text += link(text) + declarations("".join(emitter.definitions.values()), emitter.declared)
    code = compile_ir(text, optimise, KEPT)
    sites = [
        Site(instruction, k, k + 1) for k, block in enumerate(program.blocks) for instruction in block.instructions
    ]
    address = code.address("run")
    size = scratch + 256 * SCRATCH
    return WarpCode(program, slots, size, sites, _RUN(address), address, text, [code])
