"""One parse from text to module, with recovery: every error of a text in one run."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from functools import lru_cache, partial

from ptxdsl.diagnostics import MOST_PROBLEMS, CompileError, Diagnostic
from ptxdsl.hints import Any
from ptxdsl.source import Source, Span
from ptxdsl.syntax import ast
from ptxdsl.syntax.build import Builder
from ptxdsl.syntax.lalr import END, Actions, Machine
from ptxdsl.syntax.layout import LINE_ENDS, NAMES, Layout, lay_out
from ptxdsl.syntax.limits import too_deep
from ptxdsl.syntax.scan import ERROR, scan
from ptxdsl.syntax.tables import current_tables
from ptxdsl.syntax.token import Token

_lock = allocate_lock()  # the tables' callbacks are bound to one builder


@lru_cache(maxsize=1)
def _builder() -> tuple[Builder, Actions]:
    builder = Builder()
    return builder, Actions(current_tables(), partial(getattr, builder))


def run(source: Source) -> tuple[ast.Module, list[Diagnostic]]:
    """The module, and all problems in the order of the text. After errors the module is what could be parsed."""
    with _lock:
        problems: list[Diagnostic] = []
        builder, actions = _builder()
        builder.begin(source, problems)
        try:
            layout = lay_out(source, scan(current_tables(), source, problems), problems)
            module = _Parse(source, layout, actions, problems).run()
        except CompileError as failure:
            problems.extend(failure.diagnostics)
            module = ast.Module(Span(source, 0, len(source.text)), source, None, ())
        builder.begin(Source("", ""), [])
    problems.sort(key=lambda d: d.span.start if d.span else 0)
    return module, problems[:MOST_PROBLEMS]


def lark_tree(source: Source) -> Any:
    """The ``lark.Tree`` of a source without errors, with all tokens but the layout's."""
    from lark import Tree

    def branch(name: str) -> Callable[[list[Any]], Any]:
        return lambda children: Tree(name, [c for c in children if c is not None and not _is_layout(c)])

    layout = lay_out(source, scan(current_tables(), source, []), [])
    machine = Machine(Actions(current_tables(), branch))
    machine.run(layout.tokens, 0)
    return machine.values[-1]


def _is_layout(child: Any) -> bool:
    return isinstance(child, Token) and child.type in LINE_ENDS


class _Parse:
    def __init__(self, source: Source, layout: Layout, actions: Actions, problems: list[Diagnostic]) -> None:
        self.source = source
        self.layout = layout
        self.tokens = layout.tokens
        self.problems = problems
        self.machine = Machine(actions)

    def run(self) -> ast.Module:
        tokens, machine = self.tokens, self.machine
        index = machine.run(tokens, 0)
        while index < len(tokens):
            self._report(tokens[index], index)
            if not self._replaced(index):
                index = self._recover(index)
            index = machine.run(tokens, index)
        module = machine.values[-1]
        assert isinstance(module, ast.Module)
        elifs = sum(token.type == "ELIF" for token in tokens)
        problem = too_deep(module, self.layout.longest_line, self.layout.deepest_block, elifs)
        if problem is not None:
            raise CompileError(problem)
        return module

    def _report(self, token: Token, index: int) -> None:
        if token.type == ERROR or token.start in self.layout.odd_lines:
            return  # said already
        # What is known of mistakes is loaded where there is one.
        from ptxdsl.syntax.foreign import CONTINUATIONS
        from ptxdsl.syntax.mistakes import explain

        problem = explain(self.source, self.layout, index, self.machine)
        follows = problem.span is not None and problem.span.text in CONTINUATIONS
        if follows and any(known.message == problem.message for known in self.problems):
            return
        self.problems.append(problem)
        if len(self.problems) > 4 * MOST_PROBLEMS:
            raise CompileError(())

    def _replaced(self, index: int) -> bool:
        """Whether a word of another language, this one or the one before, has given its place to what it stands for."""
        from ptxdsl.syntax.foreign import CONVENTIONS, WORDS  # for mistakes only, as in ``_report``

        token, before = self.tokens[index], self.tokens[index - 1]
        if token.type == "RESERVED":
            stand_in = WORDS[token].stand_in
            if stand_in is not None and self.machine.accepts(stand_in):
                token.type = stand_in
                return True
        elif before in CONVENTIONS and token.type in NAMES:  # `inout self`: the machine has taken `inout` for a name
            stand_in = CONVENTIONS[before].stand_in
            assert stand_in is not None
            depth = len(self.machine.states)
            if self.machine.accepts(stand_in, depth - 1):
                self.machine.cut_back(stand_in)
                self.machine.run([Token(stand_in, "", before.start, before.start)], 0)
                return True
        return False

    def _recover(self, index: int) -> int:
        """Makes the machine ready to go on, and says from which token.

        What is wrong is dropped to the end of its line, and `pass` stands in its place. A block under the dropped line
        stays: it becomes the block of an `if True`, so that errors in it are found too.
        """
        tokens, machine = self.tokens, self.machine
        faulty = index
        if index > 0 and tokens[index - 1].type not in LINE_ENDS:
            index = self._next_line(index)
        while True:
            if tokens[index].type == "INDENT":
                self._stand_in(index, "IF", "TRUE", "COLON", "NEWLINE")
                return index
            self._stand_in(index, "PASS", "NEWLINE")
            kind = tokens[index].type
            if machine.accepts(kind) or (index != faulty and kind not in ("ELSE", "ELIF")):
                return index
            # The faulty token itself, or a clause of the statement that was dropped.
            index = self._next_line(index)

    def _next_line(self, index: int) -> int:
        tokens = self.tokens
        while tokens[index].type not in ("NEWLINE", END):
            index += 1
        return index + 1 if tokens[index].type == "NEWLINE" else index

    def _stand_in(self, index: int, *kinds: str) -> None:
        at = self.tokens[index].start
        self.machine.cut_back("PASS", kinds[0])
        fed = self.machine.run([Token(kind, "", at, at) for kind in kinds], 0)
        assert fed == len(kinds)
