# ruff: noqa: E501  (programs are data)
"""Programs made from the grammar: typed, mostly valid, of every kind of statement and expression."""

from __future__ import annotations

import random
from dataclasses import dataclass

from cases import ARCHS, Case


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


class Writer:
    """Writes one program. pure: functions of numbers alone, without floats' ``%`` (for comparing results)."""

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

    # ------------------------------------------------------------------------------------------------------ statements

    def block(self, depth: int, statements: int) -> None:
        self.depth += 1
        self.scopes.append([])
        before = len(self.lines)
        for _ in range(statements):
            self.statement(depth)
        if len(self.lines) == before:
            self.line("pass")
        self.scopes.pop()
        self.depth -= 1

    def statement(self, depth: int) -> None:
        forms = [self._var, self._var, self._assign, self._assign, self._augmented, self._lane_store, self._array]
        if depth > 0:
            forms += [self._if, self._if, self._for, self._while, self._comptime_for, self._comptime_if]
        if self.loops and self.chance(0.25):
            forms = [self._jump]
        elif self.result is not None and depth < 2 and self.chance(0.06):
            forms = [self._return]
        elif self.struct and self.chance(0.1):
            forms = [self._struct]
        elif self.in_kernel and not self.pure and self.chance(0.3):
            forms = [self._store, self._store, self._device_statement]
        self.rng.choice(forms)(depth)

    def _var(self, depth: int) -> None:
        t, name = self.type(), self.fresh()
        kind = self.rng.randrange(4)
        if kind == 0 and t.kind != "bool" and t.width == 1:
            self.line(f"var {name}: {t.text} = {self.number(t)}")
        elif kind == 1:
            self.line(f"var {name}: {t.text} = {self.expression(t, 3)}")
        elif kind == 2 and not self.loops and self.chance(0.3):
            self.line(f"var {name}: {t.text}")
            self.line(f"if {self.expression(BOOL, 1)}:")
            self.line(f"    {name} = {self.expression(t, 2)}")
            self.line("else:")
            self.line(f"    {name} = {self.expression(t, 2)}")
        else:
            self.line(f"var {name} = {self.expression(t, 3)}")
        self.scopes[-1].append(Variable(name, t, True))

    def _target(self) -> Variable | None:
        found = [v for v in self.visible() if v.mutable and not v.size and not v.struct]
        return self.rng.choice(found) if found else None

    def _assign(self, depth: int) -> None:
        target = self._target()
        if target is None:
            return self._var(depth)
        self.line(f"{target.name} = {self.expression(target.type, 3)}")

    def _augmented(self, depth: int) -> None:
        target = self._target()
        if target is None or target.type.kind == "bool":
            return self._var(depth)
        ops = (
            ("+=", "-=", "*=", "/=")
            if target.type.kind == "float"
            else ("+=", "-=", "*=", "//=", "%=", "&=", "|=", "^=", "<<=", ">>=")
        )
        self.line(f"{target.name} {self.rng.choice(ops)} {self.expression(target.type, 2)}")

    def _lane_store(self, depth: int) -> None:
        found = [v for v in self.visible() if v.mutable and v.type.width > 1 and not v.size and not v.struct]
        if not found:
            return self._var(depth)
        v = self.rng.choice(found)
        index = (
            str(self.rng.randrange(v.type.width))
            if self.chance(0.6)
            else f"({self.expression(INT32, 1)}) & {v.type.width - 1}"
        )
        self.line(f"{v.name}[{index}] = {self.expression(v.type.lanes(1), 2)}")

    def _array(self, depth: int) -> None:
        found = [v for v in self.visible() if v.mutable and v.size]
        if not found or self.chance(0.3):
            t, name, size = self.type(vectors=False), self.fresh("a"), self.rng.randrange(1, 6)
            self.line(f"var {name} = Array[{t.text}, {size}](fill={self.expression(t, 1)})")
            self.scopes[-1].append(Variable(name, t, True, size))
            return
        v = self.rng.choice(found)
        index = (
            f"({self.expression(UINT32, 1)}) % {v.size}"
            if not self.pure and self.chance(0.3)
            else str(self.rng.randrange(v.size))
        )
        self.line(
            f"{v.name}[{index}] {self.rng.choice(('=', '=', '+=' if v.type.kind != 'bool' else '='))} {self.expression(v.type, 2)}"
        )

    def _struct(self, depth: int) -> None:
        found = [v for v in self.visible() if v.mutable and v.struct]
        if not found or self.chance(0.3):
            name = self.fresh("s")
            self.line(f"var {name} = S({', '.join(self.expression(t, 1) for _, t in self.struct)})")
            self.scopes[-1].append(Variable(name, BOOL, True, 0, "S"))
            return
        v = self.rng.choice(found)
        name, t = self.rng.choice(self.struct)
        if self.chance(0.3):
            self.line(f"{v.name}.turn()")
        elif self.chance(0.2):
            self.line(f"{v.name} = {v.name}.swapped()")
        else:
            self.line(f"{v.name}.{name} = {self.expression(t, 2)}")

    def _if(self, depth: int) -> None:
        self.line(f"if {self.expression(BOOL, 2)}:")
        self.block(depth - 1, self.rng.randrange(1, 4))
        while self.chance(0.2):
            self.line(f"elif {self.expression(BOOL, 2)}:")
            self.block(depth - 1, self.rng.randrange(1, 3))
        if self.chance(0.5):
            self.line("else:")
            self.block(depth - 1, self.rng.randrange(1, 3))

    def _for(self, depth: int) -> None:
        name = self.fresh("i")
        t = self.rng.choice((INT, INT32, UINT32, *INTEGERS))
        kind = self.rng.randrange(4)
        if kind == 0:
            ends = f"{t.name}({self.rng.randrange(5)})"
        elif kind == 1:
            ends = f"{t.name}({self.rng.randrange(4)}), {t.name}({self.rng.randrange(8)})"
        elif kind == 2 and t.kind == "int":
            ends = f"{t.name}({self.rng.randrange(8)}), {t.name}({self.rng.randrange(-3, 4)}), {self.rng.choice((-1, -2, 1, 3))}"
        else:
            ends = f"({self.expression(t, 1)}) & 3"
        self.line(f"for {name} in range({ends}):")
        self._loop(depth, [Variable(name, t, False)])
        if self.chance(0.1):
            self.line("else:")
            self.block(depth - 1, 1)

    def _loop(self, depth: int, variables: list[Variable]) -> None:
        self.scopes.append(variables)
        self.loops += 1
        self.block(depth - 1, self.rng.randrange(1, 5))
        self.loops -= 1
        self.scopes.pop()

    def _while(self, depth: int) -> None:
        name = self.fresh("w")
        self.line(f"var {name} = Int32(0)")
        limit = f"{name} < {self.rng.randrange(1, 6)}"
        self.line(f"while {limit}:" if self.chance(0.6) else f"while {limit} and {self.expression(BOOL, 1)}:")
        self.line(f"    {name} += 1")
        self._loop(depth, [Variable(name, INT32, False)])
        if self.chance(0.1):
            self.line("else:")
            self.block(depth - 1, 1)

    def _comptime_for(self, depth: int) -> None:
        name = self.fresh("c")
        self.line(f"comptime for {name} in range({self.rng.choice(('2', '3', '1, 3', '4, 0, -2'))}):")
        self._loop(depth, [Variable(name, INT, False)])

    def _comptime_if(self, depth: int) -> None:
        self.line(f"comptime if {self.rng.choice(('True', 'False', '3 > 2', 'size_of[Int32]() == 8'))}:")
        self.block(depth - 1, self.rng.randrange(1, 3))
        if self.chance(0.5):
            self.line("else:")
            self.block(depth - 1, 1)

    def _jump(self, depth: int) -> None:
        word = self.rng.choice(("break", "continue"))
        if self.chance(0.8):
            self.line(f"if {self.expression(BOOL, 2)}:")
            self.line(f"    {word}")
        else:
            self.line(word)

    def _return(self, depth: int) -> None:
        assert self.result is not None
        if self.chance(0.8):
            self.line(f"if {self.expression(BOOL, 2)}:")
            self.line(f"    return {self.expression(self.result, 2)}")
        else:
            self.line(f"return {self.expression(self.result, 2)}")

    # ---------------------------------------------------------------------------------------------------------- kernels

    def _store(self, depth: int) -> None:
        pointer, t = self.rng.choice(self.pointers)
        index = self.rng.choice(
            (str(self.rng.randrange(9)), self.expression(INT, 1), self.expression(INT32, 1), self.expression(UINT32, 1))
        )
        kind = self.rng.randrange(6)
        value = self.expression(t, 3)
        if kind == 0 and t.width == 1:
            wide = t.lanes(4)
            self.line(
                f"{pointer}.unsafe_store[alignment={max(1, t.bits // 8) * 4}]({index}, {self.expression(wide, 2)})"
            )
        elif kind == 1:
            name = self.fresh()
            self.line(f"var {name} = {pointer}[unsafe_offset={index}]")
            self.scopes[-1].append(Variable(name, t, True))
        elif kind == 2 and t.width == 1:
            name = self.fresh()
            self.line(f"var {name} = {pointer}.unsafe_load[width=4]({index})")
            self.scopes[-1].append(Variable(name, t.lanes(4), True))
        elif kind == 3:
            self.line(f"{pointer}.unsafe_offset({index})[] = {value}")
        else:
            self.line(f"{pointer}[unsafe_offset={index}] = {value}")

    def _device_statement(self, depth: int) -> None:
        self.line(self.rng.choice((
            "barrier()", "syncwarp()", 'print("x", thread_idx.x)', f"_ = warp_sum({self.expression(INT32, 1)})", "threadfence()",
            f'debug_assert({self.expression(BOOL, 1)}, "no")', "named_barrier[64](1)", "_ = clock()",
        )))  # fmt: skip

    def _pipeline(self) -> None:
        stages, role = self.rng.choice((1, 2, 3, 4)), self.rng.choice(("True", "False"))
        name = self.fresh("p")
        self.line(
            f"var {name}m = unsafe_stack_allocation[{2 * stages}, SharedMemBarrier, address_space=.SHARED, alignment=8]().unsafe_origin_cast[MutAnyOrigin]()"
        )
        self.line(f"var {name} = RolePipeline[{stages}, {role}]({name}m, {name}m.unsafe_offset({stages}))")
        first, last = ("acquire", "commit") if role == "True" else ("wait", "release")
        self.line(f"for {name}i in range({self.expression(INT32, 1)}):")
        self.line(f"    {name}.{first}()")
        self.scopes.append([Variable(f"{name}i", INT32, False)])
        self.block(1, self.rng.randrange(0, 3))
        self.scopes.pop()
        self.line(f"    {name}.{last}()")

    def function(self, name: str, args: list[T], result: T, statements: int) -> None:
        names = [self.fresh("x") for _ in args]
        self.line(
            f"def {name}({', '.join(f'{n}: {t.text}' for n, t in zip(names, args, strict=True))}) -> {result.text}:"
        )
        self.scopes = [[Variable(n, t, False) for n, t in zip(names, args, strict=True)]]
        self.result, self.loops, self.in_kernel = result, 0, False
        self._body(statements, "return {}", result)
        self.functions.append(Function(name, args, result))
        self.result = None

    def _body(self, statements: int, last: str, result: T) -> None:
        self.depth += 1
        self.scopes.append([])
        for _ in range(statements):
            self.statement(2)
        self.line(last.format(self.expression(result, 3)))
        self.scopes.pop()
        self.depth -= 1
        self.line("")

    def write_struct(self) -> None:
        self.struct = [(f"f{i}", self.rng.choice(self.scalars)) for i in range(self.rng.randrange(1, 4))]
        self.line("@fieldwise_init")
        self.line("struct S(TrivialRegisterPassable):")
        self.depth += 1
        for name, t in self.struct:
            self.line(f"var {name}: {t.text}")
        self.line("def turn(mut self):")
        name, t = self.rng.choice(self.struct)
        self.line(f"    self.{name} = {self.expression(t, 2)}")
        self.line("def swapped(self) -> Self:")
        self.line(f"    return S({', '.join('self.' + n for n, _ in self.struct)})")
        self.depth -= 1
        self.line("")

    def kernel(self, name: str, decorator: str = "@kernel") -> None:
        pointers = [(f"p{i}", self.type()) for i in range(self.rng.randrange(1, 4))]
        scalars = [(f"n{i}", self.rng.choice(self.scalars)) for i in range(self.rng.randrange(0, 3))]
        params = [f"{n}: Pointer[{t.text}, MutAnyOrigin]" for n, t in pointers] + [f"{n}: {t.text}" for n, t in scalars]
        self.line(decorator)
        self.line(f"def {name}({', '.join(params)}):")
        self.pointers = pointers
        self.scopes = [[Variable(n, t, False) for n, t in scalars], []]
        self.in_kernel, self.result, self.loops = True, None, 0
        self.depth += 1
        if self.chance(0.3):
            t, shared = self.type(), self.fresh("sh")
            self.line(
                f"var {shared} = unsafe_stack_allocation[{self.rng.choice((4, 32, 100))}, {t.text}, address_space=.SHARED]()"
            )
            self.pointers = [*pointers, (shared, t)]
        for _ in range(self.rng.randrange(1, 8)):
            self.statement(3)
        if self.chance(0.3):
            self._pipeline()
        pointer, t = self.rng.choice(self.pointers)
        self.line(f"{pointer}[] = {self.expression(t, 4)}")
        self.depth -= 1
        self.line("")

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def program(rng: random.Random) -> str:
    w = Writer(rng, wild=rng.choice((0, 0, 0, 0.01)))
    if rng.random() < 0.4:
        w.write_struct()
    for i in range(rng.randrange(0, 3)):
        args = [w.type() for _ in range(rng.randrange(0, 3))]
        w.function(f"f{i}", args, w.type(), rng.randrange(0, 5))
    for i in range(rng.choice((1, 1, 1, 2))):
        w.kernel(
            f"k{i}",
            rng.choice(("@kernel", "@kernel", "@kernel(threads=128)", "@kernel(max_threads=256, min_blocks=2)")),
        )
    return w.text


def generated(rng: random.Random) -> Case:
    text = program(rng)
    arch = rng.choice((*ARCHS[3:], *ARCHS[3:], *ARCHS))
    return Case(
        "generated", text.encode(), "generated.pdsl", None, {}, arch, rng.choice(("try", "probe")), rng.random() < 0.1
    )
