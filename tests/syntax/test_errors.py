"""What each mistake is called, where it is shown, and what the help says.

``^`` in a text marks where the diagnostic's span begins; it is taken out before parsing.
"""

import pytest

from ptxdsl.diagnostics import DiagnosticSink
from ptxdsl.source import Source
from ptxdsl.syntax.foreign import WORDS
from ptxdsl.syntax.parse import parse
from ptxdsl.syntax.tables import current_tables

MISPLACED = [
    ("x = a +^", "E0110", "expected an expression after '+'", None),
    ("x = a + ^* b", "E0110", "expected an expression after '+', found '*'", None),
    ("f(a, ^if)", "E0110", "expected an expression after ',', found keyword 'if'", None),
    ("x = a + ^not b", "E0110", "'not' binds weaker than the operator before it", "put 'not ...' in parentheses"),
    ("var a = 1 ^ifc else 2", "E0110", "expected an operator or the end of the statement, found 'ifc'", None),
    ("x = a if b^", "E0110", "expected 'else' in the conditional expression", "value if condition else other"),
    ("f(a ^b)", "E0110", "expected ',' or ')', found 'b'", None),
    ("x = 3;^; y = 4", "E0110", "a statement cannot begin with ';'", None),
    ("^)", "E0111", "')' closes nothing", "leave it out"),
    ("pass ^pass", "E0110", "expected an operator or the end of the statement, found 'pass'", None),
    ("foo ^x = 3", "E0110", "'foo' and 'x' stand side by side", "write 'var x: foo'"),
    ("def ^3(): pass", "E0110", "expected a name after 'def', found '3'", None),
    ("from a import^", "E0110", "expected a name after 'import', found the end of the line", None),
    ("from a import b^.c", "E0110", "a name after 'import' has no dots", "after 'from'"),
    ("import a^, b", "E0110", "one 'import' takes one module", "an 'import' line for each"),
    ("comptime x^", "E0110", "expected '=' and a value, found the end of the line", "comptime NAME = value"),
    ("comptime ^var x = 3", "E0110", "'comptime' takes the place of 'var'", "comptime NAME = value"),
    ("var ^while = 3", "E0115", "'while' is a keyword, not a name", "another name"),
    ("x.^if = 3", "E0115", "'if' is a keyword, not a name", "another name"),
    ("var ^let = 3", "E0115", "'let' is a reserved word, not a name", "another name"),
    ("^x: Int = 3", "E0116", "a declaration begins with 'var'", "write 'var x: Type = value'"),
]

OF_C = [
    ("^int x = 3", "E0116", "a declaration begins with 'var'", "'var x: Int32 = value'"),
    ("^uint32_t x = 3", "E0116", "a declaration begins with 'var'", "'var x: UInt32 = value'"),
    ("^__global__ void f(): pass", "E0113", "there is no '__global__'", "'@kernel' on a line above"),
    ("^__shared__ float tile[3]", "E0113", "there is no '__shared__'", "address_space=.SHARED"),
    ("^void f(): pass", "E0113", "there is no 'void'", "write 'def"),
    ('^asm volatile("")', "E0113", "there is no 'asm'", "inlined_assembly"),
    ("a^::b()", "E0110", "there is no operator '::'", "write '.'"),
    ("def f(p: float^*, n: int): pass", "E0110", "a pointer's type does not end with '*'", "Pointer[Float32, "),
    ("x = (float)^n", "E0110", "expected an operator or the end of the statement", "write 'Float32(n)'"),
    ("x = n ^as Int32", "E0110", "expected an operator or the end of the statement", "write 'Type(value)'"),
    ("for (i ^= 0; i < n; i++): pass", "E0110", "a 'for' goes over a range", "for i in range(n):"),
    ("for (int ^i = 0; i < n; i++): pass", "E0110", "a 'for' goes over a range", "for i in range(n):"),
    ("def f(^float* p): pass", "E0110", "an argument's type stands behind", "'p: Pointer[Float32, MutAnyOrigin]'"),
    (
        "def f(^const float* p): pass",
        "E0110",
        "an argument's type stands behind",
        "Pointer[Float32, ImmutAnyOrigin]'",
    ),
    ("def f(^unsigned n): pass", "E0110", "an argument's type stands behind", "'n: UInt32'"),
    ("^extern int x", "E0113", "there is no 'extern'", "external_memory"),
]

