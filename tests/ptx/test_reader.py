"""What the reader makes of each kind of statement. (That whole texts keep their meaning: test_reader_assembles.)"""

from __future__ import annotations

import struct

import pytest

from ptxdsl.ptx.module import (
    Address,
    Arguments,
    Function,
    Immediate,
    Instruction,
    Label,
    Location,
    Module,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    TensorAddress,
    Vector,
)
from ptxdsl.ptx.reader import read

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
REGISTERS = (
    ".reg .pred %p<3>; .reg .b32 %r<100>; .reg .b64 %rd<5>; .reg .f32 x; .reg .v4 .f32 v; .shared .b64 bar[2];\n"
)
R1, R2, RD1 = Register("%r1"), Register("%r2"), Register("%rd1")


def kernel(body: str, declarations: str = "") -> Function:
    return read(f"{HEAD}{declarations}\n.entry k(.param .b64 p) {{\n{REGISTERS}{body}\n}}").functions["k"]


def instructions(body: str, declarations: str = "") -> list[Instruction]:
    return [i for i in kernel(body, declarations).body if isinstance(i, Instruction)]


def module(text: str) -> Module:
    return read(HEAD + text)


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("%r1", R1),
        ("x", Register("x")),
        ("%tid.x", Register("%tid.x")),
        ("%clock64", Register("%clock64")),
        ("v.w", Register("v.w")),
        ("v", Vector(tuple(Register(f"v.{c}") for c in "xyzw"))),
        ("_", Sink()),
        ("!%p1", Not(Register("%p1"))),
        ("%p1|%p2", Pair(Register("%p1"), Register("%p2"))),
        ("_ | %p2", Pair(Sink(), Register("%p2"))),
        ("{%r1, _,0}", Vector((R1, Sink(), Immediate(0)))),
        ("bar", Symbol("bar")),
        ("bar+8", Symbol("bar", 8)),
        ("bar - 8", Symbol("bar", -8)),
        ("[%rd1]", Address(RD1)),
        ("[ %rd1 + -8 ]", Address(RD1, -8)),
        ("[%rd1-8]", Address(RD1, -8)),
        ("[bar+(8+4)*2]", Address(Symbol("bar"), 24)),
        ("[p]", Address(Symbol("p"))),
        ("[16]", Address(None, 16)),
        ("[%rd1, {%r1, 5}]", TensorAddress(Address(RD1), (R1, Immediate(5)))),
        ("WARP_SZ", Immediate(32)),
        ("WARP_SZ-1", Immediate(31)),
        ("-1", Immediate(-1)),
        ("0x1F", Immediate(31)),
        ("0xFFFFFFFFFFFFFFFF", Immediate(2**64 - 1)),
        ("017", Immediate(15)),
        ("0b101U", Immediate(5)),
        ("(8+4)*2 << 1", Immediate(48)),
        ("7 / -2", Immediate(-3)),
        ("-7 % 3", Immediate(-1)),
        ("1 > 2 ? 3 : 1 == 1 ? 4 : 5", Immediate(4)),
        ("~0 & 0xF | !1", Immediate(15)),
        ("-1U", Immediate(2**64 - 1)),
        ("(.s64)0xFFFFFFFFFFFFFFFF", Immediate(-1)),
        ("0f3F800000", Immediate(0x3F800000, "f32")),
        ("0dBFF0000000000000", Immediate(0xBFF0000000000000, "f64")),
        ("1.5", Immediate(0x3FF8000000000000, "f64")),
        ("-1e0", Immediate(0xBFF0000000000000, "f64")),
    ],
)
def test_operands(text: str, operand: Operand) -> None:
    (instruction,) = instructions(f"mov.b32 {text};")
    assert instruction.operands == (operand,)


def test_an_instruction_has_its_opcode_guard_line_and_operands() -> None:
    first, second = instructions("@!%p1\n ld.global.L2::128B.v2.b32 {%r1, %r2}, [%rd1];  ret;")
    assert first.opcode == "ld.global.L2::128B.v2.b32"
    assert first.parts == ("ld", "global", "L2::128B", "v2", "b32")
    assert first.guard == (Register("%p1"), True)
    assert first.operands == (Vector((R1, R2)), Address(RD1))
    assert (first.line, second.line) == (8, 8)
    assert (second.opcode, second.operands, second.guard) == ("ret", (), None)


