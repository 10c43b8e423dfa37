"""Loads and stores of compiled warps: widths, spaces, addresses, faults."""

import numpy as np
import pytest
from harness import HEAD, Launch, compile_kernel, launch

from ptxdsl.diagnostics import CompileError
from ptxdsl.ptx.reader import read
from ptxdsl.sim import layout
from ptxdsl.sim.program.program import build
from ptxdsl.sim.translate.warp_code import translate

LANE = np.arange(32)
WRONG = layout.WRONG_SPACE
HEADER = ".reg .b64 %d<12>; .reg .b32 %t, %r<20>; .reg .b16 %h<9>; .reg .f32 %f<9>; .reg .pred %p<8>; .reg .b128 %q<4>;"


def kernel(body: str, arrays: int = 2, extra: str = "") -> str:
    """%d0, %d1 …: the arrays' addresses; %t the lane."""
    head = ", ".join(f".param .u64 p{i}" for i in range(arrays))
    loads = " ".join(f"ld.param.u64 %d{i}, [p{i}];" for i in range(arrays))
    return f"{extra}\n.visible .entry k({head}) {{ {HEADER} {loads} mov.u32 %t, %laneid;\n{body}\nret; }}"


def lane_address(register: str, base: str, scale: int) -> str:
    return f"mad.wide.u32 {register}, %t, {scale}, {base};"


@pytest.mark.parametrize("space", ["", ".global"])
@pytest.mark.parametrize(("type", "bytes"), [("b8", 1), ("u16", 2), ("f32", 4), ("s64", 8)])
@pytest.mark.parametrize("stride", [1, 3])
def test_every_width(type: str, bytes: int, space: str, stride: int) -> None:
    """stride 1 is the fast way of neighbours, 3 the slow one."""
    source = np.random.default_rng(1).integers(0, 256, 32 * bytes * stride, np.uint8)
    target = np.zeros_like(source)
    register = {1: "%h1", 2: "%h1", 4: "%f1", 8: "%d5"}[bytes]
    scale = bytes * stride
    body = lane_address("%d3", "%d0", scale) + lane_address("%d4", "%d1", scale)
    body += f"ld{space}.{type} {register}, [%d3]; st{space}.{type} [%d4], {register};"
    launch(kernel(body), [source, target])
    each = source.reshape(32, -1)[:, :bytes]
    assert (target.reshape(32, -1)[:, :bytes] == each).all()
    assert not target.reshape(32, -1)[:, bytes:].any()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("suffix", "registers"),
    [
        ("v2.b16", "{%h1, %h2}"),
        ("v4.b8", "{%r1, %r2, %r3, %r4}"),
        ("v2.f32", "{%f1, %f2}"),
        ("v4.u32", "{%r1, %r2, %r3, %r4}"),
        ("v8.b32", "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}"),
        ("v2.b64", "{%d5, %d6}"),
        ("v4.b64", "{%d5, %d6, %d7, %d8}"),
        ("b128", "%q1"),
        ("v2.b128", "{%q1, %q2}"),
    ],
)
def test_vectors(suffix: str, registers: str, reverse: bool) -> None:
    parts = suffix.split(".")
    bytes = int(parts[-1][1:]) // 8 * (int(parts[0][1:]) if len(parts) > 1 else 1)
    source = np.random.default_rng(2).integers(0, 256, 32 * bytes, np.uint8)
    target = np.zeros_like(source)
    body = ("xor.b32 %t, %t, 31;" if reverse else "") + lane_address("%d3", "%d0", bytes)
    body += lane_address("%d4", "%d1", bytes)
    body += f"ld.global.nc.L1::no_allocate.{suffix} {registers}, [%d3]; st.global.cs.{suffix} [%d4], {registers};"
    launch(kernel(body), [source, target])
    assert (source == target).all()


def test_narrow_loads_are_extended_by_their_type() -> None:
    source = np.array([0x80 + i for i in range(32)], np.uint8)
    target = np.zeros((2, 32), np.uint32)
    body = lane_address("%d3", "%d0", 1) + lane_address("%d4", "%d1", 4)
    body += "ld.global.s8 %r1, [%d3]; ld.global.u8 %r2, [%d3]; st.global.u32 [%d4], %r1; st.global.u32 [%d4+128], %r2;"
    launch(kernel(body), [source, target])
    assert (target[0] == source.view(np.int8).astype(np.int32).view(np.uint32)).all()
    assert (target[1] == source).all()


