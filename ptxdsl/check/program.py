"""An agent's program: the kernel's, cut to what its threads do, as a list of steps.

Branches on thread ids are gone: a step of a part of the agent's threads has a mask. A step runs on a state and gives
the number of the next one; ``WAIT`` where it cannot go on yet, ``ASK`` where a test must be decided first
(``Context.asked`` has the outcomes).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxdsl.check.arithmetic import compared, may_be_large, operate
from ptxdsl.check.context import Context
from ptxdsl.check.counters import TURNS, Counters
from ptxdsl.check.expressions import Expressions, Function
from ptxdsl.check.facts import Outcome, parts
from ptxdsl.check.findings import Unproved
from ptxdsl.check.parts import Agent
from ptxdsl.check.recurrences import Recurrent
from ptxdsl.check.states import LEFT, State
from ptxdsl.check.threads import Mask
from ptxdsl.check.values import UNKNOWN, Sum, Value, add, is_simple, scale
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import Expr, uniform
from ptxdsl.protocol.model import Range
from ptxdsl.source import Span

WAIT = -1
ASK = -2
END = -3
ROUND = -4  # it goes on for ever, whatever is decided

# What all who come to a decision must have alike.
_SHARED_VALUE = (
    "let it depend on launch parameters and counters, on memory that the kernel does not write, or on a word that one "
    "thread writes and all read behind a barrier"
)

Nesting = tuple[tuple[int, int, int], ...]  # loops around a step: group, counter, which of its like


class Step:
    """number: its place in the agent's list. span: the source's. nesting: the loops around it.

    uses, assigns: variables that it looks at, and that it assigns in any case. elsewhere: the same of other blocks, by
    rank, where they are not this one (``lockstep.py``). unordered: whether what comes right before and behind it comes
    in another order there, so that it tells nothing of that. led_on: whether who waits here is led on by the last one
    to come. fills: whether it writes what others may read. by_warps: whether its mask has the first lane alone of warps
    that do it as one. arrives, waits, initialises: whether it does so at a barrier; hands_over: whether it arrives with
    what its own threads have done; root: the address of the first barrier of its table, as the text has it; table: the
    same of an unrolled ring (``tables.py``). op: what it was made of, where others ask for that.
    """

    mask: Mask = 0
    led_on = False
    unordered = False
    fills = True
    by_warps = False
    arrives = False
    hands_over = False
    waits = False
    initialises = False
    root = table = 0
    op: Any = None

    def __init__(self, span: Span | None) -> None:
        self.span = span
        self.number = 0
        self.nesting: Nesting = ()
        self.uses: Iterable[int] = ()
        self.assigns: Iterable[int] = ()
        self.elsewhere: Sequence[Any] = ()

    def of(self, rank: int) -> Any:
        """The same of another block that the followed one stands for."""
        return self.elsewhere[rank - 1] if rank and self.elsewhere else self

    @property
    def is_fixed(self) -> bool:
        """Whether it always comes to the same barrier."""
        return False

    @property
    def successors(self) -> tuple[int, ...]:
        """The steps that may come next."""
        return (self.number + 1,)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        raise NotImplementedError

    def settle(self, context: Context, state: State, agent: Agent, test: Value) -> int | list[Outcome] | None:
        """The truth of a test, the ways in which it can turn out, None where nothing is known of it."""
        env = state.environments[agent.number]
        nest = [(group, env[variable], ordinal) for group, variable, ordinal in self.nesting]
        return state.facts.settle(test, nest, context.counters)

    def decide(self, context: Context, state: State, agent: Agent, test: Value) -> int | None:
        """The truth of a test, None where it must be decided first."""
        if type(test) is int:
            return test
        settled = self.settle(context, state, agent, test)
        if isinstance(settled, int):
            return settled
        if settled is None:
            assert self.span is not None
            raise Unproved(self.span, "a condition depends on data, or differs between threads", _SHARED_VALUE)
        context.asked = (self, agent, test, settled)
        return None


class Assignment(Step):
    """values: what the functions compute."""

    def __init__(self, targets: tuple[int, ...], values: list[Expr], expressions: Expressions) -> None:
        super().__init__(None)
        self.targets = self.assigns = targets
        self.values = values
        self.functions = [expressions.function(value) for value in values]
        self.variables = self.uses = tuple(sorted(frozenset[int]().union(*(value.variables for value in values))))
        self._known: dict[tuple[Any, ...], list[Any]] = {}

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        key = tuple([env[v] for v in self.variables])
        values = self._known.get(key)
        if values is None:
            values = self._known[key] = [function(env) for function in self.functions]
        for target, value in zip(self.targets, values, strict=True):
            env[target] = value
        return self.number + 1


class Advance(Step):
    """``variable = start + turns * step`` for a variable that a loop advances by an unknown step."""

    def __init__(self, variable: int, start: int, turn: int, step: Function, group: int) -> None:
        super().__init__(None)
        self.variable, self.start, self.turn, self.step, self.group = variable, start, turn, step, group
        self.assigns = (variable,)
        self._known: dict[tuple[Any, ...], Value] = {}

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        key = env[self.turn], env[self.start], self.step(env)
        value = self._known.get(key)
        if value is None:
            turns = context.symbols.index(key[0] + 1, ((self.group, 1, 1),))
            amount = operate("mul", (turns, key[2]), 64, 64, context.symbols)
            value = self._known[key] = UNKNOWN if amount is UNKNOWN else add(key[1], amount)
        env[self.variable] = value
        return self.number + 1


class Follow(Step):
    """A variable that a loop computes anew: its value after the turns that were, and ``ahead`` more of the counter.

    begun: where what the variables of its equations began with is kept; inputs: what does not change, of its leaves.
    """

    def __init__(
        self, recurrent: Recurrent, begun: list[int], inputs: list[Value], turn: int, ahead: int, group: int
    ) -> None:
        super().__init__(None)
        self.variable, self.form, self.leaves = recurrent.variable, recurrent.form, recurrent.inputs
        self.begun, self.inputs = begun, inputs
        self.turn, self.ahead, self.rates = turn, ahead, ((group, 1, 1),)
        self.uses, self.assigns = (*begun, turn, self.variable), (self.variable,)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        if self.ahead or not is_simple(env[self.variable]):
            symbols = context.symbols
            args = (*(env[v] for v in self.begun), *self.inputs)
            turns = symbols.index(env[self.turn] + self.ahead, self.rates)
            env[self.variable] = symbols.recurrence(self.form, (turns, *args), self.form.low)
        return self.number + 1


class Turned(Step):
    """The index of a range that starts at no constant: ``start + turns * step``."""

    def __init__(self, index: int, start: int, turn: int, step: int, group: int) -> None:
        super().__init__(None)
        self.index, self.start, self.turn, self.step, self.group = index, start, turn, step, group
        self.uses, self.assigns = (start, turn), (index,)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        start, turns = env[self.start], env[self.turn]
        if type(start) is int:
            env[self.index] = start + turns * self.step
        elif isinstance(start, Sum):
            env[self.index] = add(start, scale(context.symbols.index(turns, ((self.group, 1, 1),)), self.step))
        else:
            env[self.index] = UNKNOWN
        return self.number + 1


class Go(Step):
    def __init__(self, target: int = 0) -> None:
        super().__init__(None)
        self.target = target

    @property
    def successors(self) -> tuple[int, ...]:
        return (self.target,)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        return self.target


class Choose(Step):
    """Goes on where the condition holds, else to ``target``."""

    def __init__(self, condition: Function, span: Span, variables: tuple[int, ...]) -> None:
        super().__init__(span)
        self.condition = condition
        self.variables = self.uses = variables
        self.target = 0
        self._known: dict[tuple[Any, ...], Value] = {}

    @property
    def successors(self) -> tuple[int, ...]:
        return self.number + 1, self.target

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        key = tuple([env[v] for v in self.variables])
        test = self._known.get(key)
        if test is None:
            test = self._known[key] = self.condition(env)
        truth = self.decide(context, state, agent, test)
        if truth is None:
            return ASK
        return self.number + 1 if truth else self.target


class Enter(Step):
    """A loop's counter gets its first value; starts: variables whose value at the entry is kept."""

    def __init__(self, counter: int, first: Function, starts: list[tuple[int, int]]) -> None:
        super().__init__(None)
        self.counter, self.first, self.starts = counter, first, starts
        self.assigns = (counter, *(kept for _, kept in starts))

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        env[self.counter] = self.first(env)
        for variable, kept in self.starts:
            env[kept] = env[variable]
        return self.number + 1


