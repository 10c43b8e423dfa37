"""Every node covers exactly its text."""

from span_rules import check_spans, walk

from ptxdsl.source import Source
from ptxdsl.syntax import ast
from ptxdsl.syntax.parse import parse, read_source


def test_spans_in_every_kernel_file(kernel_file):
    tree = parse(read_source(kernel_file))
    check_spans(tree)
    assert any(isinstance(s, ast.FunctionDef) and s.name.startswith("kernel") for s in tree.body)


def test_span_texts():
    text = """\
@kernel(threads=32)
def f[n: Int](mut a: T, b: U = 3) -> V:
    var x: Int = (a + b) * -(c)
    x.y[i, k=2] = f((1), *z) if (p) else q^
    for i, j in (1, 2): pass
    while not (a < (b)):
        g()
    return (a, b)  # comment
"""
    tree = parse(Source("test.pdsl", text))
    found = {node.span.text for node in walk(tree)}
    expected = [
        "@kernel(threads=32)", "threads=32", "n: Int", "mut a: T", "b: U = 3", "V", "var x: Int = (a + b) * -(c)",
        "(a + b) * -(c)", "a + b", "-(c)", "c", "x.y[i, k=2]", "x.y", "k=2", "f((1), *z)", "(1)", "1", "*z",
        "f((1), *z) if (p) else q^", "q^", "i, j", "(1, 2)", "pass", "for i, j in (1, 2): pass", "not (a < (b))",
        "a < (b)", "while not (a < (b)):\n        g()", "return (a, b)", "(a, b)",
    ]  # fmt: skip
    assert [text for text in expected if text not in found] == []
    (function,) = tree.body
    assert function.span.text == text[text.index("def") : text.index("  # comment")]
    check_spans(tree)