def test_comments_are_nowhere_in_the_way() -> None:
    (instruction,) = instructions("/* ; } \n */ add.s32 %r1, // %r9; \n %r2 /* , */ , 1;")
    assert (instruction.operands, instruction.line) == ((R1, R2, Immediate(1)), 8)


def test_registers_are_those_named_with_their_types() -> None:
    function = kernel("mov.b32 %r7, %tid.x; @%p2 mov.f32 x, v.x;")
    assert function.registers == {"%r7": "b32", "x": "f32", "v.x": "f32", "%p2": "pred"}


def test_a_range_of_registers_costs_nothing() -> None:
    function = kernel(".reg .b32 %big<1000000000>; .reg .b32 %q1<5>; mov.b32 %big999999999, %q14;")
    assert function.registers == {"%big999999999": "b32", "%q14": "b32"}


def test_vector_registers_are_their_components() -> None:
    function = kernel(".reg .v2 .u16 w<3>; mov.v2.u16 w1, w2; mov.u16 w0.y, w1.x;")
    first, second = (i.operands for i in function.body if isinstance(i, Instruction))
    pair = {n: (Register(f"w{n}.x"), Register(f"w{n}.y")) for n in range(3)}
    assert first == (Vector(pair[1]), Vector(pair[2]))
    assert second == (pair[0][1], pair[1][0])
    text = ".func (.reg .u32 r) f(.reg.v2.u32 a) { mov.u32 r, a.x; ret; }"
    assert module(text).functions["f"].registers == {"r": "u32", "a.x": "u32", "a.y": "u32"}


def test_names_of_inner_scopes_are_unique() -> None:
    wait = "{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], %r1; @!p bra W; }"
    function = kernel(f"{wait}\n{wait}\nbra L; L: ret;")
    first, second = (Register(f"p#{n}") for n in (1, 2))
    tests = [i for i in function.body if isinstance(i, Instruction) and i.opcode.startswith("mbarrier")]
    assert [test.operands[0] for test in tests] == [first, second]
    branches = [i for i in function.body if isinstance(i, Instruction) and i.opcode == "bra"]
    assert [b.operands for b in branches] == [(Symbol("W#1"),), (Symbol("W#2"),), (Symbol("L"),)]
    assert [b.guard for b in branches] == [(first, True), (second, True), None]
    assert [s.name for s in function.body if isinstance(s, Label)] == ["W#1", "W#2", "L"]
    assert function.registers == {"p#1": "pred", "%r1": "b32", "p#2": "pred"}


def test_an_inner_scope_sees_and_hides_the_outer_names() -> None:
    move = "mov.b32 %r1, x;"
    body = f"{move} {{ {move} .reg .b32 x; {move} bra END; }} {move} END: ret;"
    assert [i.operands[-1] for i in instructions(body)[:5]] == [
        Register("x"), Register("x"), Register("x#1"), Symbol("END"), Register("x")
    ]  # fmt: skip


def test_calls_and_their_parameters() -> None:
    function = kernel(
        "{ .param .b32 a; .param .align 8 .b8 s[16]; .param .b32 r; st.param.b32 [a+0], 5;\n"
        "call.uni (r), f, (a, s); call (%r1), %rd1, (a, 7), proto; call g; call h, (a);\n"
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _); }",
        ".func (.param .b32 r) f(.param .b32 a, .param .align 8 .b8 b[16]); .extern .func g; .func h(.reg .b32 a);",
    )
    store, *calls = (i for i in function.body if isinstance(i, Instruction))
    a, s, r = (Symbol(f"{name}#1") for name in "asr")
    assert store.operands == (Address(a), Immediate(5))
    assert [c.operands for c in calls] == [
        (Arguments((r,)), Symbol("f"), Arguments((a, s))),
        (Arguments((R1,)), RD1, Arguments((a, Immediate(7))), Symbol("proto#1")),
        (Symbol("g"),),
        (Symbol("h"), Arguments((a,))),
    ]
    assert [(v.name, v.space, v.size, v.align) for v in function.variables if v.space == "param"] == [
        ("a#1", "param", 4, 4), ("s#1", "param", 16, 8), ("r#1", "param", 4, 4)
    ]  # fmt: skip
    assert function.prototypes == {"proto#1"}
    assert not any(isinstance(s, Label) for s in function.body)


