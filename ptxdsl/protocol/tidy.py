"""A program of the model in its plain form: no jump that leads where one goes anyway, nothing that nobody needs.

None of this changes which operations a thread does, in which order and with what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ptxdsl.effects import Kind
from ptxdsl.protocol.algebra import plain
from ptxdsl.protocol.model import (
    Assign,
    Branch,
    Expr,
    Jump,
    Loop,
    Node,
    Op,
    Return,
    Seq,
    Unmodelled,
    walk,
)
from ptxdsl.protocol.rewriting import expressions_of
from ptxdsl.record import replace


def tidy(program: Seq) -> Seq:
    """Applies all of this module until nothing changes."""
    while True:
        new = needed(straight(program))
        if same(new, program):
            return new
        program = new


def same(a: Node, b: Node) -> bool:
    """Whether two programs are the same, node by node."""
    if a is b:
        return True
    if isinstance(a, Seq):
        return (
            isinstance(b, Seq)
            and len(a.nodes) == len(b.nodes)
            and all(same(x, y) for x, y in zip(a.nodes, b.nodes, strict=True))
        )
    if isinstance(a, Branch):
        return (
            isinstance(b, Branch) and a.condition is b.condition and same(a.then, b.then) and same(a.orelse, b.orelse)
        )
    if isinstance(a, Loop):
        return isinstance(b, Loop) and (a.once, a.label, a.range) == (b.once, b.label, b.range) and same(a.body, b.body)
    return a == b


# -------------------------------------------------------------------------------------------------------- control


def straight(program: Seq) -> Seq:
    """Without jumps to where the program goes on anyway, and without blocks that nobody leaves early."""
    return _seq(program, frozenset(), True)


# Where the end of what is written leads: to the ends of these blocks, the next turns of these loops (their labels with
# whether it is the next turn), and whether to the end of the kernel.
_Ends = frozenset[tuple[int, bool]]


def _seq(seq: Seq, ends: _Ends, returns: bool) -> Seq:
    out: list[Node] = []
    nodes = list(_flat(seq))
    for position, node in enumerate(nodes):
        last = position == len(nodes) - 1
        here, finishes = (ends, returns) if last else (frozenset(), False)
        if isinstance(node, Jump):
            if (node.label, node.again) not in here:
                out.append(node)
            break
        if isinstance(node, Return):
            if not finishes:
                out.append(node)
            break
        if isinstance(node, Branch):
            out.extend(_branch(node, here, finishes))
            if out and _never_goes_on(out[-1]):
                break
        elif isinstance(node, Loop):
            out.extend(_loop(node, here, finishes))
        else:
            out.append(node)
            if isinstance(node, Unmodelled):
                break
    return Seq(tuple(out))


def _flat(seq: Seq) -> Iterator[Node]:
    for node in seq.nodes:
        if isinstance(node, Seq):
            yield from _flat(node)
        else:
            yield node


def _branch(node: Branch, ends: _Ends, returns: bool) -> Iterator[Node]:
    if node.condition.op == "const":
        yield from _seq(node.then if node.condition.value else node.orelse, ends, returns).nodes
        return
    then, orelse = _seq(node.then, ends, returns), _seq(node.orelse, ends, returns)
    if not then.nodes and not orelse.nodes:
        return
    wait = _awaited(node.condition, then, orelse)
    if wait is not None:
        yield wait
    elif not then.nodes:
        yield Branch(plain("not", node.condition, bits=1), orelse, then, node.span)
    else:
        yield Branch(node.condition, then, orelse, node.span)


def _awaited(condition: Expr, then: Seq, orelse: Seq) -> Op | None:
    """A test whose failure leads to a wait for the same phase is that wait."""
    failed = condition.op == "not"
    test = condition.args[0] if failed else condition
    waiting, nothing = (then, orelse) if failed else (orelse, then)
    if test.op != "test" or nothing.nodes or len(waiting.nodes) != 1:
        return None
    wait = waiting.nodes[0]
    if not isinstance(wait, Op) or wait.kind is not Kind.BAR_WAIT or wait.barrier is None:
        return None
    barrier, parity = test.args
    return wait if wait.barrier.address is barrier and wait.parity is parity else None


def _never_goes_on(node: Node) -> bool:
    if isinstance(node, Jump | Return | Unmodelled):
        return True
    if isinstance(node, Seq):
        return bool(node.nodes) and _never_goes_on(node.nodes[-1])
    if isinstance(node, Branch):
        return _never_goes_on(node.then) and _never_goes_on(node.orelse)
    return False


def _loop(node: Loop, ends: _Ends, returns: bool) -> Iterator[Node]:
    if node.once:
        body = _seq(node.body, ends | {(node.label, False)}, returns)
        if not _jumps_to(body, node.label):
            yield from body.nodes
            return
        yield replace(node, body=body)
        return
    body = _seq(node.body, frozenset({(node.label, True)}), False)
    yield replace(node, body=_leaving(body, ends, returns, Jump(node.label, False)))


def _leaving(node: Seq, ends: _Ends, returns: bool, leave: Jump) -> Seq:
    """Jumps to where the loop's end leads anyway leave the loop."""

    def of(inner: Node) -> Node:
        if isinstance(inner, Jump) and (inner.label, inner.again) in ends:
            return leave
        if isinstance(inner, Return) and returns:
            return leave
        return _with_inner(inner, of)

    return Seq(tuple(map(of, node.nodes))) if ends or returns else node


