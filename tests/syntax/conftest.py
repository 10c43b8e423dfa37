"""Short forms for the syntax tests: parse a text, and write an expression as an S-expression."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxdsl.diagnostics import CompileError, Diagnostic
from ptxdsl.source import Source
from ptxdsl.syntax import ast
from ptxdsl.syntax.parse import parse

sys.path.insert(0, str(Path(__file__).parent))  # the helpers beside the tests are imported by their names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    from kernel_files import KERNEL_FILES

    if "kernel_file" in metafunc.fixturenames:
        metafunc.parametrize("kernel_file", KERNEL_FILES, ids=lambda path: path.name)


@pytest.fixture
def module() -> Callable[[str], ast.Module]:
    """``module(text)``: its tree."""
    return lambda text: parse(Source("test.pdsl", text))


@pytest.fixture
def statement(module: Callable[[str], ast.Module]) -> Callable[[str], ast.Stmt]:
    """``statement(text)``: the only statement of a text."""

    def parse_one(text: str) -> ast.Stmt:
        (only,) = module(text).body
        return only

    return parse_one


@pytest.fixture
def shape(statement: Callable[[str], ast.Stmt]) -> Callable[[str], str]:
    """``shape("a + b * c")`` is ``"(+ a (* b c))"``."""

    def of(text: str) -> str:
        only = statement(text)
        assert isinstance(only, ast.ExprStmt)
        return show(only.value)

    return of


@pytest.fixture
def written() -> Callable[[ast.Node | None], str]:
    """``written(node)``: an expression as an S-expression."""
    return show


@pytest.fixture
def problems() -> Callable[[str], list[Diagnostic]]:
    """``problems(text)``: what is wrong with a text, in its order."""

    def of(text: str) -> list[Diagnostic]:
        try:
            parse(Source("test.pdsl", text))
        except CompileError as failure:
            return list(failure.diagnostics)
        return []

    return of


def show(node: ast.Node | None) -> str:
    match node:
        case None:
            return "_"
        case ast.Name():
            return node.id
        case ast.IntLiteral() | ast.BoolLiteral():
            return str(node.value)
        case ast.FloatLiteral():
            return node.text
        case ast.StringLiteral():
            return repr(node.value)
        case ast.NoneLiteral():
            return "None"
        case ast.EllipsisLiteral():
            return "..."
        case ast.DotName():
            return f".{node.name}"
        case ast.Attribute():
            return f"{show(node.value)}.{node.name}"
        case ast.Argument():
            star = "*" if node.star else ""
            return f"{node.name}={show(node.value)}" if node.name else star + show(node.value)
        case ast.Call():
            return listed("call", node.func, *node.args)
        case ast.Subscript():
            return listed("at", node.value, *node.args)
        case ast.Unary():
            return listed(node.op, node.operand)
        case ast.Binary() | ast.BoolOp():
            return listed(node.op, node.left, node.right)
        case ast.Compare():
            pairs = zip(node.ops, node.operands[1:], strict=True)
            return f"({show(node.operands[0])} {' '.join(f'{op} {show(right)}' for op, right in pairs)})"
        case ast.Conditional():
            return listed("if", node.test, node.then, node.orelse)
        case ast.TupleExpr():
            return listed("tuple", *node.items)
        case ast.ListExpr():
            return listed("list", *node.items)
        case ast.Slice():
            return listed("slice", node.start, node.stop, node.step)
        case ast.Transfer():
            return f"{show(node.value)}^"
        case ast.FunctionType():
            return listed("def", *node.args) + f"->{show(node.returns)}"
    raise AssertionError(node)


def listed(head: str, *parts: ast.Node | None) -> str:
    return f"({' '.join([head, *map(show, parts)])})"
