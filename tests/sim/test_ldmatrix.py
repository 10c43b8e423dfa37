"""``ldmatrix``, ``stmatrix`` and ``movmatrix``: element by element, from the figures of the PTX ISA."""

from __future__ import annotations

from typing import Any

import matrix_fragments as fragments
import numpy as np
import pytest

from ptxdsl.ptx.module import Instruction, Register, Vector
from ptxdsl.sim.launch import Report, simulate
from ptxdsl.sim.matrix import ldmatrix

RNG = np.random.default_rng(3)


def form(opcode: str) -> ldmatrix.Form:
    found = ldmatrix.parse(opcode)
    assert isinstance(found, ldmatrix.Form), found
    return found


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_eight_by_eight_matrices_of_halfwords(count: int, transposed: bool) -> None:
    matrices = RNG.integers(0, 1 << 16, (count, 8, 8)).astype(np.uint16)
    rows = matrices.reshape(-1, 8).view(np.uint8)
    suffix = f"sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.shared.b16"
    registers = ldmatrix.load(form(f"ldmatrix.{suffix}"), rows)
    assert registers.shape == (count, 32)
    for number, matrix in enumerate(matrices):
        seen = matrix.T if transposed else matrix
        for lane in range(32):
            word = int(registers[number, lane])
            assert (word & 0xFFFF, word >> 16) == tuple(seen[lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2])
    assert (ldmatrix.store(form(f"stmatrix.{suffix}"), registers) == rows).all()


@pytest.mark.parametrize("count", [1, 2])
def test_sixteen_by_sixteen_matrices_of_bytes(count: int) -> None:
    matrices = RNG.integers(0, 256, (count, 16, 16)).astype(np.uint8)
    registers = ldmatrix.load(form(f"ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.b8"), matrices.reshape(-1, 16))
    # A lane gets four consecutive columns of two rows, 8 apart, of the transposed matrix: the fragment of mma's A.
    for number, matrix in enumerate(matrices):
        found = fragments.unpack(registers[2 * number :], fragments.A["m16n8k16", 8], 8, (16, 16))
        assert (found == matrix.T).all()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_sixteen_by_eight_matrices_of_bytes_are_stored_by_columns(count: int) -> None:
    matrices = RNG.integers(0, 256, (count, 16, 8))
    registers = np.concatenate([fragments.pack(matrix, fragments.C[16], 8) for matrix in matrices])
    rows = ldmatrix.store(form(f"stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8"), registers)
    assert (rows == matrices.transpose(0, 2, 1).reshape(-1, 16)).all()


@pytest.mark.parametrize(("source", "bits", "shift"), [("b4x16_p64", 4, 2), ("b6x16_p32", 6, 0)])
def test_packed_elements_become_bytes(source: str, bits: int, shift: int) -> None:
    def packed(elements: Any) -> Any:
        rows = RNG.integers(0, 256, (len(elements), 16)).astype(np.uint8)  # the padding is not read
        for row, line in zip(rows, elements, strict=True):
            whole = sum(int(element) << bits * i for i, element in enumerate(line))
            row[: 2 * bits] = np.frombuffer(whole.to_bytes(2 * bits, "little"), np.uint8)
        return rows

    elements = RNG.integers(0, 1 << bits, (32, 16))
    loaded = ldmatrix.load(form(f"ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.{source}"), packed(elements))
    for number in range(4):
        found = fragments.unpack(loaded[number:], fragments.A["m8n8k16", 8], 8, (8, 16))
        assert (found == elements[8 * number : 8 * number + 8] << shift).all()
    loaded = ldmatrix.load(form(f"ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.{source}"), packed(elements))
    for number in range(2):
        found = fragments.unpack(loaded[2 * number :], fragments.A["m16n8k16", 8], 8, (16, 16))
        assert (found == elements[16 * number : 16 * number + 16].T << shift).all()


