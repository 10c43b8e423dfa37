"""Mistakes in PTX text: the code, the words and the place of each."""

from __future__ import annotations

import pytest

from ptxdsl.diagnostics import CompileError, Diagnostic
from ptxdsl.explanations import EXPLANATIONS
from ptxdsl.ptx.reader import read

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def errors(text: str | bytes) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        read(text, "k.ptx")
    assert all(d.code in EXPLANATIONS for d in caught.value.diagnostics)
    return caught.value.diagnostics


def one(text: str | bytes) -> Diagnostic:
    (found,) = errors(text)
    return found


def in_kernel(body: str) -> str:
    return f"{HEAD}.entry k() {{\n.reg .pred %p; .reg .b32 %r<4>, y;\n{body}\n}}"


def test_an_error_is_shown_at_its_place() -> None:
    assert one(in_kernel("    add.s32 %r1, %r9, 1;")).render() == (
        "error[E0812]: register %r9 is not declared\n"
        " --> k.ptx:6:18\n"
        "  |\n"
        "6 |     add.s32 %r1, %r9, 1;\n"
        "  |                  ^^^"
    )


@pytest.mark.parametrize(
    ("body", "code", "message", "span"),
    [
        ("mov.b32 %r1, %r4;", "E0812", "register %r4 is not declared", "%r4"),
        ("mov.b32 %r1, %r01;", "E0812", "register %r01 is not declared", "%r01"),
        ("mov.b32 %r1, %tid.q;", "E0812", "register %tid.q is not declared", "%tid.q"),
        ("mov.b32 %r1, y.x;", "E0812", "y has no component .x", "y.x"),
        (
            "vadd.u32.u32.u32 %r1, %r1.b3, %r1.h0;",
            "E0812",
            "%r1.b3: bytes and halves of video instructions' operands are not supported",
            "%r1.b3",
        ),
        ("mov.b32 %r1, z;", "E0812", "z is not declared", "z"),
        ("bra L;", "E0812", "label L is not in this function", "L"),
        ("{ L: ret; } bra L;", "E0812", "label L is not in this function", "L"),
        ("brx.idx %r1, L; L: ret;", "E0812", ".branchtargets L is not in this function", "L"),
        ("t: .branchtargets A, B; A: ret;", "E0812", "label B is not in this function", "B"),
        ("call f;", "E0812", "f is not declared", "f"),
        ("L: ret; L: ret;", "E0813", "label L is defined a second time", "L"),
        (".reg .b32 y;", "E0813", "y is declared twice", "y"),
        (".reg .b64 %r<4>;", "E0813", "the registers %r<…> are declared twice", "%r"),
        ("mov.b32 %r1, 12x;", "E0814", "this is neither a number nor a constant expression", "12x"),
        ("mov.b32 %r1, 08;", "E0814", "a number that starts with 0 is octal", "08"),
        ("mov.b32 %r1, 1/0;", "E0814", "division by zero in a constant expression", "1/0"),
        ("mov.b64 %r1, 0x10000000000000000;", "E0814", "this integer has more than 64 bits", "0x10000000000000000"),
        ("mov.b32 %r1, ;", "E0810", "an operand is missing", "mov.b32 %r1, ;"),
        ("mov.b32 {%r1, %r2;", "E0810", "'}' is missing", "mov.b32 {%r1, %r2;"),
        ("@%r1 ret;", "E0810", "a guard is a predicate register, and %r1 is .b32", "%r1"),
        ("call (y);", "E0810", "a call names a function", "call (y);"),
        ("bra;", "E0810", "bra has other operands", "bra;"),
        ("9 nonsense;", "E0810", "a statement that is not understood", "9 nonsense;"),
        (".loc x", "E0810", "a .loc has a file number, a line and a column", ".loc x"),
        (".branchtargets A;", "E0810", ".branchtargets follows a label", ".branchtargets A;"),
        (".bogus 1;", "E0811", ".bogus is not a directive of a function's body", ".bogus"),
        (".reg .b33 z;", "E0811", ".b33 is not known in a declaration", ".b33"),
        (".shared .align 3 .b8 z;", "E0816", "an alignment is a power of two, and 3 is none", "3"),
        (".reg .b32 z[4];", "E0816", "a register is not an array and has no initial value", "z"),
    ],
)  # fmt: skip
def test_mistakes_in_a_body(body: str, code: str, message: str, span: str) -> None:
    found = one(in_kernel(body))
    assert (found.code, found.message) == (code, message)
    assert found.span is not None
    assert found.span.text == span
    assert found.span.line == 6


