"""What operands each host instruction takes: checked before execution, so that its handler can rely on them.

A shape is a list of kinds, ``?`` after one that may be left out, ``*`` at the end for any more values, addresses and
vectors:

    d  a register that is written, or ``_``     D  registers that are written: one, a vector, a pair
    v  a value: register, number, symbol, !p    V  registers that are read: one or a vector
    a  an address in brackets                   i  a number
    t  a tensor map with coordinates            *  values and addresses

Source: PTX ISA, the syntax of each instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from ptxdsl.ptx.module import (
    Address,
    Immediate,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    TensorAddress,
    Vector,
)

# By the beginning of the opcode, the longest that fits. Alternatives are separated by |.
SHAPES: dict[str, str] = {
    "bar": "v v?",
    "bar.red": "d v v? v",
    "bar.cta.red": "d v v? v",
    "barrier": "v v?",
    "barrier.red": "d v v? v",
    "barrier.cta.red": "d v v? v",
    "barrier.cluster": "",
    "cp.async": "a a i v? v?",
    "cp.async.bulk": "a a v *",
    "cp.async.bulk.commit_group": "",
    "cp.async.bulk.prefetch": "a v v?",
    "cp.async.bulk.prefetch.tensor": "t *",
    "cp.async.bulk.tensor": "a t a *|t a *",
    "cp.async.bulk.wait_group": "i",
    "cp.async.commit_group": "",
    "cp.async.mbarrier.arrive": "a",
    "cp.async.wait_all": "",
    "cp.async.wait_group": "i",
    "cp.reduce.async.bulk": "a a v *",
    "cp.reduce.async.bulk.tensor": "t a *",
    "fence.mbarrier_init": "",
    "ldmatrix": "D a",
    "mbarrier.arrive": "d? a v?",
    "mbarrier.arrive.expect_tx": "d? a v",
    "mbarrier.arrive.noComplete": "d a v",
    "mbarrier.arrive_drop": "d? a v?",
    "mbarrier.arrive_drop.expect_tx": "d? a v",
    "mbarrier.arrive_drop.noComplete": "d a v",
    "mbarrier.complete_tx": "a v",
    "mbarrier.expect_tx": "a v",
    "mbarrier.init": "a v",
    "mbarrier.inval": "a",
    "mbarrier.pending_count": "d v",
    "mbarrier.test_wait": "d a v",
    "mbarrier.try_wait": "d a v v?",
    "mma": "D V V V *",
    "movmatrix": "d v",
    "nanosleep": "v",
    "red.async": "a v a",
    "setmaxnreg": "i",
    "st.async": "a V a",
    "st.bulk": "a v v",
    "stmatrix": "a V",
    "tcgen05.alloc": "a v",
    "tcgen05.commit": "a v?",
    "tcgen05.cp": "a v",
    "tcgen05.dealloc": "v v",
    "tcgen05.ld": "D a v?",
    "tcgen05.ld.red": "D d a v?",
    "tcgen05.relinquish_alloc_permit": "",
    "tcgen05.shift": "a",
    "tcgen05.st": "a V|a v V",
    "tcgen05.wait": "",
    "wgmma.commit_group": "",
    "wgmma.fence": "",
    "wgmma.wait_group": "i",
}
_WORDS = {
    "d": "a register to write", "D": "registers to write", "v": "a value", "V": "registers", "a": "an address",
    "i": "a number", "t": "a tensor map with coordinates", "*": "more values",
}  # fmt: skip


def unfit(instruction: Instruction, registers: Container[str]) -> str | None:
    """What operands a host instruction should have, if it has others; None if they fit or nothing is known of them.

    registers: the kernel's own, which can be written.
    """
    opcode = instruction.opcode
    while opcode not in SHAPES:
        opcode, dot, _ = opcode.rpartition(".")
        if not dot:
            return None
    shapes = SHAPES[opcode].split("|")
    if any(_fits(instruction.operands, shape.split(), registers) for shape in shapes):
        return None
    words = " or ".join(", ".join(_word(kind) for kind in shape.split()) or "none" for shape in shapes)
    return f"its operands are: {words}"


def _word(kind: str) -> str:
    return f"perhaps {_WORDS[kind[0]]}" if kind.endswith("?") else _WORDS[kind]


def _fits(operands: tuple[Operand, ...], kinds: list[str], registers: Container[str]) -> bool:
    if not kinds:
        return not operands
    first, *rest = kinds
    if first == "*":
        return all(_value(operand) or isinstance(operand, Address | Vector) for operand in operands)
    if operands and _is(first[0], operands[0], registers) and _fits(operands[1:], rest, registers):
        return True
    return first.endswith("?") and _fits(operands, rest, registers)


def _is(kind: str, operand: Operand, registers: Container[str]) -> bool:
    if kind == "d":
        return isinstance(operand, Sink) or (isinstance(operand, Register) and operand.name in registers)
    if kind == "D":
        return all(_is("d", item, registers) for item in _items(operand))
    if kind == "V":
        return all(_value(item) for item in _items(operand))
    return _KINDS[kind](operand)


def _items(operand: Operand) -> tuple[Operand, ...]:
    if isinstance(operand, Vector):
        return operand.items
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand,)


def _value(operand: Operand) -> bool:
    return isinstance(operand, Register | Immediate | Symbol | Not)


_KINDS: dict[str, Callable[[Operand], bool]] = {
    "v": _value,
    "a": lambda operand: isinstance(operand, Address),
    "i": lambda operand: isinstance(operand, Immediate) and operand.kind == "int",
    "t": lambda operand: isinstance(operand, TensorAddress),
}