def test_only_active_lanes_store() -> None:
    target = np.zeros(32, np.uint32)
    body = lane_address("%d3", "%d0", 4) + "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; @%p1 st.global.u32 [%d3], 9;"
    launch(kernel(body, 1), [target])
    assert (target == 9 * (LANE & 1)).all()


def test_shared_memory_by_symbol_register_and_generic_address() -> None:
    target = np.zeros((3, 32), np.uint32)
    body = """.shared .align 16 .b8 pad[64]; .shared .align 4 .b32 buf[32];
    mov.u32 %r1, buf; shl.b32 %r2, %t, 2; add.u32 %r3, %r1, %r2;
    st.shared.u32 [%r3], %t; bar.warp.sync -1;
    xor.b32 %r4, %t, 31; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r1;
    ld.shared.u32 %r5, [%r4]; ld.shared::cta.u32 %r6, [buf+20];
    cvt.u64.u32 %d4, %r4; cvta.shared.u64 %d5, %d4; ld.u32 %r7, [%d5];
    """ + lane_address("%d6", "%d0", 4)
    body += "st.global.u32 [%d6], %r5; st.global.u32 [%d6+128], %r6; st.global.u32 [%d6+256], %r7;"
    launch(kernel(body, 1), [target])
    assert (target[0] == 31 - LANE).all() and (target[1] == 5).all() and (target[2] == 31 - LANE).all()


def test_local_memory_is_each_thread_s_own() -> None:
    target = np.zeros((2, 64), np.uint32)
    body = """.local .align 8 .b8 depot[16];
    mov.u64 %d2, depot; cvta.local.u64 %d3, %d2; mov.u32 %r1, %tid.x;
    st.local.u32 [depot+4], %r1; add.u32 %r2, %r1, 1; st.u32 [%d3+8], %r2;
    ld.u32 %r3, [%d3+4]; ld.local.u32 %r4, [%d2+8];
    mad.wide.u32 %d4, %r1, 4, %d0; st.global.u32 [%d4], %r3; st.global.u32 [%d4+256], %r4;"""
    launch(kernel(body, 1), [target], threads=64)
    assert (target[0] == np.arange(64)).all() and (target[1] == np.arange(64) + 1).all()


def test_module_variables_and_constants() -> None:
    target = np.zeros((2, 32), np.uint32)
    extra = ".global .align 4 .u32 g[2] = {5, 6}; .const .align 4 .u32 c[3] = {7, 8, 9};"
    body = lane_address("%d3", "%d0", 4)
    body += (
        "ld.global.u32 %r1, [g+4]; ld.const.u32 %r2, [c+8]; mov.u64 %d4, c; cvta.const.u64 %d4, %d4; ld.u32 %r3, [%d4];"
    )
    body += "add.u32 %r3, %r3, %r2; st.global.u32 [%d3], %r1; st.global.u32 [%d3+128], %r3;"
    launch(kernel(body, 1, extra), [target])
    assert (target[0] == 6).all() and (target[1] == 16).all()


def test_parameters_by_offset_and_by_address() -> None:
    target = np.zeros((2, 32), np.uint32)
    text = f"""
.visible .entry k(.param .u64 p0, .param .align 8 .b8 s[16]) {{ {HEADER} mov.u32 %t, %laneid; ld.param.u64 %d0, [p0];
ld.param.v2.u32 {{%r1, %r2}}, [s+8]; mov.b64 %d1, s; ld.param.u32 %r3, [%d1+4];
cvta.param.u64 %d2, %d1; ld.u32 %r4, [%d2];
add.u32 %r1, %r1, %r2; add.u32 %r3, %r3, %r4;
{lane_address("%d3", "%d0", 4)} st.global.u32 [%d3], %r1; st.global.u32 [%d3+128], %r3; ret; }}"""
    launch(text, [target, np.array([1, 20, 300, 4000], np.uint32).tobytes()])
    assert (target[0] == 4300).all() and (target[1] == 21).all()


