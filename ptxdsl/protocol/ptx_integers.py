"""What integer instructions of PTX compute, as expressions of the model.

Source: PTX ISA, "Integer Arithmetic Instructions", "Comparison and Selection Instructions", "Logic and Shift
Instructions", "Data Movement and Conversion Instructions", "Special Registers".
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxdsl.protocol import expressions
from ptxdsl.protocol.algebra import PEER_MASK, plain, same_width
from ptxdsl.protocol.expressions import Expr, const, wrap
from ptxdsl.ptx.module import Immediate, Instruction, Operand, Pair, Register, Symbol

# Reads an operand as an integer of a width; None where it is none (a float, a vector, an opaque handle).
Read = Callable[[Operand, int], Expr]

_TYPE = re.compile(r"([busf])(\d+)$|pred$")
_COMPARISONS = {
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "lo": "lt.u", "ls": "le.u", "hi": "gt.u",
    "hs": "ge.u",
}  # fmt: skip
_SIGNED = {"div": "div.{}", "rem": "rem.{}", "min": "min.{}", "max": "max.{}"}
_SAME = frozenset(("and", "or", "xor", "add", "sub"))
_AXES = {"x": 0, "y": 1, "z": 2}
_CTA = frozenset(("ctaid", "clusterid", "cluster_ctaid"))
_GRID = frozenset(("ntid", "nctaid", "nclusterid", "cluster_nctaid"))
_SCALARS_OF_CTA = frozenset(("cluster_ctarank",))
_SCALARS_OF_GRID = frozenset(("cluster_nctarank", "nsmid", "dynamic_smem_size", "total_smem_size", "nwarpid"))
_ADDRESS_BITS = 64


def type_of(opcode: str) -> tuple[str, int]:
    """The last type of a dotted opcode: its letter and width, ``("p", 1)`` of predicates; ``("", 0)``: none."""
    for part in reversed(opcode.split(".")):
        match = _TYPE.match(part)
        if match is not None:
            return (match[1], int(match[2])) if match[1] else ("p", 1)
    return "", 0


def special(name: str) -> Expr | None:
    """A special register; None where its value says nothing that threads could share."""
    word, _, axis = name[1:].partition(".")
    if word == "tid":
        return expressions.tid(_AXES[axis]) if axis in _AXES else const(0)
    lane = plain("and", expressions.tid(3), const(31))
    if word == "laneid":
        return lane
    if word in _SCALARS_OF_CTA:
        return expressions.cta(word)
    if word in _SCALARS_OF_GRID:
        return expressions.uniform(word)
    if word in _CTA | _GRID:
        if axis not in _AXES:
            return const(0)
        return (expressions.cta if word in _CTA else expressions.uniform)(f"{word}_{axis}")
    if word.startswith("lanemask_"):
        return _lane_mask(word[9:], lane)
    return None


def _lane_mask(which: str, lane: Expr) -> Expr:
    own = expressions.apply("shl", const(1), lane)
    below = plain("sub", own, const(1))
    masks = {"eq": own, "lt": below, "le": plain("or", below, own)}
    if which in masks:
        return masks[which]
    return plain("xor", masks["le" if which == "gt" else "lt"], const(-1))


def result(instruction: Instruction, read: Read) -> list[Expr | None]:
    """Of each destination (of ``d|p`` two) what it becomes; None: nothing that is known."""
    first, *rest = instruction.opcode.split(".")
    letter, bits = type_of(instruction.opcode)
    operands = instruction.operands[1:]
    handler = HANDLERS.get(first)
    if handler is None or not bits:
        return [None]
    found = handler(rest, letter, bits, operands, read)
    return found if isinstance(found, list) else [found]


Found = Expr | None | list[Expr | None]


def _number(letter: str) -> str:
    return "s" if letter == "s" else "u"


def _move(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    (a,) = operands
    if not isinstance(a, Register | Immediate | Symbol) or bits > 64:
        return None
    return read(a, bits)


def _arithmetic(op: str) -> Callable[..., Found]:
    def handle(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
        if letter == "f" or len(operands) != 2 or not {"cc", "sat"}.isdisjoint(rest):
            return None
        name = op if op in _SAME else _SIGNED[op].format(_number(letter))
        a, b = read(operands[0], bits), read(operands[1], bits)
        if a.bits != b.bits and op in ("add", "sub"):
            a, b = same_width(a, b)
            return plain(name, a, b, bits=a.bits)
        if a.bits != b.bits:
            return None
        if op == "and" and b == const(PEER_MASK):
            rank = plain("and", expressions.cta("cluster_ctarank"), const(-2))
            return plain("mapa", plain("ext.u", a, bits=_ADDRESS_BITS), rank, bits=_ADDRESS_BITS)
        return plain(name, a, b, bits=a.bits)

    return handle


def _product(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    """mul and mad: .lo, .wide, .hi."""
    if letter == "f" or not {"cc", "sat"}.isdisjoint(rest) or not 2 <= len(operands) <= 3:
        return None
    a, b = (read(operand, bits) for operand in operands[:2])
    if "lo" in rest:
        wide = bits
        product = plain("mul", a, b, bits=bits)
    elif "wide" in rest or ("hi" in rest and bits < 64):
        wide = 2 * bits
        extend = f"ext.{_number(letter)}"
        product = plain("mul", plain(extend, a, bits=wide), plain(extend, b, bits=wide), bits=wide)
        if "hi" in rest:
            shifted = plain(f"shr.{_number(letter)}", product, const(bits, wide), bits=wide)
            product, wide = plain("trunc", shifted, bits=bits), bits
    else:
        return None
    if len(operands) == 2:
        return product
    left, right = same_width(product, read(operands[2], wide))
    return plain("add", left, right, bits=left.bits)


def _unary(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read, op: str) -> Found:
    if letter == "f" or len(operands) != 1:
        return None
    a = read(operands[0], bits)
    if op == "neg":
        return plain("sub", const(0, bits), a, bits=bits)
    if op == "abs":
        return plain("abs.s", a, bits=bits)
    if op == "not":
        return plain("not", a, bits=1) if bits == 1 else plain("xor", a, const(-1, bits), bits=bits)
    equal = plain("eq", a, const(0, bits), bits=1)  # cnot
    return plain("ext.u", equal, bits=bits)


def _unary_of(op: str) -> Callable[..., Found]:
    def handle(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
        return _unary(rest, letter, bits, operands, read, op)

    return handle


def _shift(op: str) -> Callable[..., Found]:
    def handle(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
        if len(operands) != 2:
            return None
        a, amount = read(operands[0], bits), read(operands[1], 32)
        name = "shl" if op == "shl" else f"shr.{_number(letter)}"
        return plain(name, a, plain("ext.u" if bits > 32 else "trunc", amount, bits=bits), bits=bits)

    return handle


def _compare(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    """setp: the second destination, where there is one, gets the opposite."""
    if letter == "f" or rest[0] not in _COMPARISONS:
        return [None, None]
    name = _COMPARISONS[rest[0]]
    if name in ("lt", "le", "gt", "ge"):
        name = f"{name}.{_number(letter)}"
    a, b = same_width(read(operands[0], bits), read(operands[1], bits))
    found = plain(name, a, b, bits=1)
    combine = rest[1] if len(operands) == 3 else None
    both = [found, plain("not", found, bits=1)]
    if combine is None:
        return list(both)
    third = read(operands[2], 1)
    return [plain(combine, one, third, bits=1) for one in both] if combine in ("and", "or", "xor") else [None, None]


def _set(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    """set.cmp.u32.type: all ones or zero."""
    if letter == "f" or len(operands) != 2 or rest[-2] not in ("u32", "s32"):
        return None
    found = _compare(rest, letter, bits, operands, read)
    assert isinstance(found, list)
    return None if found[0] is None else plain("select", found[0], const(-1), const(0), bits=32)


def _choose(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    a, b = same_width(read(operands[0], bits), read(operands[1], bits))
    return plain("select", read(operands[2], 1), a, b, bits=a.bits)


def _convert(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    """cvt between integers: rest ends with the new type and the old one."""
    if len(rest) < 2 or "sat" in rest:
        return None
    new, old = _TYPE.match(rest[-2]), _TYPE.match(rest[-1])
    if new is None or old is None or "f" in (new[1], old[1]) or not new[1] or not old[1]:
        return None
    to, of = int(new[2]), int(old[2])
    a = read(operands[0], of)
    if a.bits > of:  # an address of the cluster's shared memory
        return a
    if to < of:
        return plain("trunc", a, bits=to) if not is_remote(a) else a
    return plain(f"ext.{_number(old[1])}", a, bits=to)


def is_remote(a: Expr) -> bool:
    """Whether it is an address that ``mapa`` made: such addresses keep their width."""
    while a.op == "add":
        a = a.args[0] if a.args[0].op in ("add", "mapa") else a.args[1]
    return a.op == "mapa" or (a.op == "const" and a.value >> expressions.CTA_SHIFT > 0)


def _address(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    """cvta: a generic address is the shared one, zero-extended, and the global one as it is."""
    return read(operands[0], bits)


def _map(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    a = plain("ext.u", read(operands[0], bits), bits=_ADDRESS_BITS)
    return plain("mapa", a, read(operands[1], 32), bits=_ADDRESS_BITS)


def _extract(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    """bfe of a constant field."""
    a, position, length = read(operands[0], bits), read(operands[1], 32), read(operands[2], 32)
    if position.op != "const" or length.op != "const" or not (position.value >= 0 < length.value):
        return None
    if position.value + length.value > bits:
        return None
    up = plain("shl", a, const(bits - position.value - length.value, bits), bits=bits)
    return plain(f"shr.{_number(letter)}", up, const(bits - length.value, bits), bits=bits)


def _insert(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    """bfi of a constant field."""
    a, b, position, length = read(operands[0], bits), read(operands[1], bits), *(read(o, 32) for o in operands[2:4])
    if position.op != "const" or length.op != "const" or not (position.value >= 0 < length.value):
        return None
    if position.value + length.value > bits:
        return None
    mask = ((1 << length.value) - 1) << position.value
    moved = plain("shl", a, const(position.value, bits), bits=bits)
    inside = plain("and", moved, const(wrap(mask, bits), bits), bits=bits)
    return plain("or", plain("and", b, const(wrap(~mask, bits), bits), bits=bits), inside, bits=bits)


def _logic(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    """lop3 with a constant table: the sum of its minterms."""
    table = operands[3] if len(operands) == 4 else None
    if not isinstance(table, Immediate) or bits != 32:
        return None
    a, b, c = (read(operand, bits) for operand in operands[:3])
    inverse = [plain("xor", v, const(-1), bits=32) for v in (a, b, c)]
    found = const(0)
    for term in range(8):
        if table.value >> term & 1:
            # The table's index: bit 2 of a, bit 1 of b, bit 0 of c.
            picked = [v if term >> (2 - i) & 1 else inverse[i] for i, v in enumerate((a, b, c))]
            both = plain("and", plain("and", picked[0], picked[1]), picked[2])
            found = plain("or", found, both)
    return found


def _funnel(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    """shf by a constant."""
    a, b, amount = (read(operand, 32) for operand in operands)
    if amount.op != "const" or bits != 32:
        return None
    by = amount.value & 31 if "wrap" in rest else min(amount.value & 0xFFFFFFFF, 32)
    if by == 0:
        return b if rest[0] == "l" else a
    if by == 32:
        return a if rest[0] == "l" else b
    left = rest[0] == "l"
    high = plain("shl", b, const(by if left else 32 - by))
    low = plain("shr.u", a, const(32 - by if left else by))
    return plain("or", high, low)


def _vote(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    if "any" in rest or "all" in rest:
        lanes = read(operands[1], 32) if "sync" in rest else None
        return expressions.vote("any" if "any" in rest else "all", read(operands[0], 1), lanes)
    return None


def _shuffle(rest: list[str], letter: str, bits: int, operands: tuple[Operand, ...], read: Read) -> Found:
    """shfl.sync over the whole warp."""
    value, by, clamp = read(operands[0], 32), read(operands[1], 32), read(operands[2], 32)
    lane = plain("and", expressions.tid(3), const(31))
    if "idx" in rest and clamp == const(31):
        return [expressions.shuffle(value, plain("and", by, const(31))), const(1, 1)]
    if "bfly" in rest and clamp == const(31):
        return [expressions.shuffle(value, plain("xor", lane, by)), const(1, 1)]
    if "down" in rest and clamp == const(31):
        source = plain("add", lane, by)
        inside = plain("le.u", source, const(31), bits=1)
    elif "up" in rest and clamp == const(0):
        source = plain("sub", lane, by)
        inside = plain("ge.s", source, const(0), bits=1)
    else:
        return [None, None]
    return [expressions.shuffle(value, plain("select", inside, source, lane)), inside]


HANDLERS: dict[str, Callable[..., Found]] = {
    "mov": _move,
    **{op: _arithmetic(op) for op in ("add", "sub", "and", "or", "xor", "div", "rem", "min", "max")},
    "mul": _product,
    "mad": _product,
    **{op: _unary_of(op) for op in ("neg", "abs", "not", "cnot")},
    "shl": _shift("shl"),
    "shr": _shift("shr"),
    "setp": _compare,
    "set": _set,
    "selp": _choose,
    "cvt": _convert,
    "cvta": _address,
    "mapa": _map,
    "bfe": _extract,
    "bfi": _insert,
    "lop3": _logic,
    "shf": _funnel,
    "vote": _vote,
    "shfl": _shuffle,
}


def elected(instruction: Instruction, read: Read) -> list[Expr | None]:
    """elect.sync: whose lane it is, and whether it is the own one."""
    chosen = expressions.elected(1, read(instruction.operands[-1], 32))
    return [None, chosen] if isinstance(instruction.operands[0], Pair) else [chosen]
