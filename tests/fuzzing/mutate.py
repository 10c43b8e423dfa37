# ruff: noqa: E501  (programs are data)
"""Mutations of programs: of their tokens, lines and characters, and of their syntax trees."""

from __future__ import annotations

import random
import re

from cases import ARCHS, Case, Corpus

from ptxdsl.diagnostics import CompileError
from ptxdsl.source import Source
from ptxdsl.syntax import ast
from ptxdsl.syntax.limits import children
from ptxdsl.syntax.parse import parse

TOKEN = re.compile(
    r"\n[ \t]*|[ \t]+|#[^\n]*|\"\"\"[\s\S]*?\"\"\"|\"[^\"\n]*\"|[A-Za-z_]\w*|\d[\w.]*|\*\*=?|//=?|<<=?|>>=?|->|[-+*/%&|^=<>!]=?|."
)

NUMBERS = (
    "0", "1", "2", "3", "7", "31", "32", "64", "255", "256", "1000", "4096", "65536", "2147483647", "2147483648", "4294967295",
    "9223372036854775807", "18446744073709551615", "18446744073709551616", "-1", "0x7fff_ffff", "1e400", "1.5", "0.0",
    "1e-320", "2**100", "2**100000", "9" * 400, "1_000", "0b11", "0o17", "1e9", "5e-324",
)  # fmt: skip
TOKENS = (
    *"()[]{}:;,.=+-*/%&|^~<>@!?$\\'\"`", "def", "struct", "comptime", "if", "else", "elif", "for", "in", "range", "while",
    "break", "continue", "return", "pass", "var", "mut", "out", "self", "Self", "None", "True", "False", "import", "from",
    "and", "or", "not", "is", "==", "!=", "<=", ">=", "<<", ">>", "//", "**", "->", "...", "_", "*args", "**kw", "raises",
    "where", "fn", "let", "alias", "class", "@kernel", "@staticmethod", "@always_inline", "@builtin", "@implicit", "assert",
    "Int", "Int32", "UInt8", "Float32", "Float64", "Float16", "BFloat16", "Bool", "SIMD", "SIMD[DType.float32, 4]", "Array",
    "Array[Int32, 3]", "Pointer", "Pointer[Int32]", "Pointer[Float32, MutAnyOrigin]", "Scalar", "DType", "DType.int8",
    "Tuple", "StaticString", "AnyType", "AddressSpace", ".SHARED", "MutAnyOrigin", "TensorMap", "RolePipeline",
    "RolePipeline[3, True]", "SharedMemBarrier", "barrier()", "thread_idx.x", "block_idx", "lane_id()", "print", "min", "max",
    "abs", "fma", "len", "bitcast", "rebind", "size_of", "swap", "inlined_assembly", "debug_assert", "unsafe_stack_allocation",
    "stack_allocation", "external_memory", "shuffle_down", "warp_sum", "Atomic", "fetch_add", "exp", "sqrt", "pow", "tcgen05",
    "n", "p", "i", "x", "kernel", ".cast[DType.int8]()", ".step()", ".wait()", ".commit()", ".release()", ".acquire()",
    "\n", "\n    ", "\n        ", "\n\t", "    ", "\r", "\0", "\u00e9", "\u2212", "\u00a0", "#", '"', '"""', "(((", ")))", "[[[", "]]]",
)  # fmt: skip


