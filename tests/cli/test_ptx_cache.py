"""The cache of PTX: a command repeated prints the same bytes, and only where nothing that matters has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptxdsl import cli, driver
from ptxdsl.command import ptx_cache
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.files import compilations

MAIN = """\
from steps import step
from max.gpu import thread_idx


@kernel
def add(a: Pointer[Int32, MutAnyOrigin]):
    a[unsafe_offset=Int32(thread_idx.x)] += step()
"""
STEPS = "def step() -> Int32:\n    return {}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Path:
    """A program of two files in the current folder, and a cache of its own."""
    program = tmp_path / "program"
    program.mkdir()
    (program / "add.pdsl").write_text(MAIN)
    (program / "steps.pdsl").write_text(STEPS.format(7))
    monkeypatch.chdir(program)
    return program


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes that run a copy of the compiler: nobody edits it, as may happen to a checkout."""
    root, place = Path(cli.__file__).parents[1], tmp_path_factory.mktemp("compiler")
    for folder in ("ptxdsl", "grammar", "stdlib"):
        shutil.copytree(root / folder, place / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return {"PYTHONPATH": str(place)}


class Command:
    """Runs ``ptxdsl compile`` and counts how often the compiler worked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compiled = 0
        monkeypatch.setattr(compilations, "compiler", lambda: "this one")
        real = driver.show

        def show(job: driver.Job, stop: str) -> str | bytes:
            self.compiled += 1
            return real(job, stop)

        monkeypatch.setattr(driver, "show", show)

    def __call__(self, *arguments: str, file: str = "add.pdsl") -> str:
        assert cli.main(["compile", file, "-o", "out.ptx", *arguments]) == 0
        return Path("out.ptx").read_text()


@pytest.fixture
def compile_(monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(monkeypatch)


def entries(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache").glob("ptx-*"))


def test_the_second_command_prints_the_same(compile_: Command, tmp_path: Path) -> None:
    assert compile_() == compile_("--json", "-o", "out.ptx")
    assert compile_.compiled == 1 and len(entries(tmp_path)) == 1


def test_a_hit_loads_neither_llvm_nor_the_compiler(copied: dict[str, str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "ptxdsl", "compile", "add.pdsl"]
    environment = {**os.environ, **copied}
    first, second = (subprocess.run(command, capture_output=True, text=True, env=environment) for _ in range(2))
    assert first.stdout == second.stdout != ""
    for module in ("ptxdsl.driver", "ptxdsl.llvm_library", "ptxdsl.syntax", "typing", "argparse"):
        assert f" {module}\n" in first.stderr or module in ("typing", "argparse")
        assert f" {module}\n" not in second.stderr, module


@pytest.mark.parametrize(
    "option",
    ["--arch=sm_80", "--kernel=add", "--wait=probe", "--lineinfo", "--no-contract", "--no-ring-unroll", "--check=off"],
)
def test_an_option_makes_another_entry(compile_: Command, option: str) -> None:
    compile_()
    compile_(option)
    assert compile_.compiled == 2


def test_a_changed_text_is_compiled(compile_: Command, folder: Path) -> None:
    compile_()
    (folder / "add.pdsl").write_text(MAIN + "\n# more\n")
    compile_()
    assert compile_.compiled == 2


def test_another_name_is_another_header(compile_: Command, folder: Path) -> None:
    compile_()
    shutil.copy(folder / "add.pdsl", folder / "other.pdsl")
    assert "from other.pdsl" in compile_(file="other.pdsl")


def test_a_changed_import_is_compiled(compile_: Command, folder: Path) -> None:
    before = compile_()
    (folder / "steps.pdsl").write_text(STEPS.format(9))
    assert compile_() != before
    (folder / "steps.pdsl").write_text(STEPS.format(7))
    assert compile_() == before


def test_a_new_file_that_takes_the_name_of_a_library_module_is_seen(compile_: Command, folder: Path) -> None:
    compile_()
    (folder / "max").mkdir()
    (folder / "max" / "gpu.pdsl").write_text("struct thread_idx:\n    comptime x = 40\n")
    assert "tid.x" not in compile_()


def test_a_module_of_another_folder(compile_: Command, folder: Path) -> None:
    (folder / "steps.pdsl").rename(folder.parent / "steps.pdsl")
    before = compile_("-I", "..")
    assert compile_("-I", "..") == before and compile_.compiled == 1
    assert cli.main(["compile", "add.pdsl"]) == 1
    (folder.parent / "steps.pdsl").write_text(STEPS.format(9))
    assert compile_("-I", "..") != before
    (folder / "steps.pdsl").write_text(STEPS.format(7))  # the program's own folder comes first
    assert compile_("-I", "..") == before


def test_a_file_that_is_gone_is_an_error(compile_: Command, folder: Path) -> None:
    compile_()
    (folder / "steps.pdsl").unlink()
    assert cli.main(["compile", "add.pdsl"]) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links")
def test_a_file_that_became_a_link_out_of_the_folder_is_an_error(compile_: Command, folder: Path) -> None:
    compile_()
    path = folder / "steps.pdsl"
    path.rename(folder.parent / "steps.pdsl")
    path.symlink_to(folder.parent / "steps.pdsl")
    assert cli.main(["compile", "add.pdsl"]) == 1


@pytest.mark.parametrize("how", ["option", "environment"])
def test_it_can_be_turned_off(compile_: Command, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "environment":
        monkeypatch.setenv("PTXDSL_NO_CACHE", "1")
    options = ["--no-cache"] if how == "option" else []
    compile_(*options)
    compile_(*options)
    assert compile_.compiled == 2 and entries(tmp_path) == []


def test_other_stages_and_failures_are_not_kept(compile_: Command, folder: Path, tmp_path: Path) -> None:
    compile_("--emit=llvm")
    (folder / "add.pdsl").write_text(MAIN.replace("step()", "stop()"))
    assert cli.main(["compile", "add.pdsl"]) == 1
    assert entries(tmp_path) == []


def test_a_command_with_warnings_is_not_kept(
    compile_: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show = driver.show

    def warn(job: driver.Job, stop: str) -> str | bytes:
        job.sink.add(Diagnostic("W0001", "take care", severity="warning"))
        return show(job, stop)

    monkeypatch.setattr(driver, "show", warn)
    for _ in range(2):
        compile_()
        assert "take care" in capsys.readouterr().err
    assert entries(tmp_path) == []


def test_a_damaged_entry_is_made_again(compile_: Command, tmp_path: Path) -> None:
    text = compile_()
    (path,) = entries(tmp_path)
    path.write_bytes(path.read_bytes()[:-5] + b"nop;\n")
    assert compile_() == text
    assert compile_() == text and compile_.compiled == 2


def test_a_payload_that_is_none_is_compiled(compile_: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    text = compile_()
    for payload in (b"", b"x\0", b"2\0add.pdsl\0steps\0", b"-1\0a", b"1\0add.pdsl\0steps\0nowhere\0" + b"0\0ptx"):
        monkeypatch.setattr(compilations.cache, "load_own", lambda *_, found=payload: found)
        assert compile_() == text


def test_another_compiler_is_another_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxdsl.command.command_line import read

    arguments = read(["compile", "add.pdsl"])
    copy = folder / "ptxdsl"
    shutil.copytree(Path(cli.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compilations, "__file__", str(copy / "files" / "compilations.py"))
    own = ptx_cache.key(arguments, "add.pdsl", b"")
    assert own == ptx_cache.key(arguments, "add.pdsl", b"") != ptx_cache.key(arguments, "add.pdsl", b" ")
    (copy / "elaborate" / "scope.py").touch()
    assert own != ptx_cache.key(arguments, "add.pdsl", b"")


def test_standard_input(copied: dict[str, str]) -> None:
    text = b"@kernel\ndef k(a: Pointer[Int32, MutAnyOrigin]):\n    a[] = 1\n"
    command = [sys.executable, "-m", "ptxdsl", "compile", "-"]
    environment = {**os.environ, **copied}
    first, second = (subprocess.run(command, input=text, capture_output=True, env=environment) for _ in range(2))
    assert first.returncode == 0 and first.stdout == second.stdout != b""
