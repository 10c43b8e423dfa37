"""Instructions of threads that only take time or move registers: ``nanosleep``, ``setmaxnreg``.

Source: PTX ISA, "nanosleep", "setmaxnreg".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxdsl.ptx.module import Immediate, Instruction
from ptxdsl.registers import STEP, given, registers_at_launch
from ptxdsl.sim.host import EXIT_CHECKS, Fault, Group, Wait, WaitsFor, handles
from ptxdsl.sim.layout import LANES
from ptxdsl.sim.machine.cta import Cta
from ptxdsl.sim.machine.faults import REGISTERS_MISUSE
from ptxdsl.sim.machine.warp import Warp

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.program.program import Program

WARPGROUP = 4  # warps
_FEWEST, _MOST = 24, 256  # registers that a thread can ask for


@handles("nanosleep")
def nanosleep(group: Group) -> None:
    """Time passes, nothing else: a loop that sleeps between looks counts as waiting for what it looks at."""
    values = group.read(group.instruction.operands[0], "u32")[group.lanes]
    group.after(group.time + int(values.max()))
    group.polled()


def launch_registers(program: Program) -> int | None:
    """Registers of a thread at the launch; None where ``setmaxnreg`` does nothing."""
    kernel = program.kernel
    found = registers_at_launch(kernel.reqntid or kernel.maxntid, kernel.minnctapersm, kernel.maxnreg)
    if found is None:
        return None
    moves = [i.operands[0] for i in program.instructions if i.parts[0] == "setmaxnreg"]
    return given(found, [operand.value for operand in moves if isinstance(operand, Immediate)])


class RegisterPool:
    """Of one CTA. free: registers that nobody has, of one lane each. held: by each warp, of one thread. asked: by each
    warp, what it asked for; origins: by the last instruction that did so."""

    def __init__(self, cta: Cta, at_launch: int) -> None:
        self.held: dict[Warp, int] = dict.fromkeys(cta.warps, at_launch)
        self.free = 0
        self.latest = 0
        self.asked: dict[Warp, list[int]] = {}
        self.origins: dict[Warp, Instruction] = {}


@handles("setmaxnreg")
def setmaxnreg(group: Group) -> Wait | None:
    group.require_whole_warp()
    machine, warp, opcode = group.machine, group.warp, group.instruction.opcode
    wanted = group.uniform(group.instruction.operands[0], "u32")
    if not _FEWEST <= wanted <= _MOST or wanted % STEP:
        raise group.fault(
            REGISTERS_MISUSE, f"'{opcode}' to {wanted} registers: {_FEWEST} to {_MOST} in steps of {STEP} are possible"
        )
    at_launch = launch_registers(machine.program)
    if at_launch is None:
        return None
    cta = group.cta
    pool = machine.state(cta, "registers", lambda: RegisterPool(cta, at_launch))
    asked = pool.asked.setdefault(warp, [])
    asked.append(wanted)
    pool.origins[warp] = group.instruction
    first = warp.index // WARPGROUP * WARPGROUP
    for peer in cta.warps[first : first + WARPGROUP]:
        others = pool.asked.get(peer, asked)
        if len(others) >= len(asked) and others[len(asked) - 1] != wanted:
            raise group.fault(
                REGISTERS_MISUSE,
                f"'{opcode}' to {wanted} registers, while warp {peer.index} of the same warpgroup asks for "
                f"{others[len(asked) - 1]}",
                "all four warps of a warpgroup execute the same setmaxnreg",
            )
    held = pool.held[warp]
    increases = ".inc" in opcode
    if wanted < held if increases else wanted > held:
        raise group.fault(
            REGISTERS_MISUSE,
            f"'{opcode}' to {wanted} registers, but the warp has {held} a thread",
            f"the kernel starts with {at_launch} registers per thread; .inc only raises, .dec only lowers their number",
        )
    if not increases:
        pool.free += held - wanted
        pool.held[warp] = wanted
        pool.latest = max(pool.latest, group.time)
        return None
    need = wanted - held

    def take(group: Group) -> None:
        pool.free -= need
        pool.held[warp] = wanted
        if machine.watch is not None:
            machine.watch.takes_registers(cta, need, pool.free)

    def ready() -> bool:
        return pool.free >= need

    if ready():
        take(group)
        return None
    return Wait(ready, _describe(pool, warp, need), take, at=lambda: pool.latest)


def asked_in_part(machine: Machine, cta: Cta) -> tuple[Fault, Instruction] | None:
    """The warps of a warpgroup must all have executed each setmaxnreg when a CTA's threads have exited."""
    pool: RegisterPool | None = cta.states.get("registers")
    if pool is None:
        return None
    times = {warp.index: len(asked) for warp, asked in pool.asked.items()}
    for warp, origin in pool.origins.items():
        first = warp.index // WARPGROUP * WARPGROUP
        for peer in range(first, first + WARPGROUP):
            if times.get(peer, 0) < times[warp.index]:
                fault = Fault(
                    REGISTERS_MISUSE,
                    f"'{origin.opcode}' is executed by warp {warp.index}, but not by warp {peer} of its warpgroup",
                    "all four warps of a warpgroup execute the same setmaxnreg",
                )
                return fault, origin
    return None


EXIT_CHECKS.append(asked_in_part)


def _describe(pool: RegisterPool, warp: Warp, need: int) -> Callable[[], WaitsFor]:
    def describe() -> WaitsFor:
        state = f"{need * LANES} more for this warp, {pool.free * LANES} are free"
        others = tuple(other for other in pool.held if other is not warp and other not in pool.asked)
        return WaitsFor("registers", "(setmaxnreg.inc)", state, key=pool, by=others)

    return describe