HEADERS = [
    ("if x^\n    y\n", "E0110", "expected ':' after the condition", None),
    ("while x^\n    y\n", "E0110", "expected ':' after the condition", None),
    ("if x: pass\nelse^\n    y\n", "E0110", "expected ':' after 'else'", None),
    ("for i in x^\n    y\n", "E0110", "expected ':' after what the loop goes over", None),
    ("def f()^\n    y\n", "E0110", "expected ':' at the end of the 'def' line", None),
    ("def f^: pass", "E0110", "expected '(' after the function's name", "def name():"),
    ("struct A^\n    var x: Int\n", "E0110", "expected ':' at the end of the 'struct' line", None),
    ("while True ^f(x)", "E0110", "expected ':' after the condition, found 'f'", None),
    ("for i ^= 0: pass", "E0110", "expected 'in' after the loop variable", "for i in range(...)"),
    ("for i ^on x: pass", "E0110", "expected 'in' after the loop variable, found 'on'", "for i in range(n):"),
    ("comptime a, b = ^f()", "E0121", "write a value for each name", "2 names take 2 values"),
    ("if x: pass\n^else if y: pass", "E0110", "there is no 'else if'", "write 'elif'"),
    ("if a: ^if b: c", "E0110", "'if' begins a block: it needs a line of its own", "next line"),
    ("^else: pass", "E0117", "'else' without 'if', 'for' or 'while'", "same indentation"),
    ("for i in x: pass\n^elif y: pass", "E0117", "'elif' without 'if'", "same indentation"),
    ("def f():\n^x = 3", "E0117", "expected an indented block after 'def'", "write 'pass'"),
    ("comptime if x:\n^y = 3", "E0117", "expected an indented block after 'comptime if'", "write 'pass'"),
    ("^@kernel\nvar x = 3", "E0117", "'@kernel' is not followed by a 'def' or 'struct'", "line above"),
]

EQUALS = [
    ("if a ^= b: pass", "E0112", "'=' assigns; it cannot stand in a condition", "write '=='"),
    ("while a.b ^= c: pass", "E0112", "'=' assigns; it cannot stand in a condition", "write '=='"),
    ("comptime assert a ^= b", "E0112", "'=' assigns; it cannot stand in a condition", "write '=='"),
    ("return a ^= b", "E0112", "'=' assigns; it cannot stand in an expression", "write '=='"),
    ("f(1 ^= 2)", "E0112", "'=' in brackets names an argument", "write '=='"),
    ("a = b ^= c", "E0112", "a statement has one '='", "one assignment for each target"),
    ("f(a ^+= 1)", "E0112", "'+=' is a statement, not an expression", "line of its own"),
    ("^3 = x", "E0121", "cannot assign to a number", "left side of '='"),
    ("^f() = x", "E0121", "cannot assign to a call", "left side of '='"),
    ("a, ^b + c = x", "E0121", "cannot assign to an operation", "left side of '='"),
    ("^(a, b) += x", "E0121", "'+=' takes one target", "one statement for each"),
]

BRACKETS = [
    ("f^(a, b\n", "E0111", "'(' is never closed", "close it with ')'"),
    ("x = p^[i\nvar y = 3\n", "E0111", "'[' is never closed", "close it with ']'"),
    ("def f^(x: Int:\n    pass\n", "E0111", "'(' is never closed", "close it with ')'"),
    ("x = f^(a\ny = 3\n", "E0111", "'(' is never closed", "close it with ')'"),
    ("f(a^]", "E0111", "']' does not close '('", "write ')'"),
]

