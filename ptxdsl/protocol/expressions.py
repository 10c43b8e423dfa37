"""The integers of a protocol (``model.py``), symbolic: values, conditions, trip counts and addresses.

They are those of the source language: two's complement of their width, kept signed, with nothing undefined (``tir``).
Two uniform expressions that are built alike from the same leaves are the same object, and the same value in all threads
that see the same variables.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.hints import Any

# Addresses are integers too, so that a pointer may go through any arithmetic: an array's ``base`` has a number of its
# own in the bits from ARRAY_SHIFT up, and below them where the array may lie in 256 KiB of shared memory, the part of
# an address that matrix descriptors keep. Shared memory of another CTA is at ``mapa`` of such an address and a rank.
ARRAY_SHIFT = 20
CTA_SHIFT = 40
TENSOR = 1 << 39  # of arrays in tensor memory (``tensor_places.py``); these have more bits for themselves
TENSOR_SHIFT = 24
TENSOR_GROUP = 1 << 20  # from the columns of one group of lanes to those of the next


# Special registers that are ``uniform``: the size of the block, with its axis, and sizes of the grid. A parameter of
# the kernel never has such a name: its number stands behind a ``#``.
BLOCK_SIZES = {"ntid_x": 0, "ntid_y": 1, "ntid_z": 2}
GRID_SIZES = frozenset({"cluster_nctarank"}) | {
    f"{name}_{axis}" for name in ("nctaid", "nclusterid", "cluster_nctaid") for axis in "xyz"
}
SIZES = GRID_SIZES | BLOCK_SIZES.keys()  # none of them is negative


def array_number(address: int) -> int:
    """The number of the array that an address is in, of whichever CTA."""
    return (address & (1 << CTA_SHIFT) - 1) >> ARRAY_SHIFT


_NONE: frozenset[int] = frozenset()


class Expr:
    """An integer expression; made by the functions below, which fold constants and make equal ones the same object.

    op: ``const`` (value: int), ``uniform`` (value: its name; the same in every thread of the grid: a kernel's
    parameter, a dimension), ``cta`` (value: its name; the same in every thread of a CTA: ``ctaid_x``,
    ``cluster_ctarank``), ``tid`` (value: 0 to 2 for x, y, z; 3 for the number of the thread in its block), ``var``
    (value: its number), ``unknown`` (value: a number; may be another value in each thread and each time), ``load``
    (value: its name, args: the address; of memory that the kernel does not write), ``shuffle`` (args: a value, the lane
    of the warp that it is taken from), ``any`` and ``all`` (args: a truth value, over the warp), else an operation of
    ``ARITHMETIC`` over args, as ``tir`` has it; ``elected`` (whether the thread is the one that ``elect.sync``
    chooses), ``test`` (args: a barrier's address, a parity: whether that phase is complete), ``answer`` (args: an
    address: whether what cluster launch control has written there says that a cluster was cancelled), ``held`` (args:
    an address: what lies there in shared memory), ``drawn`` (value: whether it adds 1; what an atomic operation gives
    of a word of global memory). bits: the width of the result, 1 for truth values. variables: the numbers of those in
    it.
    """

    __slots__ = ("args", "bits", "op", "value", "variables")

    def __init__(self, op: str, value: Any, args: tuple[Expr, ...], bits: int) -> None:
        self.op = op
        self.value = value
        self.args = args
        self.bits = bits
        self.variables: frozenset[int] = frozenset((value,)) if op == "var" else _NONE
        for arg in args:
            if arg.variables is not _NONE:
                self.variables = arg.variables if self.variables is _NONE else self.variables | arg.variables

    def __repr__(self) -> str:
        if self.op == "const":
            return str(self.value)
        if self.op in ("uniform", "cta"):
            return f"{self.value}"
        if not self.args:
            return f"{self.op}{self.value}"
        return f"({self.op} {' '.join(map(repr, self.args))})"


_known: dict[tuple[Any, ...], Expr] = {}
_KNOWN_LIMIT = 200_000  # of a process that checks many kernels


def _made(op: str, value: Any, args: tuple[Expr, ...], bits: int) -> Expr:
    if len(args) == 2:
        key: tuple[Any, ...] = (op, value, bits, id(args[0]), id(args[1]))
    else:
        key = (op, value, bits, *map(id, args))
    found = _known.get(key)
    if found is None:
        if len(_known) >= _KNOWN_LIMIT:
            _known.clear()
        found = _known[key] = Expr(op, value, args, bits)
    return found


def const(value: int, bits: int = 32) -> Expr:
    return _known.get(("const", value, bits)) or _made("const", value, (), bits)


def uniform(name: str, bits: int = 32) -> Expr:
    """The same value in every thread of the grid, known when the kernel is launched."""
    return _made("uniform", name, (), bits)


def cta(name: str, bits: int = 32) -> Expr:
    """The same value in every thread of a CTA; another CTA may have another."""
    return _made("cta", name, (), bits)


def tid(axis: int) -> Expr:
    return _made("tid", axis, (), 32)


def var(number: int, bits: int = 32) -> Expr:
    return _made("var", number, (), bits)


def unknown(number: int, bits: int = 32) -> Expr:
    return _made("unknown", number, (), bits)


def load(name: str, address: Expr, bits: int) -> Expr:
    """What lies at an address of the array ``name``, which nobody writes while the kernel runs."""
    return _made("load", name, (address,), bits)


def elected(bits: int = 1, lanes: Expr | None = None) -> Expr | None:
    """Whether a thread is the one that ``elect.sync`` of these lanes chooses: the lowest. lanes None: all.

    None where the lanes are not known.
    """
    if lanes is None or (lanes.op == "const" and wrap(lanes.value, 32) == -1):
        return _made("elected", None, (), bits)
    if lanes.op != "const" or not lanes.value & 0xFFFFFFFF:
        return None
    lowest = (lanes.value & -lanes.value).bit_length() - 1
    chosen = apply("eq", apply("mod.u", tid(3), const(32)), const(lowest), bits=1)
    return chosen if bits == 1 else apply("ext.u", chosen, bits=bits)


def test(barrier: Expr, parity: Expr) -> Expr:
    return _made("test", None, (barrier, parity), 1)


def answer(address: Expr) -> Expr:
    """What ``clusterlaunchcontrol.query_cancel.is_canceled`` says of the answer at an address, when it is read."""
    return _made("answer", None, (address,), 1)


def held(address: Expr, bits: int) -> Expr:
    """What lies at an address of shared memory when it is read."""
    return _made("held", None, (address,), bits)


def drawn(rising: bool, bits: int) -> Expr:
    """What an atomic operation gives of a word of global memory, before it changes it. rising: whether it adds 1."""
    return _made("drawn", rising, (), bits)


def shuffle(value: Expr, lane: Expr) -> Expr:
    """The value that another lane of the warp has."""
    return value if value.op in ("const", "uniform", "cta") else _made("shuffle", None, (value, lane), value.bits)


def vote(op: str, value: Expr, lanes: Expr | None = None) -> Expr | None:
    """op: ``any`` or ``all``, over the warp. None where some lanes alone vote (lanes: which do; None: all)."""
    if value.op in ("const", "uniform", "cta"):
        return value
    if lanes is not None and (lanes.op != "const" or wrap(lanes.value, 32) != -1):
        return None
    return _made(op, None, (value,), 1)


def apply(op: str, *args: Expr, bits: int = 32) -> Expr:
    """An operation; what is constant is computed."""
    for arg in args:
        if arg.op != "const":
            return _made(op, None, args, bits)
    if op in ARITHMETIC:
        return const(compute(op, [arg.value for arg in args], bits, args[0].bits if args else bits), bits)
    return _made(op, None, args, bits)


def leaves(expr: Expr) -> Iterator[Expr]:
    """The leaves of an expression, some of them more than once."""
    if not expr.args:
        yield expr
    for arg in expr.args:
        yield from leaves(arg)


def nodes(expr: Expr) -> Iterator[Expr]:
    """An expression and all that it is made of, each once."""
    seen: set[int] = set()
    work = [expr]
    while work:
        at = work.pop()
        if id(at) not in seen:
            seen.add(id(at))
            yield at
            work.extend(at.args)


def wrap(value: int, bits: int) -> int:
    """value in two's complement of bits, signed (a truth value: 0 or 1)."""
    if bits == 1:
        return value & 1
    half = 1 << (bits - 1)
    return ((value + half) & ((half << 1) - 1)) - half


