"""Expressions: precedence, associativity and every kind of atom and postfix."""

import pytest

from ptxdsl.syntax import ast

PRECEDENCE = [
    ("a + b * c", "(+ a (* b c))"),
    ("(a + b) * c", "(* (+ a b) c)"),
    ("a - b - c", "(- (- a b) c)"),
    ("a * b / c // d % e @ f", "(@ (% (// (/ (* a b) c) d) e) f)"),
    ("a ** b ** c", "(** a (** b c))"),
    ("-a ** b", "(- (** a b))"),
    ("a ** -b", "(** a (- b))"),
    ("-a * ~b + +c", "(+ (* (- a) (~ b)) (+ c))"),
    ("a + b << c - d >> e", "(>> (<< (+ a b) (- c d)) e)"),
    ("a | b ^ c & d << e", "(| a (^ b (& c (<< d e))))"),
    ("a & b == c", "((& a b) == c)"),
    ("a < b <= c != d", "(a < b <= c != d)"),
    ("a in b", "(a in b)"),
    ("a not in b is not c is d", "(a not in b is not c is d)"),
    ("not a == b", "(not (a == b))"),
    ("not a and not not b or c", "(or (and (not a) (not (not b))) c)"),
    ("a or b and c or d", "(or (or a (and b c)) d)"),
    ("a if b else c if d else e", "(if b a (if d c e))"),
    ("a or b if c and d else not e", "(if (and c d) (or a b) (not e))"),
    ("a, b", "(tuple a b)"),
    ("a,", "(tuple a)"),
]

POSTFIX = [
    ("a.b.c", "a.b.c"),
    ("f()", "(call f)"),
    ("f(a, b=c, *d,)", "(call f a b=c *d)"),
    ("p[]", "(at p)"),
    ("p[i, n=3]", "(at p i n=3)"),
    ("p[a:b, :, ::c, a:, :b]", "(at p (slice a b _) (slice _ _ _) (slice _ _ c) (slice a _ _) (slice _ b _))"),
    ("f[n, T, space=.SHARED]().g[M]()", "(call (at (call (at f n T space=.SHARED)).g M))"),
    ("SIMD[DType.float32, _](0)", "(call (at SIMD DType.float32 _) 0)"),
    ("-a.b[c](d)", "(- (call (at a.b c) d))"),
    ("x^", "x^"),
    ("f(x^, y^)", "(call f x^ y^)"),
    ("x^.f()", "(call x^.f)"),
    ("x ^ y", "(^ x y)"),
    ("x ^ -y", "(^ x (- y))"),
    ("(x ^\n y)", "(^ x y)"),
    ("x^ if a else y^", "(if a x^ y^)"),
]

ATOMS = [
    ("0", "0"),
    ("1_000", "1000"),
    ("0xFF_ff", "65535"),
    ("0o17", "15"),
    ("0b1_01", "5"),
    ("00", "0"),
    ("1.5", "1.5"),
    (".5", ".5"),
    ("1.", "1."),
    ("1e10", "1e10"),
    ("1_0.5e-3", "1_0.5e-3"),
    ("True", "True"),
    ("False", "False"),
    ("None", "None"),
    ("...", "..."),
    (".SHARED", ".SHARED"),
    ("_", "_"),
    ("()", "(tuple)"),
    ("(a)", "a"),
    ("(a,)", "(tuple a)"),
    ("(a, b, c)", "(tuple a b c)"),
    ("[]", "(list)"),
    ("[a, b,]", "(list a b)"),
    ("def(Int, T) -> Int", "(def Int T)->Int"),
    ("def() raises", "(def)->_"),
    (
        "mut + out * ref - read / deinit % where | raises",
        "(| (- (+ mut (* out ref)) (% (/ read deinit) where)) raises)",
    ),
]

STRINGS = [
    ('"a"', "a"),
    ("'a'", "a"),
    ("''", ""),
    ('"it\'s"', "it's"),
    (r'"a\n\t\\\"\'\0\x41\u00e9\U0001F600\101"', "a\n\t\\\"'\0A\u00e9\U0001f600A"),
    ('"a\\\nb"', "ab"),
    ('r"a\\n"', "a\\n"),
    ('"a" "b" \'c\'', "abc"),
    ('("a"\n "b")', "ab"),
    ('"""a "quoted" word\nand more"""', 'a "quoted" word\nand more'),
    ("'''a'b'''", "a'b"),
    ('""""""', ""),
]


@pytest.mark.parametrize(("text", "expected"), PRECEDENCE + POSTFIX + ATOMS)
def test_expression(shape, text, expected):
    assert shape(text) == expected


@pytest.mark.parametrize(("text", "expected"), STRINGS)
def test_string(statement, text, expected):
    value = statement("x = " + text).value
    assert isinstance(value, ast.StringLiteral)
    assert value.value == expected


def test_a_carriage_return_in_a_long_string_is_read_as_written(statement):
    assert statement('x = """a\\\r\nb"""').value.value == "ab"


def test_transfer_and_xor_differ_only_by_what_follows(statement):
    assert isinstance(statement("x = a^").value, ast.Transfer)
    assert isinstance(statement("x = a^b").value, ast.Binary)
    assert isinstance(statement("x = a ^ # comment").value, ast.Transfer)
