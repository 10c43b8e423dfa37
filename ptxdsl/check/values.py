"""Values of a proof: integers, and sums of what nobody knows before the launch.

A value is an int, a ``Sum`` (a constant and multiples of atoms), a ``Test`` (a truth value that compares a Sum with 0,
or is made of such) or ``UNKNOWN``. An ``Atom`` is a launch parameter, a number of a CTA, or an operation that is not
linear; equal ones are one object, so equal values are found equal by their form. Numbers are signed, so that a large
number of an unsigned type is a negative one. Sums do not wrap: the proof holds for launches where trip counts, sizes
and offsets fit their types. So what is computed by more than sums, and then taken as unsigned, is not negative.

Loop counters are ints, whatever they have grown to. Where one is added to what is unknown it becomes an atom ``index``
with its value, and with the rates at which it grows, so that two states that differ by a number of turns can be
recognised as alike (``states.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxdsl.hints import Any

INFINITE = 1 << 62
_SIGNS = {"mul": "*", "floordiv": "//", "div": "/", "mod": "%", "rem": "%", "and": "&", "or": "|", "xor": "^"}
CHOICES = frozenset({"select", "min.s", "min.u", "max.s", "max.u"})


class Unknown:
    """A value that nothing is known of; it may differ between threads."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()


class Atom:
    """op: ``symbol`` (name), ``index`` (value; rates by group), ``recurrence`` (name: the ``Recurrence``; args: turns,
    what it begins with), ``held``, ``drawn`` (name: a number; see ``held.py``), else an operation over args (values).

    low, high: bounds that hold whatever the launch; those of a symbol's type, of so many bits, are not among them.
    moving: whether an index is in it.
    """

    __slots__ = ("args", "bits", "high", "low", "moving", "name", "number", "op")

    def __init__(
        self, number: int, op: str, name: Any, args: tuple[Any, ...], low: int, high: int, bits: int = 64
    ) -> None:
        self.bits = bits
        self.number = number
        self.op = op
        self.name = name
        self.args = args
        self.low = low
        self.high = high
        self.moving = op == "index" or any(isinstance(a, Sum) and a.moving for a in args)

    def __repr__(self) -> str:
        if self.op == "symbol":
            return str(self.name).partition("#")[0]
        if self.op == "index":
            return str(self.name[0])
        name = self.op.partition(".")[0]
        if name in _SIGNS and len(self.args) == 2:
            return f"({self.args[0]!r} {_SIGNS[name]} {self.args[1]!r})"
        if name == "select":
            condition, a, b = self.args
            return f"({a!r} if {condition!r} else {b!r})"
        return f"{name}({', '.join(map(repr, self.args))})"


class Sum:
    """constant + the sum of coefficient * atom; never without atoms. terms are in the order of the atoms' numbers.

    simple: there are no counters in it, nor choices between values.
    """

    __slots__ = ("constant", "hashed", "moving", "parts", "simple", "terms")

    def __init__(self, constant: int, terms: tuple[tuple[Atom, int], ...]) -> None:
        self.constant = constant
        self.terms = terms
        self.hashed = hash((constant, terms))
        self.parts: Any = None  # kept by ``facts.parts``
        self.moving = False
        self.simple = True
        for atom, _ in terms:
            if atom.moving:
                self.moving = True
                self.simple = False
            elif atom.op in CHOICES:
                self.simple = False

    def __hash__(self) -> int:
        return self.hashed

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Sum) and self.constant == other.constant and self.terms == other.terms

    def __repr__(self) -> str:
        """As one writes it: what is added first."""
        terms = [(c, f"{a!r}" if abs(c) == 1 else f"{abs(c)} * {a!r}") for a, c in self.terms]
        terms += [(self.constant, str(abs(self.constant)))] if self.constant else []
        (first, text), *rest = sorted(terms, key=lambda term: term[0] < 0)
        return ("-" if first < 0 else "") + text + "".join(f" {'-' if c < 0 else '+'} {term}" for c, term in rest)


Value = int | Sum | Any


def total(constant: int, terms: Mapping[Atom, int]) -> Value:
    """A sum in its normal form."""
    kept = sorted(((a, c) for a, c in terms.items() if c), key=_number)
    return Sum(constant, tuple(kept)) if kept else constant


def _number(term: tuple[Atom, int]) -> int:
    return term[0].number


def add(a: Value, b: Value, sign: int = 1) -> Value:
    """a + sign * b, of ints and Sums."""
    if isinstance(a, int):
        if isinstance(b, int):
            return a + sign * b
        if sign == 1:
            return Sum(a + b.constant, b.terms)
        return Sum(a - b.constant, tuple((atom, -c) for atom, c in b.terms))
    if isinstance(b, int):
        return Sum(a.constant + sign * b, a.terms)
    terms = dict(a.terms)
    for atom, c in b.terms:
        terms[atom] = terms.get(atom, 0) + sign * c
    return total(a.constant + sign * b.constant, terms)