class Head(Step):
    """Goes on while the range is not exhausted, else to ``target``.

    growth: what a turn of the group adds to the counter; 1 where it counts in the group itself.
    """

    def __init__(self, stop: Function, span: Span, group: int, range: Range, growth: int = 1) -> None:
        super().__init__(span)
        self.compare = ("lt" if range.step > 0 else "gt") + (".s" if range.signed else ".u")
        self.counter, self.stop, self.step, self.signed = range.index, stop, range.step, range.signed
        self.bits = range.stop.bits
        self.rates = ((group, 1, growth),)
        self.falling = ((group, 1, -growth),)
        self.target = 0
        self._known: dict[tuple[Value, Value], Value] = {}

    @property
    def successors(self) -> tuple[int, ...]:
        return self.number + 1, self.target

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        at, stop = env[self.counter], self.stop(env)
        if type(at) is int and type(stop) is int:
            more: Any = at < stop if self.step > 0 else at > stop
            if not self.signed:
                more = operate(self.compare, (at, stop), 1, self.bits, context.symbols)
        elif (
            type(at) is int
            and type(stop) is Sum
            and self.step > 0
            and stop.simple
            and (self.signed or (at >= 0 and not may_be_large(stop, self.bits)))
        ):
            # the usual case, by the shortest way: at - constant + 1 <= sum, or -sum <= constant - at - 1
            around = tuple([(group, env[variable], ordinal) for group, variable, ordinal in self.nesting[:-1]])
            constant, _, terms, flipped = parts(stop)
            ordinal, counters = self.nesting[-1][2], context.counters
            if flipped:
                cut = constant - at - 1
                settled = state.facts.at_most(terms, cut, constant - 1, self.falling, around, ordinal, counters)
            else:
                cut = at - constant + 1
                settled = state.facts.at_least(terms, cut, 1 - constant, self.rates, around, ordinal, counters)
            if not isinstance(settled, int):
                context.asked = (self, agent, None, _natural(settled, context) if context.natural else settled)
                return ASK
            more = settled
        elif not isinstance(at, (int, Sum)) or not isinstance(stop, (int, Sum)):
            assert self.span is not None
            raise Unproved(self.span, "a loop's trip count depends on data, or differs between threads", _SHARED_VALUE)
        else:
            test = self._known.get((at, stop))
            if test is None:
                index = context.symbols.index(at, self.rates) if type(at) is int else at
                test = self._known[at, stop] = compared(self.compare, (index, stop), self.bits, context.symbols)
            more = self.decide(context, state, agent, test)
        if more is None:
            return ASK
        return self.number + 1 if more else self.target


