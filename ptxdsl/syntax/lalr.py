"""The parsing loop over the LALR(1) tables.

Lark's own loop hashes a rule object at each reduction and gives up at the first error. This one turns a state's row
into plain integers and tuples when the state is first seen, skips the reductions that build nothing, and after an error
its stack can be cut back to a place where parsing goes on.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence

from ptxdsl.hints import Any
from ptxdsl.syntax.tables import ParseTables, RuleRow
from ptxdsl.syntax.token import Token

END = "$END"

Callback = Callable[[list[Any]], Any]

# What a state does with a symbol: an int shifts (or goes) to that state; a tuple reduces (size, origin,
# callback), where a callback of None leaves the one value as it is.
Reduction = tuple[int, str, Callback | None]
Row = dict[str, Any]


class Actions(dict[int, Row]):
    """The rows of the tables by state, made on first use. ``callback(name)`` is what takes a rule's children."""

    def __init__(self, tables: ParseTables, callback: Callable[[str], Callback]) -> None:
        super().__init__()
        self.start = tables.start
        self.end = tables.end
        self._states = tables.states
        self._symbols = tables.symbols
        # What the numbers of actions mean, by index: reductions count from -1 down.
        reductions = [_reduction(rule, callback) for rule in tables.rules]
        self._meanings = [*range(len(tables.states)), *reversed(reductions)]

    def __missing__(self, state: int) -> Row:
        flat = marshal.loads(self._states[state])
        symbols, meanings = map(self._symbols.__getitem__, flat[::2]), map(self._meanings.__getitem__, flat[1::2])
        row = self[state] = dict(zip(symbols, meanings, strict=True))
        return row


def _reduction(rule: RuleRow, callback: Callable[[str], Callback]) -> Reduction:
    if rule.passes_single and rule.size == 1 and rule.arrangement is None:
        return rule.size, rule.origin, None
    act: Callback = _keep if rule.inlined else callback(rule.callback)
    if rule.passes_single:
        act = _pass_single(act)
    if rule.arrangement is not None or rule.trailing:
        act = _arranged(rule, act)
    return rule.size, rule.origin, act


def _keep(children: list[Any]) -> list[Any]:
    return children


def _pass_single(act: Callback) -> Callback:
    return lambda children: children[0] if len(children) == 1 else act(children)


def _arranged(rule: RuleRow, act: Callback) -> Callback:
    places = rule.arrangement or ()
    trailing = [None] * rule.trailing

    def arrange(children: list[Any]) -> Any:
        arranged: list[Any] = []
        for (nones, spread), child in zip(places, children, strict=True):
            if nones:
                arranged += [None] * nones
            if not spread:
                arranged.append(child)
            elif arranged:
                arranged += child
            else:
                arranged = child  # a long list grows in place
        return act(arranged + trailing if trailing else arranged)

    return arrange


class Machine:
    """One parse: the stacks of states and values."""

    def __init__(self, actions: Actions) -> None:
        self._rows = actions
        self._end = actions.end
        self.states = [actions.start]
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
