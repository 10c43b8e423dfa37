"""Protocols that were proved before in this process: the same protocol has the same proof.

A kernel is compiled again when its text has changed, and mostly what it computes has, not how its roles wait for each
other. What is compared is all of the protocol but the places where it is written; only proofs are kept, which tell of
no place. A fault is found anew each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from operator import attrgetter

from ptxdsl.effects import Effect
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Kernel
from ptxdsl.record import Slotted, field_names

if TYPE_CHECKING:
    from ptxdsl.check.proof import Proof

    Prover = Callable[..., Proof]

_KEPT = 256
# What stands for itself; most of a protocol.
_PLAIN = frozenset({Expr, Effect, int, str, bool, type(None), type, Slotted})


class _Key:
    """What is asked for, hashed once: it is large."""

    __slots__ = ("hashed", "parts")

    def __init__(self, *parts: Hashable) -> None:
        self.parts = parts
        self.hashed = hash(parts)

    def __hash__(self) -> int:
        return self.hashed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.parts == other.parts


_known: OrderedDict[_Key, Proof] = OrderedDict()
_fields: dict[type, Callable[[Any], tuple[Any, ...]] | None] = {}


def proved(prove: Prover, kernel: Kernel, block: tuple[int, int, int], max_steps: int) -> Proof:
    """What ``prove`` says of a kernel's protocol in blocks of a shape, after so many steps at most."""
    key = _Key(prove, block, form(kernel))
    proof = _known.get(key)
    if proof is None:
        proof = prove(kernel, block, max_steps=max_steps)
        if not (proof.findings or proof.reasons or proof.assumptions or proof.by_values):
            _known[key] = proof
            if len(_known) > _KEPT:
                _known.popitem(last=False)
    return proof


def form(part: Any) -> Any:
    """A part of a protocol without its places. Expressions stand for themselves: equal ones are one object."""
    cls = part.__class__
    if cls is not tuple:
        get = _fields[cls] if cls in _fields else _fields.setdefault(cls, _getter(cls))
        if get is None:
            return part
        part = get(part)
    return tuple([inner if inner.__class__ in _PLAIN else form(inner) for inner in part])


def _getter(cls: type) -> Callable[[Any], tuple[Any, ...]] | None:
    """What gives a record's class and its fields but its place; None for what is compared as it is."""
    if cls.__module__ != Kernel.__module__ or not hasattr(cls, "_record_fields"):
        return None
    names = [name for name in field_names(cls) if name not in ("span", "awaited", "endless", "written")]
    return attrgetter("__class__", *names) if names else lambda part: (cls,)
