"""``inlined_assembly`` in the model: what does more than compute is there, and is not followed."""

from __future__ import annotations

import re

from ptxdsl.protocol import ptx_operations
from ptxdsl.protocol.model import Node, Unmodelled
from ptxdsl.protocol.tir_integers import Integers
from ptxdsl.ptx.module import Instruction
from ptxdsl.tir import Op

_OPCODE = re.compile(r"(?:^|[;{}:])\s*+(?:@!?[$%\w]++\s++)?+([a-z][\w.:]*+)")  # behind a label and a guard
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def acts(op: Op) -> bool:
    """Whether inline assembly may do more than compute from its operands, whatever it says of side effects."""
    if op.attrs.get("side_effects", True):
        return True
    text = _COMMENT.sub(" ", str(op.attrs["text"]))
    return any(ptx_operations.is_protocol(Instruction(opcode, (), None, 0)) for opcode in _OPCODE.findall(text))


def assembly(op: Op, integers: Integers) -> list[Node]:
    """What inline assembly does that acts."""
    return [
        Unmodelled(
            op.span, "what inline assembly does is not modelled", "use the library's function for the instruction"
        )
    ]
