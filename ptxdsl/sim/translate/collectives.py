"""Warp collectives: what the runtime's functions get of an instruction that stands alone in its block.

Source: PTX ISA, "Parallel Synchronization and Communication Instructions": bar.warp.sync, shfl.sync, vote.sync,
match.sync, activemask, redux.sync, elect.sync.
"""

from __future__ import annotations

from ptxdsl.ptx.module import Instruction, Operand, Pair, Sink
from ptxdsl.record import dataclass
from ptxdsl.sim.translate.emitter import Unsupported


@dataclass(frozen=True, slots=True)
class Collective:
    """function: of the runtime, None for a barrier; it gets the pointers of results, then of sources.

    members: who takes part, None for whoever is there. results and sources: (operand, type); a Sink's pointer is that
    of lanes that nobody reads.
    """

    function: str | None
    members: Operand | None
    results: tuple[tuple[Operand, str], ...] = ()
    sources: tuple[tuple[Operand, str], ...] = ()


def collective(instruction: Instruction) -> Collective:
    """Raises Unsupported."""
    opcode, parts, operands = instruction.opcode, instruction.parts, instruction.operands
    if opcode.startswith(("bar.warp.sync", "barrier.warp.sync")):
        _count(operands, 1)
        return Collective(None, operands[0])
    if parts[0] == "activemask":
        _count(operands, 1)
        return Collective("set", None, ((operands[0], "b32"),))
    if parts[0] == "shfl":
        if len(parts) != 4 or parts[2] not in ("up", "down", "bfly", "idx") or parts[3] != "b32":
            raise Unsupported("shfl.sync has the modes up, down, bfly and idx, and .b32")
        _count(operands, 5)
        value, predicate = _pair(operands[0])
        sources = tuple((operand, "b32") for operand in operands[1:4])
        return Collective(f"shfl_{parts[2]}", operands[4], ((value, "b32"), (predicate, "pred")), sources)
    if parts[0] == "vote":
        if len(parts) != 4 or (parts[2], parts[3]) not in _VOTES:
            raise Unsupported("vote.sync has .all.pred, .any.pred, .uni.pred and .ballot.b32")
        _count(operands, 3)
        result = (operands[0], parts[3])
        return Collective(f"vote_{parts[2]}", operands[2], (result,), ((operands[1], "pred"),))
    if parts[0] == "match":
        mode, type = next((p for p in parts if p in ("any", "all")), ""), parts[-1]
        if not mode or type not in ("b32", "b64"):
            raise Unsupported("match has .any or .all, and .b32 or .b64")
        _count(operands, 3)
        value, predicate = _pair(operands[0])
        results = ((value, "b32"), (predicate, "pred"))
        return Collective(f"match_{mode}_{type[1:]}", operands[2], results, ((operands[1], type),))
    if parts[0] == "redux":
        _count(operands, 3)
        function, type = _redux(parts)
        return Collective(function, operands[2], ((operands[0], type),), ((operands[1], type),))
    if parts[0] == "elect":
        _count(operands, 2)
        value, predicate = _pair(operands[0])
        return Collective("elect", operands[1], ((value, "b32"), (predicate, "pred")))
    raise Unsupported("this collective")


_INTEGER_REDUCTIONS = frozenset((("and", "b32"), ("or", "b32"), ("xor", "b32"), ("add", "u32"), ("add", "s32")))
_VOTES = frozenset((("all", "pred"), ("any", "pred"), ("uni", "pred"), ("ballot", "b32")))


def _redux(parts: tuple[str, ...]) -> tuple[str, str]:
    operation, type = parts[2] if len(parts) > 3 else "", parts[-1]
    if type == "f32" and operation in ("min", "max"):
        modifiers = set(parts[3:-1])
        if modifiers <= {"abs", "NaN"}:
            name = f"redux_{operation}_f32"
            return name + ("_abs" if "abs" in modifiers else "") + ("_nan" if "NaN" in modifiers else ""), "b32"
    elif len(parts) == 4:
        if (operation, type) in _INTEGER_REDUCTIONS:
            return f"redux_{operation}", "b32"
        if operation in ("min", "max") and type in ("u32", "s32"):
            return f"redux_{operation}_{type}", "b32"
    raise Unsupported("this operation or type")


def _pair(operand: Operand) -> tuple[Operand, Operand]:
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, Sink())


def _count(operands: tuple[Operand, ...], wanted: int) -> None:
    if len(operands) != wanted:
        raise Unsupported(f"{wanted} operands are wanted")
