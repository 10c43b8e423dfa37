"""What README shows works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ptxdsl import cli, driver
from ptxdsl.source import Source

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_kernel_compiles() -> None:
    (kernel,) = blocks("mojo")
    compiled = driver.compile_source(Source("readme.pdsl", kernel))
    assert isinstance(compiled, driver.Compiled)
    assert list(compiled.signatures) == ["copy"] and compiled.warnings == ()
    assert "mbarrier.try_wait.parity" in compiled.ptx


def test_the_fault_that_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kernel is proved; with its last two lines swapped it is at fault, in the words of the block below it."""
    (kernel,), (shown,) = blocks("mojo"), blocks("text")
    *lines, read, release = kernel.splitlines()
    monkeypatch.chdir(tmp_path)
    Path("copy.pdsl").write_text(kernel)
    assert cli.main(["check", "copy.pdsl"]) == 0 and capsys.readouterr().out == "kernel 'copy': proved\n"
    Path("copy.pdsl").write_text("\n".join([*lines, release, read, ""]))
    assert cli.main(["check", "copy.pdsl"]) == 1
    said = capsys.readouterr()
    before, after = shown.split("…\n")
    found = said.err.strip() + "\n"
    assert found.startswith(before) and found.endswith(after), found


def test_two_commands_for_a_fresh_machine() -> None:
    first, second = blocks("sh")
    assert all(command.startswith("python3 -m venv .venv && .venv/bin/pip install ") for command in (first, second))
    assert second.rstrip().endswith("-n 2")


def test_the_first_command_runs_a_sample(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(blocks("sh")[0].rstrip().rpartition("&& ")[2])
    assert words[0] == ".venv/bin/ptxdsl"
    assert cli.main(words[1:]) == 0
    assert "ok  res == src: equal" in capsys.readouterr().out


def test_ci_runs_the_second_command() -> None:
    assert "block == 2" in (ROOT / ".ci" / "run").read_text()


def test_links_lead_somewhere() -> None:
    text = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).is_file(), target
