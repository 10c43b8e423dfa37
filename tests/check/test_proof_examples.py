"""The kernels of tests/data/examples and the samples: each gets the verdict that its header says."""

import re
from pathlib import Path

import pytest
from proofs import EXAMPLES, SAMPLES, arch_of, expected, lines, verdict

FILES = sorted(EXAMPLES.glob("*.pdsl"))
CLEAN = [path for path in FILES if path.stem.endswith("clean")]
FAULTY = [path for path in FILES if path.stem.endswith("faulty")]
PIPELINES = sorted(path for path in SAMPLES.glob("*.pdsl") if "SharedMemBarrier" in path.read_text(encoding="utf-8"))


def test_there_are_examples_of_both_kinds() -> None:
    assert len(CLEAN) >= 9 and len(FAULTY) >= 6 and len(PIPELINES) >= 5


@pytest.mark.parametrize("path", CLEAN, ids=lambda p: p.stem)
def test_clean_examples_are_proved(path: Path) -> None:
    found = verdict(path.read_text(encoding="utf-8"), arch="sm_100a")
    assert (found.verdict, found.assumed, found.diagnostics) == ("proved", False, ())


@pytest.mark.parametrize("path", FAULTY, ids=lambda p: p.stem)
def test_faulty_examples_are_reported_as_their_headers_accept(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    accepted = expected(text)
    assert accepted is not None
    found = verdict(text, arch="sm_100a")
    assert found.verdict == "fault"
    assert set(found.kinds) <= set(accepted.kinds)
    assert lines(found) & accepted.lines


KERNELS = [
    (path, kernel)
    for path in PIPELINES
    for kernel in re.findall(r"^@kernel.*\n(?:@.*\n)*def (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.mark.parametrize(("path", "kernel"), KERNELS, ids=[f"{path.stem}-{kernel}" for path, kernel in KERNELS])
def test_samples_are_proved(path: Path, kernel: str) -> None:
    text = path.read_text(encoding="utf-8")
    found = verdict(text, arch=arch_of(text), kernel=kernel)
    assert (found.verdict, found.diagnostics) == ("proved", ())
