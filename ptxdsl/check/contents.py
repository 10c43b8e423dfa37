"""What is in each part of a program: whether a thread may wait there, do more than access memory, or leave it."""

from __future__ import annotations

from collections.abc import Iterable

from ptxdsl.check import own_groups
from ptxdsl.effects import ACCESSES, Kind
from ptxdsl.protocol.model import Assign, Branch, Jump, Loop, Node, Op, Return, Seq, Unmodelled
from ptxdsl.record import Slotted

WAITS = frozenset({Kind.BAR_WAIT, Kind.BAR_TEST, Kind.CTA_SYNC, Kind.NAMED_SYNC, Kind.CLUSTER_WAIT})


class Contents(metaclass=Slotted):
    """waits: whether a thread may wait there. acts: whether there is an operation that is no access to memory.
    collects: whether the lanes of a warp meet. assigned: variables. targets: labels of loops around, to which it jumps.
    ends: whether a thread may return, or something is not modelled."""

    waits: bool
    acts: bool
    collects: bool
    assigned: frozenset[int]
    targets: frozenset[int]
    ends: bool

    @property
    def leaves(self) -> bool:
        """Whether a thread may leave it other than at its end."""
        return self.ends or bool(self.targets)


def contents(program: Seq) -> dict[int, Contents]:
    """By the identities of all parts that have parts."""
    found: dict[int, Contents] = {}
    _look(program, found)
    return found


def _look(node: Seq | Branch | Loop, found: dict[int, Contents]) -> Contents:
    waits = acts = collects = ends = False
    assigned: set[int] = set()
    targets: set[int] = set()
    for inner in _parts(node):
        if isinstance(inner, Op):
            kind = inner.kind
            waits = waits or kind in WAITS or (kind is Kind.WAIT_GROUP and _waits_for_others(inner))
            acts = acts or kind not in ACCESSES
            collects = collects or kind is Kind.WARP_SYNC
        elif isinstance(inner, Assign):
            assigned.update(inner.targets)
        elif isinstance(inner, Jump):
            targets.add(inner.label)
        elif isinstance(inner, (Return, Unmodelled)):
            ends = True
        else:
            of_it = _look(inner, found)
            waits, acts, collects = waits or of_it.waits, acts or of_it.acts, collects or of_it.collects
            ends = ends or of_it.ends
            assigned |= of_it.assigned
            targets |= of_it.targets
    if isinstance(node, Loop):
        targets.discard(node.label)
    made = found[id(node)] = Contents(waits, acts, collects, frozenset(assigned), frozenset(targets), ends)
    return made


def _parts(node: Seq | Branch | Loop) -> Iterable[Node]:
    if isinstance(node, Seq):
        return node.nodes
    return (node.then, node.orelse) if isinstance(node, Branch) else (node.body,)


def _waits_for_others(op: Op) -> bool:
    return op.what.completes_on not in own_groups.MECHANISMS