def test_state_spaces_of_generic_addresses() -> None:
    target = np.zeros((4, 32), np.uint32)
    body = """.shared .b32 s; .local .b32 l; mov.u64 %d2, s; cvta.shared.u64 %d2, %d2;
    mov.u64 %d3, l; cvta.local.u64 %d3, %d3;
    """ + lane_address("%d4", "%d0", 4)
    for i, (space, address) in enumerate((("shared", "%d2"), ("local", "%d3"), ("global", "%d0"), ("global", "%d2"))):
        body += f"isspacep.{space} %p1, {address}; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%d4+{128 * i}], %r1;"
    launch(kernel(body, 1), [target])
    assert target[:, 0].tolist() == [1, 1, 1, 0]


def test_mapa_and_getctarank() -> None:
    target = np.zeros((4, 32), np.uint32)
    body = """.shared .b32 s; mov.u32 %r1, s; mov.u32 %r9, 3; mapa.shared::cluster.u32 %r2, %r1, %r9;
    getctarank.shared::cluster.u32 %r3, %r2; sub.u32 %r4, %r2, %r1;
    mov.u64 %d2, s; cvta.shared.u64 %d2, %d2; mapa.u64 %d3, %d2, 2;
    getctarank.u32 %r5, %d3; sub.u64 %d3, %d3, %d2; cvt.u32.u64 %r6, %d3;
    """ + lane_address("%d4", "%d0", 4)
    for i, register in enumerate(("%r3", "%r4", "%r5", "%r6")):
        body += f"st.global.u32 [%d4+{128 * i}], {register};"
    launch(kernel(body, 1), [target])
    assert target[:, 0].tolist() == [3, 3 << 24, 2, 2 << 24]


