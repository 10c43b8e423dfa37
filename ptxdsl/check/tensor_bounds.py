"""Tensor memory: which columns an allocation has, and which lanes a warp reaches."""

from __future__ import annotations

from ptxdsl.check import classes
from ptxdsl.check.blame import fault
from ptxdsl.check.context import Context
from ptxdsl.check.findings import Finding, Unproved
from ptxdsl.check.parts import Touch
from ptxdsl.check.states import State
from ptxdsl.check.threads import WARP, Mask, members
from ptxdsl.diagnostics import counted
from ptxdsl.hints import Any
from ptxdsl.protocol import tensor_places
from ptxdsl.protocol.expressions import TENSOR, TENSOR_GROUP
from ptxdsl.protocol.model import Array
from ptxdsl.source import Span

_QUARTERS = 4
_GIVE_ALL = "give back the columns that were allocated, all at once"
_OWN_QUARTER = (
    "a warp reaches the quarter of the lanes that its number modulo 4 says: add `UInt32(warp_id()) % 4 << 21` to the "
    "address, as `load` and `store` of a TensorAccumulator do"
)
_ALLOCATE = "allocate as many columns as all that is kept there takes"


def beyond(array: Array, at: int, lanes: tuple[int, ...], width: int, span: Span, path: Any = None) -> Finding:
    """An access to lanes or columns that an allocation does not have."""
    if (at + max(lanes) - array.base) // TENSOR_GROUP > (array.bytes or 0) // TENSOR_GROUP:
        message = "tensor memory has 128 lanes, and this goes to others"
        return Finding(classes.STALE_STAGE, message, span, (), "keep the address within lanes 0 to 127", path)
    first = max(tensor_places.column_of(array, at + lane) for lane in lanes)
    size = counted(tensor_places.columns_of(array), "column")
    message = f"the allocation of tensor memory has {size}, and this goes to column {first + width - 1}"
    return Finding(classes.STALE_STAGE, message, span, (), _ALLOCATE, path)


def check_room(context: Context, span: Span | None) -> None:
    """Raises Unproved where a kernel's allocations have not all room at once: one may wait for another."""
    needed = sum(tensor_places.columns_of(array) for array in context.kernel.arrays if array.base & TENSOR)
    if needed > tensor_places.COLUMNS:
        why = f"the kernel allocates {needed} columns of tensor memory, and there are {tensor_places.COLUMNS}"
        raise Unproved(span or context.kernel.span, why, "allocate once, what all need together: one waits for another")


def check_alone(state: State, acting: Mask, frees: bool, span: Span | None) -> None:
    """Raises Fault where several warps do what one does for all. acting: their first lanes."""
    number = acting.bit_count()
    if number > 1:
        kind = classes.OVERWRITTEN if frees else classes.LIVE_REINIT
        what = f"{number} warps {'give tensor memory back' if frees else 'allocate tensor memory'}, each for itself"
        raise fault(state, kind, what, span, help="let one warp do it: `if warp_id() == 0:`")


def check_given_back(context: Context, state: State, touch: Touch, span: Span | None) -> None:
    """Raises Fault where another part of an allocation is given back than all of it."""
    assert touch.array is not None
    if not touch.exact:
        raise Unproved(touch.spans[0], "which columns of tensor memory this gives back is not known", _GIVE_ALL)
    (_, first, width), columns = touch.places[0], tensor_places.columns_of(touch.array)
    if (first, width) != (touch.array.base, columns):
        what = (
            f"{counted(width, 'column')} of tensor memory from column {tensor_places.column_of(touch.array, first)} on"
        )
        raise fault(
            state,
            classes.EXIT_IN_FLIGHT,
            f"this gives back {what}, but {counted(columns, 'column')} are allocated",
            span,
            help=_GIVE_ALL,
        )


def check_quarters(touch: Touch) -> None:
    """Raises Unproved where a warp goes to lanes that it does not reach (PTX ISA, "Access restrictions" of tcgen05)."""
    if touch.array is None or not touch.exact:
        return
    for lanes, at, _ in touch.places:
        for i, thread in enumerate(members(touch.mask)):
            quarter = tensor_places.quarter_of(touch.array, at + (lanes[i] if lanes is not None else 0))
            if quarter != thread // WARP % _QUARTERS:
                first = quarter * WARP
                why = f"warp {thread // WARP} goes to lanes {first} to {first + WARP - 1} of tensor memory"
                raise Unproved(touch.spans[0], why, _OWN_QUARTER)
