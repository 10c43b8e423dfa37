"""The command in each sample's header runs the sample and meets its expectation."""

import re
import shlex
from pathlib import Path

import pytest

from ptxdsl.cli import main

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "samples").glob("*.pdsl"))


@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_the_header_runs(path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    head = re.sub(r"\n# {2,}", " ", path.read_text().split("\n\n")[0])
    program, *arguments = shlex.split(re.search(r"^# run: (.*)$", head, re.MULTILINE)[1])
    assert program == "ptxdsl"
    assert main(arguments) == 0
    assert re.search(r"^ok  ", capsys.readouterr().out, re.MULTILINE)