def test_indexed_branches() -> None:
    function = kernel("brx.idx %r1, ts; ts: .branchtargets A, B, A; A: ret; B: ret;")
    (branch, *_) = function.body
    assert isinstance(branch, Instruction)
    assert branch.operands == (R1, Symbol("ts"))
    assert function.branch_targets == {"ts": ("A", "B", "A")}


def test_functions_and_their_directives() -> None:
    functions = module("""
        .visible .func (.param .b32 r) f(.param .b32 a, .param .align 8 .b8 b[16]) .noreturn { ret; }
        .weak .entry k(.param .u64 .ptr .global .align 16 p, .param .align 64 .b8 map[128])
        .explicitcluster .reqnctapercluster 2, 1, 1 .reqntid 128, 2 .maxntid 1024 .minnctapersm 1 .maxnreg 64
        .maxclusterrank 8 .blocksareclusters .pragma "nounroll"; { ret; }
        .entry bare { ret; } .func g(); .alias also_f, f; .extern .func (.reg .b32 q) h (.reg .b32 z);
    """).functions
    f, k = functions["f"], functions["k"]
    assert [(v.name, v.size, v.align) for v in (*f.returns, *f.parameters)] == [("r", 4, 4), ("a", 4, 4), ("b", 16, 8)]
    assert [(v.name, v.space, v.type, v.shape, v.size) for v in k.parameters] == [
        ("p", "param", "u64", (), 8), ("map", "param", "b8", (128,), 128)
    ]  # fmt: skip
    assert (k.is_kernel, k.extern, k.reqnctapercluster) == (True, False, (2, 1, 1))
    assert (k.explicit_cluster, k.blocks_are_clusters) == (True, True)
    assert (f.explicit_cluster, f.blocks_are_clusters) == (False, False)
    assert (k.reqntid, k.maxntid, k.minnctapersm, k.maxnreg) == ((128, 2), (1024,), 1, 64)
    assert functions["also_f"] is f
    assert functions["g"].extern
    assert [v.space for v in (*functions["h"].returns, *functions["h"].parameters)] == ["reg", "reg"]
    assert functions["bare"].parameters == ()


def test_a_definition_takes_the_place_of_its_declaration() -> None:
    functions = module(
        ".extern .func f(.param .b32 a); .func f(.param .b32 b) { ret; } .func f(.param .b32 c);"
    ).functions
    assert [v.name for v in functions["f"].parameters] == ["b"]
    assert not functions["f"].extern


@pytest.mark.parametrize(
    ("text", "size", "shape", "align", "initial"),
    [
        (".u32 x", 4, (), 4, None),
        (".v4 .f32 x", 16, (4,), 16, None),
        (".align 16 .b8 x[2][3]", 6, (2, 3), 16, None),
        (".b8 x[4] = {1, 2, -1}", 4, (4,), 1, b"\1\2\xff"),
        (".b8 x[] = {300, 0x61, 3}", 3, (3,), 1, b"\x2c\x61\3"),
        (".u16 x[2] = {010, 0b11}", 4, (2,), 2, b"\x08\0\3\0"),
        (".u32 x = (2 + 3) * 4", 4, (), 4, b"\x14\0\0\0"),
        (".s64 x = -2", 8, (), 8, b"\xfe" + b"\xff" * 7),
        (".f32 x[2] = {1.5, 0f40490FDB}", 8, (2,), 4, struct.pack("<f", 1.5) + bytes.fromhex("db0f4940")),
        (".f32 x = 0.1", 4, (), 4, struct.pack("<f", 0.1)),
        (".f32 x = 1e300", 4, (), 4, struct.pack("<f", float("inf"))),
        (".f64 x[2] = {0d3FF0000000000000, -1.0 + 0.5}", 16, (2,), 8, struct.pack("<dd", 1, -0.5)),
        (".u16 x[2][2] = {{1}, {2, 3}}", 8, (2, 2), 2, b"\1\0\0\0\2\0\3\0"),
        (".u8 x[][2] = {{1}, {2, 3}, {}}", 6, (3, 2), 1, b"\1\0\2\3\0\0"),
        (".u8 x[2][2] = {1, 2, 3}", 4, (2, 2), 1, b"\1\2\3"),
    ],
)
def test_variables(text: str, size: int, shape: tuple[int, ...], align: int, initial: bytes | None) -> None:
    x = module(f".global {text};").variables["x"]
    assert (x.space, x.size, x.shape, x.align, x.initial) == ("global", size, shape, align, initial)