def _unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def _div_t(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# op → (whether operands are taken as unsigned, what it computes of operands and their width)
ARITHMETIC: dict[str, tuple[bool, Any]] = {
    "add": (False, lambda a, b, w: a + b),
    "sub": (False, lambda a, b, w: a - b),
    "mul": (False, lambda a, b, w: a * b),
    "div.s": (False, lambda a, b, w: _div_t(a, b)),
    "div.u": (True, lambda a, b, w: a // b if b else 0),
    "floordiv.s": (False, lambda a, b, w: a // b if b else 0),
    "floordiv.u": (True, lambda a, b, w: a // b if b else 0),
    "mod.s": (False, lambda a, b, w: a % b if b else 0),
    "mod.u": (True, lambda a, b, w: a % b if b else 0),
    "rem.s": (False, lambda a, b, w: a - b * _div_t(a, b) if b else a),
    "rem.u": (True, lambda a, b, w: a % b if b else a),
    "and": (False, lambda a, b, w: a & b),
    "or": (False, lambda a, b, w: a | b),
    "xor": (False, lambda a, b, w: a ^ b),
    "shl": (False, lambda a, b, w: a << b if 0 <= b < w else 0),
    "shr.s": (False, lambda a, b, w: a >> (b if 0 <= b < w else w - 1)),
    "shr.u": (True, lambda a, b, w: a >> b if b < w else 0),
    "min.s": (False, lambda a, b, w: min(a, b)),
    "min.u": (True, lambda a, b, w: min(a, b)),
    "max.s": (False, lambda a, b, w: max(a, b)),
    "max.u": (True, lambda a, b, w: max(a, b)),
    "abs.s": (False, lambda a, w: abs(a)),
    "eq": (False, lambda a, b, w: a == b),
    "ne": (False, lambda a, b, w: a != b),
    "lt.s": (False, lambda a, b, w: a < b),
    "le.s": (False, lambda a, b, w: a <= b),
    "gt.s": (False, lambda a, b, w: a > b),
    "ge.s": (False, lambda a, b, w: a >= b),
    "lt.u": (True, lambda a, b, w: a < b),
    "le.u": (True, lambda a, b, w: a <= b),
    "gt.u": (True, lambda a, b, w: a > b),
    "ge.u": (True, lambda a, b, w: a >= b),
    "not": (False, lambda a, w: a ^ 1),
    "select": (False, lambda c, a, b, w: a if c else b),
    "ext.s": (False, lambda a, w: a),
    "ext.u": (True, lambda a, w: a),
    "trunc": (False, lambda a, w: a),
    "mapa": (False, lambda a, rank, w: a + ((rank + 1) << CTA_SHIFT)),
}


# The same number in another width, where it fits: of any, and of signed ones.
CONVERSIONS = frozenset({"ext.s", "ext.u", "trunc"})
SIGNED_CONVERSIONS = CONVERSIONS - {"ext.u"}
SUMS_FROM = 32  # bits of sums that are taken not to wrap


def compute(op: str, operands: list[int], bits: int, operand_bits: int) -> int:
    """An operation of ``ARITHMETIC`` on signed operands of ``operand_bits``; the result as ``wrap`` has it."""
    unsigned, function = ARITHMETIC[op]
    if unsigned:
        operands = [_unsigned(value, operand_bits) for value in operands]
    return wrap(int(function(*operands, operand_bits)), bits)


def tensor_address(number: int) -> int:
    """The 32-bit address that stands for what an allocation of tensor memory gives."""
    return (number + 1) << TENSOR_SHIFT