OPERATORS = [
    ("if a ^&& b: pass", "E0110", "there is no operator '&&'", "write 'and'"),
    ("if a ^|| b: pass", "E0110", "there is no operator '||'", "write 'or'"),
    ("if a ^<> b: pass", "E0110", "there is no operator '<>'", "write '!='"),
    ("if a ^=== b: pass", "E0110", "there is no operator '==='", "write '=='"),
    ("x^++", "E0110", "there is no operator '++'", "write '+= 1'"),
    ("if ^!a: pass", "E0103", "'!' is not an operator", "write 'not'"),
    ("x = a ^? b", "E0103", "'?' is not an operator", "a if condition else b"),
    ("^// a comment", "E0110", "a statement cannot begin with '//'", "a comment begins with '#'"),
    ("^/* a comment */", "E0110", "a statement cannot begin with '/'", "a comment begins with '#'"),
    ("x = ^&y", "E0110", "expected an expression after '=', found '&'", "variables have no address"),
    ("x = (^*p)", "E0110", "expected an expression after '(', found '*'", "is 'p[]'"),
]

GONE = [
    ("^fn f(): pass", "E0114", "'fn' is gone from Mojo", "write 'def'"),
    ("^let x = 3", "E0114", "'let' is gone from Mojo", "write 'var'"),
    ("^alias N = 3", "E0114", "'alias' is gone from Mojo", "comptime NAME = value"),
    ("def f(g: ^fn(Int) -> Int): pass", "E0114", "'fn' is gone from Mojo", "write 'def'"),
    ("^@parameter\nif x: pass", "E0114", "'@parameter if' is gone from Mojo", "write 'comptime if'"),
    ("^@parameter\nfor i in x: pass", "E0114", "'@parameter for' is gone from Mojo", "write 'comptime for'"),
    ('^constrained[n > 0, "no"]()', "E0114", "'constrained' is gone from Mojo", "comptime assert"),
    ("if (x ^:= 3): pass", "E0114", "':=' is gone from Mojo", "statement of its own"),
    ("def f(^owned x: T): pass", "E0114", "'owned' is gone from Mojo", "write 'var'"),
    ("def f(^inout x: T): pass", "E0114", "'inout' is gone from Mojo", "write 'mut'"),
    ("def f(a: T, ^borrowed x: T): pass", "E0114", "'borrowed' is gone from Mojo", "leave it out"),
]