def test_movmatrix_transposes() -> None:
    matrix = RNG.integers(0, 1 << 16, (8, 8))
    word = fragments.pack(matrix, fragments.A["m16n8k8", 16], 16)[0]  # rows of a lane as in ldmatrix
    assert (ldmatrix.transpose(word) == fragments.pack(matrix.T, fragments.A["m16n8k8", 16], 16)[0]).all()


@pytest.mark.parametrize(
    ("opcode", "message"),
    [
        ("ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8", "ldmatrix of m16n16 with x4 and .trans is not supported"),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16", "this form has 2 registers, not 4"),
        ("stmatrix.sync.aligned.m16n16.x1.trans.shared.b8", "stmatrix of m16n16 with b8 is not supported"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", None),
    ],
)
def test_what_is_not_supported_is_said_before_execution(opcode: str, message: str | None) -> None:
    registers = Vector(tuple(Register(f"%r{i}") for i in range(4)))
    assert ldmatrix.unsupported(Instruction(opcode, (registers, registers), None, 1)) == message


def run(address: str, space: str = ".shared", base: str = "%r0") -> tuple[Report, Any]:
    """Eight rows of 16 bytes in shared memory (word w holds w) loaded at the lanes' addresses; each lane's result.

    address: instructions that change %r0, the shared address of the lane's row (%l is the lane's number).
    """
    out = np.zeros(32, np.uint32)
    text = f"""
        .version 8.0
        .target sm_90
        .address_size 64
        .visible .entry k(.param .u64 out) {{
        .shared .align 16 .b8 rows[128];
        .reg .pred %p;
        .reg .b32 %l, %r<4>;
        .reg .b64 %o, %g;
        ld.param.u64 %o, [out];
        mov.u32 %l, %laneid;
        mad.wide.u32 %o, %l, 4, %o;
        mov.u32 %r0, rows;
        mad.lo.u32 %r1, %l, 4, %r0;
        st.shared.u32 [%r1], %l;
        bar.warp.sync -1;
        and.b32 %r1, %l, 7;
        mad.lo.u32 %r0, %r1, 16, %r0;
        {address}
        ldmatrix.sync.aligned.m8n8.x1{space}.b16 {{%r2}}, [{base}];
        st.global.u32 [%o], %r2;
        ret;
        }}"""
    return simulate(text, grid=1, block=32, arguments=[out]), out


def test_addresses_are_those_of_the_lanes() -> None:
    report, out = run("")
    assert report.finished, report.render()
    assert (out == np.arange(32)).all()
    report, out = run("xor.b32 %r0, %r0, 48;")  # rows in another order
    assert (out.reshape(8, 4) == np.arange(32).reshape(8, 4)[np.arange(8) ^ 3]).all()
    report, out = run("cvt.u64.u32 %g, %r0;\ncvta.shared.u64 %g, %g;", "", "%g")
    assert (out == np.arange(32)).all()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("setp.eq.u32 %p, %l, 5;\n@%p add.u32 %r0, %r0, 4096;", "16 bytes at shared address 0x1450"),
        ("setp.eq.u32 %p, %l, 5;\n@%p add.u32 %r0, %r0, 8;", "address 0x458 (shared) is not a multiple of 16"),
        ("setp.eq.u32 %p, %l, 5;\n@%p add.u32 %r0, %r0, 0x70000000;", "shared address 0x70000450"),
    ],
)
def test_the_row_at_fault_is_named(address: str, message: str) -> None:
    report, _ = run(address)
    assert report.status == "fault"
    assert message in report.diagnostics[0].message


def test_lanes_whose_addresses_do_not_count_may_hold_anything() -> None:
    report, out = run("setp.ge.u32 %p, %l, 8;\n@%p mov.u32 %r0, 0;")
    assert report.finished, report.render()
    assert (out == np.arange(32)).all()


def test_a_generic_address_elsewhere() -> None:
    report, _ = run("mov.u64 %g, %o;", "", "%g")
    assert report.diagnostics[0].code == "E1144"
    assert "which is not in shared memory" in report.diagnostics[0].message
