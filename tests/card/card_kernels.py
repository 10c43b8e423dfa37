"""What is run on a card and in the simulator from one PTX: kernels of rows, and the files of ``kernels/``.

A file's head says how it is launched, with arguments as ``ptxdsl run`` takes them:

    // what it shows
    // launch: grid 2, block 64, cluster 2, smem 4096
    // args: a=randint:u32:256:seed=1; n=i32:3; out=zeros:u32:64
    // compare: out                      (arrays, bit for bit)
    // bound: out relative 1e-6 absolute 0   (or within this of the card's)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import card_lanewise as lanewise
import numpy as np
from card_rows import GROUPS

from ptxdsl.run.generate import generate
from ptxdsl.run.specification import ArraySpec, ScalarSpec, arguments

FILES = {path.stem: path for path in sorted((Path(__file__).parent / "kernels").glob("*.ptx"))}
NAMES = (*GROUPS, *FILES)
SCALARS = {"u32": "<u4", "s32": "<i4", "u64": "<u8", "f32": "<f4", "f64": "<f8"}


@dataclass(frozen=True)
class Kernel:
    """arguments: arrays (given to the kernel by address) and the bytes of scalars; compared: positions of arrays."""

    name: str
    ptx: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    smem: int
    arguments: tuple[np.ndarray | bytes, ...]
    compared: tuple[int, ...]
    bounds: dict[int, tuple[float, float]]
    dtypes: tuple[str, ...]


def kernel(name: str) -> Kernel:
    if name in GROUPS:
        output = np.zeros(len(GROUPS[name]) * lanewise.LANES * 8, np.uint8)
        given = (lanewise.inputs(name), output)
        ptx = lanewise.kernel_ptx(name)
        return Kernel(name, ptx, (1, 1, 1), (lanewise.LANES, 1, 1), None, 0, given, (1,), {}, ("uint8", "uint8"))
    text = FILES[name].read_text()
    head = dict(re.findall(r"^// (\w+): (.*)$", text, re.MULTILINE))
    launch = dict(part.split(maxsplit=1) for part in head["launch"].split(", "))
    given, names, dtypes = [], [], []
    for argument, spec in arguments(head["args"].split("; ")).items():
        names.append(argument)
        if isinstance(spec, ArraySpec):
            array, dtype = generate(argument, spec)
            given.append(array)
            dtypes.append(dtype)
        else:
            assert isinstance(spec, ScalarSpec) and spec.dtype, f"{name}: {argument} needs a type, as in i32:3"
            given.append(np.array(spec.value, spec.dtype).tobytes())
            dtypes.append(spec.dtype)
    compared = tuple(names.index(n.strip()) for n in head["compare"].split(","))
    bounds = {
        names.index(n): (float(relative), float(absolute))
        for n, relative, absolute in re.findall(r"(\w+) relative (\S+) absolute (\S+)", head.get("bound", ""))
    }
    return Kernel(
        name, text, shape(launch["grid"]), shape(launch["block"]),
        shape(launch["cluster"]) if "cluster" in launch else None, int(launch.get("smem", 0)),
        tuple(given), compared, bounds, tuple(dtypes),
    )  # fmt: skip


def shape(text: str) -> tuple[int, int, int]:
    x, y, z = (*map(int, text.split("x")), 1, 1)[:3]
    return x, y, z