NOT_IN_THE_SUBSET = [
    ("trait T:\n    ^var x: Int\n", "E0122", "this statement cannot stand in a trait", "methods"),
    ("^comptime N: Int", "E0110", "a constant needs '=' and a value outside of a trait", "comptime NAME = value"),
    ("^class T: pass", "E0113", "classes are not in the subset", "write 'struct'"),
    ("x = ^lambda y: y", "E0113", "'lambda' is not in the subset", "nested 'def'"),
    (
        "^try:\n    f()\nexcept e:\n    g()\nfinally:\n    h()\n",
        "E0113",
        "exceptions are not in the subset",
        "test with 'if'",
    ),
    ("^raise Error()", "E0113", "'raise' is not in the subset", "debug_assert"),
    ("^with a as b:\n    c\n", "E0113", "'with' is not in the subset", "yourself"),
    ("^async def f(): pass", "E0113", "'async' is not in the subset", "barrier"),
    ("x = ^await f()", "E0113", "'await' is not in the subset", "wait on a barrier"),
    ("^yield x", "E0113", "generators are not in the subset", "loop"),
    ("^global x", "E0113", "'global' is not in the subset", "pass a pointer"),
    ("^nonlocal x", "E0113", "'nonlocal' is not in the subset", "pass 'mut' arguments"),
    ("^del x", "E0113", "'del' is not in the subset", "ends with its scope"),
    ("^assert x", "E0113", "'assert' at run time is not in the subset", "debug_assert(condition"),
    ("comptime ^while x: pass", "E0113", "there is no 'comptime while'", "comptime for"),
    ('x = ^f"{y}"', "E0113", "f-strings are not in the subset", "print(...)"),
    ("x = ^b'y'", "E0113", "bytes literals are not in the subset", "ordinary string"),
    ("if a ^{\n    b\n}\n", "E0113", "a block begins with ':', not '{'", "no '}'"),
    ("for i in range(n) ^{\n    b\n}\n", "E0113", "a block begins with ':', not '{'", "no '}'"),
    ("def f() -> Int ^{\n    b\n}\n", "E0113", "a block begins with ':', not '{'", "no '}'"),
    ("struct T ^{\n    b\n}\n", "E0113", "a block begins with ':', not '{'", "no '}'"),
    ("if a == ^{1}: pass", "E0113", "dictionaries and sets are not in the subset", "Array"),
    ("x = ^{1: 2}", "E0113", "dictionaries and sets are not in the subset", "Array"),
    ("x = [i ^for i in y]", "E0113", "comprehensions are not in the subset", "comptime for"),
    ("^match x:\n    case 1:\n        pass\n", "E0113", "'match' is not in the subset", "'elif'"),
    ("^print x", "E0113", "'print' is a function", "print(...)"),
    ("def f() ^capturing: pass", "E0113", "'capturing' is not in the subset", "leave it out"),
    ("def f[g: def(Int) ^capturing -> Int](): pass", "E0113", "'capturing' is not in the subset", "leave it out"),
    ("def f(^**args: Int): pass", "E0124", "variadic '**args' is not in the subset", "by name"),
    ("def f(^mut *args: Int): pass", "E0124", "variadic 'mut *args' is not in the subset", "read-only"),
    ("def f(*a: Int, ^*b: Int): pass", "E0123", "'*b' follows another variadic one", "leave one"),
    ("def f[*a: Int, ^*b: Int](): pass", "E0123", "'*b' follows another variadic one", "leave one"),
]

INDENTATION = [
    ("^  x = 3", "E0106", "unexpected indentation", "after a line that ends with ':'"),
    ("x = 3\n^  y = 4\n", "E0106", "unexpected indentation", "after a line that ends with ':'"),
    ("if a:\n    b\n^  c\n", "E0106", "inconsistent indentation", "indented by 0, 4 columns, this line by 2"),
    ("if a:\n    b\n^  else:\n    c\n", "E0106", "inconsistent indentation", "this line by 2"),
    ("if a:\n    b\nif c:\n^\td\n", "E0106", "tabs and spaces are mixed in this file", "with spaces"),
    ("if a:\n^\t b\n", "E0106", "tabs and spaces are mixed in this indentation", "with tabs"),
]

LEXICAL = [
    ("x = ^'abc", "E0104", "this string has no closing ' on its line", "close it with '"),
    ('x = ^"abc\ny = 3', "E0104", 'this string has no closing " on its line', 'close it with "'),
    ('x = ^"""abc\ny = 3', "E0104", 'this string has no closing """', 'close it with """'),
    ("x = ^0777", "E0105", "'0777' is not a number", "0o777"),
    ("x = ^12abc", "E0105", "'12abc' is not a number", "no suffix"),
    ("x = ^1.5f", "E0105", "'1.5f' is not a number", "no suffix"),
    ("x = ^0xfg", "E0105", "'0xfg' is not a number", "hexadecimal digits"),
    ("x = ^1__2", "E0105", "'1__2' is not a number", "between two digits"),
    ("x = ^" + "9" * 4001, "E0107", "longer than 4000 digits", "no type holds"),
    ("x = ^é", "E0103", "'é' is not allowed in a name", "a-z"),
    ("x = ^“", "E0102", "typographic quotes do not make a string", "write"),
    ("x = a ^− b", "E0102", "this dash is not a minus sign", "write '-'"),
    ("x = ^☃", "E0102", "U+2603, snowman", "only in strings and comments"),
    ("x = a ^\\", "E0103", "'\\' continues no line here: the text ends", "remove it"),
    ("x = a ^\\ b", "E0103", "'\\' continues a line only as its last character", "spaces too"),
    ("x = ^\x00", "E0102", "NUL byte (U+0000) in the text", "remove it"),
    ("# ^\x07", "E0102", "(U+0007) in the text", "remove it"),
    ("x = '^\u202e'", "E0102", "right-to-left override (U+202E) in the text", "remove it"),
    ("x = a^\ry = b", "E0102", "carriage return (U+000D) in the text", "remove it"),
    ("x = '^\\xg'", "E0109", "'\\x' needs 2 hexadecimal digits", "write '\\\\x' for a backslash"),
    ("x = 'a^\\ud800'", "E0109", "is not a Unicode character", "without d800 to dfff"),
]

