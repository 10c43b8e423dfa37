"""Special registers in a kernel whose launch its signature describes."""

from __future__ import annotations

import pytest
from backend_kernels import Build, body_of, ptx_of

from ptxdsl.lower.intrinsic import launch_range
from ptxdsl.signature import KernelSignature
from ptxdsl.tir import I1, I32

EXACT = KernelSignature("k", threads=(128, 2, 1), cluster=(2, 1, 4))
BOUND = KernelSignature("k", max_threads=(128, 2, 1))


@pytest.mark.parametrize(
    ("register", "exact", "bound"),
    [
        ("tid_x", (0, 128), (0, 128)),
        ("tid_z", (0, 1), (0, 1)),
        ("ntid_x", (128, 129), (1, 129)),
        ("ntid_y", (2, 3), (1, 3)),
        ("cluster_ctaid_z", (0, 4), None),
        ("cluster_nctaid_x", (2, 3), None),
        ("cluster_ctarank", (0, 8), None),
        ("cluster_nctarank", (8, 9), None),
        ("ctaid_x", None, None),
        ("nctaid_y", None, None),
        ("clusterid_x", None, None),
        ("laneid", None, None),
    ],
)
def test_ranges(register: str, exact: tuple[int, int] | None, bound: tuple[int, int] | None) -> None:
    assert launch_range(register, EXACT) == exact
    assert launch_range(register, BOUND) == bound
    assert launch_range(register, KernelSignature("k")) is None


def body(**signature: object) -> list[str]:
    k = Build(**signature)
    out = k.pointer("out", I32)
    inside = k("lt.u", I1, k("tid_x", I32), k("ntid_x", I32))
    k.store(out, k("add", I32, k("ntid_x", I32), k("ext.u", I32, inside)))
    return body_of(ptx_of(k))


def test_a_block_size_is_a_constant() -> None:
    assert not any("tid" in line for line in body(threads=(128, 1, 1)))
    assert any("%ntid.x" in line for line in body(max_threads=(128, 1, 1)))
    assert any("%tid.x" in line for line in body())
