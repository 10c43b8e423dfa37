"""What tests of the proof share: the verdict on a text, and what the headers of examples say of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ptxdsl import driver
from ptxdsl.artifact import Compiled
from ptxdsl.check.report import Verdict, ptx_verdicts, verdicts
from ptxdsl.options import Options
from ptxdsl.ptx.reader import read
from ptxdsl.source import Source

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "tests" / "data" / "examples"
SAMPLES = ROOT / "samples"


def verdict(text: str, *, arch: str = "sm_90a", name: str = "kernel.pdsl", kernel: str | None = None) -> Verdict:
    """The verdict on the only kernel of a text that has something to prove."""
    job = driver.Job(Source(name, text), kernel, options=Options(arch, check="off"))
    (found,) = verdicts(driver.run(job, "tir"))
    assert all(said.help for said in found.diagnostics if said.code == "W1290")  # whatever is not proved has a remedy
    return found


def lines(found: Verdict) -> set[int]:
    """All lines that the findings of a verdict show."""
    spans = [span for d in found.diagnostics for span in (d.span, *(place for place, _ in d.notes))]
    return {span.line for span in spans if span is not None}


@dataclass(frozen=True)
class Expected:
    """What an example's header accepts: classes and lines."""

    kinds: tuple[str, ...]
    lines: frozenset[int]


def expected(text: str) -> Expected | None:
    """None of a clean example."""
    header = " ".join(line[1:].strip() for line in text.splitlines() if line.startswith("#"))
    said = re.search(r"verdict: fault: ([^()]*?)(?: \(also acceptable: ([^)]*)\))? blame:", header)
    if said is None:
        return None
    kinds = [said[1].strip(), *(kind.strip() for kind in (said[2] or "").split(",") if kind.strip())]
    blame = re.search(r"blame: line (\d+)(?: \(second span or also acceptable: ([\d, ]+)\))?", header)
    assert blame is not None
    numbers = {int(blame[1]), *(int(n) for n in (blame[2] or "").split(",") if n.strip())}
    return Expected(tuple(kinds), frozenset(numbers))


def arch_of(text: str) -> str:
    """The first target that a sample names."""
    said = re.search(r"^# targets: ([\w, ]+)", text, re.MULTILINE)
    return said[1].split(",")[0].strip() if said else "sm_100a"


def verdict_of_ptx(text: str) -> Verdict:
    """The verdict on the PTX of the only kernel of a text."""
    made = driver.compile_source(Source("kernel.pdsl", text), options=Options("sm_90a", check="off"))
    assert isinstance(made, Compiled)
    (found,) = ptx_verdicts(read(made.ptx, "kernel.ptx"))
    return found
