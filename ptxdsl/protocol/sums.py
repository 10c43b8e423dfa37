"""Addresses as sums: what compilers make of bits that do not overlap, and of remainders, is arithmetic again.

``slot * 1024 | thread * 4`` is a sum where a thread's part is below 1024; that may hang on the branch it stands in. A
proof takes sums apart into what threads share and what each has for itself.
"""

from __future__ import annotations

from ptxdsl.protocol.algebra import linear, of_linear, plain, rebuilt
from ptxdsl.protocol.expressions import ARITHMETIC, Expr, const, wrap
from ptxdsl.protocol.facts import NOTHING, Facts
from ptxdsl.protocol.model import Branch, Loop, Node, Seq
from ptxdsl.protocol.rewriting import assigned, with_own_expressions
from ptxdsl.record import replace

MAX_THREADS = 1024
_DIVISIONS = {"div.u": "mod.u", "floordiv.u": "mod.u", "floordiv.s": "mod.s"}


def as_sums(program: Seq, threads: tuple[int, int, int] | None, turns: frozenset[int]) -> Seq:
    """threads: the block's shape, where it is known. turns: the variables that number the turns of loops."""
    sizes = (*threads, threads[0] * threads[1] * threads[2]) if threads is not None else (MAX_THREADS,) * 4
    return _Sums(sizes, turns).seq(program, NOTHING)


class _Sums:
    def __init__(self, sizes: tuple[int, ...], turns: frozenset[int]) -> None:
        self.sizes = sizes
        self.turns = turns

    def seq(self, seq: Seq, facts: Facts) -> Seq:
        out: list[Node] = []
        here = _Here(self.sizes, self.turns, facts)
        for node in seq.nodes:
            if isinstance(node, Seq):
                out.append(self.seq(node, here.facts))
            else:
                inner = here.facts.without(assigned(node)) if isinstance(node, Loop) else here.facts
                if inner is not here.facts:
                    here = _Here(self.sizes, self.turns, inner)
                new = with_own_expressions(node, here.of)
                if isinstance(new, Branch):
                    opposite = plain("not", new.condition, bits=1)
                    then = self.seq(new.then, inner.and_(new.condition))
                    new = Branch(new.condition, then, self.seq(new.orelse, inner.and_(opposite)), new.span)
                elif isinstance(new, Loop):
                    new = replace(new, body=self.seq(new.body, inner))
                out.append(new)
            changed = assigned(node)
            if changed:
                here = _Here(self.sizes, self.turns, here.facts.without(changed))
        return Seq(tuple(out))