def test_addresses_in_initialisers() -> None:
    variables = module("""
        .visible .global .b8 s[16]; .func f { ret; }
        .global .u64 a[2][2] = {{s, s+8}, {generic(s)+4, f}};
        .const .align 8 .u8 bytes[9] = {1, 0xFF(s), 0xFF00(s), 0xFF0000(s), 0xFF000000(s), 0xFF00000000(s),
            0xFF0000000000(s), 0xFF000000000000(s), 0xFF00000000000000(s)};
    """).variables
    assert variables["a"].relocations == (
        (0, 8, Symbol("s")), (8, 8, Symbol("s", 8)), (16, 8, Symbol("s", 4)), (24, 8, Symbol("f"))
    )  # fmt: skip
    assert variables["a"].initial == bytes(32)
    assert variables["bytes"].relocations == ((1, 8, Symbol("s")),)
    assert variables["bytes"].initial == b"\1" + bytes(8)


def test_linkage_and_several_names_in_one_declaration() -> None:
    variables = module("""
        .extern .shared .align 16 .b8 dynamic[]; .common .global .u32 c; .weak .const .u32 w = 1;
        .visible .global .attribute(.managed) .u32 a, b[2], d = 3; .extern .global .u32 e; .global .u32 e;
    """).variables
    assert {name: v.linkage for name, v in variables.items()} == {
        "dynamic": "extern", "c": "common", "w": "weak", "a": "visible", "b": "visible", "d": "visible", "e": ""
    }  # fmt: skip
    assert (variables["dynamic"].size, variables["dynamic"].shape, variables["dynamic"].align) == (None, None, 16)
    assert (variables["b"].shape, variables["d"].initial) == ((2,), b"\3\0\0\0")


def test_source_locations() -> None:
    body = """
        .loc 1 7 3
        mov.b32 %r1, 1;
        .loc 2 8 0, function_name $L__info_string0, inlined_at 1 9 1
        mov.b32 %r1, 2; mov.b32 %r1, 3;
        .loc 3 1 1
        mov.b32 %r1, 4;"""
    text = f'{HEAD}.entry k() {{ .reg .b32 %r<4>; {body} }}\n.file 1 "dir//a.cu"\n.file 2 "b.h", 1700000000, 100\n'
    found = read(text).functions["k"].body
    inlined = Location("b.h", 8, 0)
    assert [i.location for i in found if isinstance(i, Instruction)] == [
        Location("dir//a.cu", 7, 3), inlined, inlined, None
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "name"),
    [(r"j\303\274.cu", "j\u00fc.cu"), (r"C:\134k.cu", r"C:\k.cu"), (r"C:\\k.cu", r"C:\k.cu"), (r"a\k", r"a\k")],
)
def test_the_name_of_a_file_as_compilers_write_it(written: str, name: str) -> None:
    text = f'{HEAD}.entry k() {{ .loc 1 7 3\n ret; }}\n.file 1 "{written}"\n'
    (found,) = read(text).functions["k"].body
    assert isinstance(found, Instruction) and found.location == Location(name, 7, 3)


def test_what_has_no_meaning_for_execution_is_passed_over() -> None:
    text = """
        @@DWARF .section .debug_pubnames
        .pragma "x"; .section .debug_str { $L__s: .b8 102 .b8 0 } .section	.debug_macinfo	{	}
        .file 1 "a.cu"
        .entry k { .pragma "nounroll"; L: .pragma "used_bytes_mask 15"; ret; }
    """
    (label, ret) = module(text).functions["k"].body
    assert isinstance(label, Label)
    assert isinstance(ret, Instruction)


def test_the_head() -> None:
    found = read(b"// nothing\n.version 8.0\n.target sm_100a, texmode_unified\n.address_size 64\0", "a.ptx")
    assert (found.version, found.target, found.address_size, found.text_name) == ((8, 0), "sm_100a", 64, "a.ptx")
    assert found.kernels == {}


@pytest.mark.parametrize("ending", ["\r\n", "\n", "\n\n"])
def test_line_endings(ending: str) -> None:
    text = ending.join([*HEAD.splitlines(), ".entry k {", "ret;", "}"])
    (ret,) = read(text).functions["k"].body
    assert ret.line == 1 + 4 * ending.count("\n")
