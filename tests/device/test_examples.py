"""The correct kernels of tests/data/examples, run as their own headers say: launch, arguments and expected result."""

import re
from pathlib import Path

import numpy as np
import pytest

import ptxdsl

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"
FILES = sorted(EXAMPLES.glob("*_clean.pdsl"))
FORMS = [("try", True), ("probe", True), ("try", False), ("probe", False)]

pytestmark = pytest.mark.device


def header(path):
    """The entries of the comment at the top, continuation lines joined."""
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        lines.append(line[1:])
    text = re.sub(r"\n {2,}", " ", "\n".join(lines))
    return dict(line.strip().split(": ", 1) for line in text.splitlines())


def arguments(text):
    """(name, dtype, size expression or None, "in" | "out" | list of values), as declared."""
    found = []
    for entry in text.split("; "):
        name, dtype, size, use = re.fullmatch(r"(\w+): (\w+)(?:\[(.*)\])? (in|out|in \[.*\])", entry).groups()
        values = eval(use[3:]) if use.startswith("in [") else use
        found.append((name, dtype, size, values))
    return found


def cases(declared):
    """Every combination of the scalar arguments' values."""
    scalars = [{}]
    for name, _, size, values in declared:
        if size is None:
            scalars = [{**known, name: value} for known in scalars for value in values]
    return scalars


@pytest.mark.parametrize(("wait", "unroll"), FORMS, ids=[f"{w}-{'ring' if u else 'counter'}" for w, u in FORMS])
@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_clean_example(path, wait, unroll, launch, output, device, rng):
    told = header(path)
    shape = re.fullmatch(r"grid (.+), block (.+), no dynamic shared memory", told["launch"])
    grid, block = eval(shape.group(1)), eval(shape.group(2))
    expected = re.split(r"\s+\(inputs:", told["result"])[0].removeprefix("res == ")
    declared = arguments(told["args"])
    kernel = ptxdsl.load(path, wait=wait, ring_unroll=unroll)["kernel"]
    for scalars in cases(declared):
        known = {"grid": grid, "np": np, **scalars}
        given = []
        for name, dtype, size, use in declared:
            if size is None:
                given.append(scalars[name])
                continue
            length = eval(size, known)
            if use == "out":
                given.append(output(length, dtype))
                known[name] = given[-1].array.cpu().numpy()  # as it was: kept where nothing is to be written
            else:
                known[name] = rng.integers(-8, 9, length).astype(dtype)
                given.append(device(known[name]))
        launch(kernel, grid, block, *given)
        result = next(g for g in given if hasattr(g, "read"))
        np.testing.assert_array_equal(result.read(), eval(expected, known), err_msg=str(scalars))


def test_there_are_examples():
    assert len(FILES) == 9


def test_headers_are_understood():
    for path in FILES:
        told = header(path)
        assert {"verdict", "launch", "args", "result", "names"} <= set(told)
        assert cases(arguments(told["args"]))
