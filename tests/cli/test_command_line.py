"""A plain command read without argparse is read as argparse reads it, or left to it."""

from __future__ import annotations

import contextlib
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxdsl import driver
from ptxdsl.command import command_line
from ptxdsl.command.command_line import STAGE_NAMES, Arguments, plain

WORDS = [
    "a.pdsl", "-", "", "-x", "--", "-D", "-DS=1", "S=3", "-o", "-oout", "out", "--emit", "ptx", "--emit=ptx", "--em",
    "--emit=asm", "asm", "--arch", "--arch=sm_80", "sm_80", "--wait", "probe", "--wait=", "--lineinfo", "--lineinfo=1",
    "--ptx-version", "8.6", "8.x", "--no-contract", "--no-ring-unroll", "--json", "--no-cache", "--kernel", "-h", "-1",
]  # fmt: skip
RUN_WORDS = [
    *WORDS[:10], "--grid", "--grid=4x2", "4x2x1", "0", "4", "--block=64", "--smem", "--smem=x", "--arg", "--arg=x=-1",
    "x=zeros:f32:3", "--expect", "res == a + b", "--rtol", "1e-5", "--rtol=-1", "nan", "--steps=7", "--target=sim",
    "--schedule", "random:3", "--races", "--no-cache", "--save=x=y.npy", "--json", "--arch=sm_80", "--", "-h",
]  # fmt: skip


def by_argparse(argv: list[str]) -> Arguments | None:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            return command_line.by_argparse(argv)
        except SystemExit:
            return None


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), max_size=6).map(lambda words: ["compile", *words])
    | st.lists(st.sampled_from(RUN_WORDS), max_size=6).map(lambda words: ["run", *words])
)
def test_what_is_read_is_what_argparse_reads(words: list[str]) -> None:
    found = plain(words)
    if found is not None:
        theirs = by_argparse(words)
        assert theirs is not None and vars(found) == vars(theirs)


@pytest.mark.parametrize(
    "line",
    [
        "a.pdsl",
        "- --emit tir",
        "--arch sm_100a a.mojo -o out.ptx --json",
        "a.pdsl -D S=3 --kernel k -D T=DType.float32 --ptx-version 8.6 --wait=probe --no-contract --lineinfo",
    ],
)
def test_plain_commands_need_no_argparse(line: str) -> None:
    assert plain(["compile", *line.split()]) is not None


def test_a_plain_run_needs_no_argparse() -> None:
    words = ["a.pdsl", "--grid", "4x2", "--arg", "x=zeros:f32:3", "--arg=n=-1", "--expect", "x == 0 * x", "--rtol=1e-3"]
    found = plain(["run", *words])
    assert found is not None and (found.grid, found.args, found.rtol) == ((4, 2, 1), ["x=zeros:f32:3", "n=-1"], 1e-3)


def test_stage_names() -> None:
    assert STAGE_NAMES == driver.STAGE_NAMES
