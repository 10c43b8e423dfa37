"""Many mistakes in one run: each is reported once, and none hides the next."""

from ptxdsl.diagnostics import DiagnosticSink
from ptxdsl.source import Source
from ptxdsl.syntax.parse import parse


def places(found):
    return [(p.code, p.span.line, p.span.column) for p in found]


def test_every_line_with_a_mistake_is_reported(problems):
    text = """\
fn f(x: Int) -> Int:
    let y = 3 +
    if y = 3:
        g(y
        return )
    else:
        var while = 3
    return y

def g(a b):
    x: Int = 3

class A:
    var z: Int = * 2
"""
    assert places(problems(text)) == [
        ("E0114", 1, 1),
        ("E0114", 2, 5),
        ("E0110", 2, 16),
        ("E0112", 3, 10),
        ("E0111", 4, 10),
        ("E0111", 5, 16),
        ("E0115", 7, 13),
        ("E0110", 10, 9),
        ("E0116", 11, 5),
        ("E0113", 13, 1),
        ("E0110", 14, 18),
    ]


def test_a_struct_of_older_mojo(problems):
    """Each old word is told, and what follows in the same header and struct is read as if it were the new one."""
    text = """\
struct Pair:
    var x: Int32
    fn __init__(inout self, owned x: Int32, borrowed y: Int32 = 3):
        self.x = x +
    def f(self x: Int32):
        pass
    def __del__(owned self):
        pass
"""
    assert places(problems(text)) == [
        ("E0114", 3, 5),
        ("E0114", 3, 17),
        ("E0114", 3, 29),
        ("E0114", 3, 45),
        ("E0110", 4, 21),
        ("E0110", 5, 16),
        ("E0114", 7, 17),
    ]


def test_a_method_whose_header_is_wrong_is_no_statement_of_its_struct(problems):
    for kind in ("struct", "trait"):
        found = problems(f"{kind} S:\n    def f(self x: T):\n        pass\n    def g(a b): pass\n    x = 3\n")
        assert places(found) == [("E0110", 2, 16), ("E0110", 4, 13), ("E0122", 5, 5)]


def test_the_names_of_old_conventions_are_names(problems):
    assert problems("def f(owned: Int, inout: Int, borrowed): pass\n") == []
    assert places(problems("def f(owned owned: Int): pass\n")) == [("E0114", 1, 7)]


def test_a_statement_keyword_at_the_start_of_a_line_closes_brackets(problems):
    for line in ("var x = 3", "def g(): pass", "struct S: pass", "return", "if a:\n        b", "for i in a:\n        b",
                 "while a: b", "comptime N = 3", "from a import b", "pass", "@kernel\n    def g(): pass"):  # fmt: skip
        found = problems(f"def f():\n    f(a,\n    {line}\n    x = )\n")
        assert places(found)[0] == ("E0111", 2, 6), line
        assert places(found)[-1][1] == 3 + line.count("\n") + 1, line
        assert len(found) == 2, line


def test_conditional_expressions_in_brackets_do_not_close_them(problems):
    assert problems("x = f(\n    a\n    if b\n    else c,\n    def(Int) -> Int,\n)\n") == []


def test_mistakes_in_a_block_under_a_broken_line(problems):
    assert places(problems("while a = b:\n    x = )\nelse:\n    y = )\nz = )\n")) == [
        ("E0112", 1, 9),
        ("E0111", 2, 9),
        ("E0111", 4, 9),
        ("E0111", 5, 5),
    ]


def test_clauses_of_a_dropped_statement_are_not_reported(problems):
    assert len(problems("if a = b: x\nelif c: y\nelse: z\n")) == 1


def test_lexical_and_syntax_mistakes_come_in_the_order_of_the_text(problems):
    assert places(problems("a = )\nb = 'x\nc = )\nd = 0777\n")) == [
        ("E0111", 1, 5),
        ("E0104", 2, 5),
        ("E0111", 3, 5),
        ("E0105", 4, 5),
    ]


def test_there_is_an_end_to_it(problems):
    assert len(problems("x = )\n" * 1000)) == 50


def test_with_a_sink_the_rest_of_the_tree_is_given():
    sink = DiagnosticSink()
    tree = parse(Source("test.pdsl", "def f(): pass\nx = )\ndef g(): pass\n"), sink)
    assert [type(s).__name__ for s in tree.body] == ["FunctionDef", "Pass", "FunctionDef"]
    assert places(sink.items) == [("E0111", 2, 5)]


def test_a_parse_leaves_nothing_behind_for_the_next(problems, module):
    assert problems("f((((")
    assert len(module("x = (a)\n").body) == 1
