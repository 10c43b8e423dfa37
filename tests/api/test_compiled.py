"""What a compiled kernel hands out: the stages, machine code, files."""

import os

import pytest

import ptxdsl

TEXT = """
@kernel
def twice[factor: Int = 2](a: Pointer[Float32, MutAnyOrigin]):
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED, alignment=16]()
    tile[unsafe_offset=thread_idx.x] = a[unsafe_offset=thread_idx.x]
    barrier()
    a[unsafe_offset=thread_idx.x] = tile[unsafe_offset=63 - thread_idx.x] * Float32(factor)
"""


@pytest.fixture(scope="module")
def compiled():
    return ptxdsl.compile(ptxdsl.loads(TEXT, "twice.pdsl"), constants={"factor": 3})


def test_the_stages(compiled):
    assert isinstance(compiled, ptxdsl.Compiled)
    assert compiled.tir.startswith("kernel @twice_3(")
    assert "define ptx_kernel void @twice_3(" in compiled.llvm_ir
    assert ".entry twice_3(" in compiled.ptx


def test_machine_code(compiled, ptxas):
    assert compiled.cubin().startswith(b"\x7fELF")
    assert "twice_3" in compiled.sass()
    used = compiled.resources["twice_3"]
    assert (used.shared >= 256, used.registers > 0, used.spill_stores) == (True, True, 0)


def test_files(compiled, ptxas, tmp_path):
    for suffix, made in (
        (".ptx", compiled.ptx.encode()),
        (".cubin", compiled.cubin()),
        (".sass", compiled.sass().encode()),
        (".ll", compiled.llvm_ir.encode()),
        (".tir", compiled.tir.encode()),
    ):
        compiled.save(tmp_path / f"k{suffix}")
        assert (tmp_path / f"k{suffix}").read_bytes() == made
    compiled.save(str(tmp_path / "k.ptx"))  # again
    assert len(os.listdir(tmp_path)) == 5


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("k.fatbin", "E1022", "'k.fatbin' does not say what to save"),
        ("k", "E1022", "'k' does not say what to save"),
        ("nowhere/k.ptx", "E1007", "cannot write 'nowhere/k.ptx'"),
    ],
)
def test_what_cannot_be_saved(compiled, tmp_path, monkeypatch, name, code, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ptxdsl.CompileError) as caught:
        compiled.save(name)
    found = caught.value.diagnostics[0]
    assert found.code == code and found.message.startswith(words)
    assert os.listdir(tmp_path) == []


def test_stages_of_another_import_are_not_given(tmp_path):
    (tmp_path / "k.pdsl").write_text(
        "from steps import step\n\n@kernel\ndef k(a: Pointer[Int32, MutAnyOrigin]):\n    a[] = step()\n"
    )
    (tmp_path / "steps.pdsl").write_text("def step() -> Int32:\n    return 1\n")
    compiled = ptxdsl.compile(tmp_path / "k.pdsl")
    assert "store" in compiled.tir
    (tmp_path / "steps.pdsl").write_text("def step() -> Int32:\n    return 2\n")
    with pytest.raises(ptxdsl.CompileError) as caught:
        compiled.llvm_ir
    assert caught.value.diagnostics[0].code == "E1021"


def test_ptxas_words_come_at_the_line(ptxas):
    text = '@kernel\ndef k(n: Int32):\n    inlined_assembly["nonsense;", NoneType, constraints=""]()\n'
    with pytest.raises(ptxdsl.CompileError) as caught:
        ptxdsl.loads(text, "k.pdsl")["k"].compile().cubin()
    assert str(caught.value.diagnostics[0].span) == "k.pdsl:3:5"


def test_help_reads_well():
    import pydoc

    page = pydoc.plain(pydoc.render_doc(ptxdsl.Compiled))
    for words in ("cubin(self) -> 'bytes'", "llvm_ir", "save(self, path", "One PTX module"):
        assert words in page
    page = pydoc.plain(pydoc.render_doc(ptxdsl.Kernel))
    for words in ("occupancy(self, block", "prepare(self, grid", "specialize(self, **constants", "simulate("):
        assert words in page
