"""What must hold of the spans in any tree."""

from ptxdsl.syntax import ast
from ptxdsl.syntax.limits import children


def walk(node):
    yield node
    for child in children(node):
        yield from walk(child)


def check_spans(tree: ast.Module) -> None:
    """Spans lie in the text, children in their parents, and neither begins nor ends with white space."""
    size = len(tree.source.text)
    for node in walk(tree):
        assert 0 <= node.span.start <= node.span.end <= size, node
        if isinstance(node, ast.Name):
            assert node.span.text == node.id
        if isinstance(node, ast.Attribute):
            assert node.name_span.text == node.name
        if isinstance(node, (ast.FunctionDef, ast.StructDef, ast.ComptimeDecl)):
            assert node.name_span.text == node.name
        if node is not tree:
            assert node.span.text and node.span.text == node.span.text.strip(), node
        for child in children(node):
            inside = node.span.start <= child.span.start and child.span.end <= node.span.end
            assert inside or isinstance(child, ast.Decorator), (node, child)
