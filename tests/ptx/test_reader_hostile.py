"""Whatever the text is: diagnostics or a module, in time that grows with its length, and never a traceback."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_mutation import mutate

from ptxdsl.diagnostics import CompileError, Diagnostic
from ptxdsl.ptx.module import Module
from ptxdsl.ptx.opcodes import effects
from ptxdsl.ptx.reader import read

TESTS = Path(__file__).parents[1]
CORPUS = [
    path.read_text(encoding="utf-8")
    for path in (*(TESTS / "ptx" / "data").glob("*.ptx"), *sorted((TESTS / "card" / "kernels").glob("*.ptx")))
]
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
BODY = HEAD + ".entry k() { .reg .pred p; .reg .b32 %r<9>;\n"


def survives(text: str | bytes) -> Module | tuple[Diagnostic, ...]:
    """Reads; of what is wrong every diagnostic can be shown."""
    try:
        module = read(text)
    except CompileError as problem:
        assert all(d.span is not None and d.render() for d in problem.diagnostics)
        return problem.diagnostics
    for function in module.functions.values():
        effects(function.body)
    return module


@pytest.mark.parametrize("seed", range(8))
def test_damaged_texts(seed: int) -> None:
    rng = random.Random(seed)
    outcomes = set()
    for _ in range(40):
        base, other = rng.choice(CORPUS), rng.choice(CORPUS)
        start = rng.randrange(len(base) // 2)
        damaged = mutate(base[:300] + base[start : start + 4000] if rng.random() < 0.5 else base, rng, other)
        outcomes.add(type(survives(damaged if rng.random() < 0.7 else damaged.encode("latin-1", "replace"))))
    assert tuple in outcomes, "the damage is too small to be found"


@given(st.one_of(st.text(max_size=200), st.binary(max_size=200)))
@settings(max_examples=150, deadline=None)
def test_any_text_and_any_bytes(text: str | bytes) -> None:
    assert isinstance(survives(text), tuple), "there is no module without .version and .target"


_WORDS = st.sampled_from((
    "{", "}", "(", ")", "[", "]", ";", ",", ":", "@", "!", "|", "_", "p", "%r1", "%tid.x", "mov.b32", "bra", "L",
    "call", ".reg", ".b32", ".param", ".loc", "1", "0x", "0f", "-1", "1.5e9", "WARP_SZ", "+", "<<", "?", "=", "x[4]",
    "%q<7>", "ret;", ".branchtargets", "::", "/*", "*/", "//", "\n", '"', ".section", ".pragma", ".align", ".v4", "\0",
))  # fmt: skip


@given(st.lists(_WORDS, max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_words_in_a_body(words: list[str]) -> None:
    survives(BODY + " ".join(words) + "\n}")
    survives(HEAD + ".global " + " ".join(words))


# Each text grows with n; some would take quadratic time or unbounded memory or depth in a careless reader.
GROWING: dict[str, Callable[[int], str]] = {
    "a name": lambda n: BODY + "a" * n,
    "an opcode": lambda n: BODY + "a" + ".a" * n + " ",
    "a guard": lambda n: BODY + "@" + " " * n + "!" * n,
    "scopes": lambda n: BODY + "{.reg .pred q;}" * n + "}",
    "open scopes": lambda n: BODY + "{" * n,
    "brackets": lambda n: BODY + "mov.b32 %r1, " + "([{" * n + ";}",
    "digits of a register": lambda n: BODY + "mov.b32 %r1, %r" + "1" * n + "x;}",
    "digits": lambda n: BODY + "mov.b32 %r1, " + "1" * n + ";}",
    "signs": lambda n: BODY + "mov.b32 %r1, " + "-" * n + "1;}",
    "nested expressions": lambda n: BODY + "mov.b32 %r1, " + "(1+" * n + "1" + ")" * n + ";}",
    "choices": lambda n: BODY + "mov.b32 %r1, " + "1?" * n + "1" + ":1" * n + ";}",
    "commas": lambda n: BODY + "mov.b32 " + "," * n + ";}",
    "labels": lambda n: BODY + "".join(f"L{i}:\n" for i in range(n)) + "}",
    "parameters of calls": lambda n: BODY + "{.param .b32 a; call (a), g, (a);}\n" * n + "}",
    "comments": lambda n: HEAD + "/*" + "*" * n,
    "slashes": lambda n: HEAD + "/" * n,
    "quotes": lambda n: HEAD + '"' * n,
    "values": lambda n: HEAD + ".global .b8 x[100000000] = {" + "1," * n + "1};",
    "rows": lambda n: HEAD + ".global .b8 x[][1000000] = {" + "{}," * n + "{}};",
    "dimensions": lambda n: HEAD + ".global .b8 x" + "[1]" * n + " = " + "{" * n + "1" + "}" * n + ";",
    "directives": lambda n: HEAD + ".foo\n" * n,
    "kernels": lambda n: HEAD + "".join(f".entry k{i}(){{ret;}}" for i in range(n)),
    "aliases": lambda n: HEAD + ".alias a, b;\n" * n,
    "open sections": lambda n: HEAD + ".section .x {\n" * n,
    "spaces of a .file": lambda n: HEAD + ".file 1" + " " * n,
    "a version": lambda n: ".version " + "9" * n + ".0",
}


def seconds(text: str) -> float:
    start = time.process_time()
    with suppress(CompileError):
        read(text)
    return time.process_time() - start


@pytest.mark.parametrize("make", GROWING.values(), ids=GROWING)
def test_time_grows_no_faster_than_the_text(make: Callable[[int], str]) -> None:
    once = min(seconds(make(2000)) for _ in range(3))
    assert min(seconds(make(16000)) for _ in range(2)) < 24 * once + 0.02, "8 times the text: 64 times if quadratic"


def test_memory_is_bounded() -> None:
    texts = [
        BODY + ".reg .b32 %big<4000000000>; .reg .b64 %other<999999999999999>; mov.b32 %r1, %big3999999999; }",
        HEAD + ".global .b8 x[1000000000000]; .global .b8 y[1000000000000] = {1};",
        HEAD + ".global .b8 x[1000][100000000] = {{1}, {2}};",
        HEAD + ".entry k() .maxntid 99999999999999999999999 { ret; }",
        BODY + "mov.b32 %r1, 1 << 99999999999999; }",
    ]
    tracemalloc.start()
    for text in texts:
        survives(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
