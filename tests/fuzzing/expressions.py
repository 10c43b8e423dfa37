# ruff: noqa: E501  (programs are data)
"""Expressions made from the grammar: of a given type, of what is in scope."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class T:
    """A number's type. kind: ``bool``, ``int``, ``uint`` or ``float``."""

    name: str
    dtype: str
    kind: str
    bits: int
    width: int = 1

    @property
    def text(self) -> str:
        return self.name if self.width == 1 else f"SIMD[DType.{self.dtype}, {self.width}]"

    def lanes(self, width: int) -> T:
        return T(self.name, self.dtype, self.kind, self.bits, width)


BOOL = T("Bool", "bool", "bool", 8)
INTEGERS = (
    T("Int", "int", "int", 64), T("UInt", "uint", "uint", 64),
    *(T(f"Int{n}", f"int{n}", "int", n) for n in (8, 16, 32, 64)), *(T(f"UInt{n}", f"uint{n}", "uint", n) for n in (8, 16, 32, 64)),
)  # fmt: skip
INT, INT32, UINT32 = INTEGERS[0], INTEGERS[4], INTEGERS[8]
HALVES = (T("Float16", "float16", "float", 16), T("BFloat16", "bfloat16", "float", 16))
FLOATS = (T("Float32", "float32", "float", 32), T("Float64", "float64", "float", 64))


@dataclass
class Variable:
    name: str
    type: T
    mutable: bool
    size: int = 0  # of an Array; 0: a plain value
    struct: str = ""


@dataclass
class Function:
    name: str
    args: list[T]
    result: T


