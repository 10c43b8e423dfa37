"""The simulator's results beside the card's: equal bit for bit, or within the bound that the ISA states."""

from __future__ import annotations

from collections.abc import Iterator

import card_lanewise as lanewise
import numpy as np
from card_kernels import Kernel
from card_rows import GROUPS, Row

FLOATS = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


def differences(case: Kernel, found: dict[int, np.ndarray], card: dict[int, np.ndarray]) -> Iterator[str]:
    """One line for every row or array that differs."""
    if case.name in GROUPS:
        for index, row in enumerate(GROUPS[case.name]):
            ours, theirs = (lanewise.result(case.name, index, side[1]) for side in (found, card))
            bad = np.flatnonzero(~agrees(row, ours, theirs))
            if bad.size:
                yield f"{row.text} {shown(row, bad[0], ours, theirs)} ({bad.size} of {ours.size})"
        return
    for i, array in found.items():
        ours, theirs = array.reshape(-1), card[i].reshape(-1)
        if i in case.bounds:
            relative, absolute = case.bounds[i]
            ours, theirs = ours.view(np.float32), theirs.view(np.float32)
            good = np.isclose(ours, theirs, rtol=relative, atol=absolute, equal_nan=True)
        else:
            good = ours == theirs
        bad = np.flatnonzero(~good)
        if bad.size:
            first = f"{ours[bad[0]]} != {theirs[bad[0]]} of the card"
            yield f"argument {i} at {bad[0]}: {first} ({bad.size} of {ours.size})"


def agrees(row: Row, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    same = ours == theirs
    if row.bound is None:
        return same
    relative, absolute = row.bound
    a, b = values(row.result, ours), values(row.result, theirs)
    with np.errstate(all="ignore"):
        # both the card and the simulator lie within the bound of the exact value
        near = np.abs(a - b) <= 2 * (absolute + relative * np.abs(b)) + np.spacing(np.abs(b))
    close = near | (np.isnan(a) & np.isnan(b)) | (a == b)
    return same | close.reshape(len(ours), -1).all(1)


def values(kind: str, bits: np.ndarray) -> np.ndarray:
    if kind.endswith("x2"):
        return values(kind.removesuffix("x2"), np.ascontiguousarray(bits).view(np.uint16))
    if kind == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return np.ascontiguousarray(bits).view(FLOATS[kind])


def shown(row: Row, lane: int, ours: np.ndarray, theirs: np.ndarray) -> str:
    seen: dict[str, int] = {}
    given = []
    for kind in row.operands:
        pool = lanewise.pool(kind, seen.setdefault(kind, 0))
        seen[kind] += 1
        given.append(f"{int(pool[lane]):#x}")
    return f"of {', '.join(given)}: {int(ours[lane]):#x} != {int(theirs[lane]):#x} of the card"
