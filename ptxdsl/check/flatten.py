"""The kernel's program as the steps of one agent."""

from __future__ import annotations

from ptxdsl.check.accesses import arms, interferes, only_accesses
from ptxdsl.check.addresses import Turns
from ptxdsl.check.advances import follow, followed, inductive_in
from ptxdsl.check.agents import Shape
from ptxdsl.check.answers import answered
from ptxdsl.check.context import Context
from ptxdsl.check.expressions import Expressions
from ptxdsl.check.held import read
from ptxdsl.check.parts import Agent
from ptxdsl.check.program import (
    Advance,
    Assignment,
    Cannot,
    Choose,
    End,
    Enter,
    Go,
    Head,
    Leave,
    Next,
    Step,
    Turned,
    large,
)
from ptxdsl.check.steps import Steps
from ptxdsl.check.threads import Mask
from ptxdsl.check.values import UNKNOWN
from ptxdsl.protocol.expressions import Expr, const, unknown
from ptxdsl.protocol.model import Assign, Branch, Jump, Loop, Node, Op, Return, Seq, Unmodelled, walk

_MOST_SPREAD = 512  # places of an access in a loop that are looked at one by one


def flatten(context: Context, agent: Agent, expressions: Expressions, shape: Shape) -> bool:
    """Fills in the agent's steps and variables. Gives whether more than values of variables differs between CTAs."""
    maker = _Flattener(context, agent, expressions, shape)
    maker.node(context.kernel.program, agent.mask)
    maker.flush()
    maker.put(End(None))
    maker.finish()
    return maker.differs


