"""Every public function of the library, in kernels (``use/*.pdsl``) that compile to the PTX promised and assemble."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxdsl.backend.assemble import assemble
from ptxdsl.driver import compile_source
from ptxdsl.files import resources
from ptxdsl.imports import library_module
from ptxdsl.intrinsics import ROWS
from ptxdsl.options import Options
from ptxdsl.syntax import ast
from ptxdsl.syntax.parse import read_source

USE = Path(__file__).parent / "use"
# Modules that declare what the compiler itself knows; tests of elaboration have them.
COMPILERS_OWN = {"array", "core", "pointer", "role_pipeline", "simd"}


def entries(path: Path, key: str) -> list[str]:
    lines = re.findall(rf"^# {key}: (.*)$", path.read_text(), re.MULTILINE)
    return [entry for line in lines for entry in line.split(", ")]


CASES = [(path, arch) for path in sorted(USE.glob("*.pdsl")) for arch in entries(path, "targets")]


@pytest.mark.parametrize(("path", "arch"), CASES, ids=[f"{path.stem}-{arch}" for path, arch in CASES])
def test_use(path, arch, ptxas):
    options = Options(arch=arch)
    compiled = compile_source(read_source(path, path.name), options=options)
    assert [text for text in entries(path, "ptx") if text not in compiled.ptx] == []
    assert assemble(compiled.ptx, options, compiled.line_map).cubin


def public_names() -> set[str]:
    found = set()
    for name in set(resources.stdlib_names()) - COMPILERS_OWN:
        for node in library_module(name).body:
            if isinstance(node, ast.FunctionDef | ast.StructDef | ast.ComptimeDecl) and not node.name.startswith("_"):
                found.add(node.name)
            if isinstance(node, ast.StructDef) and not node.name.startswith("_"):
                found |= {m.name for m in node.members if isinstance(m, ast.FunctionDef)}
    return {name for name in found - set(ROWS) if not name.startswith("__")}


def test_every_public_name_is_used():
    text = "\n".join(path.read_text() for path in USE.glob("*.pdsl"))
    assert sorted(name for name in public_names() if not re.search(rf"\b{name}\b", text)) == []


def test_every_public_function_has_a_docstring():
    missing = [
        f"{name}.{node.name}"
        for name in set(resources.stdlib_names()) - COMPILERS_OWN
        for node in library_module(name).body
        if isinstance(node, ast.FunctionDef | ast.StructDef)
        if not node.name.startswith("_") and not node.docstring
    ]
    assert missing == []


@pytest.mark.parametrize("name", sorted(set(resources.stdlib_names()) - COMPILERS_OWN))
def test_imports_resolve(name):
    """Every name that a module takes from another is there."""
    for node in library_module(name).body:
        if isinstance(node, ast.Import) and node.names:
            there = {
                item.name if not isinstance(item, ast.Import) else None
                for item in library_module(node.module).body
                if isinstance(item, ast.FunctionDef | ast.StructDef | ast.ComptimeDecl)
            }
            assert {item.name for item in node.names} <= there, node.module
