"""The language is strong enough to write RolePipeline in itself, and the builtin is never the longer of the two."""

import re
from pathlib import Path

import pytest

from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.source import Source

PROGRAM = (Path(__file__).parents[1] / "data" / "programs" / "user_pipeline.pdsl").read_text()
KERNELS = [("kernel_a", "sm_90a"), ("kernel_b", "sm_100a"), ("sub_stages", "sm_90a")]


def compiled(kernel: str, arch: str, pipeline: str) -> str:
    source = Source(f"{pipeline}.pdsl", PROGRAM + f"\n\ncomptime Pipeline = {pipeline}\n")
    result = compile_source(source, kernel=kernel, options=Options(arch=arch, ring_unroll=False))
    return result.ptx


def instructions(ptx: str) -> int:
    """Instructions, also those inside the braces of inline assembly; directives and labels do not count."""
    body = ptx[ptx.index("{", ptx.index(".entry")) :]
    pieces = (re.sub(r"[{}]|\b\w+:(?!:)|\$\w+:", " ", p).strip() for p in body.split(";"))
    return sum(bool(p) and not p.startswith(".") for p in pieces)


@pytest.mark.parametrize(("kernel", "arch"), KERNELS)
def test_the_builtin_is_never_longer(kernel: str, arch: str) -> None:
    builtin, user = (compiled(kernel, arch, name) for name in ("RolePipeline", "UserPipeline"))
    assert 20 < instructions(builtin) <= instructions(user)


@pytest.mark.parametrize(("kernel", "arch"), KERNELS)
def test_both_make_the_same_barrier_operations(kernel: str, arch: str) -> None:
    def operations(ptx: str) -> list[str]:
        return re.findall(r"mbarrier\.(?:init|try_wait|arrive)|tcgen05\.commit", ptx)

    builtin, user = (operations(compiled(kernel, arch, name)) for name in ("RolePipeline", "UserPipeline"))
    assert builtin == user and builtin
