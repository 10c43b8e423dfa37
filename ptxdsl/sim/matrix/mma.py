"""``mma.sync``: matrix products of one warp, from registers to registers.

Every form is here: dense and sparse, with and without block scaling.

Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions", "Block Scaling for mma.sync".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Instruction, Operand, Vector
from ptxdsl.sim.host import Group, handles
from ptxdsl.sim.matrix import arithmetic as matrix_arithmetic
from ptxdsl.sim.matrix import fragments as matrix_layout
from ptxdsl.sim.matrix.mma_form import Mma, parse
from ptxdsl.sim.matrix.sparse import Sparsity, expand
from ptxdsl.sim.matrix.types import SCALES, accumulator_values, accumulator_words

Array = npt.NDArray[Any]
ALL_LANES = (1 << matrix_layout.LANES) - 1


def multiply(
    mma: Mma, words: Array, scale_a: Array | None = None, scale_b: Array | None = None, columns: Array | None = None
) -> Array:
    """Registers of D from registers of A, B and C (one after the other): arrays (registers, 32) of uint32, f64: uint64.

    scale_a (m, scales), scale_b (scales, n): factors of the blocks of K. columns (m, k / 2): of sparse A's elements.
    """
    b_at = mma.a.registers
    c_at = b_at + mma.b.registers
    if mma.a_type is mma.b_type:
        both = mma.a_type.values(words[:c_at])
        left, right = both.take(mma.a.to_matrix), both.take(mma.b_after_a)
    else:
        left = mma.a_type.values(words[:b_at]).take(mma.a.to_matrix)
        right = mma.b_type.values(words[b_at:c_at]).take(mma.b.to_matrix)
    addend = accumulator_values(words[c_at:], mma.c_type).take(mma.c.to_matrix)
    if columns is not None:
        left = expand(left, columns, mma.shape[2])
    if scale_a is not None and scale_b is not None:
        block = mma.shape[2] // mma.scales
        left = left * np.repeat(scale_a.astype(np.float64), block, axis=1)
        right = right * np.repeat(scale_b.astype(np.float64), block, axis=0)
    if mma.products > 1:
        m, n, k = mma.shape
        left, right, addend = left.reshape(4, m, k), right.reshape(4, k, n), addend.reshape(4, m, n)
    if mma.d_type == "f64":
        result = matrix_arithmetic.multiply_accumulate_f64(left, right, addend, mma.rounding)
    elif mma.operation == "xor":
        result = matrix_arithmetic.exclusive_or_popcount(left, right, addend)
    else:
        result = matrix_arithmetic.multiply_accumulate(left, right, addend)
    values = result.reshape(-1).take(mma.d.from_matrix)
    return accumulator_words(values, mma.d_type, mma.saturate).reshape(-1, matrix_layout.LANES)


def scales_of_a(mma: Mma, data: Array, byte: int, thread: int) -> Array:
    """(16, scales) factors. data: the 32 lanes' words; of each four lanes, a pair chosen by thread has two rows."""
    pairs = _octets_by_four(data)[:, 2 * thread : 2 * thread + 2, byte : byte + mma.scales]
    return SCALES[mma.scale_type].take(pairs.transpose(1, 0, 2).reshape(16, mma.scales))


def scales_of_b(mma: Mma, data: Array, byte: int, thread: int) -> Array:
    """(scales, 8) factors: of each four lanes, the one chosen by thread has a column's."""
    return SCALES[mma.scale_type].take(_octets_by_four(data)[:, thread, byte : byte + mma.scales].T)


def _octets_by_four(data: Array) -> Array:
    return np.ascontiguousarray(data, np.uint32).view(np.uint8).reshape(8, 4, 4)


def require_all_lanes(group: Group) -> None:
    """A matrix lies in the registers of 32 lanes: none may be elsewhere, and none may have exited."""
    group.require_whole_warp()
    if group.mask != ALL_LANES:
        name = group.instruction.parts[0]
        missing = ALL_LANES.bit_count() - group.mask.bit_count()
        raise group.fault(
            "E1146",
            f"{name} in a warp of which {missing} lane{' does' if missing == 1 else 's do'} not exist or have exited",
            f"all 32 lanes of a warp execute {name} together: launch whole warps, and let no lane return before it",
        )


def registers_of(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def unsupported(instruction: Instruction) -> str | None:
    mma = parse(instruction.opcode)
    if isinstance(mma, str):
        return f"{mma} is not supported"
    wanted = (mma.d.registers, mma.a.registers, mma.b.registers, mma.c.registers)
    given = tuple(len(registers_of(operand)) for operand in instruction.operands[:4])
    if given != wanted:
        return f"mma of this shape takes {', '.join(map(str, wanted))} registers for D, A, B, C; it has {given}"
    if len(instruction.operands) != mma.operands:
        return f"this mma has {mma.operands} operands, not {len(instruction.operands)}"
    return None


@handles("mma", check=unsupported)
def execute(group: Group) -> None:
    require_all_lanes(group)
    instruction = group.instruction
    mma = parse(instruction.opcode)
    assert isinstance(mma, Mma)
    d, a, b, c = (registers_of(operand) for operand in instruction.operands[:4])
    words = group.read_many((*a, *b, *c), mma.word)
    scale_a, scale_b = _read_scales(group, mma) if mma.scales else (None, None)
    columns = read_columns(group, mma.sparse, *instruction.operands[4:6]) if mma.sparse else None
    with matrix_arithmetic.quiet():
        result = multiply(mma, words, scale_a, scale_b, columns)
    group.write_many(d, result, mma.word)


def read_columns(group: Group, sparse: Sparsity, metadata: Operand, selector: Operand) -> Array:
    """The columns of a sparse A's elements from the operands that say them."""
    chosen = group.uniform(selector, "u32")
    if chosen >= sparse.selectors:
        raise group.fault(
            "E1147",
            f"sparsity selector {chosen} does not exist: {sparse.lanes} of four lanes hold the metadata",
            f"the selector of this shape is below {sparse.selectors}",
        )
    columns = sparse.columns(group.read(metadata, "b32"), chosen)
    if columns is None:
        raise group.fault(
            "E1147",
            "sparsity metadata that names one element of four twice",
            "each field of 4 bits holds two different numbers of 2 bits",
        )
    return columns


def _read_scales(group: Group, mma: Mma) -> tuple[Array, Array]:
    data_a, select_a, data_b, select_b = group.instruction.operands[-4:]
    selectors = []
    for name, operand, threads in (("A", select_a, 2), ("B", select_b, 4)):
        byte, thread = (group.uniform(item, "u16") for item in registers_of(operand))
        if byte % mma.scales or byte >= 4 or thread >= threads:
            raise group.fault(
                "E1145",
                f"scale selector {{{byte}, {thread}}} of {name} does not exist",
                f"with {mma.scales} scale factors a row the byte is a multiple of {mma.scales} below 4, and the thread "
                f"is below {threads}",
            )
        selectors.append((byte, thread))
    return (
        scales_of_a(mma, group.read(data_a, "b32"), *selectors[0]),
        scales_of_b(mma, group.read(data_b, "b32"), *selectors[1]),
    )
