"""PTX that is broken, endless or out of proportion: an error within limits, never a traceback, a death or a hang."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ptx_fuzz import fuzz, text_of

from ptxdsl.cli import main
from ptxdsl.diagnostics import CompileError, LaunchError
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.sim.launch import Limits, simulate
from ptxdsl.source import Source

ROOT = Path(__file__).parents[2]
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
REGISTERS = ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<4>;\n"
LIMITS = Limits(steps=20_000_000, turns=5_000, memory=128 << 20)


def kernel(body: str, declarations: str = "") -> str:
    return f"{HEAD}{declarations}.entry k() {{ {REGISTERS}{body}\n}}\n"


def test_texts_that_nobody_would_write() -> None:
    outcomes, failures = fuzz(300, "suite", 1)
    assert not failures
    assert sum(outcomes.values()) == 300
    assert outcomes["finished"] > 10 and outcomes["fault"] > 10, "the texts must be good enough to be run"


def test_a_text_is_a_function_of_seed_and_number() -> None:
    assert [text_of("s", i) for i in range(9)] == [text_of("s", i) for i in range(9)]


def test_truncated_files_given_to_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = (ROOT / "samples" / "04_kernel_a.pdsl").read_text()
    ptx = compile_source(Source("a.pdsl", source), options=Options("sm_90a")).ptx
    file = tmp_path / "a.ptx"
    rng = random.Random(1)
    for size in [0, 1, 20, len(ptx) - 1, len(ptx), *(rng.randrange(len(ptx)) for _ in range(40))]:
        file.write_text(ptx[:size])
        arguments = [f"--arg={i}=zeros:f32:32" for i in range(2)] + ["--arg=2=1"]
        code = main(["run", str(file), "--grid", "1", "--block", "64", "--target", "sim", *arguments])
        said = capfd.readouterr()
        assert code == (0 if size >= len(ptx) - 1 else 1), (size, said.err)
        assert (code == 0) == (said.err == "")
        assert "E0001" not in said.err and "Traceback" not in said.err


@pytest.mark.parametrize("data", [b"\0" * 1000, bytes(range(256)) * 40, b"\xff\xfe" * 500, b"\n" * 100_000])
def test_files_that_are_no_text(tmp_path: Path, capfd: pytest.CaptureFixture[str], data: bytes) -> None:
    (tmp_path / "a.ptx").write_bytes(data)
    assert main(["run", str(tmp_path / "a.ptx"), "--grid", "1", "--block", "32"]) == 1
    assert capfd.readouterr().err.startswith("error[E")


# By what is too much: the text and the options of the launch, and what comes from it.
ADD_THOUSANDS = "".join(f".reg .b32 %x{i}; mov.u32 %x{i}, %tid.x;\n" for i in range(20_000))
USE_THOUSANDS = "".join(f"add.u32 %r2, %r2, %x{i};\n" for i in range(20_000))
CHAIN = "".join(f".func f{i}() {{ call f{i - 1}; ret; }}\n" for i in range(1, 3000))
TREE = "".join(f".func f{i}() {{ call f{i - 1}; call f{i - 1}; ret; }}\n" for i in range(1, 60))
LEAF = ".func f0() { .reg .b32 %a; mov.b32 %a, 1; ret; }\n"
PRINT = """
{ .param .b64 a; .param .b64 b; .param .b32 r; mov.u64 %d1, s; cvta.global.u64 %d1, %d1; st.param.b64 [a], %d1;
st.param.b64 [b], 0; call (r), vprintf, (a, b); }"""
PRINTED = ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n.global .b8 s[4]={65,10,0};\n"
COMPUTES = "L: mad.lo.u32 %r1, %r1, 5, 2; setp.ne.u32 %p1, %r1, 1; @%p1 bra L;"  # it is even
X = ".global .u32 x;\n"
PROGRAMS: dict[str, tuple[str, dict[str, Any], str]] = {
    "registers declared": (kernel(".reg .b32 %big<4000000>; mov.b32 %big3999999, 1; ret;"), {}, "finished"),
    "registers in use": (
        kernel(f"{ADD_THOUSANDS}L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 3; @%p1 bra L;\n{USE_THOUSANDS}ret;"),
        {},
        "E1113",
    ),
    "a loop of nothing": (kernel("L: bra L;"), {}, "deadlock"),
    "a loop that sleeps": (kernel("L: nanosleep.u32 100; bra L;"), {}, "deadlock"),
    "a loop that looks at the clock": (kernel("L: mov.u32 %r1, %clock; bra L;"), {}, "deadlock"),
    "a loop that counts": (kernel("L: add.u32 %r1, %r1, 1; bra L;"), {}, "deadlock"),
    "a loop that computes": (kernel(COMPUTES), {}, "limit"),
    "a loop that stores": (kernel("L: st.global.u32 [x], %r1; add.u32 %r1, %r1, 1; bra L;", X), {}, "limit"),
    "a loop of atomics": (kernel("L: atom.global.add.u32 %r1, [x], 1; bra L;", X), {}, "limit"),
    "a loop of barriers": (kernel("L: bar.sync 0; bra L;"), {"block": 96}, "limit"),
    "a loop that prints": (kernel(f"L: {PRINT} bra L;", PRINTED), {"block": 1}, "limit"),
    "a function that calls itself": (f"{HEAD}.func f() {{ call f; ret; }}\n.entry k() {{ call f; ret; }}", {}, "E1111"),
    "a chain of calls": (f"{HEAD}{LEAF}{CHAIN}.entry k() {{ call f2999; ret; }}", {}, "E1111"),
    "a tree of calls": (f"{HEAD}{LEAF}{TREE}.entry k() {{ call f59; ret; }}", {}, "E1113"),
    "shared memory": (kernel("mov.u32 %r1, x; ret;", ".shared .b8 x[1000000000000];\n"), {}, "E1113"),
    "dynamic shared memory": (kernel("ret;"), {"shared_bytes": 1 << 40}, "E1102"),
    "local memory": (kernel(".local .b8 a[100000000]; st.local.u32 [a], %r1; ret;"), {}, "E1113"),
    "local memory of many": (
        kernel(".local .b8 a[200000]; st.local.u32 [a], %r1; bar.sync 0; ret;"),
        {"block": 1024, "grid": 2},
        "limit",
    ),
    "global memory": (kernel("ld.global.u32 %r1, [x]; ret;", ".global .b8 x[8000000000];\n"), {}, "E1186"),
    "parameters": (f"{HEAD}.entry k(.param .b8 p[40000000]) {{ ret; }}", {}, "E1101"),
    "CTAs": (kernel("ret;"), {"grid": (2**31 - 1, 65535, 65535)}, "limit"),
    "CTAs by one": (kernel("ret;"), {"grid": 2**31}, "E1100"),
    "threads": (kernel("ret;"), {"block": 2048}, "E1100"),
    "CTAs of a cluster": (kernel("ret;"), {"grid": 64, "cluster": 64}, "E1100"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_too_much_of_something(name: str) -> None:
    text, options, expected = PROGRAMS[name]
    start = time.process_time()
    try:
        report = simulate(text, **{"grid": 1, "block": 32, "limits": LIMITS, **options})
        outcome = report.status
        assert report.finished or report.diagnostics
    except (CompileError, LaunchError) as problem:
        outcome = problem.diagnostics[0].code
    assert outcome == expected
    assert time.process_time() - start < 15


def test_a_step_limit_of_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.ptx").write_text(kernel(COMPUTES))
    arguments = ["run", str(tmp_path / "a.ptx"), "--grid", "1", "--block", "32", "--steps", "1000000"]
    assert main(arguments) == 1
    said = capfd.readouterr().err
    assert "error[E1185]: stopped after " in said and "the limit is 1,000,000" in said


@pytest.mark.parametrize("body", [COMPUTES, "L: bar.sync 0; bra L;"])
def test_control_c_stops_a_run_with_the_state_reached(tmp_path: Path, body: str) -> None:
    (tmp_path / "a.ptx").write_text(kernel(body))
    arguments = [sys.executable, "-m", "ptxdsl", "run", str(tmp_path / "a.ptx"), "--grid", "3", "--block", "64"]
    process = subprocess.Popen(
        [*arguments, "--target", "sim"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    try:
        said, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert "error[E1187]: interrupted after " in errors and "0 of 3 CTAs were finished" in errors
    assert "here" in errors and "Traceback" not in errors
    assert "interrupted" in said


def test_an_array_that_is_too_small_is_named() -> None:
    text = kernel("ld.param.u64 %d1, [p]; ld.global.u32 %r1, [%d1+400]; ret;").replace("k()", "k(.param .u64 p)")
    report = simulate(text, grid=1, block=1, arguments=[np.zeros(100, np.uint32)], names=["p"])
    assert report.status == "fault"
    assert "the end of" in report.diagnostics[0].message
