"""The same function evaluated three ways: at compile time, by interpreting its TIR, and as LLVM's code on this CPU."""

from __future__ import annotations

import collections
import math
import random
import sys
from dataclasses import dataclass, field

from cases import TESTS
from expressions import FLOATS, INTEGERS, T
from generate import Writer

sys.path[:0] = [str(TESTS / "tir"), str(TESTS / "backend"), str(TESTS.parent)]

from host import Host  # noqa: E402
from run_tir import Machine, OutOfFuel  # noqa: E402

from ptxdsl import tir  # noqa: E402
from ptxdsl.diagnostics import CompileError, DiagnosticSink  # noqa: E402
from ptxdsl.elaborate import elaborate  # noqa: E402
from ptxdsl.imports import Loader, parse_once  # noqa: E402
from ptxdsl.options import Options  # noqa: E402
from ptxdsl.source import Source  # noqa: E402
from ptxdsl.tir.verify import verify  # noqa: E402

ADDRESS = 1 << 20  # of the result, in the interpreter


@dataclass
class Program:
    """Functions, the last of which is called with ``arguments``."""

    text: str
    args: list[T]
    arguments: list[int | float]

    @classmethod
    def make(cls, rng: random.Random) -> Program:
        w = Writer(rng, pure=True)
        if rng.random() < 0.5:
            w.write_struct()
        types = (*INTEGERS, *FLOATS)
        for number in range(rng.randrange(1, 4)):
            args = [rng.choice(types) for _ in range(rng.randrange(1, 4))]
            w.function(f"f{number}", args, rng.choice(types), rng.randrange(1, 8))
        last = w.functions[-1]
        given = [_argument(rng, t) for t in last.args]
        names = [f"x{n}" for n in range(len(last.args))]
        declared = "".join(f", {n}: {t.text}" for n, t in zip(names, last.args, strict=True))
        values = ", ".join(_text(v, t) for v, t in zip(given, last.args, strict=True))
        out = f"out: Pointer[{last.result.text}, MutAnyOrigin]"
        w.line(f"@kernel\ndef later({out}{declared}):\n    out[] = {last.name}({', '.join(names)})\n")
        w.line(f"@kernel\ndef now({out}):\n    comptime result = {last.name}({values})\n    out[] = result\n")
        return cls(w.text, last.args, given)


def _argument(rng: random.Random, t: T) -> int | float:
    if t.kind == "float":
        return rng.choice((0.0, 1.0, -1.0, 0.5, -3.25, 100.0, 2.0**-20, rng.randrange(-1000, 1000) / 8))
    low, high = (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.kind == "int" else (0, (1 << t.bits) - 1)
    return rng.choice((0, 1, 2, 5, low, high, high - 1, rng.randint(low, high), rng.randrange(0, 100)))


def _text(value: int | float, t: T) -> str:
    return f"{t.name}({value!r})"


def _signed(value: int | float, t: T) -> int | float:
    """As a machine value: two's complement."""
    return value - (1 << t.bits) if t.kind == "uint" and value >= 1 << (t.bits - 1) else value


@dataclass
class Comparison:
    """Counts how programs ended; ``different`` has those whose results are not the same."""

    ends: dict[str, int] = field(default_factory=collections.Counter)
    different: list[tuple[str, str]] = field(default_factory=list)

    def one(self, rng: random.Random) -> None:
        program = Program.make(rng)
        results = {}
        for way in (self._now, self._interpreted, self._lowered):
            try:
                results[way.__name__] = way(program)
            except CompileError as problem:
                first = problem.diagnostics[0] if problem.diagnostics else None
                self.ends[f"{way.__name__} {first.code if first else 'no words'}"] += 1
                if first is None or first.code == "E0001":
                    self.different.append((program.text, str(problem)))
            except OutOfFuel:
                self.ends["too long"] += 1
        values = list(results.values())
        if len(values) > 1 and not all(_same(values[0], v) for v in values):
            self.different.append((program.text, f"{results} for {program.arguments}"))
        self.ends[f"{len(values)} ways"] += 1

    @staticmethod
    def _kernel(program: Program, name: str) -> tir.Kernel:
        module = parse_once(Source("compared.pdsl", program.text))
        found = elaborate(
            module, kernel=name, constants={}, options=Options(contract=False), loader=Loader(), sink=DiagnosticSink()
        )  # fmt: skip
        verify(found)
        return found.kernels[0]

    def _now(self, program: Program) -> int | float:
        kernel = self._kernel(program, "now")
        store = next(op for op in tir.walk(kernel.body) if op.name == "store")
        assert isinstance(store.operands[1], tir.Const)
        return store.operands[1].value

    def _interpreted(self, program: Program) -> int | float:
        arguments = [_signed(v, t) for v, t in zip(program.arguments, program.args, strict=True)]
        trace = Machine(self._kernel(program, "later"), fuel=300_000).run(ADDRESS, *arguments)
        return next(step[2] for step in trace if step[0] == "store")

    def _lowered(self, program: Program) -> int | float:
        kernel = self._kernel(program, "later")
        arguments = [_signed(v, t) for v, t in zip(program.arguments, program.args, strict=True)]
        return Host([kernel])("later", *arguments)


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


if __name__ == "__main__":
    seed, count = sys.argv[1], int(sys.argv[2])
    comparison = Comparison()
    for number in range(count):
        known = len(comparison.different)
        try:
            comparison.one(random.Random(f"{seed}:{number}"))
        except Exception as problem:
            comparison.different.append(
                (Program.make(random.Random(f"{seed}:{number}")).text, f"{type(problem).__name__}: {problem}")
            )
        for text, words in comparison.different[known:]:
            print(f"# {seed}:{number}: {words[:600]}\n{text if '-v' in sys.argv else ''}", flush=True)
    ways = ", ".join(f"{n} {what}" for what, n in sorted(comparison.ends.items()))
    print(
        f"{count} programs, {ways}: {f'{len(comparison.different)} differ' if comparison.different else 'all the same'}"
    )
    sys.exit(int(bool(comparison.different)))
