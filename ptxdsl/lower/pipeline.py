"""Pipeline operations as inline PTX on the barrier tables.

No sequence here is longer than the reference's: a literal phase or address is printed in place, the arrive's result
goes to the sink ``_``, and the predicate of a wait is tested where it is made.
"""

from __future__ import annotations

from ptxdsl.lower.arith import Handler
from ptxdsl.lower.asm import SYNCHRONISES, AddressOperand, emit_asm
from ptxdsl.lower.builder import Address, Builder
from ptxdsl.lower.llvm_types import scalar_type
from ptxdsl.tir import Const, Op, Value

BARRIER_BYTES = 8

TRY = "W: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1;"
# In straight code ptxas makes two SASS instructions less of the longer form (no reconvergence barrier); in loops, where
# every instruction is paid for at each turn, both become the same.
RETRY = {True: "@!p bra W;", False: "@p bra D; bra W; D:"}

WAITS = {
    "try": {inside: f"{{.reg .pred p; {TRY} {again}}}" for inside, again in RETRY.items()},
    # A failing try_wait suspends the warp and waking costs; a phase that is already complete is seen without it.
    "probe": {
        inside: "{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [$0], $1; @p bra D; "
        + f"{TRY} {again}{' D:' if inside else ''}}}"
        for inside, again in RETRY.items()
    },
}

ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [$0];"

COMMIT = "tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 [$0];"
COMMIT_OF_ELECTED = "{{.reg .pred p; elect.sync _|p, -1; @p " + COMMIT + "}}"
COMMIT_IF = "{{.reg .pred p; setp.ne.b32 p, $1, 0; @p " + COMMIT + "}}"


def barrier_address(b: Builder, op: Op) -> AddressOperand:
    """base + 8 * (index * subs + sub), the constant part kept apart."""
    base, index = op.operands[:2]
    subs, sub = op.attrs.get("subs", 1), op.attrs.get("sub", 0)
    address = b.address(base).plus(BARRIER_BYTES * sub)
    stride = BARRIER_BYTES * subs
    if isinstance(index, Const):
        return AddressOperand(address.plus(stride * index.value), base.ty)
    moved = b.emit(f"getelementptr [{stride} x i8], {scalar_type(base.ty)} {address.root}, {b.typed(index)}")
    return AddressOperand(Address(moved, address.offset, False), base.ty)


def _new(b: Builder, op: Op) -> None:
    """Says where a pipeline value is made; there is nothing to do."""


def _wait(b: Builder, op: Op) -> None:
    form = b.kernel.signature.wait or b.options.wait
    template = WAITS[form][b.loop_depth > 0]
    emit_asm(b, template, [barrier_address(b, op), op.operands[2]], [], SYNCHRONISES)


def _arrive(b: Builder, op: Op) -> None:
    emit_asm(b, ARRIVE, [barrier_address(b, op)], [], SYNCHRONISES)


def _commit_mma(b: Builder, op: Op) -> None:
    address = barrier_address(b, op)
    elect: Value | None = op.operands[2] if len(op.operands) > 2 else None
    group = op.attrs.get("cta_group", 1)
    if elect is None:
        return emit_asm(b, COMMIT_OF_ELECTED.format(group=group), [address], [], SYNCHRONISES)
    if not isinstance(elect, Const):
        return emit_asm(b, COMMIT_IF.format(group=group), [address, elect], [], SYNCHRONISES)
    if elect.value:
        emit_asm(b, COMMIT.format(group=group), [address], [], SYNCHRONISES)


def _step(b: Builder, op: Op) -> None:
    index, phase, count = op.operands
    new_index, new_phase, new_count = op.results
    if op.attrs["stages"] == 1:
        b.set(new_index, b.ref(index))
        b.set(new_phase, b.emit(f"xor {b.typed(phase)}, 1"))
    else:
        following = b.emit(f"add {b.typed(index)}, 1")
        wraps = b.emit(f"icmp eq i32 {following}, {op.attrs['stages']}")
        b.set(new_index, b.emit(f"select i1 {wraps}, i32 0, i32 {following}"))
        flip = b.emit(f"zext i1 {wraps} to i32")
        b.set(new_phase, b.emit(f"xor {b.typed(phase)}, {flip}"))
    b.set(new_count, b.emit(f"add {b.typed(count)}, 1"))


HANDLERS: dict[str, Handler] = {
    "pipe.new": _new,
    "pipe.wait": _wait,
    "pipe.arrive": _arrive,
    "pipe.commit_mma": _commit_mma,
    "pipe.step": _step,
}
