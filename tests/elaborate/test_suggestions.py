"""Every public name of the standard library that needs an import is told with the line that imports it."""

from __future__ import annotations

import pytest

from ptxdsl.elaborate.suggestions import importable_name
from ptxdsl.files.resources import stdlib_names
from ptxdsl.imports import library_module
from ptxdsl.syntax import ast


def names_of(module: str) -> set[str]:
    """What can be imported from a module, by its tree."""
    names = set()
    for statement in library_module(module).body:
        match statement:
            case ast.Import():
                names |= {item.alias or item.name for item in statement.names or ()}
            case ast.FunctionDef() | ast.StructDef() | ast.TraitDef() | ast.ComptimeDecl():
                names.add(statement.name)
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("module", stdlib_names())
def test_it_is_told_with_a_line_that_imports_it(module: str) -> None:
    for name in names_of(module):
        said = importable_name(name, ())
        assert said is not None
        source, named = said.removeprefix("did you forget `from ").removesuffix("`?").split(" import ")
        assert named == name
        assert name in names_of(source)


@pytest.mark.parametrize(
    ("name", "module"),
    [("atan2", "math"), ("hypot", "math"), ("log2_ceil", "bit"), ("tma_load", "tma"), ("wgmma_async", "wgmma"),
     ("load_operand", "wgmma"), ("TensorMemory", "tensor_memory"), ("broadcast", "warp"), ("load", "cache_hints")],
)  # fmt: skip
def test_it_is_imported_from_the_module_that_is_documented(name: str, module: str) -> None:
    assert importable_name(name, ()) == f"did you forget `from {module} import {name}`?"


def test_a_misspelt_name_is_rather_a_visible_one() -> None:
    assert importable_name("radious", ["radius"]) == "did you mean `radius`?"
    assert importable_name("hypott", ["depot"]) == "did you mean `hypot`? It needs `from math import hypot`"
    assert importable_name("zzzz", ["radius"]) is None
