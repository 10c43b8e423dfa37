# ruff: noqa: E501  (programs are data)
"""Programs made from the grammar: typed, mostly valid, of every kind of statement and expression."""

from __future__ import annotations

import random

from cases import ARCHS, Case
from expressions import BOOL, INT, INT32, INTEGERS, UINT32, Expressions, Function, T, Variable


class Writer(Expressions):
    """Writes one program."""

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
            forms += [self._each] if any(v.size for v in self.visible()) else []
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
        if self.chance(0.15):
            name = self.fresh("r")
            self.line(f"ref {name} = {v.name}[{index}]")
            self.scopes[-1].append(Variable(name, v.type, True))
            return
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

    def _each(self, depth: int) -> None:
        v, name = self.rng.choice([v for v in self.visible() if v.size]), self.fresh("e")
        binding = self.rng.choice(("", "var ", "ref ") if v.mutable else ("", "var "))
        self.line(f"for {binding}{name} in {v.name}:")
        self._loop(depth, [Variable(name, v.type, bool(binding))])

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