def fault(body: str, *, writable: bool = True) -> tuple[int, int, int]:
    """Of a kernel with an array of 32 words in %d0: kind, lane and address, relative to the array where it is near."""
    made = Launch(compile_kernel(kernel(body, 1)), [0])
    address = made.array(np.zeros(32, np.uint32), writable)
    made.parameters[:8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
    assert made.run() == layout.FAULT
    record = made.warps[0]
    found = int(record["fault_address"])
    return record["fault_kind"], record["fault_lane"], found - address if abs(found - address) < 4096 else found


@pytest.mark.parametrize(
    ("body", "kind", "lane", "address"),
    [
        (lane_address("%d3", "%d0", 8) + "ld.global.u32 %r1, [%d3];", layout.BAD_ADDRESS, 16, 128),
        (lane_address("%d3", "%d0", 4) + "st.global.u32 [%d3-4], %t;", layout.BAD_ADDRESS, 0, -4),
        ("setp.eq.u32 %p1, %t, 7; @%p1 ld.global.u32 %r1, [%d0+122];", layout.MISALIGNED, 7, 122),
        ("ld.global.v2.u32 {%r1, %r2}, [%d0+4];", layout.MISALIGNED, 0, 4),
        ("ld.global.u32 %r1, [8];", layout.BAD_ADDRESS, 0, 8),
        ("ld.u32 %r1, [8];", layout.BAD_ADDRESS, 0, 8),
        ("ld.shared.u32 %r1, [0];", layout.BAD_ADDRESS, 0, 0),
        (".shared .b32 s[300]; ld.shared.u32 %r1, [s+2224];", layout.BAD_ADDRESS, 0, layout.SHARED_START + 2224),
        ("ld.local.u32 %r1, [64];", layout.BAD_ADDRESS, 0, 64),
        (".shared .b32 s; mov.u64 %d2, s; cvta.shared.u64 %d2, %d2; ld.global.u8 %r1, [%d2];", WRONG, 0, None),
        ("mov.u32 %r1, 16778240; ld.shared.u32 %r1, [%r1];", layout.BAD_ADDRESS, 0, 16778240),
        ("atom.global.add.u32 %r1, [%d0+128], 1;", layout.BAD_ADDRESS, 0, 128),
    ],
)  # fmt: skip
def test_faults(body: str, kind: int, lane: int, address: int | None) -> None:
    found = fault(body)
    assert found[:2] == (kind, lane)
    assert address is None or found[2] == address


def test_stores_to_read_only_memory_are_faults() -> None:
    assert fault("st.global.u32 [%d0], %t;", writable=False)[0] == layout.READ_ONLY
    assert fault("mov.b64 %d1, p0; cvta.param.u64 %d1, %d1; st.u32 [%d1], %t;")[0] == layout.READ_ONLY


def test_the_instruction_of_a_fault_is_named() -> None:
    made = Launch(
        compile_kernel(kernel("ld.global.u32 %r1, [%d0]; ld.global.u32 %r2, [%d0+400];", 1)), [np.zeros(32, np.uint32)]
    )
    assert made.run() == layout.FAULT
    assert made.code.sites[made.warps[0]["site"]].instruction.operands[1].offset == 400


def test_stores_count_as_writes_and_loads_do_not() -> None:
    made = launch(kernel("ld.global.u32 %r1, [%d0];", 1), [np.zeros(32, np.uint32)])
    assert made.launch[0]["writes"] == 0
    made = launch(kernel("st.global.u32 [%d0], 1;", 1), [np.zeros(32, np.uint32)])
    assert made.launch[0]["writes"] > 0


def test_a_parameter_read_beyond_its_end_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        translate(build(read(HEAD + kernel("ld.param.u64 %d2, [p0+4];"))))
    assert caught.value.diagnostics[0].code == "E1110"


def test_volatile_accesses_of_a_warp_go_instruction_by_instruction() -> None:
    """What lanes tell each other through volatile shared memory, as kernels before Volta did."""
    target = np.zeros(32, np.uint32)
    body = """.shared .b32 s[64]; mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2;
    st.volatile.shared.u32 [%r1+128], 0; st.volatile.shared.u32 [%r1], %t;""" + lane_address("%d3", "%d0", 4)
    for step in (64, 32, 16, 8, 4):
        body += f"ld.volatile.shared.u32 %r3, [%r1+{step}]; ld.volatile.shared.u32 %r4, [%r1]; add.u32 %r3, %r3, %r4;"
        body += "st.volatile.shared.u32 [%r1], %r3;"
    body += "st.global.u32 [%d3], %r3;"
    launch(kernel(body, 1), [target])
    assert target[0] == 31 * 32 // 2


def test_the_access_log() -> None:
    """One record a chunk of eight lanes, with the addresses that the instruction has; a full log interrupts a loop."""
    text = kernel(
        lane_address("%d3", "%d0", 4)
        + "ld.global.u32 %r1, [%d3]; setp.eq.u32 %p1, %t, 9; @%p1 atom.global.add.u32 %r2, [%d0], 1;"
        + "mov.u32 %r3, 0; L: st.global.u32 [%d3], %r3; add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 5; @%p2 bra L;",
        1,
    )
    made = Launch(compile_kernel(text, trace=True), [np.zeros(32, np.uint32)])
    entries, log = np.zeros(12, layout.ACCESS), np.zeros(1, layout.LOG)
    log["capacity"], log["entries"] = len(entries), entries.ctypes.data
    made.launch["trace"] = log.ctypes.data
    seen = []
    made.warps[0]["fuel"] = 1000
    while (code := made.code.run(made.warps.ctypes.data)) == layout.FUEL:
        assert log[0]["count"] <= len(entries)
        seen.append(entries[: int(log[0]["count"])].copy())
        log["count"] = 0
        made.warps[0]["fuel"] = 1000
    seen.append(entries[: int(log[0]["count"])].copy())
    assert code == layout.ALL_STOPPED and len(seen) > 2
    found = np.concatenate(seen)
    base = int(found[0]["addresses"][0])
    assert found["kind"].tolist() == [0] * 4 + [3] + [1] * 20
    assert (found["space"] == layout.SPACES["global"]).all() and (found["bytes"] == 4).all()
    assert found["first"].tolist() == [0, 8, 16, 24, 8, *[0, 8, 16, 24] * 5]
    assert found["form"].tolist() == [layout.ROW] * 4 + [layout.ALIKE] + [layout.ROW] * 20
    assert found[4]["mask"] == 2 and found[4]["addresses"][1] == base
    assert (found[1]["addresses"] == base + 4 * np.arange(8, 16)).all()
    assert made.code.sites[found[4]["site"]].instruction.opcode == "atom.global.add.u32"