@pytest.mark.parametrize(
    ("text", "code", "message", "span"),
    [
        ("hello", "E0810", "expected a directive", "hello"),
        (".wrong x", "E0811", ".wrong is not a directive of module scope", ".wrong"),
        (".visible .reg .b32 r;", "E0811", ".reg is not a state space of a module's variable", ".reg"),
        (".entry {}", "E0810", "a function has a name", ".entry {}"),
        (".entry k() ret;", "E0810", "expected the body of k or ';'", "k"),
        (".entry k(.global .b32 x) {ret;}", "E0816", "a parameter is of space .param", "x"),
        (".entry k(.param .b32 x, .param .b32 x) {ret;}", "E0813", "x is declared twice", "x"),
        (".entry k {ret;} .entry k {ret;}", "E0813", "k is defined twice", "k"),
        (".global .b32 x; .global .b32 x;", "E0813", "x is declared twice", "x"),
        (".alias a, b;", "E0812", "b is not declared", "b"),
        (".global .u64 x = y;", "E0812", "y is not declared", "y"),
        (".global .b8 x[2] = {1, 2, 3};", "E0816", "more values than the array has elements", "{1, 2, 3}"),
        (".global .b8 x[2] = {{1}};", "E0816", "more braces than the array has dimensions", "{1}"),
        (".global .b8 x[2] = 1;", "E0816", "an array is initialised in braces", "1"),
        (".global .b8 x[2][] ;", "E0816", "only the first dimension of an array can be left open", "x"),
        (".global .b8 x[99999999999999];", "E0816", "an array is too large", "99999999999999"),
        (".global .b8 x = y;", "E0816", "an address does not fit into .b8", "y"),
        (".global .f32 x = 1;", "E0814", "an initial value of type .f32 is written as a floating-point constant", "1"),
        (".global .u32 x = 1.0;", "E0814", "an initial value of type .u32 is written as an integer", "1.0"),
        (".global x;", "E0816", "a declaration has a state space and a type", ".global x;"),
        (".address_size 32", "E0815", "only 64-bit addresses are supported", "32"),
        (".section .debug_str { .b8 1", "E0810", "a section that does not end: '}' is missing",
         ".section .debug_str { .b8 1"),
    ],
)  # fmt: skip
def test_mistakes_at_module_scope(text: str, code: str, message: str, span: str) -> None:
    found = one(HEAD + text)
    assert (found.code, found.message) == (code, message)
    assert found.span is not None
    assert found.span.text == span


def test_several_errors_in_the_order_of_the_text() -> None:
    text = (
        in_kernel("bra NOWHERE;\nmov.b32 %r1, %x;\nadd.s32 %r1 %r2\nmov.b32 %r1, 5;\n.what;")
        + "\n.global .b8 x[2] = 3;"
    )
    assert [(d.code, d.span and d.span.line) for d in errors(text)] == [
        ("E0812", 6), ("E0812", 7), ("E0810", 8), ("E0811", 10), ("E0816", 12)
    ]  # fmt: skip


def test_a_missing_semicolon_costs_its_own_line() -> None:
    found = one(in_kernel("add.s32 %r1, %r2, 3\nmov.b32 %r1, 5;"))
    assert found.message == "a statement that is not understood; is ';' missing at the end of the line?"
    assert found.span is not None
    assert found.span.text == "add.s32 %r1, %r2, 3"


def test_no_more_than_twenty() -> None:
    assert len(errors(in_kernel("mov.b32 %r1, %x;\n" * 50))) == 20


@pytest.mark.parametrize("missing", [".version", ".target"])
def test_a_missing_head(missing: str) -> None:
    found = one("".join(line + "\n" for line in HEAD.splitlines() if not line.startswith(missing)))
    assert (found.code, found.message) == ("E0815", f"{missing} is missing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + ".entry k() { ret;", "the text ends inside k: '}' is missing"),
        (HEAD + ".entry k() { ret", "a statement that does not end: ';' is missing"),
        (HEAD + ".entry k() { ret;\n.entry l() { ret; }", "k does not end: '}' is missing before .entry"),
        (HEAD + ".entry k(.param .b32 x", "a list of parameters that does not end"),
        (HEAD + "/* never", "a comment that does not end"),
        (HEAD + ".global .b32 x", "a statement that does not end: ';' is missing"),
        (HEAD + "\0.entry", "this is not PTX text: a NUL character"),
        (HEAD.encode() + b"\x7fELF\xff\xfe", "this is not PTX text: a byte that is not UTF-8"),
    ],
)
def test_what_is_no_text_or_ends_early(text: str | bytes, message: str) -> None:
    found = errors(text)[-1]
    assert (found.code, found.message) == ("E0810", message)
    assert found.span is not None
