"""Statements and blocks."""

import pytest

from ptxdsl.syntax import ast


def test_var(statement, written):
    node = statement("var a: Pointer[Float32, MutAnyOrigin, address_space=AddressSpace.SHARED] = b")
    assert written(node.target) == "a"
    assert written(node.type) == "(at Pointer Float32 MutAnyOrigin address_space=AddressSpace.SHARED)"
    assert written(node.value) == "b"


@pytest.mark.parametrize(
    ("text", "target", "type_", "value"),
    [
        ("var a = 1", "a", "_", "1"),
        ("var a: Int", "a", "Int", "_"),
        ("var a, b = f()", "(tuple a b)", "_", "(call f)"),
        ("var (a, b) = f()", "(tuple a b)", "_", "(call f)"),
        ("var a, (b, c), = f()", "(tuple a (tuple b c))", "_", "(call f)"),
        ("var (a) = f()", "a", "_", "(call f)"),
        ("var a, b: Int = 1, 2", "(tuple a b)", "Int", "(tuple 1 2)"),
        ("var out = 1", "out", "_", "1"),
        ("var mut, where = 1, 2", "(tuple mut where)", "_", "(tuple 1 2)"),
    ],
)
def test_var_forms(statement, written, text, target, type_, value):
    node = statement(text)
    assert isinstance(node, ast.VarDecl)
    assert (written(node.target), written(node.type), written(node.value)) == (target, type_, value)


def test_ref(statement, written):
    node = statement("ref a = b[3].c")
    assert isinstance(node, ast.RefDecl)
    assert (written(node.name), written(node.value)) == ("a", written(statement("b[3].c").value))
    assert isinstance(statement("ref = 3"), ast.Assign)  # a name like any other


@pytest.mark.parametrize(
    ("text", "target", "value"),
    [
        ("a = b", "a", "b"),
        ("a.b.c = d", "a.b.c", "d"),
        ("p[unsafe_offset=i] = 1 if k else 0", "(at p unsafe_offset=i)", "(if k 1 0)"),
        ("p[] = v", "(at p)", "v"),
        ("a, b.c = b.c, a", "(tuple a b.c)", "(tuple b.c a)"),
        ("(a, b) = c", "(tuple a b)", "c"),
        ("_ = f()", "_", "(call f)"),
    ],
)
def test_assignment(statement, written, text, target, value):
    node = statement(text)
    assert isinstance(node, ast.Assign)
    assert (written(node.target), written(node.value)) == (target, value)


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "//", "%", "**", "@", "<<", ">>", "&", "|", "^"])
def test_augmented_assignment(statement, written, op):
    node = statement(f"a[i] {op}= b, c")
    assert isinstance(node, ast.AugAssign)
    assert (written(node.target), node.op, written(node.value)) == ("(at a i)", op, "(tuple b c)")


def test_if_elif_else(statement, written):
    node = statement("if a:\n    f\nelif b:\n    g\nelse:\n    h\n")
    assert written(node.test) == "a" and not node.comptime
    (inner,) = node.orelse
    assert isinstance(inner, ast.If) and written(inner.test) == "b"
    assert [written(s.value) for s in (*node.then, *inner.then, *inner.orelse)] == ["f", "g", "h"]


def test_comptime_if_marks_its_elifs_too(statement):
    node = statement("comptime if a:\n    f\nelif b:\n    g\n")
    assert node.comptime and node.orelse[0].comptime


def test_while_else(statement):
    node = statement("while a < b:\n    break\nelse:\n    continue\n")
    assert isinstance(node.body[0], ast.Break) and isinstance(node.orelse[0], ast.Continue)


def test_for(statement, written):
    node = statement("for i in range(n):\n    pass\nelse:\n    pass\n")
    assert written(node.target) == "i" and written(node.iter) == "(call range n)"
    assert isinstance(node.orelse[0], ast.Pass) and not node.comptime


def test_for_targets(statement, written):
    assert written(statement("for a, b in c: pass").target) == "(tuple a b)"
    assert written(statement("for a, in c: pass").target) == "(tuple a)"
    assert written(statement("for _ in c, d: pass").iter) == "(tuple c d)"
    assert written(statement("for a, (b, c) in d: pass").target) == "(tuple a (tuple b c))"


@pytest.mark.parametrize(
    ("text", "binding", "target"),
    [
        ("for a in b: pass", "read", "a"),
        ("for ref a in b: pass", "ref", "a"),
        ("for var a, c in b: pass", "var", "(tuple a c)"),
        ("for ref in b: pass", "read", "ref"),
    ],
)
def test_for_bindings(statement, written, text, binding, target):
    node = statement(text)
    assert (node.binding, written(node.target)) == (binding, target)


def test_comptime_for_and_assert_and_declaration(module, written):
    loop, check, plain, with_params = module(
        'comptime for i in range(3):\n    f(i)\ncomptime assert n > 0, "message"\n'
        "comptime N: Int = 3\ncomptime Ring[n: Int] = RolePipeline[n, True]\n"
    ).body
    assert loop.comptime
    assert written(check.test) == "(n > 0)" and written(check.message) == "'message'"
    assert (plain.name, written(plain.type), written(plain.value)) == ("N", "Int", "3")
    assert [p.name for p in with_params.params] == ["n"]
    several = module("comptime A, B = 1, f(2)\n").body
    assert [(d.name, written(d.value)) for d in several] == [("A", "1"), ("B", "(call f 2)")]


def test_return(module, written):
    values = [s.value for s in module("return\nreturn a\nreturn a, b\n").body]
    assert [written(v) for v in values] == ["_", "a", "(tuple a b)"]


def test_statements_on_one_line(module):
    kinds = [type(s).__name__ for s in module("a = 1; b += 2; pass;\nif a: f(); g()\n").body]
    assert kinds == ["Assign", "AugAssign", "Pass", "If"]
    assert len(module("if a: f(); g()").body[0].then) == 2


@pytest.mark.parametrize(
    ("text", "module_", "level", "imported", "alias"),
    [
        ("from a.b import c", "a.b", 0, [("c", None)], None),
        ("from a import b as c, d", "a", 0, [("b", "c"), ("d", None)], None),
        ("from a import (\n    b,\n    c as d,\n)", "a", 0, [("b", None), ("c", "d")], None),
        ("from a import *", "a", 0, None, None),
        ("from . import b", "", 1, [("b", None)], None),
        ("from ...a.b import c", "a.b", 3, [("c", None)], None),
        ("from ....a import c", "a", 4, [("c", None)], None),
        ("import a.b", "a.b", 0, [], None),
        ("import a.b as c", "a.b", 0, [], "c"),
    ],
)
def test_import(statement, text, module_, level, imported, alias):
    node = statement(text)
    assert isinstance(node, ast.Import)
    assert (node.module, node.level, node.alias) == (module_, level, alias)
    assert (None if node.names is None else [(n.name, n.alias) for n in node.names]) == imported
    assert node.module_span.text == "." * level + module_


def test_docstring_of_a_module(module):
    tree = module('"""What it is."""\nx = 1\n')
    assert tree.docstring == "What it is." and len(tree.body) == 1


@pytest.mark.parametrize("text", ["", "\n", "  ", "# comment", "\n# a\n\n   # b\n", "\\\n"])
def test_empty_module(module, text):
    assert module(text).body == ()
