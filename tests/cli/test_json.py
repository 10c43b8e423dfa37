"""``--json``: one form of every command's document, whose keys the guide names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ptxdsl.cli import main

KERNEL = "@kernel(threads=32)\ndef k(res: Pointer[Int32, MutAnyOrigin]):\n    res[thread_idx.x] = {value}\n"
GUIDE = Path(__file__).parents[2] / "docs" / "checker.md"
MORE = {"check": {"verdicts", "files"}, "run": {"run"}}
OPTIONS = {"run": ["--target", "sim", "--arg", "res=zeros:i32:32"], "build": ["--format", "ptx"]}


@pytest.fixture
def document(tmp_path, capsys, monkeypatch):
    """Runs a command on texts: its exit code and its document."""
    monkeypatch.chdir(tmp_path)

    def run(command, *texts):
        for number, text in enumerate(texts):
            (tmp_path / f"k{number}.pdsl").write_text(text)
        files = [f"k{number}.pdsl" for number in range(len(texts))]
        capsys.readouterr()
        code = main([command, *files, *OPTIONS.get(command, ()), "--json"])
        return code, json.loads(capsys.readouterr().err)

    return run


@pytest.mark.parametrize("command", ["compile", "build", "run", "check"])
def test_every_command_has_the_same_form(command, document):
    code, good = document(command, KERNEL.format(value=1))
    assert (code, good["schema"], good["diagnostics"]) == (0, 4, [])
    assert good.keys() == {"schema", "diagnostics"} | MORE.get(command, set())
    code, bad = document(command, KERNEL.format(value="nothing"))
    assert (code, bad["schema"]) == (1, 4)
    assert [d["code"] for d in bad["diagnostics"]] == ["E0201"]


def test_the_guide_names_all_keys(document):
    text = " ".join(GUIDE.read_text(encoding="utf-8").split())
    told = text[text.index("`--json` writes one object") : text.index("`--sarif FILE` writes")]
    named = set(re.findall(r"`(\w+)`", told))
    _, of_check = document("check", KERNEL.format(value=1), KERNEL.format(value="nothing"))
    (found,) = of_check["diagnostics"]
    assert of_check.keys() | found.keys() | of_check["files"][0].keys() <= named
    assert re.search(r'"schema": (\d+)', GUIDE.read_text(encoding="utf-8"))[1] == str(of_check["schema"])
