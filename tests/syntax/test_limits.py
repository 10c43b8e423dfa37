"""Whatever is nested too deep is a diagnostic, at once; what is only long is no problem."""

import pytest

from ptxdsl.source import Source
from ptxdsl.syntax.parse import parse
from ptxdsl.syntax.printer import ast_text

MANY = 3000

DEEP = {
    "brackets": "x = " + "(" * MANY + ")" * MANY,
    "open brackets": "x = " + "[" * MANY,
    "minus": "x = " + "-" * MANY + "1",
    "not": "x = " + "not " * MANY + "a",
    "attributes": "x = a" + ".b" * MANY,
    "calls": "f" + "()" * MANY,
    "sum": "x = a" + " + a" * MANY,
    "power": "x = a" + " ** a" * MANY,
    "and": "x = a" + " and a" * MANY,
    "conditional": "x = " + "a if b else " * MANY + "c",
    "function types": "x = " + "def() -> " * MANY + "T",
    "elif": "if a:\n  b\n" + "elif a:\n  b\n" * MANY,
    "blocks": "".join(" " * n + "if a:\n" for n in range(MANY)) + " " * MANY + "pass\n",
}

LONG = {
    "list": "x = [" + "1, " * MANY + "]",
    "comparison": "x = a" + " < a" * MANY,
    "strings": "x = " + '"a" ' * MANY,
    "statements": "f(); " * MANY,
    "lines": "x = 1\n" * MANY,
    "continuation": "\\\n" * MANY,
    "name": "x" * MANY * 10,
    "traits": "struct A(" + " & ".join(["T"] * MANY) + "): pass",
    "nested": "if a:\n" + "".join(" " * n + "if a:\n" for n in range(1, 50)) + " " * 50 + "f" + "(a" * 50 + ")" * 50,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_too_deep(problems, text):
    (problem,) = problems(text)
    assert problem.code == "E0108"
    assert "nested more than" in problem.message


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_long(text):
    ast_text(parse(Source("test.pdsl", text)))


def test_garbage_is_not_slow(problems):
    for text in ("\x00" * 5_000, '"\n' * 5_000, ")\n" * 5_000, "1a " * 5_000, "(\n" * 5_000):
        assert 1 <= len(problems(text)) <= 50