def _natural(outcomes: list[Outcome], context: Context) -> list[Outcome]:
    """Without those in which a parameter of the kernel is negative, which is noted."""
    kept = []
    for outcome in outcomes:
        name = _negative(outcome)
        if name is None:
            kept.append(outcome)
        else:
            context.supposed.not_negative.add(name)
    return kept or outcomes


def _negative(outcome: Outcome) -> str | None:
    """The name of a parameter that it says is negative."""
    if len(outcome.terms) != 1 or outcome.terms[0][1] != 1 or outcome.bounds.high >= 0:
        return None
    atom = outcome.terms[0][0]
    return repr(atom) if atom.op == "symbol" and "#" in str(atom.name) else None


class Next(Step):
    def __init__(self, counter: int, step: int, target: int) -> None:
        super().__init__(None)
        self.counter, self.step, self.target = counter, step, target
        self.uses = (counter,)

    @property
    def successors(self) -> tuple[int, ...]:
        return (self.target,)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        value = env[self.counter]
        env[self.counter] = value + self.step if type(value) is int else add(value, self.step)
        return self.target


class Leave(Step):
    def __init__(self, counters: list[int]) -> None:
        super().__init__(None)
        self.counters = self.assigns = counters

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        for counter in self.counters:
            env[counter] = LEFT
        return self.number + 1


class End(Step):
    @property
    def successors(self) -> tuple[int, ...]:
        return ()

    def run(self, context: Context, state: State, agent: Agent) -> int:
        return END


class Cannot(Step):
    """Something that the model does not have."""

    def __init__(self, span: Span, why: str, remedy: str) -> None:
        super().__init__(span)
        self.why, self.remedy = why, remedy

    @property
    def successors(self) -> tuple[int, ...]:
        return ()

    def run(self, context: Context, state: State, agent: Agent) -> int:
        assert self.span is not None
        raise Unproved(self.span, self.why, self.remedy)


def large(stop: Expr, counters: Counters) -> Expr:
    """A constant trip count of many turns, taken for an unknown one."""
    if stop.op == "const" and stop.value >= counters.large:
        return uniform(f"{stop.value}{TURNS}", stop.bits)
    return stop
