"""``inlined_assembly`` as operations of the model: its PTX is read as any other."""

from __future__ import annotations

from ptxdsl.protocol.model import Node, Unmodelled
from ptxdsl.protocol.tir_integers import Integers
from ptxdsl.tir import Op


def assembly(op: Op, integers: Integers) -> list[Node]:
    """What inline assembly with side effects does."""
    return [Unmodelled(op.span, "what inline assembly does is not modelled")]
