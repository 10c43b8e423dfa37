"""Trees as bytes (``ptxdsl/syntax/stored.py``); that all of the library's survive is in tests/cli/test_imports.py."""

from __future__ import annotations

from ptxdsl.source import Source
from ptxdsl.syntax import ast, stored
from ptxdsl.syntax.parse import parse
from ptxdsl.syntax.printer import ast_text

TEXT = """@builtin
def outer(a: Int32) -> Int32:
    def inner() -> Int32:
        return a
    return inner()


struct S:
    @staticmethod
    def method():
        pass
"""


def test_a_function_is_read_when_more_is_asked_than_its_declaration() -> None:
    module = stored.load(stored.dump(parse(Source("<text>", TEXT))))
    outer, struct = module.body
    assert isinstance(outer, ast.FunctionDef) and isinstance(struct, ast.StructDef)
    (method,) = struct.members
    assert isinstance(outer, stored.FunctionDef) and isinstance(method, stored.FunctionDef)
    assert (outer.name, outer.decorators[0].name, method.decorators[0].name) == ("outer", "builtin", "staticmethod")
    assert outer.span.text.endswith("return inner()") and outer.name_span.line == 2
    assert outer.later is not None  # all this is there without it
    inner = outer.body[0]
    assert type(inner) is ast.FunctionDef and inner.span.source is module.source
    assert outer.later is None and method.later is not None
    assert inner is outer.body[0]


def test_nothing_is_lost() -> None:
    module = parse(Source("<text>", TEXT))
    assert ast_text(stored.load(stored.dump(module))) == ast_text(module)