def scale(a: Value, factor: int) -> Value:
    if isinstance(a, int):
        return a * factor
    return Sum(a.constant * factor, tuple((atom, c * factor) for atom, c in a.terms)) if factor else 0


class Test:
    """A truth value. op: ``lt`` (value < 0), ``eq`` (value == 0), ``not`` (args), ``and``, ``or``."""

    __slots__ = ("args", "op", "value", "ways")

    def __init__(self, op: str, value: Value = 0, args: tuple[Any, ...] = ()) -> None:
        self.ways: Any = None  # kept by ``Facts``
        self.op = op
        self.value = value
        self.args = args

    def __repr__(self) -> str:
        if self.op in ("lt", "eq"):
            return f"{self.value!r} {'<' if self.op == 'lt' else '=='} 0"
        return f"{self.op}({', '.join(map(repr, self.args))})"

    def key(self) -> tuple[Any, ...]:
        return (self.op, self.value, *(a.key() if isinstance(a, Test) else a for a in self.args))

    def __hash__(self) -> int:
        return hash(self.key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Test) and self.key() == other.key()


def negated(test: Any) -> Any:
    if isinstance(test, int):
        return 1 - test
    if isinstance(test, Test):
        return test.args[0] if test.op == "not" else Test("not", 0, (test,))
    return Test("eq", test) if isinstance(test, Sum) else UNKNOWN


class Symbols:
    """The atoms of one proof."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], Atom] = {}

    def atom(self, op: str, name: Any, args: tuple[Any, ...] = (), low: int = -INFINITE, high: int = INFINITE) -> Atom:
        key = (op, name, args)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = Atom(len(self.known), op, name, args, low, high)
        return found

    def symbol(self, name: str, low: int = -INFINITE, bits: int = 64) -> Sum:
        atom = self.atom("symbol", name, (), low)
        atom.bits = bits
        return Sum(0, ((atom, 1),))

    def index(self, value: int, rates: tuple[tuple[int, int, int], ...]) -> Sum:
        """A value that has grown with loops. rates: (group, turns, growth): what so many turns of the group add."""
        return Sum(0, ((self.atom("index", (value, rates)), 1),))

    def recurrence(self, form: Any, args: tuple[Any, ...], low: int) -> Value:
        """args: turns, what it begins with."""
        return UNKNOWN if any(a is UNKNOWN for a in args) else Sum(0, ((self.atom("recurrence", form, args, low), 1),))

    def operation(self, op: str, args: tuple[Any, ...], bits: int) -> Value:
        """What is no sum, as an atom of its own."""
        if any(a is UNKNOWN for a in args):
            return UNKNOWN
        low, high = _bounds(op, args)
        return Sum(0, ((self.atom(op, bits, args, low, high), 1),))


def _bounds(op: str, args: tuple[Any, ...]) -> tuple[int, int]:
    """Of the result of an operation, as signed."""
    first, last = args[-2:] if len(args) > 1 else (args[0], args[0])
    if op == "select" and isinstance(first, int) and isinstance(last, int):
        return min(first, last), max(first, last)
    constant = last if isinstance(last, int) else None
    if op in ("mod.s", "mod.u", "rem.u") and constant is not None and constant > 0:
        return 0, constant - 1
    if op == "and" and constant is not None and constant >= 0:
        return 0, constant
    if op in ("min.s", "max.s") and constant is not None:
        return (-INFINITE, constant) if op == "min.s" else (constant, INFINITE)
    if op.endswith(".u") or (op == "select" and not_negative(first) and not_negative(last)):
        return 0, INFINITE
    return -INFINITE, INFINITE


def in_range(value: Sum, bits: int) -> bool:
    """Whether a sum is a number of a signed type, as far as the bounds of its parts tell."""
    low = high = value.constant
    for atom, factor in value.terms:
        ends = atom.low * factor, atom.high * factor
        low, high = low + min(ends), high + max(ends)
    return -(1 << (bits - 1)) <= low and high < 1 << (bits - 1)


def not_negative(value: Any) -> bool:
    """Whether a value is made of parts alone that are not negative. Counters are not, where they grow."""
    if isinstance(value, int):
        return value >= 0
    if not isinstance(value, Sum) or value.constant < 0:
        return False
    return all(c > 0 and (atom.low >= 0 or _counts_up(atom)) for atom, c in value.terms)


def may_be_negative(value: Any) -> bool:
    """Whether it is a sum of what nobody has computed, as ``n - 1``, which may be less than 0."""
    if not isinstance(value, Sum):
        return isinstance(value, int) and value < 0
    given = all(atom.op in ("symbol", "index", "load") for atom, _ in value.terms)
    return given and not not_negative(value)


def _counts_up(atom: Atom) -> bool:
    return atom.op == "index" and atom.name[0] >= 0 and all(growth >= 0 for *_, growth in atom.name[1])


def is_simple(value: Value) -> bool:
    """Whether it is a number, or a sum of what is no operation."""
    if not isinstance(value, Sum):
        return isinstance(value, int)
    return all(atom.op in ("symbol", "index", "load", "recurrence", "held", "drawn") for atom, _ in value.terms)
