"""Arguments of a launch that are given by the names of the kernel's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptxdsl.diagnostics import launch_error, nearest

# The parameters of launches, prepared ones and simulations: no argument of this name can be given by it.
KEYWORDS = frozenset({
    "arch", "block", "cluster", "cooperative", "grid", "limits", "pdl", "record", "schedule", "smem", "stream",
    "target", "timeout", "trace",
})  # fmt: skip


def in_order(
    kernel: str, names: Sequence[str], constants: Sequence[str], arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The arguments of a launch of ``kernel``: those given by position, then the named ones in the parameters' order.

    names: of its parameters; constants: of its compile-time ones. Raises LaunchError E0903 where they do not fit.
    """
    for name in named:
        if name not in names:
            if name in constants:
                help = f"it is a compile-time parameter: {kernel}.specialize({name}=…)[grid, block](…)"
            else:
                close = nearest(name, names)
                help = f"did you mean '{close}'?" if close else f"its arguments: {', '.join(names) or 'none'}"
            raise launch_error("E0903", f"kernel '{kernel}' has no argument '{name}'", help=help)
        if name in names[: len(arguments)]:
            raise launch_error("E0903", f"argument '{name}' of kernel '{kernel}' is given by position and by name")
    missing = [name for name in names[len(arguments) :] if name not in named]
    if missing:
        given = ", ".join(f"'{name}'" for name in missing)
        taken = [f"'{name}'" for name in missing if name in KEYWORDS]
        which, them = ("is also a keyword", "it") if len(taken) == 1 else ("are also keywords", "them")
        remedy = f"{' and '.join(taken)} {which} of launches: give {them} by position" if taken else None
        raise launch_error("E0903", f"kernel '{kernel}' is given no argument {given}", help=remedy)
    return (*arguments, *(named[name] for name in names[len(arguments) :]))