class _Here:
    """Expressions at a place, with what is known there."""

    def __init__(self, sizes: tuple[int, ...], turns: frozenset[int], facts: Facts) -> None:
        self.sizes = sizes
        self.turns = turns
        self.facts = facts
        self.known: dict[Expr, Expr] = {}
        self.possible: dict[Expr, int] = {}

    def of(self, expr: Expr) -> Expr:
        found = self.known.get(expr)
        if found is None:
            found = self.known[expr] = self._of(expr)
        return found

    def _of(self, expr: Expr) -> Expr:
        if not expr.args:
            return expr
        args = [self.of(arg) for arg in expr.args]
        if expr.op not in ARITHMETIC:
            return rebuilt(expr, tuple(args))
        new = plain(expr.op, *args, bits=expr.bits)
        if new.args and not self.bits(new):
            return const(0, new.bits)
        if new.op == "shr.s" and not self.is_negative(new.args[0]):
            new = self.quotient(new) or plain("shr.u", *new.args, bits=new.bits)
        if new.op in ("lt.s", "ge.s") and new.args[1].op == "const" and new.args[1].value == 0:
            return new if self.is_negative(new.args[0]) else const(int(new.op == "ge.s"), 1)
        if new.op in ("or", "xor") and new.bits > 1:
            return self.disjoint(self.by_fields(new))
        if new.op == "and" and new.args[1].op == "const" and not self.bits(new.args[0]) & ~new.args[1].value:
            return new.args[0]
        if new.op == "and" and new.args[1] is const((1 << new.bits - 1) - 1, new.bits):
            return new if self.is_negative(new.args[0]) else new.args[0]  # all but the sign
        if new.op in ("mod.u", "rem.u"):
            return self.rest(new)
        if new.op == "and" and new.args[1].op == "const":
            return _field(new) or (_field_above(new) if new.variables & self.turns else None) or new
        found = _remainder(new) if new.op in ("add", "sub") else new
        return new if found is new else self.of(found)

    def is_negative(self, expr: Expr) -> bool:
        """Whether it may be. Numbers of turns, and sums of a few of such, are not."""
        if not self.bits(expr) >> (expr.bits - 1):
            return False
        if expr.op == "ext.s":
            return self.is_negative(expr.args[0])
        terms, constant = linear(expr)
        return constant < 0 or not all(
            0 < factor < 1 << (expr.bits // 2) and not self._may_be_negative(term) for term, factor in terms.items()
        )

    def _may_be_negative(self, term: Expr) -> bool:
        if term.op == "var":
            return term.value not in self.turns
        return self.is_negative(term) if term.op == "ext.s" else bool(self.bits(term) >> (term.bits - 1))

    def rest(self, expr: Expr) -> Expr:
        """``(x % d + c) % d`` as ``(x + c) % d`` where x is not negative, and so far from where its type ends."""
        a, divisor = expr.args
        if a.op != "add" or a.args[0].op not in ("mod.u", "rem.u") or a.args[1].op != "const" or divisor.op != "const":
            return expr
        (x, other), more = a.args[0].args, int(a.args[1].value)
        known = other is divisor and 0 <= more < 1 << (expr.bits // 2) and divisor.value > 0
        if not known or not self.facts.imply(plain("ge.s", x, const(0, x.bits), bits=1)):
            return expr
        return plain(expr.op, plain("add", x, a.args[1], bits=x.bits), divisor, bits=expr.bits)

    def quotient(self, high: Expr) -> Expr | None:
        """A division by a constant, done as a multiplication: x * m >> k is x / d for all x of 31 bits if
        2^k <= m * d <= 2^k + 2^(k - 31). Source: as of ``algebra._quotient``."""
        product, by = high.args
        if product.op != "mul" or product.bits != 64 or by.op != "const" or not 31 < by.value < 63:
            return None
        x, factor = product.args
        if x.op not in ("ext.s", "ext.u") or x.args[0].bits != 32 or factor.op != "const":
            return None
        if not 0 < factor.value < 1 << 32:  # the product does not wrap
            return None
        whole = 1 << by.value
        divisor = -(-whole // factor.value)
        if divisor < 2 or factor.value * divisor > whole + (whole >> 31):
            return None
        inner = x.args[0]
        if self.is_negative(inner):
            return None
        return plain("ext.u", plain("div.u", inner, const(divisor, inner.bits), bits=inner.bits), bits=high.bits)

    def by_fields(self, expr: Expr) -> Expr:
        """``x ^ c`` of a sum whose parts have no bits in common: part by part."""
        a, c = expr.args
        if expr.op != "xor" or c.op != "const" or a.op != "add":
            return expr
        terms, constant = linear(a)
        parts = [plain("mul", term, const(factor, a.bits), bits=a.bits) for term, factor in terms.items()]
        parts += [const(constant, a.bits)] if constant else []
        if not self.apart(parts):
            return expr
        mask, total = int(c.value) & ((1 << a.bits) - 1), const(0, a.bits)
        for part in parts:
            own = mask & self.bits(part)
            mask ^= own
            total = plain("add", total, plain("xor", part, const(wrap(own, a.bits), a.bits), bits=a.bits), bits=a.bits)
        return plain("add", total, const(wrap(mask, a.bits), a.bits), bits=a.bits)

    def disjoint(self, expr: Expr) -> Expr:
        """Parts of which no two have a bit in common are added."""
        parts = _flat(expr)
        if expr.op == "or":
            own = [part for part in parts if _of_threads(part)]
            if len(own) > 1 and not self.apart(own):
                joined = own[0]
                for part in own[1:]:
                    joined = plain("or", joined, part, bits=expr.bits)
                parts = [*(part for part in parts if part not in own), joined]
        if len(parts) < 2 or not self.apart(parts):
            return expr
        total = parts[0]
        for part in parts[1:]:
            total = plain("add", total, part, bits=expr.bits)
        return total

    def apart(self, parts: list[Expr]) -> bool:
        seen = 0
        for part in parts:
            bits = self.bits(part)
            if bits & seen:
                return False
            seen |= bits
        return True

    def bits(self, expr: Expr) -> int:
        """The bits that may be set."""
        found = self.possible.get(expr)
        if found is None:
            found = self._bits(expr) & ((1 << expr.bits) - 1)
            low, high = self.facts.bounds(expr)
            if low >= 0 and high < 1 << expr.bits:
                found &= (1 << high.bit_length()) - 1
            self.possible[expr] = found
        return found

    def _bits(self, expr: Expr) -> int:
        full = (1 << expr.bits) - 1
        if expr.op == "const":
            return int(expr.value) & full
        if expr.op == "tid":
            largest: int = self.sizes[expr.value] - 1
            return (1 << largest.bit_length()) - 1
        if expr.op not in ARITHMETIC:
            return full
        parts = [self.bits(arg) for arg in expr.args]
        last = expr.args[-1]
        constant = int(last.value) if last.op == "const" else None
        if expr.op == "and":
            return parts[0] & parts[1]
        if expr.op in ("or", "xor"):
            return parts[0] | parts[1]
        if expr.op == "select":
            return parts[1] | parts[2]
        if expr.op in ("ext.u", "trunc"):
            return parts[0]
        if expr.op == "ext.s":
            return full if parts[0] >> (expr.args[0].bits - 1) else parts[0]
        if expr.op in ("shr.u", "shr.s") and constant is not None and constant >= 0:
            return full if expr.op == "shr.s" and parts[0] >> (expr.bits - 1) else parts[0] >> constant
        if expr.op == "mod.u" and constant is not None and constant > 0:
            return (1 << min(parts[0], constant - 1).bit_length()) - 1
        if expr.op == "div.u" and constant is not None and constant > 0:
            return (1 << (parts[0] // constant).bit_length()) - 1
        return self._sum_bits(expr, parts, constant, full)

    def _sum_bits(self, expr: Expr, parts: list[int], constant: int | None, full: int) -> int:
        if expr.op == "mul" and constant is not None:
            most, low = parts[0] * (constant & full), _zeros(parts[0]) + _zeros(constant & full)
        elif expr.op == "add":
            most, low = parts[0] + parts[1], min(map(_zeros, parts))
        else:
            return full
        above = (1 << most.bit_length()) - 1 if most <= full else full
        return above >> low << low


def _zeros(value: int) -> int:
    return (value & -value).bit_length() - 1 if value else 64


def _flat(expr: Expr) -> list[Expr]:
    """The operands of nested operations of one kind."""
    found: list[Expr] = []
    work = [expr]
    while work:
        at = work.pop()
        if at.op == expr.op and at.bits == expr.bits:
            work.extend(reversed(at.args))
        else:
            found.append(at)
    return found


def _of_threads(expr: Expr) -> bool:
    """Whether it is made of thread ids and constants alone."""
    if not expr.args:
        return expr.op in ("tid", "const")
    return expr.op in ARITHMETIC and all(map(_of_threads, expr.args))


def _field(expr: Expr) -> Expr | None:
    """``x * 64 & 192`` as ``(x & 3) * 64``: bits of a sum of multiples, in the place where they are counted."""
    terms, constant = linear(expr.args[0])
    up = min(map(_zeros, (*terms.values(), constant)))
    mask = (int(expr.args[1].value) & ((1 << expr.bits) - 1)) >> up
    if not up or mask & (mask + 1) or mask.bit_length() + up > expr.bits:
        return None
    inner = of_linear({term: factor >> up for term, factor in terms.items()}, constant >> up, expr.bits)
    return plain(
        "mul", plain("and", inner, const(mask, expr.bits), bits=expr.bits), const(1 << up, expr.bits), bits=expr.bits
    )


def _field_above(expr: Expr) -> Expr | None:
    """``x & 6`` as ``(x >> 1 & 3) * 2``: so it is seen that it comes round."""
    x, bits = expr.args[0], expr.bits
    mask = int(expr.args[1].value) & ((1 << bits) - 1)
    low = _zeros(mask)
    if not 0 < low < bits or (mask >> low) & ((mask >> low) + 1):
        return None
    moved = plain("shr.u", x, const(low, bits), bits=bits)
    field = plain("and", moved, const(wrap(mask >> low, bits), bits), bits=bits)
    return plain("mul", field, const(1 << low, bits), bits=bits)


def _remainder(expr: Expr) -> Expr:
    """x - x / d * d, also where x is a sum."""
    terms, constant = linear(expr)
    for quotient, factor in terms.items():
        if quotient.op not in _DIVISIONS or quotient.args[1].op != "const":
            continue
        x, divisor = quotient.args
        if divisor.value <= 0 or factor % divisor.value:
            continue
        times = -factor // divisor.value
        own, more = linear(x)
        if own and all(terms.get(term, 0) == wrap(times * f, expr.bits) for term, f in own.items()):
            rest = {t: f for t, f in terms.items() if t not in own and t is not quotient}
            remainder = plain(_DIVISIONS[quotient.op], x, divisor, bits=expr.bits)
            rest[remainder] = rest.get(remainder, 0) + times
            return of_linear(rest, constant - times * more, expr.bits)
    return expr