def _with_inner(node: Node, of: Callable[[Node], Node]) -> Node:
    """The node with others in it."""
    if isinstance(node, Seq):
        return Seq(tuple(map(of, node.nodes)))
    if isinstance(node, Branch):
        return Branch(node.condition, _seq_of(node.then, of), _seq_of(node.orelse, of), node.span)
    if isinstance(node, Loop):
        return replace(node, body=_seq_of(node.body, of))
    return node


def _seq_of(seq: Seq, of: Callable[[Node], Node]) -> Seq:
    return Seq(tuple(map(of, seq.nodes)))


def _jumps_to(node: Node, label: int) -> bool:
    return any(isinstance(inner, Jump) and inner.label == label for inner in walk(node))


# ---------------------------------------------------------------------------------------------------------- needs


def needed(program: Seq) -> Seq:
    """Only operations, and what decides whether and with what a thread does them."""
    return _Slice(program).program()


class _Slice:
    """Marks backwards from the operations; control flow without a mark goes."""

    def __init__(self, root: Seq) -> None:
        self.parents: dict[int, Node] = {}
        self.nodes: list[Node] = []
        self.kept: set[int] = set()
        self.variables: set[int] = set()
        self.assigns: dict[int, list[tuple[Assign, Expr]]] = {}
        self.jumps: dict[int, list[Jump]] = {}
        self.work: list[Node] = []
        self.copies = _seq_of(root, _unshared)
        self.survey(self.copies, None)
        self.mark()

    def survey(self, node: Node, parent: Node | None) -> None:
        self.nodes.append(node)
        if parent is not None:
            self.parents[id(node)] = parent
        if isinstance(node, Seq):
            for inner in node.nodes:
                self.survey(inner, node)
        elif isinstance(node, Branch):
            self.survey(node.then, node)
            self.survey(node.orelse, node)
        elif isinstance(node, Loop):
            self.survey(node.body, node)
        elif isinstance(node, Assign):
            for target, value in zip(node.targets, node.values, strict=True):
                self.assigns.setdefault(target, []).append((node, value))
        elif isinstance(node, Jump):
            self.jumps.setdefault(node.label, []).append(node)

    def mark(self) -> None:
        for node in self.nodes:
            if isinstance(node, Op | Unmodelled | Return):
                self.keep(node)
        while self.work:
            node = self.work.pop()
            if isinstance(node, Op):
                self.want(expressions_of(node))
            elif isinstance(node, Branch):
                self.want((node.condition,))
            elif isinstance(node, Loop):
                if node.range is not None:
                    self.want((node.range.start, node.range.stop))
                for jump in self.jumps.get(node.label, ()):
                    self.keep(jump)
            parent = self.parents.get(id(node))
            if parent is not None:
                self.keep(parent)

    def keep(self, node: Node) -> None:
        if id(node) not in self.kept:
            self.kept.add(id(node))
            self.work.append(node)

    def want(self, wanted: Iterable[Expr]) -> None:
        for expr in wanted:
            for number in variables_of(expr):
                if number in self.variables:
                    continue
                self.variables.add(number)
                for assign, value in self.assigns.get(number, ()):
                    self.keep(assign)
                    self.want((value,))

    def program(self) -> Seq:
        return self.seq(self.copies)

    def of(self, node: Node) -> Node:
        if isinstance(node, Seq):
            return Seq(tuple(self.of(inner) for inner in node.nodes if id(inner) in self.kept))
        if isinstance(node, Assign):
            pairs = [(t, v) for t, v in zip(node.targets, node.values, strict=True) if t in self.variables]
            return Assign(tuple(t for t, _ in pairs), tuple(v for _, v in pairs))
        if isinstance(node, Branch):
            return Branch(node.condition, self.seq(node.then), self.seq(node.orelse), node.span)
        if isinstance(node, Loop):
            return replace(node, body=self.seq(node.body))
        return node

    def seq(self, node: Seq) -> Seq:
        written = self.of(node)
        assert isinstance(written, Seq)
        return written


def _unshared(node: Node) -> Node:
    """The program with every node an object of its own: marks are of places."""
    return _with_inner(node, _unshared) if isinstance(node, Seq | Branch | Loop) else replace(node)


def variables_of(expr: Expr) -> set[int]:
    """The numbers of the variables in an expression."""
    found: set[int] = set()
    seen: set[int] = set()
    work = [expr]
    while work:
        at = work.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if at.op == "var":
            found.add(at.value)
        work.extend(at.args)
    return found
