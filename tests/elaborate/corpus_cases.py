"""The corpus: ``corpus/*.pdsl``, whose functions say in comments what they give.

    #: square(3) == 9
    def square(n: Int32) -> Int32:
        return n * n

Every case is evaluated at compile time and by running the TIR that it becomes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from elaborate_support import typed
from semantics import Argument, kept, shown, stored

from ptxdsl import tir

FOLDER = Path(__file__).parent / "corpus"
_CASE = re.compile(r"#: (\w+)\((.*)\) == (.+)")
_DEF = re.compile(r"def (\w+)(?:\[[^]]*\])?\((.*)\) -> (\w+):")


@dataclass(frozen=True)
class Case:
    """One comment: the call, and the value that it must give."""

    path: Path
    number: int
    function: str
    values: tuple[object, ...]
    expected: object

    def __str__(self) -> str:
        return f"{self.path.stem}-{self.function}({', '.join(map(repr, self.values))})"


def cases() -> list[Case]:
    found: list[Case] = []
    for path in sorted(FOLDER.glob("*.pdsl")):
        matches = (_CASE.fullmatch(line) for line in path.read_text().splitlines())
        for number, match in enumerate(m for m in matches if m):
            values = eval(f"({match[2]},)" if match[2] else "()")
            found.append(Case(path, number, match[1], values, eval(match[3])))
    return found


@cache
def _functions(path: Path) -> dict[str, tuple[list[str], str]]:
    """name → the types of its arguments, and of its result."""
    result: dict[str, tuple[list[str], str]] = {}
    for match in _DEF.finditer(path.read_text()):
        result.setdefault(match[1], (re.findall(r"\w+: (\w+)", match[2]), match[3]))
    return result


@cache
def _kernels(path: Path) -> list[tir.Kernel]:
    """Two kernels for each case of a file, in order: evaluated now, and later."""
    text = path.read_text()
    for case in cases():
        if case.path == path:
            types, result = _functions(path)[case.function]
            arguments = [Argument(t, v) for t, v in zip(types, case.values, strict=True)]  # type: ignore[arg-type]
            declared = [f"result: Pointer[{result}, MutAnyOrigin]", *(f"a{i}: {t}" for i, t in enumerate(types))]
            text += (
                f"\n@kernel\ndef now_{case.number}({declared[0]}):\n"
                f"    comptime value = {case.function}({', '.join(a.text for a in arguments)})\n    result[] = value\n"
                f"@kernel\ndef later_{case.number}({', '.join(declared)}):\n"
                f"    result[] = {case.function}({', '.join(f'a{i}' for i in range(len(types)))})\n"
            )
    return typed(text).kernels


def values_of(case: Case) -> tuple[object, object]:
    """What the case gives at compile time, and at run time."""
    now, later = _kernels(case.path)[2 * case.number : 2 * case.number + 2]
    types, result = _functions(case.path)[case.function]
    arguments = [kept(Argument(t, v)) for t, v in zip(types, case.values, strict=True)]  # type: ignore[arg-type]
    return shown(stored(now), result), shown(stored(later, *arguments), result)
