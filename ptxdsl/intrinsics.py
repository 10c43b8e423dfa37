"""The instructions of the language, one row each. A function marked ``@builtin`` in ``stdlib/`` is the row of its name.

A row says how the instruction is written (an LLVM intrinsic call or inline PTX), what it does (its Effect) and which
target feature it needs. Placeholders:

``$0 $1 …``   the run-time operands in the order of the declaration, structs flattened
``{name}``    a compile-time parameter of the declaration (an int or text); ``{T}`` of a DType parameter is its PTX type
              without the dot (``f32``, ``u32`` …); ``{b}`` the untyped width of the first result or operand (``b32``)

``llvm("ret @name(types and operands)")`` calls an LLVM intrinsic; ``asm("ptx")`` is inline assembly whose outputs come
first as ``$r0 $r1 …``; operand constraints follow from the operands' types, and an address known at compile time is
printed in place (``[buf+8]``). A boolean result of ``asm`` is an i32 in PTX (``selp``) and an i1 outside.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxdsl.effects import PURE, Effect, Kind


@dataclass(frozen=True)
class Row:
    lowering: str  # "llvm" or "asm"
    text: str
    effect: Effect
    feature: str | None = None  # a key of targets.FEATURES; None: every target


def llvm(text: str, effect: Effect = PURE, feature: str | None = None) -> Row:
    return Row("llvm", text, effect, feature)


def asm(text: str, effect: Effect = PURE, feature: str | None = None) -> Row:
    return Row("asm", text, effect, feature)


ROWS: dict[str, Row] = {
    # special registers
    "tid_x": llvm("i32 range(0, 1024) @llvm.nvvm.read.ptx.sreg.tid.x()"),
    # CTA barrier
    "barrier": llvm(
        "void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)", Effect(Kind.CTA_SYNC, scope="cta", convergent=True)
    ),
    # mbarrier
    "mbarrier_init": asm(
        "mbarrier.init.shared::cta.b64 [$0], $1;", Effect(Kind.BAR_INIT, "shared", barrier=0, count=1), "mbarrier"
    ),
    "mbarrier_wait_parity": asm(
        "{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; @!p bra W;}",
        Effect(Kind.BAR_WAIT, "shared", scope="cta", barrier=0, convergent=True),
        "mbarrier.try_wait",
    ),
}