DECLARATIONS = [
    ("^var x", "E0120", "a variable needs a value or a type", "var x: Type"),
    ("struct A:\n    ^x = 3\n", "E0122", "this statement cannot stand in a struct", "'comptime NAME = value'"),
    ("struct A:\n    ^if a: pass\n", "E0122", "this statement cannot stand in a struct", "methods ('def')"),
    ("struct A:\n    var x: Int = ^3\n", "E0122", "a field has no value of its own", "__init__"),
    ("struct A:\n    ^var x = 3\n", "E0122", "a field needs a type", "var name: Type"),
    ("def f(a: T = 3, ^b: T): pass", "E0123", "argument 'b' without a default follows 'a'", "move it before 'a'"),
    ("def f[a: T = 3, ^b: T](): pass", "E0123", "parameter 'b' without a default", "give 'b' a default"),
    ("def f[a: T, //, b: T, ^//](): pass", "E0123", "'//' may appear once", "leave it out here"),
    ("def f[^//, a: T](): pass", "E0123", "'//' may appear once, after a parameter", "leave it out here"),
    ("def f(a: T, *, b: T, ^*): pass", "E0123", "'*' may appear once", "leave it out here"),
    ("def f(^/, a: T): pass", "E0123", "'/' may appear once", "leave it out here"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("marked", "code", "message", "help"),
    MISPLACED
    + OF_C
    + HEADERS
    + EQUALS
    + BRACKETS
    + OPERATORS
    + GONE
    + NOT_IN_THE_SUBSET
    + INDENTATION
    + LEXICAL
    + DECLARATIONS,
)
def test_one_mistake(problems, marked, code, message, help):
    before, after = marked.split("^")
    found = [p for p in problems(before + after) if not (p.code == "E0122" and code == "E0120")]
    first = found[0]
    assert first.code == code
    assert message in first.message
    assert first.span.start == len(before), first.span.text
    assert help in (first.help or "") if help else not first.help
    expected = 2 if "var x = 3" in marked and code == "E0122" else 1
    assert len(found) <= expected, [p.message for p in found]


def test_an_escape_that_is_none_is_a_warning():
    sink = DiagnosticSink()
    tree = parse(Source("test.pdsl", r'x = "a\qb"'), sink)
    (warning,) = sink.items
    assert (warning.code, warning.severity, warning.span.text) == ("E0109", "warning", "\\q")
    assert tree.body[0].value.value == "a\\qb"


def test_the_other_place_is_shown(problems):
    (unmatched,) = problems("f(\n  a]\n")
    ((span, label),) = unmatched.notes
    assert (span.line, span.column, label) == (1, 2, "'(' opened here")
    (no_block,) = problems("def f():\nx = 3\n")
    ((span, label),) = no_block.notes
    assert (span.text, label) == ("def f():", "the block belongs to this line")


SOFT_KEYWORDS = {"read", "mut", "out", "ref", "deinit", "raises", "thin", "where"}


def test_keywords_are_no_names_and_soft_ones_are(problems):
    words = [*current_tables().words, *WORDS]
    assert {"if", "while", "comptime", "None", "fn", "lambda", *SOFT_KEYWORDS} <= set(words)
    for word in words:
        for text in (f"var {word} = 3", f"x.{word} = 3", f"comptime {word} = 3", f"for {word} in x: pass"):
            assert bool(problems(text)) == (word not in SOFT_KEYWORDS), text
