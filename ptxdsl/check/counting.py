"""``while`` loops that count by a constant up or down to a bound, as ranges: ``while i < n: …; i += 1``.

The proof follows ranges better (``counters.py``): those of two roles that begin and end alike are counted together, and
what is decided of one is decided for one run of the loops around it.

Only the loop itself may change its counter, by as much on every way to the next turn; its condition comes first, the
bound does not change in it, and nobody looks at the counter behind it. Sums are taken not to wrap.
"""

from __future__ import annotations

from ptxdsl.check.accesses import only_accesses
from ptxdsl.check.turn_ends import once_a_turn
from ptxdsl.protocol.algebra import linear, of_linear, plain
from ptxdsl.protocol.expressions import Expr, const, nodes
from ptxdsl.protocol.model import Assign, Branch, Jump, Kernel, Loop, Node, Op, Range, Seq, expressions_of, walk
from ptxdsl.protocol.rewriting import assigned, mapped, replaced
from ptxdsl.record import dataclass, replace

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_NOT = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


def ranges_of(kernel: Kernel) -> Kernel:
    """The kernel with them so written."""
    loops = [node for node in kernel.nodes if isinstance(node, Loop)]
    fresh = max((loop.label for loop in loops), default=0)
    program = kernel.program
    for label in [loop.label for loop in loops if loop.range is None and not loop.once and _head(loop) is not None]:
        same = [node for node in walk(program) if isinstance(node, Loop) and node.label == label]
        found = _range(program, same[0], fresh + 1) if len(same) == 1 else None
        if found is not None:
            program, fresh = found, fresh + 1
    return kernel if program is kernel.program else replace(kernel, program=program)


@dataclass(frozen=True, slots=True)
class _Head:
    """``if condition: … else: leave``: the condition as ``op`` and its sides, and what is assigned on the way out."""

    op: str
    left: Expr
    right: Expr
    leaving: tuple[Node, ...]


def _range(program: Seq, loop: Loop, label: int) -> Seq | None:
    """The program with the loop as a range of that label, None where it is none."""
    head = _head(loop)
    if head is None or all(only_accesses(n) for n in walk(loop.body) if isinstance(n, Op)):
        return None
    own = assigned(loop)
    for variable, value in once_a_turn(loop).items():
        step = _step(variable, value)
        stop = None if step is None else _stop(head, variable, step)
        if step is None or stop is None or stop.variables & own or _is_of_threads(stop):
            continue
        start = _start(program, loop, variable)
        if start is None or _is_of_threads(start) or not _only_here(program, loop, head, variable):
            continue
        counted = Range(variable, start, stop, step, head.op.endswith(".s"))
        turns = Loop(_body(loop, variable, label), loop.span, counted, False, label)
        # Whoever leaves it in a turn goes past what is assigned at its end.
        return replaced(program, loop, Loop(Seq((turns, *head.leaving)), loop.span, None, True, loop.label))
    return None


def _body(loop: Loop, variable: int, label: int) -> Seq:
    """A turn without the condition and without the step."""
    again = Jump(loop.label, True)

    def of(node: Node) -> Node | None:
        if node == again:
            return Jump(label, True)
        if not isinstance(node, Assign) or variable not in node.targets:
            return None
        pairs = [(t, v) for t, v in zip(node.targets, node.values, strict=True) if t != variable]
        return Assign(tuple(t for t, _ in pairs), tuple(v for _, v in pairs)) if pairs else Seq(())

    return mapped(Seq(loop.body.nodes[1:]), of)


def _head(loop: Loop) -> _Head | None:
    first = loop.body.nodes[0] if loop.body.nodes else None
    leave = Jump(loop.label, False)
    if not isinstance(first, Branch) or len(first.condition.args) != 2:
        return None
    name, _, sign = first.condition.op.partition(".")
    left, right = first.condition.args
    for stays, goes, op in ((first.then, first.orelse, name), (first.orelse, first.then, _NOT.get(name))):
        if op not in _NOT or stays.nodes or not goes.nodes or goes.nodes[-1] != leave:
            continue
        if all(isinstance(node, Assign) for node in goes.nodes[:-1]):
            return _Head(f"{op}.{sign}", left, right, goes.nodes[:-1])
    return None


def _step(variable: int, value: Expr) -> int | None:
    terms, constant = linear(value)
    if list(terms.values()) != [1] or not constant:
        return None
    (term,) = terms
    return constant if term.op == "var" and term.value == variable else None


def _stop(head: _Head, variable: int, step: int) -> Expr | None:
    """The end of the range."""
    op, left, right = head.op, head.left, head.right
    name, _, sign = op.partition(".")
    bits = left.bits
    if sign == "u":  # as it stands: numbers that wrap have no sums
        if right.op == "var" and right.value == variable:
            name, left, right = _TURNED[name], right, left
        if left.op != "var" or left.value != variable or name not in ("lt", "gt") or (step < 0 and step != -1):
            return None
        stop = right
    else:
        terms, constant = linear(plain("sub", left, right, bits=bits))
        own = [term for term in terms if term.op == "var" and term.value == variable]
        factor = terms.pop(own[0]) if own else 0
        if factor not in (1, -1):
            return None
        name = name if factor == 1 else _TURNED[name]
        stop = of_linear({term: -factor * times for term, times in terms.items()}, -factor * constant, bits)
    if (name in ("lt", "le")) != (step > 0):
        return None
    beyond = {"le": 1, "ge": -1}.get(name, 0)
    return plain("add", stop, const(beyond, bits), bits=bits) if beyond else stop


def _start(program: Seq, loop: Loop, variable: int) -> Expr | None:
    """What the counter is right before the loop."""
    for seq in [n for n in walk(program) if isinstance(n, Seq)]:
        for before, node in zip(seq.nodes, seq.nodes[1:], strict=False):
            if node is loop and isinstance(before, Assign) and variable in before.targets:
                value = before.values[before.targets.index(variable)]
                return None if value.variables & set(before.targets) else value
    return None


def _only_here(program: Seq, loop: Loop, head: _Head, variable: int) -> bool:
    """Whether the counter is looked at in the loop alone, and changed at the end of turns."""
    inside = walk(loop.body)
    turn = {id(node) for node in inside} - {id(node) for node in head.leaving}
    outside = [node for node in walk(program) if id(node) not in turn]
    if any(variable in expr.variables for node in outside for expr in expressions_of(node)):
        return False
    if any(isinstance(n, Loop) and n.range is not None and n.range.index == variable for n in inside):
        return False
    again = Jump(loop.label, True)
    for seq in [node for node in inside if isinstance(node, Seq)]:
        for at, node in enumerate(seq.nodes, 1):
            if isinstance(node, Assign) and variable in node.targets:
                last = at == len(seq.nodes)
                if seq is not loop.body if last else seq.nodes[at] != again:
                    return False
    return True


def _is_of_threads(expr: Expr) -> bool:
    return any(node.op in ("tid", "unknown", "load") for node in nodes(expr))
