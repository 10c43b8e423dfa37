"""What operations of TIR do, as far as it decides whether the model has them."""

from __future__ import annotations

from functools import cache

from ptxdsl.effects import ACCESSES, Effect, Kind
from ptxdsl.intrinsics import ROWS
from ptxdsl.tir import Op

# Rows of these kinds are no protocol, whatever memory they touch.
_NOTHING = frozenset({Kind.PURE, Kind.GRID})
SHARED = frozenset({"shared", "cluster"})

_PIPE_WAIT = Effect(Kind.BAR_WAIT, "shared", scope="cta", barrier=0, convergent=True)
_PIPE_ARRIVE = Effect(Kind.BAR_ARRIVE, "shared", scope="cta", barrier=0)
_PIPE_COMMIT = Effect(Kind.COMMIT, "shared", proxy="async", scope="cluster", barrier=0, completes_on="mbarrier")
PIPES = {"pipe.wait": _PIPE_WAIT, "pipe.arrive": _PIPE_ARRIVE, "pipe.commit_mma": _PIPE_COMMIT}


def is_protocol(op: Op) -> bool:
    """Whether the model has this operation (control flow apart)."""
    told = _told_by_name(op.name)
    if told is not None:
        return told
    if op.name in ("load", "store"):
        return op.operands[0].ty.name in ("ptr.shared", "ptr.generic", "ptr.cluster")
    if op.name == "asm":
        from ptxdsl.protocol.tir_assembly import acts  # for kernels that have some

        return acts(op)
    what = ROWS[op.name].effect
    if names_space(op, what):
        return str(op.attrs.get("space", "")) in ("", ".shared", ".shared::cta", ".shared::cluster")
    return what.space in SHARED or what.space == "tensor"


@cache
def _told_by_name(name: str) -> bool | None:
    """The same of all operations of a name; None where it is not."""
    row = ROWS.get(name)
    if row is None:
        return None if name in ("load", "store", "asm") else name in PIPES or name == "pipe.new"
    kind = row.effect.kind
    if kind in _NOTHING:
        return False
    if kind is Kind.TRAP:
        return name == "exit_thread"
    return None if kind in ACCESSES or kind is Kind.ATOMIC else True


def names_space(op: Op, what: Effect) -> bool:
    """Whether it is an access of which the operation says in what memory it is, not its row."""
    return what.kind is Kind.ATOMIC or (what.kind in ACCESSES and "space" in op.attrs)


def writes_global(op: Op) -> bool:
    """Whether an operation writes through its first operand (what loads see must not change)."""
    return _writes_global(op.name)


@cache
def _writes_global(name: str) -> bool:
    if name == "store":
        return True
    row = ROWS.get(name)
    if row is None:
        return False
    kind = row.effect.kind
    if row.effect.space == "tensor":
        return False
    if name == "tensormap_cp_fence_proxy_row":  # a read of shared memory besides
        return True
    return kind in (Kind.WRITE, Kind.ATOMIC) or (kind is Kind.ASYNC_COPY and row.effect.space == "global")


def looks_anew(op: Op) -> bool:
    """Whether it reads what other threads may write meanwhile."""
    if op.name == "load":
        return bool(op.attrs.get("volatile"))
    return op.name.startswith(("atom_", "ld_atomic", "ld_volatile"))
