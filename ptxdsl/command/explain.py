"""The long form of each diagnostic code: what the rule is, why it is there, what to write instead."""

from __future__ import annotations

from ptxdsl.diagnostics import error
from ptxdsl.explanations import EXPLANATIONS


def explain(code: str) -> str:
    """The explanation of a code, ``E0301`` or ``e0301``, ending with a line end. Raises E1008 for one there is not."""
    wanted = code.strip().upper()
    if wanted in EXPLANATIONS:
        return f"{wanted}: {EXPLANATIONS[wanted].strip()}\n"
    close = [known for known in EXPLANATIONS if known[:3] == wanted[:3]]
    listed = f"the codes of this group are {', '.join(close)}" if close else "a code looks like E0301"
    raise error("E1008", f"there is no diagnostic '{code}'", None, help=listed)
