"""What a module name means, and what it cannot reach."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxdsl import imports
from ptxdsl.diagnostics import CompileError, Diagnostic
from ptxdsl.files import resources
from ptxdsl.files.text_files import SIZE_LIMIT
from ptxdsl.imports import HOST_ONLY_MODULES, MOJO_MODULES, HostOnly, Loader, read_file
from ptxdsl.source import Source, Span
from ptxdsl.syntax import ast

TEXT = "def helper() -> Int:\n    return 1\n"


def resolve(importing: str, module: str, level: int = 0) -> ast.Module | HostOnly:
    source = Source(importing, f"from {'.' * level}{module} import helper\n")
    return Loader().resolve(source, module, level, Span(source, 5, 5 + level + len(module)))


def refused(importing: str, module: str, level: int = 0) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        resolve(importing, module, level)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None and diagnostic.span.start == 5
    return diagnostic


@pytest.fixture
def main(tmp_path: Path) -> str:
    (tmp_path / "project" / "sub").mkdir(parents=True)
    (tmp_path / "outside.pdsl").write_text(TEXT)
    (tmp_path / "project" / "beside.pdsl").write_text(TEXT)
    (tmp_path / "project" / "older.mojo").write_text(TEXT)
    (tmp_path / "project" / "sub" / "below.pdsl").write_text(TEXT)
    (tmp_path / "project" / "sub" / "__init__.pdsl").write_text(TEXT)
    return str(tmp_path / "project" / "main.pdsl")


@pytest.mark.parametrize(
    ("module", "level", "file"),
    [
        ("beside", 0, "beside.pdsl"),
        ("beside", 1, "beside.pdsl"),
        ("older", 0, "older.mojo"),
        ("sub.below", 0, "sub/below.pdsl"),
        ("sub", 1, "sub/__init__.pdsl"),
    ],
)
def test_files_beside_and_below(main: str, module: str, level: int, file: str) -> None:
    found = resolve(main, module, level)
    assert isinstance(found, ast.Module)
    assert found.source.name == os.path.join(os.path.dirname(main), file)


def test_a_relative_path_stays_relative(main: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.path.dirname(main))
    found = resolve("main.pdsl", "beside")
    assert isinstance(found, ast.Module) and found.source.name == "beside.pdsl"


def test_no_way_out_through_dots(main: str) -> None:
    assert refused(main, "outside", 2).code == "E0251"
    assert refused(os.path.join(os.path.dirname(main), "sub", "below.pdsl"), "beside", 2).code == "E0251"


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_no_way_out_through_links(main: str, tmp_path: Path) -> None:
    (tmp_path / "project" / "link.pdsl").symlink_to(tmp_path / "outside.pdsl")
    (tmp_path / "project" / "away").symlink_to(tmp_path)
    (tmp_path / "project" / "within.pdsl").symlink_to("sub/below.pdsl")
    assert refused(main, "link").code == "E0251"
    assert refused(main, "away.outside").code == "E0251"
    assert isinstance(resolve(main, "within"), ast.Module)


def folders_of(importing: str, module: str, program: str, include: tuple[str, ...] = ()) -> str:
    """Where the module that a file imports was found, for the program that the file belongs to."""
    source = Source(importing, "")
    loader = Loader()
    loader.begin(Source(program, ""), include)
    name = module.lstrip(".")
    found = loader.resolve(source, name, len(module) - len(name), Span(source, 0, 0))
    assert isinstance(found, ast.Module)
    return found.source.name


def test_modules_of_the_program_and_of_given_folders(main: str, tmp_path: Path) -> None:
    project = os.path.dirname(main)
    below = os.path.join(project, "sub", "below.pdsl")
    assert folders_of(below, "..beside", main) == os.path.join(project, "beside.pdsl")
    assert folders_of(below, "beside", main) == os.path.join(project, "beside.pdsl")
    assert folders_of("<stdin>", "outside", "<stdin>", (str(tmp_path),)) == str(tmp_path / "outside.pdsl")
    assert folders_of(main, "outside", main, ("nowhere", str(tmp_path))) == str(tmp_path / "outside.pdsl")
    assert folders_of(below, "...outside", main, (str(tmp_path),)) == str(tmp_path / "outside.pdsl")
    with pytest.raises(CompileError, match="there is no folder 'nowhere'"):
        folders_of(main, "outside", main, ("nowhere",))


def test_paths_of_modules_above_stay_relative(main: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.path.dirname(main))
    assert folders_of("sub/below.pdsl", "..beside", "main.pdsl") == "beside.pdsl"
    with pytest.raises(CompileError, match="E0251"):
        folders_of("sub/below.pdsl", "...outside", "main.pdsl")


def test_a_text_without_a_file_has_nothing_beside_it(main: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.path.dirname(main))
    assert refused("<stdin>", "beside").code == "E0250"


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("max.gpus", "did you mean 'max.gpu'?"),
        ("std.gpu", "did you mean 'max.gpu'?"),
        ("std.gpu.host", "did you mean 'max.gpu.host'?"),
        ("collections", "did you mean 'std.collections'?"),
        ("besid", "did you mean 'beside'?"),
        ("sub.belo", "did you mean 'sub.below'?"),
        (
            "zzzzzz",
            "a module is a file beside this one, in the program's folder or one of `-I`, or of the standard library",
        ),
    ],
)
def test_unknown_modules_get_a_hint(main: str, module: str, hint: str) -> None:
    unknown = refused(main, module)
    assert (unknown.code, unknown.message, unknown.help) == ("E0250", f"there is no module '{module}'", hint)


def test_host_modules_are_marked(main: str) -> None:
    assert resolve(main, "max.gpu.host") == HostOnly("max.gpu.host")
    assert not HOST_ONLY_MODULES & MOJO_MODULES.keys()


@pytest.mark.parametrize("path", sorted(MOJO_MODULES))
def test_every_mojo_path_has_a_module_of_ours(path: str) -> None:
    found = resolve("<stdin>", path)
    assert isinstance(found, ast.Module) and found.source.library


def test_an_imported_file_with_errors_raises_them(main: str) -> None:
    Path(os.path.dirname(main), "broken.pdsl").write_text("def f(:\n")
    with pytest.raises(CompileError) as caught:
        resolve(main, "broken")
    span = caught.value.diagnostics[0].span
    assert span is not None and span.source.name.endswith("broken.pdsl")


def test_a_text_is_parsed_once(main: str) -> None:
    first = resolve(main, "beside")
    assert resolve(main, "beside") is first
    Path(os.path.dirname(main), "beside.pdsl").write_text(TEXT + "\n")
    assert resolve(main, "beside") is not first


def test_the_loader_tells_what_it_read(main: str) -> None:
    loader = Loader()
    source = Source(main, "")
    for _ in range(2):
        loader.resolve(source, "beside", 0, Span(source, 0, 0))
    loader.resolve(source, "max.gpu.sync", 0, Span(source, 0, 0))
    assert [os.path.basename(s.name) for s in loader.sources] == ["beside.pdsl"]


@pytest.mark.parametrize("name", resources.stdlib_names())
def test_a_library_module_survives_the_cache(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxdsl.syntax.printer import ast_text

    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(imports, "_library", {})
    parsed = ast_text(imports.library_module(name))
    monkeypatch.setattr(imports, "_library", {})
    monkeypatch.setattr(imports, "pickled_library_module", lambda _: pytest.fail("was not in the cache"))
    loaded = imports.library_module(name)
    assert ast_text(loaded) == parsed
    assert loaded.source.library and loaded is imports.library_module(name)


def test_a_library_module_is_read_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "_library", {})
    read: list[str] = []
    original = imports._read_library_module
    monkeypatch.setattr(imports, "_read_library_module", lambda name: read.append(name) or original(name))
    module = Loader().stdlib("ids")
    assert read == []
    assert module.body and module.source and read == ["ids"]


def test_a_cached_tree_that_cannot_be_read_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxdsl.files import cache

    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(imports, "_library", {})
    cache.store(*imports.library_entry("prelude"), b"no pickle")
    assert Loader().prelude().body


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda p: None, "E1001"),
        (lambda p: p.mkdir(), "E1002"),
        (lambda p: p.write_bytes(b"x" * (SIZE_LIMIT + 1)), "E1003"),
    ],
)
def test_files_that_are_none(tmp_path: Path, make: Callable[[Path], object], code: str) -> None:
    make(tmp_path / "a.pdsl")
    with pytest.raises(CompileError) as caught:
        read_file(str(tmp_path / "a.pdsl"))
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_a_path_with_nul() -> None:
    with pytest.raises(CompileError) as caught:
        read_file("a\0b")
    assert [d.code for d in caught.value.diagnostics] == ["E1003"]


@pytest.mark.parametrize(
    ("asked", "help"),
    [
        ("kernle.pdsl", "did you mean '{folder}/kernel.pdsl'?"),
        ("other.pdsl", None),
        ("none/kernel.pdsl", "there is no folder '{folder}/none' either"),
    ],
)
def test_a_file_that_is_not_there(asked: str, help: str | None, tmp_path: Path) -> None:
    (tmp_path / "kernel.pdsl").touch()
    with pytest.raises(CompileError) as caught:
        imports.read_file(f"{tmp_path}/{asked}")
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.help) == ("E1001", help and help.format(folder=tmp_path))


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links")
def test_a_link_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "kernel.pdsl").symlink_to("gone.pdsl")
    with pytest.raises(CompileError) as caught:
        imports.read_file(f"{tmp_path}/kernel.pdsl")
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.help) == ("E1001", "it is a link to 'gone.pdsl', which is not there")
