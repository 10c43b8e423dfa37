"""The parsing loop over Lark's LALR(1) tables.

Lark's own loop hashes a rule object at each reduction and gives up at the first error. This one turns a state's row
into plain integers and tuples when the state is first seen, skips the reductions that build nothing, and after an error
its stack can be cut back to a place where parsing goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import intern
from typing import Any

from lark import Lark, Token, Tree
from lark.parse_tree_builder import ParseTreeBuilder
from lark.parsers.lalr_analysis import Shift

END = "$END"

# What a state does with a symbol: an int shifts (or goes) to that state; a tuple reduces (size, origin,
# callback), where a callback of None leaves the one value as it is.
Reduction = tuple[int, str, Callable[[list[Any]], Any] | None]
Row = dict[str, Any]


class Tables(dict[int, Row]):
    """The rows of the parse table by state, made on first use, with callbacks bound to a builder's methods.

    Without a builder every rule makes a Lark tree.
    """

    def __init__(self, lark: Lark, builder: object | None) -> None:
        super().__init__()
        table = lark.parser.parser._parse_table
        self._states: dict[int, dict[str, tuple[Any, Any]]] = table.states
        self.start: int = table.start_states["module"]
        self.end: int = table.end_states["module"]
        rule_builder = ParseTreeBuilder(lark.rules, Tree, maybe_placeholders=True)  # type: ignore[no-untyped-call]
        self._reductions: dict[int, Reduction] = {}
        self._callbacks = rule_builder.create_callback(builder)  # type: ignore[no-untyped-call]

    def __missing__(self, state: int) -> Row:
        row: Row = {}
        for symbol, (action, argument) in self._states[state].items():
            # Lark's names are tokens of its grammar's text: slow to compare.
            row[intern(str(symbol))] = argument if action is Shift else self._reduction(argument)
        self[state] = row
        return row

    def _reduction(self, rule: Any) -> Reduction:
        known = self._reductions.get(id(rule))
        if known is None:
            size = len(rule.expansion)
            inlined = size == 1 and rule.expansion[0].name.startswith("_")
            passes = size == 1 and rule.options.expand1 and not rule.alias and not inlined
            known = (size, intern(str(rule.origin.name)), None if passes else self._callbacks[rule])
            self._reductions[id(rule)] = known
        return known


class Machine:
    """One parse: the stacks of states and values."""

    def __init__(self, tables: Tables) -> None:
        self._rows = tables
        self._end = tables.end
        self.states = [tables.start]
        self.values: list[Any] = []

    def run(self, tokens: Sequence[Token], index: int) -> int:
        """Feeds tokens from ``index`` on; gives the index of the first that does not fit, or ``len(tokens)``.

        The last token is the end of the text; when it fits, ``values[-1]`` is the result.
        """
        rows, states, values, end = self._rows, self.states, self.values, self._end
        count = len(tokens)
        while index < count:
            token = tokens[index]
            kind = token.type
            while True:
                action = rows[states[-1]].get(kind)
                if action.__class__ is int:
                    states.append(action)
                    values.append(token)
                    break
                if action is None:
                    return index
                size, origin, callback = action
                if callback is None:
                    states[-1] = rows[states[-2]][origin]
                    continue
                if size:
                    children = values[-size:]
                    del states[-size:], values[-size:]
                else:
                    children = []
                values.append(callback(children))
                states.append(rows[states[-1]][origin])
                if kind == END and states[-1] == end:
                    return count
            index += 1
        return index

    def accepts(self, kind: str, depth: int | None = None) -> bool:
        """Would a token of this kind fit now, or with the stack cut to ``depth`` states? Runs no callback."""
        states = self.states[:depth]
        while True:
            action = self._rows[states[-1]].get(kind)
            if action is None:
                return False
            if isinstance(action, int):
                return True
            size, origin, _ = action
            if size:
                del states[-size:]
            states.append(self._rows[states[-1]][origin])
            if kind == END and states[-1] == self._end:
                return True

    def expected(self) -> set[str]:
        """The kinds of token that would fit now."""
        return {kind for kind in self._rows[self.states[-1]] if kind.isupper() and self.accepts(kind)}

    def cut_back(self, *kinds: str) -> None:
        """Drops states and values until a token of each of these kinds would fit."""
        depth = len(self.states)
        while depth > 1 and not all(self.accepts(kind, depth) for kind in kinds):
            depth -= 1
        del self.states[depth:], self.values[depth - 1 :]