class _Flattener(Steps):
    def __init__(self, context: Context, agent: Agent, expressions: Expressions, shape: Shape) -> None:
        super().__init__(context, agent, expressions)
        self.shape = shape
        self.counters = context.counters
        self.ordinals: list[dict[int, int]] = [{}]
        self.again: dict[int, list[Go]] = {}
        self.out: dict[int, list[Go]] = {}

    def finish(self) -> None:
        self.agent.variables = sorted(self.used)

    # ------------------------------------------------------------------------------------------------- control flow

    def node(self, node: Node, mask: Mask) -> None:
        if isinstance(node, Seq):
            for inner in node.nodes:
                self.node(inner, mask)
        elif isinstance(node, Op):
            self.operation(node, mask)
        elif isinstance(node, Assign):
            self.assign(node, mask)
        elif isinstance(node, Branch):
            self.branch(node, mask)
        elif isinstance(node, Loop):
            self.loop(node, mask)
        else:
            self.flush()
            self.escape(node)

    def escape(self, node: Jump | Return | Unmodelled) -> None:
        if isinstance(node, Jump):
            go = Go()
            self.put(go)
            (self.again if node.again else self.out)[node.label].append(go)
        elif isinstance(node, Return):
            self.put(End(node.span))
        else:
            self.put(Cannot(node.span, node.why, node.remedy))

    def assign(self, node: Assign, mask: Mask) -> None:
        self.flush()
        plain = []
        values: list[Expr] = []
        by_turns: list[Step] = []  # those look at no variable that is assigned here: they come last
        for target, value in zip(node.targets, node.values, strict=True):
            self.used.add(target)
            step = (
                self._advance(target, value)
                or follow(self.counters, self.expressions, self.again, target)
                or answered(target, value, self.agent.mask, self.expressions, self.nesting)
                or read(target, value, mask, self.expressions, self.context)
            )
            self.used |= value.variables
            if step is None:
                values.append(value)
                plain.append(target)
            else:
                by_turns.append(step)
        if plain:
            self.put(Assignment(tuple(plain), values, self.expressions))
        for step in by_turns:
            self.put(step)

    def _advance(self, target: int, value: Expr) -> Step | None:
        loop = inductive_in(self.counters, self.again, target, value)
        if loop is None:
            return None
        start, step, turn = loop
        group = self.counters.group(turn)
        assert group is not None
        advance = Advance(target, start, turn, self.expressions.function(step), group)
        advance.uses = (start, turn, *step.variables)
        self.compare(step)
        return advance

    def branch(self, node: Branch, mask: Mask) -> None:
        taken = self.expressions.where(node.condition, mask)
        if taken is not None:
            if taken:
                self.node(node.then, taken)
            if mask & ~taken:
                self.node(node.orelse, mask & ~taken)
            return
        self.compare(node.condition)
        function = self.expressions.function(node.condition)
        constant = self.expressions.constant(node.condition)
        if isinstance(constant, int):
            self.node(node.then if constant else node.orelse, mask)
            return
        if (constant is UNKNOWN or self.expressions.varies(node.condition)) and not (
            self.shape.acts(node.then) or self.shape.acts(node.orelse)
        ):
            self.perhaps(node, mask)
            return
        self.flush()
        self.use(node.condition)
        used = tuple(sorted(node.condition.variables))
        choose = Choose(function, node.span, used)
        self.put(choose)
        self.node(node.then, mask)
        self.flush()
        if node.orelse.nodes:
            go = Go()
            self.put(go)
            choose.target = self.land()
            self.node(node.orelse, mask)
            self.flush()
            go.target = self.land()
        else:
            choose.target = self.land()

    def perhaps(self, node: Branch, mask: Mask) -> None:
        """Accesses that depend on data: they may happen. What is assigned there, and counts turns, is unknown."""
        targets: set[int] = set()
        for arm in (node.then, node.orelse):
            for inner in walk(arm):
                if isinstance(inner, Assign):
                    targets.update(inner.targets)
                elif isinstance(inner, Loop) and inner.range is not None:
                    targets.add(inner.range.index)
        if targets:
            self.flush()
            self.used |= targets
            self.put(Assignment(tuple(targets), [unknown(0)] * len(targets), self.expressions))
        before, self.accesses.certain = self.accesses.certain, False
        self._either(node, mask)
        self.accesses.certain = before

    def _either(self, node: Node, mask: Mask) -> None:
        """Both arms of branches, for all threads; where the condition is one that tells threads apart, it is noted."""
        if isinstance(node, Op):
            self.operation(node, mask)
        elif isinstance(node, Branch):
            before = self.accesses.guards
            for arm, holds, threads in arms(self.expressions, node, mask):
                self.accesses.guards = (*before, holds)
                self._either(arm, threads)
            self.accesses.guards = before
        elif isinstance(node, Seq):
            for inner in node.nodes:
                self._either(inner, mask)
        elif isinstance(node, Loop):
            self._either(node.body, mask)

    # -------------------------------------------------------------------------------------------------------- loops

    def loop(self, node: Loop, mask: Mask) -> None:
        if node.once:
            self.flush()
            self.out[node.label] = []
            self.again[node.label] = []
            self.node(node.body, mask)
            self.flush()
            self._land(node.label)
            return
        if node.range is not None and only_accesses(node.body):
            self._spread_out(node, mask)
            return
        self.flush()
        turn = self.counters.turn_of[node.label]
        group = self.counters.group(turn)
        assert group is not None
        self.used.add(turn)
        starts = []
        for (label, variable), (before, _) in self.counters.inductive.items():
            if label == node.label:
                starts.append((variable, before))
                self.used |= {variable, before}
        recurrent = self.counters.recurrent.get(node.label, ())
        for v in dict.fromkeys(v for one in recurrent for v in one.of):
            starts.append((v, self.counters.begun[node.label, v]))
            self.used |= {v, self.counters.begun[node.label, v]}
        kept = self.counters.start_of.get(node.label)
        first = self.expressions.function(node.range.start if node.range is not None else const(0))
        if kept is not None and node.range is not None:
            self.use(node.range.start)
            self.used |= {kept, node.range.index}
            self.put(Assignment((kept,), [node.range.start], self.expressions))
            first = self.expressions.function(const(0))
        enter = Enter(turn, first, starts)
        enter.uses = [before for before, _ in starts]
        if node.range is not None and kept is None:
            enter.uses += node.range.start.variables
        self.put(enter)
        for one in recurrent:
            self.put(followed(self.counters, self.expressions, node.label, one, 0))
        ordinal = self.ordinals[-1].get(group, 0)
        self.ordinals[-1][group] = ordinal + 1
        outside = self.nesting
        self.nesting = (*outside, (group, turn, ordinal))
        self.ordinals.append({})
        self.again[node.label], self.out[node.label] = [], []
        head: Head | None = None
        top = self.land()
        if node.range is not None:
            self.use(node.range.start, node.range.stop)
            stop = self.expressions.function(large(node.range.stop, self.counters))
            step = node.range.step
            if kept is not None:
                self.put(Turned(node.range.index, kept, turn, step, group))
            head = Head(stop, node.span, group, node.range, step if kept is not None else 1)
            head.uses = (node.range.index, *node.range.stop.variables)
            self.put(head)
        self.node(node.body, mask)
        self.flush()
        after = self.put(Next(turn, node.range.step if node.range is not None and kept is None else 1, top))
        for go in self.again.pop(node.label):
            go.target = after.number
        self.nesting = outside
        self.ordinals.pop()
        if head is not None:
            head.target = self.land()
        self._land(node.label)
        self.put(Leave([turn]))

    def _land(self, label: int) -> None:
        for go in self.out.pop(label):
            go.target = self.land()
        self.again.pop(label, None)

    def _spread_out(self, node: Loop, mask: Mask) -> None:
        """A loop of accesses alone: all its turns at once."""
        assert node.range is not None
        for expr in (node.range.start, node.range.stop):
            self.compare(expr)
        start, stop = (self.expressions.constant(e) for e in (node.range.start, node.range.stop))
        values: tuple[int, ...] = ()
        if isinstance(start, int) and isinstance(stop, int):
            counted = range(start, stop, node.range.step)
            if not counted:
                return
            count = len(counted)
            for others in self.accesses.spread:
                count *= max(len(others.values), 1)
            if count <= _MOST_SPREAD:
                values = tuple(counted)
        before = self.accesses.spread, self.accesses.certain
        turns = Turns(node.range.index, values, node.range.start, node.range.step)
        self.accesses.spread = (*self.accesses.spread, turns)
        self.accesses.certain = self.accesses.certain and not any(interferes(inner) for inner in walk(node.body))
        self._accesses_of(node.body, mask)
        self.accesses.spread, self.accesses.certain = before

    def _accesses_of(self, node: Node, mask: Mask) -> None:
        if isinstance(node, Seq):
            for inner in node.nodes:
                self._accesses_of(inner, mask)
        elif isinstance(node, Op):
            self.operation(node, mask)
        elif isinstance(node, Branch):
            told = self.expressions.row(node.condition) is not None
            before = self.accesses.certain, self.accesses.happens
            self.accesses.certain, self.accesses.happens = (was and told for was in before)
            for arm, _, threads in arms(self.expressions, node, mask):
                self._accesses_of(arm, threads)
            self.accesses.certain, self.accesses.happens = before
        elif isinstance(node, Loop):
            self._spread_out(node, mask)
