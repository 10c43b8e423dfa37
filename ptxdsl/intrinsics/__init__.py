"""The instructions of the language, one row each. A function marked ``@builtin`` in ``stdlib/`` is the row of its name.

A row says how the instruction is written (an LLVM intrinsic call or inline PTX), what it does (its Effect) and which
target feature it needs. Placeholders:

``$0 $1 …``   the run-time operands in the order of the declaration, structs flattened
``{name}``    a compile-time parameter of the declaration (an int or text); ``{T}`` of a DType parameter is its PTX type
              without the dot (``f32``, ``u32`` …); ``{b}`` the untyped width of the first result or operand (``b32``)

``llvm("ret @name(types and operands)")`` calls an LLVM intrinsic; ``asm("ptx")`` is inline assembly whose outputs come
first as ``$r0 $r1 …``; operand constraints follow from the operands' types, and an address known at compile time is
printed in place (``[buf+8]``). A boolean result of ``asm`` is an i32 in PTX (``selp``) and an i1 outside. ``$r*`` is
the list of all results, ``$r1*`` that of those from ``$r1`` on, ``$2*`` that of the operands from ``$2`` on: where
there are none, ``, {$2*}`` and ``, $2*`` are nothing. ``tied``: the operands from this one on are the results before
the instruction, in the same registers.
"""

from __future__ import annotations

from ptxdsl.intrinsics import arithmetic, memory, synchronisation, tensors
from ptxdsl.intrinsics.row import Row

__all__ = ["ROWS", "Row"]

ROWS: dict[str, Row] = {
    **arithmetic.IDS,
    **synchronisation.CONTROL,
    **synchronisation.BARRIERS,
    **synchronisation.WARP,
    **synchronisation.MBARRIER,
    **memory.MEMORY,
    **memory.TENSOR_MAPS,
    **memory.TENSOR_COPIES,
    **tensors.WARP_PRODUCTS,
    **tensors.WARPGROUP,
    **tensors.TENSOR_CORES,
    **memory.ATOMICS,
    **arithmetic.BITS,
    **arithmetic.FLOATS,
}