class Expressions:
    """Writes expressions of a type. pure: functions of numbers alone, without floats' ``%`` (for comparing results)."""

    def __init__(self, rng: random.Random, pure: bool = False, wild: float = 0.0) -> None:
        self.rng, self.pure, self.wild = rng, pure, wild
        self.lines: list[str] = []
        self.depth = 0
        self.scopes: list[list[Variable]] = [[]]
        self.functions: list[Function] = []
        self.struct: list[tuple[str, T]] = []
        self.count = 0
        self.loops = 0
        self.in_kernel = False
        self.result: T | None = None
        self.pointers: list[tuple[str, T]] = []
        self.scalars = [BOOL, *INTEGERS, *FLOATS, *(() if pure else HALVES)]

    # --------------------------------------------------------------------------------------------------------- helpers

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def visible(self) -> list[Variable]:
        return [v for scope in self.scopes for v in scope]

    def type(self, vectors: bool = True) -> T:
        t = self.rng.choice(self.scalars)
        return t.lanes(self.rng.choice((2, 4, 8))) if vectors and self.chance(0.15) else t

    # ----------------------------------------------------------------------------------------------------- expressions

    def number(self, t: T) -> str:
        """A literal in the type's range."""
        r = self.rng
        if t.kind == "float":
            return r.choice(
                (
                    "0.0",
                    "1.0",
                    "-1.0",
                    "0.5",
                    "3.25",
                    "1e-3",
                    "-7.75",
                    "100.0",
                    "2.0",
                    "-0.0",
                    str(r.randrange(-50, 50)),
                )
            )
        low, high = (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.kind == "int" else (0, (1 << t.bits) - 1)
        return str(r.choice((0, 1, 2, 3, 5, 7, 8, 31, high, high - 1, low, low + 1, high // 3, r.randrange(0, 100))))

    def literal(self, t: T) -> str:
        if t.kind == "bool":
            one = self.rng.choice(("True", "False"))
            return one if t.width == 1 else f"{t.text}({one})"
        return f"{t.text}({self.number(t)})"

    def leaf(self, t: T) -> str:
        found = [v.name for v in self.visible() if v.type == t and not v.size and not v.struct]
        found += [f"{v.name}[{self.rng.randrange(v.size)}]" for v in self.visible() if v.type == t and v.size]
        found += [f"{v.name}.{n}" for v in self.visible() if v.struct for n, ft in self.struct if ft == t]
        if found and self.chance(0.85):
            return self.rng.choice(found)
        return self.literal(t)

    def expression(self, t: T, depth: int) -> str:
        if self.chance(self.wild):
            t = self.type()
        if depth <= 0 or self.chance(0.12):
            return self.leaf(t)
        forms = [self._binary, self._binary, self._conditional, self._convert, self._unary, self._call]
        if t.kind == "bool":
            forms = [self._compare, self._compare, self._logic, self._conditional, self._unary, self._convert]
        if t.width > 1:
            forms = [self._binary, self._binary, self._vector, self._convert, self._unary]
        elif self.chance(0.15):
            forms = [self._lane, self._function]
        if self.in_kernel and not self.pure and t.width == 1 and self.chance(0.15):
            forms = [self._device]
        return self.rng.choice(forms)(t, depth - 1)

    def _binary(self, t: T, depth: int) -> str:
        if t.kind == "bool":
            op = self.rng.choice("&|^")
        elif t.kind == "float":
            op = self.rng.choice(("+", "-", "*", "/") if self.pure else ("+", "-", "*", "/", "//", "%"))
        else:
            op = self.rng.choice(("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"))
        left, right = self.expression(t, depth), self.expression(t, depth)
        if t.kind != "bool" and self.chance(0.2):
            right = self.number(t)
            right = f"({right})" if right.startswith("-") else right
        return f"({left} {op} {right})"

    def _compare(self, t: T, depth: int) -> str:
        if t.width > 1:
            of = self.rng.choice((*INTEGERS, *FLOATS)).lanes(t.width)
            return f"{self.expression(of, depth)}.{self.rng.choice(('eq', 'ne', 'lt', 'le', 'gt', 'ge'))}({self.expression(of, depth)})"
        of = self.rng.choice(self.scalars[1:])
        op = self.rng.choice(("==", "!=", "<", "<=", ">", ">="))
        if self.chance(0.1):
            return f"({self.expression(of, depth)} {op} {self.expression(of, depth)} {op} {self.expression(of, depth)})"
        return f"({self.expression(of, depth)} {op} {self.expression(of, depth)})"

    def _logic(self, t: T, depth: int) -> str:
        if t.width > 1:
            return self._compare(t, depth)
        return f"({self.expression(t, depth)} {self.rng.choice(('and', 'or'))} {self.expression(t, depth)})"

    def _conditional(self, t: T, depth: int) -> str:
        return f"({self.expression(t, depth)} if {self.expression(BOOL, depth)} else {self.expression(t, depth)})"

    def _convert(self, t: T, depth: int) -> str:
        source = self.rng.choice(self.scalars).lanes(t.width)
        value = self.expression(source, depth)
        if t.width > 1 or self.chance(0.3):
            return f"{value}.cast[DType.{t.dtype}]()"
        return f"{t.name}({value})"

    def _unary(self, t: T, depth: int) -> str:
        if t.kind == "bool":
            return f"(not {self.expression(t, depth)})" if t.width == 1 else f"(~{self.expression(t, depth)})"
        return f"({self.rng.choice('-+' if t.kind == 'float' else '-+~')}{self.expression(t, depth)})"

    def _call(self, t: T, depth: int) -> str:
        if t.kind == "bool":
            return self._logic(t, depth)
        name = "abs" if self.pure and t.kind == "float" else self.rng.choice(("min", "max", "abs", "min", "max"))
        if name == "abs":
            return f"abs({self.expression(t, depth)})"
        return f"{name}({self.expression(t, depth)}, {self.expression(t, depth)})"

    def _vector(self, t: T, depth: int) -> str:
        scalar = t.lanes(1)
        kind = self.rng.randrange(4)
        if kind == 0:
            return f"{t.text}({', '.join(self.expression(scalar, depth - 1) for _ in range(t.width))})"
        if kind == 1 or t.width <= 2:
            return f"{t.text}({self.expression(scalar, depth)})"
        half = t.lanes(t.width // 2)
        return f"{self.expression(half, depth)}.join({self.expression(half, depth)})"

    def _lane(self, t: T, depth: int) -> str:
        width = self.rng.choice((2, 4, 8))
        vector = self.expression(t.lanes(width), depth)
        if t.kind in ("int", "uint") and self.chance(0.4):
            return f"{vector}.reduce_{self.rng.choice(('add', 'min', 'max', 'mul'))}()"
        if self.chance(0.3):
            return f"{vector}[({self.expression(INT, depth)}) & {width - 1}]"
        return f"{vector}[{self.rng.randrange(width)}]"

    def _function(self, t: T, depth: int) -> str:
        found = [f for f in self.functions if f.result == t]
        if not found:
            return self.leaf(t)
        chosen = self.rng.choice(found)
        return f"{chosen.name}({', '.join(self.expression(a, min(depth, 1)) for a in chosen.args)})"

    def _device(self, t: T, depth: int) -> str:
        if t.kind == "bool":
            return self.rng.choice(("vote_any(True)", "elect_one_sync()", "(thread_idx.x == 0)", "(lane_id() < 3)"))
        if t == INT:
            return self.rng.choice(
                ("thread_idx.x", "block_idx.y", "grid_dim.x", "lane_id()", "warp_id()", "block_dim.z")
            )
        if t.name in ("Int32", "UInt32", "Float32"):
            value = self.expression(t, depth)
            forms = ["shuffle_down({}, 1)", "warp_sum({})", "shuffle_xor({}, 3)", "warp_max({})", "shuffle_idx({}, 0)"]
            if t.kind == "float":
                forms += [
                    "sqrt({})",
                    "exp({})",
                    "log({})",
                    "sin({})",
                    "rsqrt({})",
                    "tanh({})",
                    "floor({})",
                    "exp2_approx({})",
                    "pow({0}, {0})",
                ]
            else:
                forms += ["pop_count({})", "count_leading_zeros({})", "bit_reverse({})"]
            return self.rng.choice(forms).format(value)
        return f"{t.name}(lane_id())" if t.kind != "bool" else "True"
