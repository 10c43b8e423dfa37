"""The headers of samples and examples: how a kernel is launched, with what, and what comes out."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ptxdsl.api.module import Kernel


@dataclass(frozen=True)
class Argument:
    """size: an expression of the header's names, None for a scalar; values: those that a scalar is to take."""

    name: str
    dtype: str
    size: str | None = None
    output: bool = False
    values: tuple[int, ...] = ()


@dataclass(frozen=True)
class Header:
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    arguments: tuple[Argument, ...]
    expected: str
    integers: bool
    targets: tuple[str, ...]

    def cases(self) -> list[dict[str, int]]:
        """Every combination of the scalars' values."""
        found: list[dict[str, int]] = [{}]
        for argument in self.arguments:
            if argument.size is None:
                found = [{**known, argument.name: value} for known in found for value in argument.values]
        return found


def read_header(path: Path) -> Header:
    """The comment at the top of a file; continuation lines are indented."""
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        lines.append(line[1:])
    text = re.sub(r"\n {2,}", " ", "\n".join(lines))
    told = dict(line.strip().split(": ", 1) for line in text.splitlines())
    grid, block = re.fullmatch(r"grid (.+), block (.+), no dynamic shared memory", told["launch"]).groups()
    expected, *note = re.split(r"\s+\(inputs: ", told["result"])
    return Header(
        eval(grid),
        eval(block),
        tuple(_argument(entry) for entry in told["args"].split("; ")),
        expected.removeprefix("res == "),
        bool(note) and note[0].startswith("small integers"),
        tuple(told.get("targets", "").split(", ")),
    )


def _argument(entry: str) -> Argument:
    name, dtype, size, use = re.fullmatch(r"(\w+): (\w+)(?:\[(.*)\])? (in|out|in \[.*\])", entry).groups()
    if size is None:
        return Argument(name, dtype, values=tuple(eval(use.removeprefix("in "))))
    return Argument(name, dtype, size, use == "out")


def run_case(
    header: Header, kernel: Kernel, scalars: dict[str, int], launch, output, device, rng, grid=None, arch=None
) -> None:
    """One launch with random inputs into poisoned outputs; asserts the header's result."""
    grid = header.grid if grid is None else grid
    known = {"grid": grid, "np": np, **scalars}
    given, results = [], []
    for argument in header.arguments:
        if argument.size is None:
            given.append(scalars[argument.name])
            continue
        length = eval(argument.size, known)
        if argument.output:
            results.append(output(length, argument.dtype))
            given.append(results[-1])
            known[argument.name] = results[-1].before()  # as it was: kept where nothing is written
        else:
            known[argument.name] = random_values(length, argument.dtype, header.integers, rng)
            given.append(device(known[argument.name]))
    launch(kernel, grid, header.block, *given, arch=arch)
    (result,) = results
    np.testing.assert_array_equal(result.read(), eval(header.expected, known), err_msg=f"grid {grid}, {scalars}")


def random_values(length: int, dtype: str, integers: bool, rng) -> np.ndarray:
    form = np.dtype(dtype)
    if form.kind != "f":
        return rng.integers(np.iinfo(form).min, np.iinfo(form).max, length, dtype=form, endpoint=True)
    return (rng.integers(-8, 9, length) if integers else rng.standard_normal(length)).astype(form)
