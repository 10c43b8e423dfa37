"""Unrolled loops that may be left behind each copy: one copy a turn again, chosen by its position.

    loop: copy 0; if S * turn + 1 >= n: leave                      at = 0, i = 0
          …                                                  →     loop: copy at; if i + 1 >= n: leave
          copy S-1; if S * turn + S >= n: leave; turn += 1               i += 1, at = (at + 1) % S

What is asked must be the same each time, in terms of the number of the copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.protocol.algebra import plain, substitute
from ptxdsl.protocol.expressions import Expr, const, var
from ptxdsl.protocol.model import Assign, Branch, Jump, Loop, Node, Seq, walk
from ptxdsl.protocol.rewriting import assigned
from ptxdsl.protocol.turn_numbers import TurnNumbers
from ptxdsl.record import dataclass, replace


@dataclass(frozen=True)
class _Chain:
    """copies, with the condition behind each under which the loop is left; again: what the last one assigns."""

    copies: tuple[tuple[Node, ...], ...]
    leaves: tuple[Expr, ...]
    again: Assign


def by_copies(loop: Loop, turns: frozenset[int], index: int, at: int) -> list[Node] | None:
    """The loop with one copy a turn; None where it is no such loop. index, at: variables: of the copy's number, of its
    position among those of a turn."""
    chain = _chain_of(loop)
    if chain is None or len(chain.copies) < 2:
        return None
    found = [target for target in chain.again.targets if target in turns]
    if len(found) != 1 or _value(chain.again, found[0]) is not plain("add", var(found[0]), const(1)):
        return None
    (turn,) = found
    stages, number, position = len(chain.copies), var(index), var(at)

    def numbers(k: int) -> TurnNumbers:
        return TurnNumbers(turn, stages, plain("add", number, const(-k)))

    asked = {substitute(leave, numbers(k).of, {}) for k, leave in enumerate(chain.leaves)}
    if len(asked) != 1:
        return None
    (leaves,) = asked
    if turn in leaves.variables or leaves.variables & assigned(loop):
        return None
    *before, chosen = [Seq(tuple(numbers(k).put_in(copy))) for k, copy in enumerate(chain.copies)]
    for k, copy in reversed(list(enumerate(before))):
        chosen = Seq((Branch(plain("eq", position, const(k), bits=1), copy, chosen, loop.span),))
    ends = plain("eq", position, const(stages - 1), bits=1)
    values = {
        index: plain("add", number, const(1)),
        at: plain("select", ends, const(0), plain("add", position, const(1))),
    }
    last = numbers(stages - 1)
    for target, value in zip(chain.again.targets, chain.again.values, strict=True):
        if target != turn:
            new = substitute(value, last.of, last.known)
            values[target] = plain("select", ends, new, var(target, value.bits), bits=value.bits)
    goes_on = Seq((Assign(tuple(values), tuple(values.values())),))
    end = Branch(leaves, Seq((Jump(loop.label, False),)), goes_on, loop.span)
    body = Seq((*chosen.nodes, end))
    return [Assign((index, at), (const(0), const(0))), replace(loop, body=body)]


def _value(assign: Assign, target: int) -> Expr:
    return assign.values[assign.targets.index(target)]


def _chain_of(loop: Loop) -> _Chain | None:
    if loop.range is not None or loop.once:
        return None
    leave = (Jump(loop.label, False),)
    copies: list[tuple[Node, ...]] = []
    leaves: list[Expr] = []
    nodes: Sequence[Node] = loop.body.nodes
    while nodes and isinstance(end := nodes[-1], Branch):
        copies.append(tuple(nodes[:-1]))
        if end.then.nodes == leave:
            leaves.append(end.condition)
            nodes = end.orelse.nodes
        elif end.orelse.nodes == leave:
            leaves.append(plain("not", end.condition, bits=1))
            nodes = end.then.nodes
        else:
            return None
    if len(nodes) != 1 or not isinstance(again := nodes[0], Assign):
        return None
    jumps = sum(isinstance(node, Jump) and node.label == loop.label for node in walk(loop.body))
    return _Chain(tuple(copies), tuple(leaves), again) if jumps == len(leaves) else None
