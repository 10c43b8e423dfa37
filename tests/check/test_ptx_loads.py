"""Two loads of PTX from one place are one value for all threads only where nobody may write there meanwhile."""

from __future__ import annotations

import pytest

from ptxdsl.check.report import ptx_verdicts
from ptxdsl.ptx.reader import read

# Each of two warps comes to the barrier if there is something at src.
KERNEL = """
.version 8.6
.target sm_90a
.address_size 64
.shared .align 16 .b8 buf[256];
.visible .entry kernel(.param .u64 .ptr .global src, .param .u32 n) .reqntid 64
{
  .reg .pred %p<4>; .reg .b32 %r<5>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [src];
  cvta.to.global.u64 %rd2, %rd1;
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  BEFORE
  setp.lt.u32 %p1, %r2, 32;
  @%p1 bra SECOND;
  FIRST
  ld.global.u32 %r3, [%rd2];
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra END;
  bar.sync 0;
  bra END;
SECOND:
  OTHER
  ld.global.u32 %r4, [%rd2];
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra END;
  bar.sync 0;
END:
  ret;
}
"""
# Of a thread that may write to shared memory, or to src.
STORE = """
  mov.u64 %rd3, buf;
  cvta.shared.u64 %rd4, %rd3;
  setp.eq.u32 %p3, %r1, 0;
  selp.b64 %rd5, %rd4, OTHERWISE, %p3;
  st.u32 [%rd5], 0;
"""
WAIT = "griddepcontrol.wait;"


def said(before: str = "", first: str = "", other: str = "") -> str:
    text = KERNEL.replace("BEFORE", before).replace("FIRST", first).replace("OTHER", other)
    (found,) = ptx_verdicts(read(text, "kernel.ptx"))
    return found.verdict


@pytest.mark.parametrize(
    ("before", "first", "other", "expected"),
    [
        ("", "", "", "proved"),
        (WAIT, "", "", "proved"),
        ("", WAIT, WAIT, "proved"),
        ("", "", WAIT, "not provable here"),
        (f"setp.eq.u32 %p1, %r1, 0;\n@%p1 {WAIT}", "", "", "not provable here"),
    ],
    ids=["nobody waits", "all wait", "each waits", "one waits", "all wait perhaps"],
)
def test_what_the_grid_before_may_still_write(before: str, first: str, other: str, expected: str) -> None:
    assert said(before, first, other) == expected


@pytest.mark.parametrize(("otherwise", "expected"), [("%rd4", "proved"), ("%rd1", "not provable here")])
def test_what_is_written_through_a_chosen_pointer(otherwise: str, expected: str) -> None:
    assert said(first=STORE.replace("OTHERWISE", otherwise)) == expected


@pytest.mark.parametrize(
    "store",
    [
        "st.global.u32 [%rd2+64], 1;",
        "red.add.u32 [%rd1], 1;",
        "st.async.mmio.release.sys.global.b32 [%rd2], %r2;",
        "red.async.release.gpu.global.add.u32 [%rd2], %r2;",
    ],
)
def test_what_is_written_meanwhile(store: str) -> None:
    text = KERNEL.replace("BEFORE", "").replace("FIRST", store).replace("OTHER", "")
    (found,) = ptx_verdicts(read(text, "kernel.ptx"))
    assert found.verdict == "not provable here"
    assert "depends on data" in found.diagnostics[0].message
