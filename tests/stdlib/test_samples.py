"""The samples: a header says what each shows and how to run it, and it compiles for every target named there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxdsl.backend.assemble import assemble
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.syntax.parse import read_source

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "samples").glob("*.pdsl"))


def header(path: Path) -> dict[str, str]:
    """The entries of the comment at the top; lines that are indented further continue the one before."""
    comment = "\n".join(line[1:] for line in re.findall(r"\A(?:#.*\n)+", path.read_text())[0].splitlines())
    joined = re.sub(r"\n {2,}", " ", comment)
    return dict(line.strip().split(": ", 1) for line in joined.splitlines())


CASES = [(path, arch) for path in SAMPLES for arch in header(path)["targets"].split(", ")]


@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_header(path):
    told = header(path)
    assert list(told) == [path.name, "run", "targets", "launch", "args", "result"]
    assert told["run"].startswith(f"ptxdsl run samples/{path.name} ")
    assert "--expect" in told["run"]
    memory = r"(no|\d+ bytes of) dynamic shared memory"
    assert re.fullmatch(rf"grid \d+, block \d+, {memory}", told["launch"])
    assert re.match(r"\w+ == ", told["result"])


@pytest.mark.parametrize(("path", "arch"), CASES, ids=[f"{path.stem}-{arch}" for path, arch in CASES])
def test_sample_compiles(path, arch, ptxas):
    options = Options(arch=arch)
    compiled = compile_source(read_source(path, path.name), options=options)
    assert not compiled.warnings
    assembled = assemble(compiled.ptx, options, compiled.line_map)
    assert all(found.spill_stores == found.spill_loads == 0 for found in assembled.resources.values())


@pytest.mark.parametrize("letter", "ab")
def test_kernels_a_and_b_are_the_reference_files_own(letter):
    def body(text: str) -> str:
        return text[text.index("def kernel(") :].split("\n\ndef main")[0].rstrip()

    (sample,) = (path for path in SAMPLES if path.stem.endswith(f"kernel_{letter}"))
    reference = ROOT / "tests" / "data" / "oracle" / f"kernel_{letter}.mojo"
    assert body(sample.read_text()) == body(reference.read_text())
