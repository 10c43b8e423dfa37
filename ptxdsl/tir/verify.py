"""The rules of the typed IR, checked between stages. A broken rule is a compiler bug, never a user's mistake.

Operations other than control flow are one row each of ``RULES``: what operands and results they take, which attributes
they need. Visibility, terminators and the values handed over at control-flow joins are checked structurally.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter

from ptxdsl.hints import Any
from ptxdsl.intrinsics import ROWS
from ptxdsl.record import dataclass
from ptxdsl.source import Span
from ptxdsl.tir import I1, TERMINATORS, Block, Const, Kernel, Module, Op, Ty, Value


class InternalError(AssertionError):
    """A stage of the compiler broke a rule of its own; names the operation and the source text that it came from."""


@dataclass(frozen=True)
class Rule:
    """``types``: operands, ``->``, results. A token stands for a type:

    ``I`` integer, ``F`` float, ``P`` pointer, ``A`` integer or pointer, ``T`` any; the same token is the same type
    each time, one with a prime (``I'``) is a type of its own; ``C`` is i1 or as many i1 as the other operands have
    lanes; ``M`` as many i1 as the first operand has lanes; ``?`` at the end makes it optional, ``*`` any number of any
    types; everything else names a type. ``check`` is a relation of ``RELATIONS`` between them.
    """

    types: str
    attrs: frozenset[str] = frozenset()
    check: str = ""


def _rows(names: str, types: str, attrs: tuple[str, ...] = (), check: str = "") -> dict[str, Rule]:
    return {name: Rule(types, frozenset(attrs), check) for name in names.split()}


_PIPE = ("pipeline", "method", "producer", "stages")
_TABLE = (*_PIPE, "side", "subs", "sub")

RULES: dict[str, Rule] = {
    **_rows("add sub mul div.s div.u floordiv.s mod.s floordiv.u mod.u and or xor shl shr.s shr.u", "I I -> I"),
    **_rows("min.s min.u max.s max.u", "I I -> I"),
    **_rows("abs.s", "I -> I"),
    **_rows("fadd fsub fmul fdiv ffloordiv fmod fmin fmax", "F F -> F"),
    **_rows("fneg fabs", "F -> F"),
    **_rows("fma", "F F F -> F"),
    **_rows("eq ne lt.s le.s gt.s ge.s lt.u le.u gt.u ge.u", "A A -> M"),
    **_rows("feq fne flt fle fgt fge", "F F -> M"),
    **_rows("select", "C T T -> T"),
    **_rows("not", "I -> I", check="boolean"),
    **_rows("ext.s ext.u", "I -> I'", check="wider"),
    **_rows("trunc", "I -> I'", check="narrower"),
    **_rows("itof.s itof.u", "I -> F", check="lanes"),
    **_rows("ftoi.s ftoi.u", "F -> I", check="lanes"),
    **_rows("fcast", "F -> F'", check="lanes"),
    **_rows("bitcast", "T -> T'", check="bits"),
    **_rows("ptr.add", "P I -> P", ("scale",)),
    **_rows("ptr.cast", "P -> P'"),
    **_rows("ptr.toint", "P -> I"),
    **_rows("int.toptr", "I -> P"),
    **_rows("load", "P -> T", ("align",)),
    **_rows("store", "P T ->", ("align",)),
    **_rows("alloca", "-> P", ("bytes", "align")),
    **_rows("shared.alloc", "-> ptr.shared", ("bytes", "align", "name")),
    **_rows("shared.dynamic", "-> ptr.shared", ("align",)),
    **_rows("vec.splat", "T -> T'", check="elements"),
    **_rows("vec.build", "* -> T'", check="build"),
    **_rows("vec.extract", "T i32 -> T'", check="element of"),
    **_rows("vec.insert", "T T' i32 -> T", check="inserted"),
    **_rows("vec.shuffle", "T T -> T'", ("mask",), check="shuffle"),
    **_rows("pipe.new", "ptr.shared ptr.shared ->", ("pipeline", "producer", "stages")),
    **_rows("pipe.wait", "ptr.shared i32 i32 ->", _TABLE),
    **_rows("pipe.arrive", "ptr.shared i32 ->", _TABLE),
    **_rows("pipe.commit_mma", "ptr.shared i32 i32? ->", (*_TABLE, "cta_group")),
    **_rows("pipe.step", "i32 i32 i32 -> i32 i32 i32", _PIPE),
    **_rows("asm", "* -> *", ("text", "constraints", "side_effects")),
    **_rows("string", "-> ptr.generic", ("text",)),
    **_rows("print", "* ->", ("format",)),
    **_rows("assert", "i1 ->", ("message",)),
    **_rows("trap", "->"),
}

Types = Sequence[Ty]
_type = attrgetter("ty")
RELATIONS: dict[str, Callable[[Types, Types, dict[str, Any]], bool]] = {
    "boolean": lambda o, r, a: o[0].name == "i1",
    "lanes": lambda o, r, a: o[0].lanes == r[0].lanes,
    "wider": lambda o, r, a: o[0].lanes == r[0].lanes and o[0].bits < r[0].bits,
    "narrower": lambda o, r, a: o[0].lanes == r[0].lanes and o[0].bits > r[0].bits,
    "bits": lambda o, r, a: o[0].bits * o[0].lanes == r[0].bits * r[0].lanes,
    "elements": lambda o, r, a: o[0].lanes == 1 and o[0] == r[0].scalar,
    "build": lambda o, r, a: len(o) == r[0].lanes and all(t == r[0].scalar for t in o),
    "element of": lambda o, r, a: r[0] == o[0].scalar,
    "inserted": lambda o, r, a: o[1] == o[0].scalar,
    "shuffle": lambda o, r, a: r[0].scalar == o[0].scalar and r[0].lanes == len(a["mask"]),
}

_CLASSES: dict[str, Callable[[Ty], bool]] = {
    "I": lambda t: t.is_int,
    "F": lambda t: t.is_float,
    "P": lambda t: t.is_pointer,
    "A": lambda t: t.is_int or t.is_pointer,
    "T": lambda t: True,
}

BLOCKS = {"if": 2, "for": 1, "loop": 1, "scope": 1}


def verify(module: Module) -> None:
    """Raises InternalError where the module breaks a rule of ``tir``."""
    for kernel in module.kernels:
        _Verifier(kernel).run()


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.visible: set[Value] = set()  # with the constants that were looked at
        self.defined: set[Value] = set()
        self.seen: set[Op] = set()
        self.enclosing: list[Op] = []

    def fail(self, message: str, op: Op | None = None) -> InternalError:
        span: Span = op.span if op else self.kernel.span
        what = f"'{op.name}'" if op else "the body"
        return InternalError(f"{span}: in kernel {self.kernel.name}: {what} {message}")

    def run(self) -> None:
        signature_names = [p.name for p in self.kernel.signature.params]
        if len(set(signature_names)) != len(signature_names):
            raise self.fail("has two parameters of one name")
        self.define(self.kernel.params, None)
        if self.kernel.body.params:
            raise self.fail("has block parameters")
        self.block(self.kernel.body, None)

    def define(self, values: list[Value], op: Op | None) -> None:
        for value in values:
            if isinstance(value, Const):
                raise self.fail("defines a constant", op)
            if value in self.defined:
                raise self.fail(f"defines {value.name or 'a value'} a second time", op)
            self.defined.add(value)
        self.visible.update(values)

    def use(self, values: list[Value], op: Op) -> None:
        """Values that are none of the visible ones."""
        for value in values:
            if not isinstance(value, Const):
                name = f"%{value.name}" if value.name else "a value"
                why = "out of its block" if value in self.defined else "before it is defined"
                raise self.fail(f"uses {name} {why}", op)
            if not const_fits(value):
                raise self.fail(f"has the constant {value.value!r} as {value.ty}", op)
        self.visible.update(values)

    def block(self, block: Block, owner: Op | None) -> None:
        self.define(block.params, owner)
        if block.terminator is None:
            raise self.fail("has a block without a terminator at its end", owner)
        visible, seen = self.visible, self.seen
        for op in block.ops:
            if op in seen:
                raise self.fail("stands in two places", op)
            seen.add(op)
            if not visible.issuperset(op.operands):
                self.use([v for v in op.operands if v not in visible], op)
            if op.name in TERMINATORS:
                if op is not block.ops[-1]:
                    raise self.fail("ends a block that goes on", op)
                self.terminator(op, owner)
            elif op.name in BLOCKS:
                self.control(op)
            else:
                self.plain(op)
            if op.results:
                self.define(op.results, op)
        visible.difference_update(block.params, *[op.results for op in block.ops])

    def plain(self, op: Op) -> None:
        if op.blocks:
            raise self.fail("has blocks", op)
        rule = RULES.get(op.name)
        if rule is None:
            if op.name not in ROWS:
                raise self.fail("is neither an operation of the IR nor an instruction", op)
            return
        if not op.attrs.keys() >= rule.attrs:
            raise self.fail(f"lacks the attribute {min(rule.attrs - op.attrs.keys())!r}", op)
        operands, results = tuple(map(_type, op.operands)), tuple(map(_type, op.results))
        if not fits(rule.types, operands, results):
            raise self.fail(f"is ({types(operands)}) -> ({types(results)}), not {rule.types}", op)
        if rule.check and not RELATIONS[rule.check](operands, results, op.attrs):
            raise self.fail(f"cannot be ({types(operands)}) -> ({types(results)})", op)
        if op.name.startswith("pipe."):
            self.pipeline(op)

    def pipeline(self, op: Op) -> None:
        stages = op.attrs["stages"]
        if stages < 1:
            raise self.fail(f"has {stages} stages", op)
        if "side" in op.attrs:
            if op.attrs["side"] not in ("full", "empty"):
                raise self.fail(f"is of the side {op.attrs['side']!r}", op)
            if not 0 <= op.attrs["sub"] < op.attrs["subs"]:
                raise self.fail(f"has sub-stage {op.attrs['sub']} of {op.attrs['subs']}", op)

    def control(self, op: Op) -> None:
        if len(op.blocks) != BLOCKS[op.name]:
            raise self.fail(f"has {len(op.blocks)} blocks", op)
        params = [p.ty for p in op.blocks[0].params]
        if op.name == "if":
            self.expect(op, "takes", [v.ty for v in op.operands], [I1])
            self.expect(op, "has the parameters", params + [p.ty for p in op.blocks[1].params], [])
        elif op.name == "scope":
            self.expect(op, "takes", [v.ty for v in op.operands] + params, [])
        elif op.name == "loop":
            self.expect(op, "has the parameters", params, [v.ty for v in op.operands])
        else:
            for attr in ("step", "signed"):
                if attr not in op.attrs:
                    raise self.fail(f"lacks the attribute {attr!r}", op)
            if not isinstance(op.attrs["step"], int) or op.attrs["step"] == 0:
                raise self.fail(f"has the step {op.attrs['step']!r}", op)
            start, stop, *inits = [v.ty for v in op.operands]
            if start != stop or not start.is_int or start.lanes != 1:
                raise self.fail(f"counts from {start} to {stop}", op)
            self.expect(op, "has the parameters", params, [start, *inits])
            self.expect(op, "gives", [v.ty for v in op.results], inits)
        self.enclosing.append(op)
        for block in op.blocks:
            self.block(block, op)
        self.enclosing.pop()

    def terminator(self, op: Op, owner: Op | None) -> None:
        given = [v.ty for v in op.operands]
        if op.results or op.blocks:
            raise self.fail("has results or blocks", op)
        if op.name == "yield":
            if owner is None or owner.name not in ("if", "scope"):
                raise self.fail("does not end a block of an if or a scope", op)
            self.expect(op, "hands over", given, [v.ty for v in owner.results])
        elif op.name in ("repeat", "leave"):
            target = op.attrs.get("target")
            allowed = ("loop", "for") if op.name == "repeat" else ("loop", "for", "scope")
            if not isinstance(target, Op) or target.name not in allowed or target not in self.enclosing:
                raise self.fail(f"targets no enclosing {' or '.join(allowed)}", op)
            carried = target.operands[2:] if target.name == "for" else target.operands
            wanted = carried if op.name == "repeat" else target.results
            self.expect(op, "hands over", given, [v.ty for v in wanted])
        else:
            self.expect(op, "hands over", given, [])

    def expect(self, op: Op, verb: str, got: Types, wanted: Types) -> None:
        if list(got) != list(wanted):
            raise self.fail(f"{verb} ({types(got)}), not ({types(wanted)})", op)


def types(of: Types) -> str:
    return ", ".join(map(str, of))


@lru_cache(maxsize=4096)
def fits(rule: str, operands: tuple[Ty, ...], results: tuple[Ty, ...]) -> bool:
    """Whether an operation's types are as its rule has them. (A program has few different ones.)"""
    left, _, right = rule.partition("->")
    bound: dict[str, Ty] = {}
    return match(left.split(), operands, bound, operands) and match(right.split(), results, bound, operands)


def match(pattern: list[str], given: Types, bound: dict[str, Ty], operands: Types) -> bool:
    """Whether the types fit the tokens of a rule; ``bound`` collects what each token stands for."""
    if pattern == ["*"]:
        return True
    required = [p for p in pattern if not p.endswith("?")]
    if not len(required) <= len(given) <= len(pattern):
        return False
    for token, ty in zip(pattern, given, strict=False):
        token = token.rstrip("?")
        if token == "M":
            fits = ty == Ty("i1", operands[0].lanes)
        elif token == "C":
            fits = ty in (I1, Ty("i1", operands[-1].lanes))
        elif token[0] in _CLASSES:
            fits = _CLASSES[token[0]](ty) and bound.setdefault(token, ty) == ty
        else:
            fits = str(ty) == token
        if not fits:
            return False
    return True


def const_fits(const: Const) -> bool:
    """Whether the Python value is one of the constant's type, in the form that ``tir.Const`` prescribes."""
    ty, value = const.ty, const.value
    if ty.lanes > 1:
        lanes = value if isinstance(value, tuple) else ()
        return len(lanes) == ty.lanes and all(const_fits(Const(ty.scalar, lane)) for lane in lanes)
    if ty.is_float:
        return isinstance(value, float)
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    if ty.name == "i1":
        return value in (0, 1)
    return -(1 << (ty.bits - 1)) <= value < 1 << (ty.bits - 1)