class Mutator:
    """Programs made of the corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._tokens: list[str] = []
        self._expressions: dict[str, list[str]] = {}  # by the file's name
        for _, text in corpus.files:
            self._tokens += [
                t for t in TOKEN.findall(text) if not t.isspace() and not t.startswith("#") and len(t) < 80
            ]

    # ------------------------------------------------------------------------------------------------------- origins

    def tokens(self, rng: random.Random) -> Case:
        name, text = self.corpus.choose(rng)
        return self._case(rng, "tokens", name, self.mutate_tokens(rng, text))

    def mutate_tokens(self, rng: random.Random, text: str, count: int | None = None) -> str:
        tokens = TOKEN.findall(text)
        for _ in range(count or rng.choice((1, 1, 2, 3, 6, 20))):
            self._mutate_token(rng, tokens)
        return "".join(tokens)

    def tree(self, rng: random.Random) -> Case:
        name, text = self.corpus.choose(rng)
        return self._case(rng, "tree", name, self.mutate_tree(rng, text))

    def lines(self, rng: random.Random) -> Case:
        name, text = self.corpus.choose(rng)
        lines = text.split("\n")
        for _ in range(rng.choice((1, 1, 2, 4))):
            self._mutate_lines(rng, lines)
        return self._case(rng, "lines", name, "\n".join(lines))

    def bytes(self, rng: random.Random) -> Case:
        """Random bytes, or a program with some of its bytes changed."""
        name, text = self.corpus.choose(rng)
        data = bytearray(text.encode())
        kind = rng.randrange(5)
        if kind == 0:
            data = bytearray(rng.randbytes(rng.choice((0, 1, 10, 1000))))
        elif kind == 1:
            data = bytearray(rng.choice(b"()[]{}:\n \t.,@=+-*\"'#\\01abc\0\xff") for _ in range(rng.randrange(400)))
        else:
            for _ in range(rng.choice((1, 2, 10))):
                at = rng.randrange(len(data) + 1)
                data[at : at + rng.choice((0, 1, 2))] = rng.randbytes(rng.choice((0, 1, 3)))
        if rng.random() < 0.1:
            data = bytearray(rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\0"))) + data
        return Case("bytes", bytes(data), name, arch=rng.choice(ARCHS))

    def _case(self, rng: random.Random, origin: str, name: str, text: str) -> Case:
        constants = {}
        if rng.random() < 0.05:
            key = rng.choice(("STAGES", "TILE", "LAG", "n", "x", "N"))
            constants[key] = rng.choice((*NUMBERS, *TOKENS, "DType.float32", "1 if True else 2"))
        arch = re.search(r"--arch (sm_\w+)|(?<=__)(sm_\w+)(?=\.mojo)", text + name)
        chosen = (arch[1] or arch[2]) if arch and rng.random() < 0.7 else rng.choice(ARCHS)
        # a library file has no kernel: one that uses it in full is as good as the file itself
        return Case(
            origin, text.encode("utf-8", "surrogatepass"), name, None, constants, chosen,
            rng.choice(("try", "probe")), rng.random() < 0.1,
        )  # fmt: skip

    # -------------------------------------------------------------------------------------------------------- tokens

    def _mutate_token(self, rng: random.Random, tokens: list[str]) -> None:
        if not tokens:
            return
        at = rng.randrange(len(tokens))
        if tokens[at].isspace() and rng.random() < 0.7:
            at = (at + 1) % len(tokens)
        kind = rng.randrange(9)
        if kind == 0:
            del tokens[at]
        elif kind == 1:
            tokens.insert(at, tokens[rng.randrange(len(tokens))])
        elif kind == 2:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 3:
            tokens[at] = rng.choice(TOKENS)
        elif kind == 4:
            tokens.insert(at, rng.choice(TOKENS))
        elif kind == 5:
            tokens[at] = rng.choice(self._tokens)
        elif kind == 6:
            numbers = [i for i, t in enumerate(tokens) if t[0].isdigit()]
            if numbers:
                tokens[rng.choice(numbers)] = rng.choice(NUMBERS)
        elif kind == 7:
            old, new = tokens[at], rng.choice((rng.choice(self._tokens), rng.choice(tokens), rng.choice(TOKENS)))
            if old.isidentifier():
                tokens[:] = [new if t == old else t for t in tokens]
        else:
            end = min(len(tokens), at + rng.randrange(12))
            del tokens[at:end]

    def _mutate_lines(self, rng: random.Random, lines: list[str]) -> None:
        at = rng.randrange(len(lines))
        kind = rng.randrange(6)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 2:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            _, text = self.corpus.choose(rng)
            foreign = text.split("\n")
            start = rng.randrange(len(foreign))
            lines[at:at] = foreign[start : start + rng.choice((1, 2, 8))]
        elif kind == 4:
            lines[at] = (
                rng.choice(("    ", "  ", "\t", "")) + lines[at].lstrip(" ")
                if rng.random() < 0.5
                else "    " + lines[at]
            )
        else:
            del lines[at : at + rng.randrange(1, 10)]
            if not lines:
                lines.append("")

    # ---------------------------------------------------------------------------------------------------------- tree

    def mutate_tree(self, rng: random.Random, text: str) -> str:
        """Expressions and statements exchanged, dropped, repeated or wrapped, at the spans of the syntax tree."""
        for _ in range(rng.choice((1, 1, 2, 3))):
            try:
                module = parse(Source("fuzz", text))
            except CompileError:
                return text
            expressions, statements = _expressions(module), _statements(module)
            if rng.random() < 0.7 and expressions:
                text = self._expression(rng, text, expressions)
            elif statements:
                text = self._statement(rng, text, statements)
        return text

    def _expression(self, rng: random.Random, text: str, nodes: list[ast.Expr]) -> str:
        node = rng.choice(nodes)
        old = node.span.text
        kind = rng.randrange(5)
        if kind < 2:
            new = rng.choice(nodes).span.text
        elif kind == 2:
            new = self._foreign(rng)
        elif kind == 3:
            new = rng.choice(WRAPPERS).replace("$", old)
        else:
            new = rng.choice((*NUMBERS, *TOKENS))
        return text[: node.span.start] + new + text[node.span.end :]

    def _foreign(self, rng: random.Random) -> str:
        """An expression of any file."""
        name, text = self.corpus.choose(rng)
        if name not in self._expressions:
            try:
                nodes = _expressions(parse(Source(name, text)))
            except CompileError:
                nodes = []
            self._expressions[name] = [node.span.text for node in nodes] or ["0"]
        return rng.choice(self._expressions[name])

    def _statement(self, rng: random.Random, text: str, nodes: list[ast.Stmt]) -> str:
        node, other = rng.choice(nodes), rng.choice(nodes)
        kind = rng.randrange(5)
        indent = _indent(text, node)
        if kind == 0:
            new = "pass"
        elif kind == 1:
            new = other.span.text.replace("\n" + _indent(text, other), "\n" + indent)
        elif kind == 2:
            new = node.span.text + "\n" + indent + node.span.text
        elif kind == 3:
            head = rng.choice(
                ("if n > 0:", "for i in range(n):", "comptime for i in range(3):", "while n < 5:", "comptime if True:")
            )
            new = head + "\n    " + indent + node.span.text.replace("\n", "\n    ")
        else:
            new = (
                node.span.text
                + "\n"
                + indent
                + rng.choice(("return", "break", "continue", "pass", "barrier()", "var x = 0"))
            )
        return text[: node.span.start] + new + text[node.span.end :]


WRAPPERS = (
    "($)", "-$", "~$", "not $", "($, $)", "[$]", "$ + $", "$ // 0", "$ % $", "$ if $ else $", "$()", "$[]", "$[0]", "$.x", "$^",
    "Int32($)", "Float32($)", "Bool($)", "$.cast[DType.float16]()", "Array[Int32, 2](fill=$)", "SIMD[DType.int32, 4]($)",
    "print($)", "len($)", "min($, $)", "$ ** 2", "$ << 3", "$ == $", "$ and $", "*$", "x=$", "bitcast[DType.int32]($)",
    "size_of[$]()", "Pointer(to=$)", "$ is None", "1 < $ < 3", "rebind[Int]($)", "abs($)", "Scalar[$]", "(($))", "$[unsafe_offset=$]",
)  # fmt: skip


def _nodes(module: ast.Module) -> list[ast.Node]:
    found: list[ast.Node] = []
    stack: list[ast.Node] = [module]
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(children(node))
    return found


def _expressions(module: ast.Module) -> list[ast.Expr]:
    return [n for n in _nodes(module) if isinstance(n, ast.Expr) and n.span.end > n.span.start]


def _statements(module: ast.Module) -> list[ast.Stmt]:
    return [n for n in _nodes(module) if isinstance(n, ast.Stmt) and n.span.end > n.span.start]


def _indent(text: str, node: ast.Node) -> str:
    start = text.rfind("\n", 0, node.span.start) + 1
    line = text[start : node.span.start]
    return line[: len(line) - len(line.lstrip())]
