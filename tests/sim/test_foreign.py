"""PTX that we did not write: CUDA C++ compiled by nvcc, run in the simulator, compared with NumPy, watched for races.

Each file's head says how it is launched, with what, and what must come out, as ``ptxdsl run`` takes it.
"""

import re
from pathlib import Path

import pytest

from ptxdsl.races.trace import TraceCheck
from ptxdsl.run.binding import bind
from ptxdsl.run.expectation import Expectation, Tolerance
from ptxdsl.run.formats import to_values
from ptxdsl.run.places import Shape, in_simulator
from ptxdsl.run.specification import arguments
from ptxdsl.run.subject import ptx_subject
from ptxdsl.sim.limits import Limits
from ptxdsl.sim.machine.schedule import parse_schedule
from ptxdsl.source import Source

FILES = sorted((Path(__file__).parent / "foreign").glob("*.cu"))


def shape(text):
    return (*map(int, text.split("x")), 1, 1)[:3]


def test_enough_kernels():
    assert len(FILES) >= 20


def header(path):
    return dict(re.findall(r"^// (\w+): (.*)$", path.read_text(), re.MULTILINE))


@pytest.fixture(scope="module")
def foreign(nvcc, tmp_path_factory):
    """By kernel, its PTX. Most of nvcc's time goes into CUDA's headers: it is given all files of a target as one."""
    found = {}
    for arch in sorted({header(path)["arch"] for path in FILES}):
        paths = [path for path in FILES if header(path)["arch"] == arch]
        together = tmp_path_factory.mktemp("foreign") / f"{arch}.cu"
        together.write_text("\n".join(path.read_text() for path in paths))
        parts = re.split(r"^(?=\t// \.globl\t|\.func )", nvcc(together, f"-arch={arch}"), flags=re.MULTILINE)
        for path in paths:
            own = [part for part in parts if ".entry " not in part or f".entry {path.stem}(" in part]
            found[path.stem] = Source(f"{path.stem}.ptx", "".join(own))
    return found


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_cuda(path, foreign):
    head, ptx = header(path), foreign[path.stem]
    launch = dict(part.split(maxsplit=1) for part in head["launch"].split(", "))
    specs = arguments(head["args"].split("; "))
    names = list(specs)
    by_position = {str(i): spec for i, spec in enumerate(specs.values())}
    tolerance = Tolerance(*map(float, re.findall(r"\S+e-\d+", head.get("tolerance", ""))))
    for schedule in ("round-robin", "random:3"):
        subject = ptx_subject(ptx, path.stem, by_position, head["arch"])
        bound = bind(subject, by_position)
        given = dict(zip((p.name for p in subject.signature.params), names, strict=True))
        before = {given[name]: to_values(array.copy(), dtype) for name, (array, dtype) in bound.arrays.items()}
        where = Shape(
            shape(launch["grid"]),
            shape(launch["block"]),
            shape(launch["cluster"]) if "cluster" in launch else None,
            0,
        )
        watch = TraceCheck() if schedule == "random:3" else None
        report = in_simulator(
            subject, bound, where, schedule=parse_schedule(schedule), limits=Limits(steps=10**8), watch=watch
        )
        assert report.status == "finished", "\n".join(d.render() for d in report.diagnostics)
        after = {given[name]: to_values(array, dtype) for name, (array, dtype) in bound.arrays.items()}
        outcome = Expectation(head["expect"]).judge(before, after, tolerance)
        assert outcome.holds, outcome.text
        if watch is not None:
            found = watch.found()
            assert not found.races and not found.incomplete, "\n".join(d.render() for d in found.diagnostics)
