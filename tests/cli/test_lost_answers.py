"""What was found and made is told whatever the system refuses: full disks, streams that take little, signals."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_programs import GOOD

from ptxdsl import cli
from ptxdsl.diagnostics import CompileError
from ptxdsl.files import output_files
from ptxdsl.files.output_files import write_files

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and devices")

# The second store lies outside of an array of one element; the first is its result.
FAULTY = """
@kernel(threads=1)
def k(p: Pointer[Int32, MutAnyOrigin]):
    p[] = 7
    p[unsafe_offset=1] = 8
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the current folder: ``good.pdsl`` and ``faulty.pdsl``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.pdsl").write_text(GOOD)
    (tmp_path / "faulty.pdsl").write_text(FAULTY)
    return tmp_path


class Sips(io.RawIOBase):
    """A stream that takes seven bytes at a time, as one of ``python -u`` may."""

    def __init__(self) -> None:
        self.got = b""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        taken = bytes(data)[:7]  # type: ignore[call-overload]
        self.got += taken
        return len(taken)


def test_a_stream_that_takes_a_part_gets_the_rest(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Sips()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(stream, write_through=True))  # type: ignore[type-var]
    assert cli.main(["compile", "good.pdsl", "-o", "good.ptx"]) == cli.main(["compile", "good.pdsl"]) == 0
    assert stream.got == (program / "good.ptx").read_bytes()


class Full(io.RawIOBase):
    """A stream that takes nothing, as a file on a full disk."""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["version"], ["explain", "E0301"]])
def test_an_answer_that_standard_output_refuses(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = io.TextIOWrapper(Full(), write_through=True)  # type: ignore[type-var]  # typeshed asks for more of a stream
    monkeypatch.setattr(sys, "stdout", stream)
    assert cli.main(arguments) == 1
    assert capsys.readouterr().err.startswith("error[E1007]: cannot write to standard output: No space left")


@posix
@pytest.mark.parametrize("output", ["--trace=/dev/full", "--timeline=/dev/full"])
def test_results_are_told_where_a_file_of_the_run_is_refused(
    program: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "faulty.pdsl", "--target", "sim", "--arg", "p=zeros:i32:1", output]) == 1
    said = capsys.readouterr()
    assert "p: int32[1] = 7" in said.out
    assert "error[E1120]" in said.err and "error[E1007]: cannot write '/dev/full': No space left" in said.err


@posix
def test_findings_are_told_where_the_answer_is_refused(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program / "bad.pdsl").write_text("@kernel\ndef f():\n    x = 1\n")
    assert cli.main(["check", "bad.pdsl", "--sarif", "/dev/full", "--json"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert [d["code"] for d in json.loads(line)["diagnostics"]] == ["E0212", "E1007"]


def test_json_is_one_object_whoever_answers(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for output in ("k.ptx", "k.ptx", "missing/k.ptx"):  # the second is the cache's answer
        cli.main(["compile", "good.pdsl", "--json", "-o", output])
        (line,) = capsys.readouterr().err.splitlines()
        assert [d["code"] for d in json.loads(line)["diagnostics"]] == ["E1007"] * (output != "k.ptx")


def test_several_files_are_written_or_none(tmp_path: Path) -> None:
    good, bad = tmp_path / "k.h", tmp_path / "missing" / "k.c"
    with pytest.raises(CompileError, match=r"cannot write '.*k\.c': No such file.*\n.*its folder does not exist"):
        write_files([(str(good), "a"), (str(bad), "b")])
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_to_be_kept_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.ptx"
    path.write_text("kept")
    monkeypatch.setattr(output_files.os, "access", lambda *_: False)  # root may write to all
    with pytest.raises(CompileError, match=r"Permission denied\n.*name a place where you may write"):
        write_files([(str(path), "new")])
    assert path.read_text() == "kept"


@pytest.mark.parametrize(
    "command",
    [
        "build good.pdsl -o",
        "check good.pdsl --witness",
        "run good.pdsl --block 1 --arg a=zeros:f32:1 --arg n=0 --explore",
    ],
)
def test_a_folder_without_a_name(program: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*command.split(), ""]) == 1
    assert "error[E1007]: no folder is named to write to" in capsys.readouterr().err
    assert sorted(os.listdir(program)) == ["faulty.pdsl", "good.pdsl"]


@posix
def test_a_current_folder_that_is_gone(
    program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = program / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    assert cli.main(["compile", str(program / "good.pdsl"), "-o", "k.ptx"]) == 1
    assert "error[E1007]: cannot write 'k.ptx': No such file or directory" in capsys.readouterr().err
    monkeypatch.setenv("PTXDSL_CACHE_DIR", "relative")
    assert cli.main(["compile", str(program / "good.pdsl")]) == 0


@posix
def test_a_signal_is_no_outcome_of_an_expectation(program: Path) -> None:
    """The expectation is evaluated when the signal comes; ``exit()`` in one is its mistake, a signal is not."""
    words = ["run", "faulty.pdsl", "--arg", "p=zeros:i32:2", "--target", "sim"]
    expect = "[__import__('os').kill(__import__('os').getpid(), 15), __import__('time').sleep(60)] == p"
    root = str(Path(cli.__file__).parents[1])
    command = [sys.executable, "-m", "ptxdsl", *words, "--expect", expect]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (-signal.SIGTERM, "")


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_process_in_order(program: Path, name: str) -> None:
    """While the assembler runs: no file stays behind, and the shell is told."""
    tool, runs = program / "ptxas", program / "runs"
    tool.write_text(f"#!/bin/sh\n: > '{runs}'\nexec sleep 60\n")
    tool.chmod(0o755)
    code = (
        f"import ptxdsl.backend.assemble as a; a.find_tool = lambda name: {str(tool)!r}\n"
        "from ptxdsl.cli import command; command()"
    )
    (program / "tmp").mkdir()
    root = str(Path(cli.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "TMPDIR": str(program / "tmp"), "PTXDSL_NO_CACHE": "1"}
    command = [sys.executable, "-c", code, "compile", "good.pdsl", "--emit=cubin", "-o", "k.cubin"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)
    deadline = time.monotonic() + 30
    while not runs.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    number = getattr(signal, name)
    process.send_signal(number)
    assert (process.communicate(timeout=30)[1], process.returncode) == (b"", -number)
    assert os.listdir(program / "tmp") == [] and not (program / "k.cubin").exists()
