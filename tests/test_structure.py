"""The structure of the compiler: data flows one way, files are short, and the product knows nothing of its tests."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from ptxdsl.files.compilations import NO_PART

ROOT = Path(__file__).parents[1]
PRODUCT = ROOT / "ptxdsl"
MOST_LINES = 400

# Imports between packages that may go against the others, and why.
AGAINST = {
    # what a deadlock's threads wait for is told from the state of mbarriers, which are themselves of the machine
    ("ptxdsl.sim.machine", "ptxdsl.sim.barriers"),
}


@cache
def modules() -> dict[str, Path]:
    """The modules of the product by their dotted names, packages by those of their folders."""
    found = {}
    for path in sorted(PRODUCT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def statements(tree: ast.AST, annotations: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """All imports, those in functions too, and whether they are for annotations alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, annotations
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            yield from statements(node, annotations or typing)


@cache
def all_imports() -> dict[str, dict[str, bool]]:
    """Of each module, the product's modules that it imports, and whether for annotations alone."""
    known = modules()
    found: dict[str, dict[str, bool]] = {}
    for module, path in known.items():
        of: dict[str, bool] = {}
        for node, typing in statements(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                assert node.level == 0 and node.module, f"{path}: imports are absolute"
                inside = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in known else node.module for name in inside]
            for name in names:
                if name in known and name not in ("ptxdsl", module):
                    of[name] = typing and of.get(name, True)
        found[module] = of
    return found


def imports(module: str, annotations: bool) -> set[str]:
    """The product's modules that one imports; those for annotations alone where they are asked for."""
    return {name for name, typing in all_imports()[module].items() if annotations or not typing}


def assert_no_cycle(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        pytest.fail(" imports\n".join(reversed(problem.args[1])))


def test_modules_import_one_another_in_one_direction() -> None:
    assert_no_cycle({module: imports(module, annotations=False) for module in modules()})


def children(package: str) -> dict[str, set[str]]:
    """What each part of a package, a module or a package in it, imports of the other parts."""
    depth = package.count(".") + 1
    graph: dict[str, set[str]] = {}
    for module in modules():
        if module.startswith(f"{package}."):
            own = ".".join(module.split(".")[: depth + 1])
            parts = graph.setdefault(own, set())
            for other in imports(module, annotations=package == "ptxdsl"):
                part = ".".join(other.split(".")[: depth + 1])
                if other.startswith(f"{package}.") and part != own and (own, part) not in AGAINST:
                    parts.add(part)
    return graph


@pytest.mark.parametrize(
    "package", ["ptxdsl", *sorted(m for m, p in modules().items() if "." in m and p.stem == "__init__")]
)
def test_parts_of_a_package_import_one_another_in_one_direction(package: str) -> None:
    """At the top, imports for annotations count as well."""
    assert_no_cycle(children(package))


def test_folders_import_from_those_above_them_in_the_map() -> None:
    text = (ROOT / "docs" / "internals.md").read_text("utf-8")
    order = re.findall(r"^\| `(\w+)/` \|", text, re.M)
    graph = children("ptxdsl")
    packages = {name.removeprefix("ptxdsl.") for name in graph if modules()[name].stem == "__init__"}
    assert set(order) == packages - {"explanations"}
    for number, folder in enumerate(order):
        todo, reached = [f"ptxdsl.{folder}"], set[str]()
        while todo:
            part = todo.pop()
            if part not in reached:
                reached.add(part)
                todo += graph[part]
        assert not {f"ptxdsl.{later}" for later in order[number + 1 :]} & reached, folder


@pytest.mark.parametrize(("own", "part"), sorted(AGAINST))
def test_what_goes_against_the_others_is_still_there(own: str, part: str) -> None:
    inside = [module for module in modules() if module.startswith(f"{own}.")]
    assert any(other.startswith(f"{part}.") for module in inside for other in imports(module, annotations=False))


def test_what_does_not_void_cached_compilations_has_no_part_in_them() -> None:
    todo, reached = ["ptxdsl.driver", "ptxdsl.kernel_cache", "ptxdsl.command.ptx_cache"], set[str]()
    while todo:
        module = todo.pop()
        if module not in reached:
            reached.add(module)
            todo += imports(module, annotations=False)
    assert {module for module in reached if module.split(".")[1] in NO_PART} == set()
    assert {f"ptxdsl.{folder}" for folder in NO_PART - {"__pycache__"}} <= modules().keys()


def test_files_are_short() -> None:
    lengths = {str(p.relative_to(ROOT)): p.read_text("utf-8").count("\n") for p in modules().values()}
    assert {path: n for path, n in lengths.items() if n > MOST_LINES} == {}


def test_types_are_checked_of_all_but_the_tests() -> None:
    """A benchmark that needs a GPU runs nowhere else, so its types are what tells that the product has changed."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    shipped = tools["hatch"]["build"]["targets"]["sdist"]["include"]
    code = {name[1:] for name in shipped if name.endswith(".py") or any((ROOT / name[1:]).rglob("*.py"))}
    assert code - {"tests"} == set(tools["mypy"]["files"])


def test_the_product_does_not_name_its_tests() -> None:
    """It is installed without them."""
    names = ("tests/", "benchmarks/", "import tests", "from tests")
    named = [(path.name, name) for path in modules().values() for name in names if name in path.read_text("utf-8")]
    assert named == []
