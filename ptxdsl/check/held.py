"""Values that come from memory and decide where roles go: a tile's number that one thread has drawn from a counter.

What an atomic operation gives, and what lies in shared memory, is not known before the launch. But it is *one* value
for all who read it between the same two writes: a state has of each word of shared memory that was asked for the value
that lies there, a write takes that away, and who reads finds what is there, or makes a new unknown value. A write of a
value that is followed leaves that value; where several threads write what may differ, nothing is known of it.

*Why the one schedule tells.* A read comes after the write that it sees and before the next one in every schedule, or
the search finds a race; so which writes have happened before it is the same in all of them. All threads of an agent
read the same word, as its address is the same in all of them.

*Finitely many.* A value that nobody can look at any more (no variable that matters has it, and it lies nowhere) is gone
with all that was decided of it, and its name is given to the next one. A path has the places where names are given, so
that for a launch that shows a fault they are told apart (``witness.py``). Numbers drawn from a counter may be any that
rise; of other values nothing is known, and what is decided by them may not happen.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count

from ptxdsl.check.cluster import Apart
from ptxdsl.check.context import Context
from ptxdsl.check.expressions import Expressions, Function
from ptxdsl.check.facts import Terms
from ptxdsl.check.intervals import overlap
from ptxdsl.check.liveness import live_variables
from ptxdsl.check.parts import Agent, Touch
from ptxdsl.check.program import Step
from ptxdsl.check.states import State
from ptxdsl.check.threads import Mask
from ptxdsl.check.values import UNKNOWN, Atom, Sum, Test, Value
from ptxdsl.protocol.expressions import CTA_SHIFT, Expr, unknown
from ptxdsl.protocol.model import Op

NAMED = frozenset({"held", "drawn"})
_NONE: frozenset[Atom] = frozenset()


class Loaded(Step):
    """A variable gets what lies at an address of the own block's memory."""

    def __init__(self, target: int, address: Function, variables: frozenset[int], width: int) -> None:
        super().__init__(None)
        self.target, self.address, self.width = target, address, width
        self.uses, self.assigns = variables, (target,)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        place = _place(context, agent, self.address(env), self.width)
        value: Value = UNKNOWN
        if place is not None:
            value = state.held.get(place)
            if value is None:
                value = state.held[place] = _new(context, state, "held")
        env[self.target] = value
        return self.number + 1


class Written(Step):
    """What a write has put at an address. alone: whether one thread has written it."""

    def __init__(
        self, address: Function, variables: frozenset[int], width: int, value: Function, *, constant: bool, alone: bool
    ) -> None:
        super().__init__(None)
        self.address, self.width, self.value, self.constant, self.alone = address, width, value, constant, alone
        self.uses = variables

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        place, value = _place(context, agent, self.address(env), self.width), self.value(env)
        if place is not None:
            if self.constant or (isinstance(value, Sum) and not value.moving):
                state.held[place] = value
            elif not self.alone:  # each may have written something else
                state.held[place] = UNKNOWN
        return self.number + 1


class Drawn(Step):
    """A variable of one thread gets what an atomic operation on global memory gives."""

    def __init__(self, target: int, rising: bool) -> None:
        super().__init__(None)
        self.target, self.name = target, "drawn" if rising else "held"
        self.assigns = (target,)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        state.environments[agent.number][self.target] = _new(context, state, self.name)
        return self.number + 1


def read(target: int, value: Expr, mask: Mask, expressions: Expressions, context: Context) -> Step | None:
    """What a variable gets from memory; None of other values, and where threads get different ones."""
    if value.op not in NAMED:
        return None
    if context.blocks.count > 1:
        raise Apart  # blocks have memory of their own
    if value.op == "drawn":
        return Drawn(target, value.value) if mask.bit_count() == 1 else None
    address, lanes, variables = expressions.split(value.args[0], expressions.mask)
    return Loaded(target, address, variables, _bytes(value)) if lanes is None else None


def written(op: Op, mask: Mask, sometimes: bool, expressions: Expressions) -> Step | None:
    """What comes after a write; None where its value is not followed, or threads write to different places.

    sometimes: whether it may be left out, or be done in several turns at once.
    """
    value = op.value
    place = op.writes[0] if op.writes else None
    if value is None or place is None or place.address is None or sometimes:
        return None
    address, lanes, variables = expressions.split(place.address, mask)
    if lanes is not None:
        return None
    function = expressions.function(unknown(0, value.bits) if expressions.varies(value) else value)
    constant, alone = value.op == "const", mask.bit_count() == 1
    return Written(address, variables | value.variables, _bytes(value), function, constant=constant, alone=alone)


def _bytes(value: Expr) -> int:
    return max(value.bits // 8, 1)


def overwritten(state: State, touch: Touch) -> None:
    """A write takes away what lay there."""
    held = state.held
    for place in [place for place in held if place[0] == touch.cta]:
        _, at, width = place
        if overlap(touch.intervals, ((at, at + width),)):
            del held[place]


def _place(context: Context, agent: Agent, at: Value, width: int) -> tuple[int, int, int] | None:
    """The place of a word of the own block's memory; None where that is not known."""
    return (agent.cta, at, width) if type(at) is int and not at >> CTA_SHIFT and not context.untagged(at) else None


def _new(context: Context, state: State, op: str) -> Value:
    """A value that is unlike all that somebody may still look at."""
    used = _used(context, state)
    number = next(n for n in count() if context.symbols.atom(op, n) not in used)
    facts = state.facts
    facts.absolute = {terms: bounds for terms, bounds in facts.absolute.items() if _names(terms) <= used}
    facts.moving = {key: bounds for key, bounds in facts.moving.items() if _names(key[0]) <= used}
    atom = context.symbols.atom(op, number)
    state.path = (state.path, atom)
    return Sum(0, ((atom, 1),))


def _used(context: Context, state: State) -> frozenset[Atom]:
    """The names that matter: of what lies in memory, of variables that may be looked at, of bytes under way."""
    if not context.live:
        context.live = [live_variables(agent.steps) for agent in context.agents]
    values = [*state.held.values(), *(phase.bytes for phase in state.phases)]
    for place, live, env in zip(state.places, context.live, state.environments, strict=True):
        if place >= 0:
            values += [value for v, value in enumerate(env) if live[place] >> v & 1]
    return _NONE.union(*(names_in(value) for value in values if not isinstance(value, int)))


def _names(terms: Terms) -> frozenset[Atom]:
    return _NONE.union(*(names_of(atom) for atom, _ in terms))


def names_in(value: Value) -> frozenset[Atom]:
    """The values from memory of which one is made."""
    if isinstance(value, Sum):
        return _names(value.terms)
    if isinstance(value, Test):
        return names_in(value.value).union(*map(names_in, value.args))
    return _NONE


@lru_cache(4096)
def names_of(atom: Atom) -> frozenset[Atom]:
    """The same of an atom."""
    return frozenset((atom,)) if atom.op in NAMED else _NONE.union(*map(names_in, atom.args))
