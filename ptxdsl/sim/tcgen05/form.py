"""The forms of ``tcgen05`` instructions: qualifiers that each must have, and its operands.

An instruction of another form is not executed, as ptxas would not take it.

Source: PTX ISA, the syntax of "tcgen05.alloc, …", "tcgen05.ld", "tcgen05.st", "tcgen05.wait", "tcgen05.cp",
"tcgen05.shift", "tcgen05.mma", "tcgen05.mma.ws", "tcgen05.fence", "tcgen05.commit".
"""

from __future__ import annotations

from ptxdsl.ptx.module import Address, Immediate, Instruction, Not, Operand, Register, Symbol, Vector
from ptxdsl.record import dataclass

_GROUP = ("cta_group::1", "cta_group::2")
_WARP = (("sync",), ("aligned",))


@dataclass(frozen=True)
class Syntax:
    """needs: exactly one qualifier of each group. may: further ones; None: the instruction's own module knows them.

    operands: the lists that it may have, in the letters of ``LETTERS``.
    """

    needs: tuple[tuple[str, ...], ...] = ()
    operands: tuple[str, ...] = ("",)
    may: tuple[str, ...] | None = None


LETTERS = {"a": "[address]", "v": "value", "i": "immediate", "r": "registers", "p": "predicate", "m": "{mask, …}"}

SYNTAX: dict[str, Syntax] = {
    "alloc": Syntax((_GROUP, *_WARP, ("b32",)), ("av",), ("shared::cta",)),
    "dealloc": Syntax((_GROUP, *_WARP, ("b32",)), ("vv",), ()),
    "relinquish_alloc_permit": Syntax((_GROUP, *_WARP), may=()),
    "ld": Syntax(_WARP, ("ra",)),
    "ld.16x32bx2": Syntax(_WARP, ("rai",)),
    "ld.red": Syntax(_WARP, ("rva",)),
    "ld.red.16x32bx2": Syntax(_WARP, ("rvai",)),
    "st": Syntax((*_WARP, ("b32",)), ("ar",)),
    "st.16x32bx2": Syntax((*_WARP, ("b32",)), ("air",)),
    "wait::ld": Syntax(_WARP, may=()),
    "wait::st": Syntax(_WARP, may=()),
    "fence::before_thread_sync": Syntax(may=()),
    "fence::after_thread_sync": Syntax(may=()),
    "cp": Syntax((_GROUP,), ("av",)),
    "shift": Syntax((_GROUP, ("down",)), ("a",)),
    "commit": Syntax((_GROUP, ("mbarrier::arrive::one",), ("b64",)), ("a",)),
    "commit.multicast::cluster": Syntax((_GROUP, ("mbarrier::arrive::one",), ("b64",)), ("av",)),
    # D, A in shared or in tensor memory, B, instruction descriptor; mask of lanes; enable-input-d; scale-input-d
    "mma": Syntax((_GROUP,), tuple(f"a{a}vv{mask}p{scale}" for a in "va" for mask in ("", "m") for scale in ("", "i"))),
    "mma.ashift": Syntax((_GROUP,), tuple(f"aavv{mask}p{scale}" for mask in ("", "m") for scale in ("", "i"))),
    "mma.block_scale": Syntax((_GROUP,), ("avvvaap", "aavvaap")),
    "mma.sp": Syntax(
        (_GROUP,), tuple(f"a{a}vav{mask}p{scale}" for a in "va" for mask in ("", "m") for scale in ("", "i"))
    ),
    "mma.block_scale.sp": Syntax((_GROUP,), ("avvavaap", "aavavaap")),
    # … zero-column mask
    "mma.ws": Syntax((("cta_group::1",),), ("avvvp", "aavvp", "avvvpv", "aavvpv")),
    "mma.ws.sp": Syntax((("cta_group::1",),), ("avvavp", "aavavp", "avvavpv", "aavavpv")),
}
# What makes another form of an instruction, in the order of the names above.
_VARIANTS = ("red", "16x32bx2", "multicast::cluster", "ashift", "block_scale", "ws", "sp")


def _is(operand: Operand, letter: str) -> bool:
    match letter:
        case "a":
            return isinstance(operand, Address)
        case "i":
            return isinstance(operand, Immediate)
        case "r":
            items = operand.items if isinstance(operand, Vector) else (operand,)
            return all(not isinstance(item, (Address, Vector, Not)) for item in items)
        case "p":
            return isinstance(operand, (Register, Not, Immediate))
        case "m":
            return isinstance(operand, Vector)
    return isinstance(operand, (Register, Immediate, Symbol))


def misformed(instruction: Instruction) -> str | None:
    """What of an instruction's form is wrong."""
    _, name, *qualifiers = instruction.parts
    variant = ".".join([name, *(q for q in _VARIANTS if q in qualifiers)])
    syntax = SYNTAX.get(variant)
    if syntax is None:
        return f"{variant} does not exist"
    for group in syntax.needs:
        if sum(qualifiers.count(qualifier) for qualifier in group) != 1:
            return f"it has one of {', '.join(f'.{q}' for q in group)}" if len(group) > 1 else f".{group[0]} is missing"
    known = {qualifier for group in syntax.needs for qualifier in group}
    other = next((q for q in qualifiers if syntax.may is not None and q not in known and q not in syntax.may), None)
    if other is not None:
        return f".{other} does not exist here"
    given = instruction.operands
    for letters in syntax.operands:
        if len(given) == len(letters) and all(map(_is, given, letters)):
            return None
    lists = " or ".join(", ".join(LETTERS[letter] for letter in letters) or "none" for letters in syntax.operands[:2])
    return f"its operands do not fit: they are {lists}{', …' if len(syntax.operands) > 2 else ''}"
