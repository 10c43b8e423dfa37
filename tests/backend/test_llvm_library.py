"""llvmlite's shared library called directly, and through ``llvmlite.binding``: the same answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from ptxdsl import llvm_library
from ptxdsl.llvm_library import Machine, machine
from ptxdsl.lower.llvm_types import DATA_LAYOUT, TRIPLE

IR = f'''
target datalayout = "{DATA_LAYOUT}"
target triple = "{TRIPLE}"
@tile = internal addrspace(3) global [64 x float] undef, align 4

define ptx_kernel void @copy(ptr addrspace(1) %from, i32 %n) {{
  %place = getelementptr float, ptr addrspace(3) @tile, i32 %n
  %value = load float, ptr addrspace(1) %from, align 4
  store volatile float %value, ptr addrspace(3) %place, align 4
  ret void
}}
'''

WORDY = IR.replace("%n) {", "%n) {\n  %nothing = mul i32 %n, %n\n  br label %go\ngo:")


@pytest.fixture(params=["direct", "binding"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Machine]]:
    llvm_library._library.cache_clear()
    if request.param == "binding":
        monkeypatch.setattr(llvm_library, "DIRECT", ("0.1.",))
    yield machine
    llvm_library._library.cache_clear()


def test_this_version_of_llvmlite_is_called_directly() -> None:
    assert llvm_library._library() is not None


def test_text(make: Callable[..., Machine]) -> None:
    made = make(TRIPLE, "sm_90", "+ptx80")
    assert made.data_layout == DATA_LAYOUT
    text = made.assembly(IR)
    assert "st.volatile.shared.b32" in text and ".target sm_90" in text
    assert text == made.assembly(IR) == make(TRIPLE, "sm_90", "+ptx80").assembly(IR)


@pytest.mark.parametrize("functions", [(), ("copy",)], ids=["the module", "its function"])
def test_both_make_the_same(functions: tuple[str, ...]) -> None:
    direct = machine(TRIPLE, "sm_80", "+ptx70", bool(functions)).assembly(WORDY, functions)
    level = 2 if functions else 3
    binding = llvm_library._BindingMachine(TRIPLE, "sm_80", "+ptx70", level).assembly(WORDY, functions)
    assert direct == binding
    assert "ret" in direct and "mul" not in direct


@pytest.mark.parametrize(
    ("wrong", "words"),
    [("", "found end of file"), ("ret i32 0", "value doesn't match function result type"), ("br label %x", "%x")],
)
def test_text_that_llvm_does_not_take(make: Callable[..., Machine], wrong: str, words: str) -> None:
    ir = IR.replace("ret void\n}", f"{wrong}\n}}" if wrong else "")
    with pytest.raises(RuntimeError) as caught:
        make(TRIPLE, "sm_90", "+ptx80").assembly(ir)
    assert words in str(caught.value)


def test_a_module_that_does_not_verify(make: Callable[..., Machine]) -> None:
    ir = IR.replace("%n) {", "%n) {\n  call void @copy(ptr addrspace(1) %from, i32 %later)\n  %later = add i32 %n, 1")
    with pytest.raises(RuntimeError, match="does not dominate"):
        make(TRIPLE, "sm_90", "+ptx80").assembly(ir)


def test_unknown_triple(make: Callable[..., Machine]) -> None:
    with pytest.raises(RuntimeError, match="nowhere"):
        make("nowhere-at-all", "sm_90", "")


def test_loading_ahead() -> None:
    """In a process that has not loaded LLVM yet, once or twice, and where there are no more threads."""
    program = """if True:
        from ptxdsl import llvm_library
        from ptxdsl.lower.llvm_types import DATA_LAYOUT, TRIPLE

        def none_left(*what):
            raise RuntimeError("can't start new thread")

        if THREADS == 0:
            llvm_library.start_new_thread = none_left
        for _ in range(2):
            llvm_library.load_ahead()
        assert llvm_library.machine(TRIPLE, "sm_90", "+ptx80").data_layout == DATA_LAYOUT
        llvm_library.load_ahead()
        print("fine")
    """
    for threads in "01":
        run = [sys.executable, "-c", program.replace("THREADS", threads)]
        assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "fine\n"
