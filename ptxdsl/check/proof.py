"""The proof of a kernel's protocol, for every trip count and every schedule.

*One schedule is enough.* A barrier only ever lets waiters go on, and who arrives where does not depend on who came
first (that is checked: ``phases.py``). So all schedules of the same decisions pass the same phases, and what happens
before what is the same in all of them: one canonical run, each agent as far as it can, decides whether there is a
deadlock; and whether two accesses can race is decided by what is known to whom in that run (``states.py``), not by its
luck.

*Decisions* are what the schedule does not give: does a loop go on, is a uniform branch taken. All roles that come to
the same test find the same answer; the first of them to come is asked, when all others can go no further, and both
answers are followed (``facts.py``).

*Finitely many states.* States are taken relative: counters of a group move back together by a common period, barriers
have a parity, knowledge is bits (``normal.py``). A state seen before is not followed again; what was proved of it holds
here. So nested loops, tails and conditional stages of any length come to an end. Where the states are too many, the
answer is "not provable here".

*Few of them.* Two searches can be made. The *coarse* one allows more to happen than can: it forgets what is of no use
to who knows it (``relevance.py``) and what was decided in loops that are over, and one state stands for all that differ
in what is known (``merging.py``); and it takes states that differ in how far a ring has been turned for one
(``symmetry.py``, which is exact). What it proves is proved. What it does not is
looked at again by the *fine* search, which has the last word, and all that is said of faults.

Source of the idea: marked graphs (Commoner, Holt, Even, Pnueli 1971), which rings with equal bodies are; the states
here are their reachable markings with the tokens' histories.
"""

from __future__ import annotations

from collections import deque
from math import prod

from ptxdsl.check import classes, deadlock, endings
from ptxdsl.check.agents import MAX_AGENTS, Diverges, Shape, TooManyAgents, agents
from ptxdsl.check.boxes import affine, box_sizes, guesses
from ptxdsl.check.context import Context
from ptxdsl.check.counters import Counters
from ptxdsl.check.expressions import Expressions
from ptxdsl.check.facts import Outcome
from ptxdsl.check.findings import Again, Fault, Finding, Unproved
from ptxdsl.check.flatten import flatten
from ptxdsl.check.merging import weaken
from ptxdsl.check.normal import Normal, TooFarAhead
from ptxdsl.check.parts import Agent
from ptxdsl.check.program import ASK, END
from ptxdsl.check.relevance import Relevance
from ptxdsl.check.states import LEFT, State
from ptxdsl.check.symmetry import Symmetry
from ptxdsl.check.threads import block_of
from ptxdsl.check.unwritten import Fill
from ptxdsl.check.values import Sum, Symbols, Value, add, scale
from ptxdsl.check.witness import assignment, text
from ptxdsl.effects import Kind
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import ARRAY_SHIFT
from ptxdsl.protocol.model import Kernel, Op, walk
from ptxdsl.record import dataclass, replace

PROVED, FAULT, UNPROVED = "proved", "fault", "not provable here"

# States at decisions, and steps, after which a proof gives up.
MAX_STATES = 4_000
MAX_STEPS = 400_000
# States from which on what is of no use is forgotten: most kernels have fewer.
FEW_STATES = 1
# Until it has so many states, a search follows loops that go on before it looks at their ends.
MOST_AT_ONCE = 24
# Steps of one role between two decisions; facts about how far roles are ahead.
MAX_TURN = 20_000
MAX_FACTS = 200
_AHEAD = "a role runs ahead of the others without end"
# Faults on paths for which launch parameters are looked for.
MAX_FAULTS = 8


@dataclass(frozen=True)
class Proof:
    """verdict: one of the three above. findings: faults, and for ``not provable here`` why not.

    states, steps: how much was looked at. assumptions: what it takes for granted of the launch.
    """

    verdict: str
    findings: tuple[Finding, ...] = ()
    reasons: tuple[tuple[Any, str], ...] = ()
    states: int = 0
    steps: int = 0
    assumptions: tuple[str, ...] = ()


def prove(
    kernel: Kernel, threads: tuple[int, int, int], *, max_states: int = MAX_STATES, max_steps: int = MAX_STEPS
) -> Proof:
    """Proves a kernel for blocks of a shape."""
    coarse = _Search(kernel, threads, max_states, max_steps, coarse=True)
    found = _searched(coarse)
    if found.verdict == PROVED or (found.verdict == UNPROVED and coarse.exhausted):
        return found
    found = _searched(_Search(kernel, threads, max_states, max_steps))
    if found.verdict != FAULT:
        return found
    kind = found.findings[0].kind
    if kind == classes.DATA_RACE:
        # What keeps the threads apart may be missing because some of them never come to it: that is said first.
        without = _Search(kernel, threads, max_states, max_steps)
        without.races = False
        other = _searched(without)
        first = other.findings[0].kind if other.verdict == FAULT else None
        return other if first in (classes.DIVERGENT, classes.EARLY_USE) else found
    if kind in (classes.READ_BEFORE_FULL, classes.OVERWRITTEN, classes.UNDRAINED):
        again = _Search(kernel, threads, max_states, max_steps)
        again.counts = True  # who is ahead
        return _searched(again)
    return found


def _searched(search: _Search) -> Proof:
    try:
        while True:
            try:
                search.prepare()
                search.run()
                break
            except Again as found:
                (search.shared if found.shared else search.detailed).add(found.barrier)
                search.doubtful = None
    except Unproved as reason:
        return Proof(UNPROVED, (), ((reason.span, reason.why),), search.states, search.steps)
    except TooManyAgents:
        why = f"threads go more than {MAX_AGENTS} different ways"
        return Proof(UNPROVED, (), ((search.kernel.span, why),), search.states, search.steps)
    except Diverges as found:
        return Proof(FAULT, (_divergent(found),), (), search.states, search.steps)
    except Fault as fault:
        return Proof(FAULT, (fault.finding,), (), search.states, search.steps)
    if search.doubtful is not None:
        finding = search.doubtful
        why = f"whether this can happen depends on how trip counts are related ({finding.kind}: {finding.message})"
        return Proof(UNPROVED, (), ((finding.span, why),), search.states, search.steps)
    return Proof(PROVED, (), (), search.states, search.steps, guesses(search.kernel, search.context.boxes))


def _divergent(found: Diverges) -> Finding:
    op = found.collective
    return Finding(
        classes.DIVERGENT,
        f"threads of a warp may take this branch differently, but all of them must come to `{op.method or op.name}`",
        found.branch.span,
        ((op.span, "this waits for all threads"),),
        "keep threads that have nothing to do in the kernel until its last barrier, or branch by whole warps",
    )


class _Asked:
    """A state in which something must be decided, and the ways in which it can turn out; pending: the numbers of those
    that are to be followed. again: whether its place has been come to before."""

    def __init__(self, state: State, outcomes: list[Outcome]) -> None:
        self.state = state
        self.outcomes = outcomes
        self.pending: set[int] = set()
        self.again = False


class _Search:
    """coarse: to tell fewer states apart, so that a proof is found sooner, though not always."""

    def __init__(
        self, kernel: Kernel, threads: tuple[int, int, int], max_states: int, max_steps: int, *, coarse: bool = False
    ) -> None:
        self.coarse = coarse
        self.kernel = kernel
        self.threads = threads
        self.max_states = max_states
        self.max_steps = max_steps
        self.states = 0
        self.steps = 0
        self.races = True
        self.counts = False
        self.faults = 0
        self.shared: set[tuple[int, int]] = set()
        self.detailed: set[tuple[int, int]] = set()
        self.doubtful: Finding | None = None  # a fault for which no launch parameters were found

    def prepare(self) -> None:
        """Agents with their programs, and the first state."""
        kernel = self.kernel
        self.seen: dict[Any, _Asked] = {}
        nodes = list(walk(kernel.program))
        clusters = any(isinstance(n, Op) and _is_clusters(n) for n in nodes)
        if clusters and kernel.cluster is None:
            ptx = kernel.span.source.name.endswith(".ptx")
            said = ".reqnctapercluster x, y, z" if ptx else "@kernel(cluster=(x, y, z))"
            raise Unproved(kernel.span, f"the size of the cluster is not known: say {said}, or --cluster")
        shape = kernel.cluster or (1, 1, 1)
        ctas = shape[0] * shape[1] * shape[2] if clusters else 1
        self.counters = Counters(kernel, self.coarse)
        self.symbols = Symbols()
        block = block_of(self.threads)
        self.context = context = Context(kernel, self.counters, self.symbols, block.size, ctas)
        context.tracks_uses = any(isinstance(n, Op) and n.kind is Kind.BAR_INVAL for n in nodes)
        context.proxies = any(isinstance(n, Op) and n.what.proxy == "async" for n in nodes)
        context.boxes = box_sizes(kernel)
        context.speculates = kernel.span.source.name.endswith(".ptx")
        context.mixed = _mixed(nodes)
        context.races, context.coarse = self.races, self.coarse
        context.shared, context.detailed = self.shared, self.detailed
        masks = agents(kernel, block)
        program = Shape(kernel, block)
        for cta in range(ctas):
            known = _ranks(cta, shape, self.symbols) if clusters else _any_rank(shape, kernel, self.symbols)
            for mask in masks:
                agent = Agent(len(context.agents), mask, cta, mask.bit_count(), alone=ctas == 1)
                context.agents.append(agent)
                context.holders += 1
                expressions = Expressions(block, mask, self.counters, self.symbols, known)
                flatten(context, agent, expressions, program)
        outermost = [{step.nesting[0] for step in agent.steps if step.nesting} for agent in context.agents]
        variables = [agent.variables for agent in context.agents]
        programs = [agent.steps for agent in context.agents]
        self.relevance = Relevance(context)
        self.symmetry: Symmetry | None = None
        self.normal = Normal(self.counters, self.symbols, variables, programs, outermost)

    def first(self) -> State:
        state = State()
        state.times = {} if self.counts else None
        state.fill = Fill(len(self.context.agents))
        for agent in self.context.agents:
            state.places.append(0)
            env: list[Any] = [LEFT] * self.counters.fresh
            for v in agent.variables:
                env[v] = None
            state.environments.append(env)
            state.groups.append({})
            state.fresh.append(0)
            state.fenced.append(0)
            state.met.append(0)
            state.waited.append({})
        return state

    def run(self) -> None:
        context = self.context
        pending = self.pending = deque[tuple[_Asked, int]]()
        self.follow(self.first())
        while pending:
            asked, number = pending.popleft()
            asked.pending.discard(number)
            state = asked.state.copy()
            outcome = asked.outcomes[number]
            state.facts.add(outcome)
            state.path = (state.path, outcome)
            self.follow(state)
        for finding in context.last.values():
            self.found(finding)

    def follow(self, state: State) -> None:
        """Runs a state until something must be decided; what follows from there is pending if that is new."""
        asked = self.looked_at(state)
        if asked is None:
            return
        for number in range(len(asked.outcomes))[::-1]:  # the last one first: loops that end
            if number in asked.pending:
                continue
            asked.pending.add(number)
            at_once = self.coarse and (asked.again or self.states <= MOST_AT_ONCE)
            if at_once and not number:
                self.pending.appendleft((asked, 0))  # a loop goes on until it brings nothing new
            else:
                self.pending.append((asked, number))  # fewest decisions first: faults show with few turns

    def looked_at(self, state: State) -> _Asked | None:
        """Runs a state until something must be decided; None where that has been looked at before, or all is over."""
        context = self.context
        context.fit(state)
        try:
            asked = self.advance(state)
        except Fault as fault:
            self.found(fault.finding)
            return None
        if asked is None:
            return None
        context.fit(state)
        if self.coarse and self.states >= FEW_STATES:
            if self.symmetry is None:
                self.symmetry = Symmetry(context, state)
            self.symmetry.turn(state)
            self.relevance.forget(state)
        try:
            key = self.normal.place(state) if self.coarse else self.normal.key(state)
        except TooFarAhead:
            raise Unproved(self.kernel.span, _AHEAD) from None
        seen = self.seen.get(key)
        if seen is not None:
            if not self.coarse:
                return None
            context.fit(seen.state)
            seen.again = weaken(seen.state, state)
            return seen if seen.again else None
        found = self.seen[key] = _Asked(state, asked[3])
        self.states += 1
        if len(state.facts.moving) > MAX_FACTS:
            raise Unproved(self.kernel.span, _AHEAD)
        if len(state.facts.absolute) > MAX_FACTS:
            raise Unproved(self.kernel.span, "what its loops ask is new in every turn")
        if self.exhausted:
            raise Unproved(self.kernel.span, f"more than {self.states - 1} states: the roles' loops do not repeat")
        return found

    @property
    def exhausted(self) -> bool:
        """Whether all was looked at that may be."""
        return self.states > self.max_states or self.steps > self.max_steps

    def found(self, finding: Finding) -> None:
        """Raises Fault with launch parameters for which it shows, where there are some."""
        if self.coarse:
            raise Fault(finding)
        self.faults += 1
        known = assignment(finding.path) if self.faults <= MAX_FAULTS else None
        if known is not None:
            raise Fault(replace(finding, witness=text(known)))
        self.doubtful = self.doubtful or finding

    def advance(self, state: State) -> Any:
        """Runs all agents as far as they go; the test that must be decided, None where all is over."""
        context = self.context
        context.turn_to(state)
        places = state.places
        moved = True
        asked: dict[int, Any] = {}
        while moved:
            moved = False
            for agent in context.agents:
                number = agent.number
                if places[number] == END or number in asked:
                    continue
                before = self.steps
                after = self.go(state, agent)
                if self.steps > MAX_STEPS:
                    raise Unproved(self.kernel.span, f"more than {MAX_STEPS} steps between two decisions")
                if after == ASK:
                    asked[number] = context.asked
                if after == END or self.steps - before > 1:  # it may be back where it was
                    moved = True
        if asked:
            return asked[min(asked)]
        if any(place != END for place in places):
            raise deadlock.stuck(context, state)
        endings.check(context, state)
        return None

    def go(self, state: State, agent: Agent) -> int:
        """Runs one agent until it waits, asks or ends; its place is in the state."""
        context, places, steps, number = self.context, state.places, agent.steps, agent.number
        count = 0
        while True:
            at = places[number]
            step = steps[at]
            after = step.run(context, state, agent)
            count += 1
            if after >= 0:
                places[number] = after
                if count > MAX_TURN:
                    self.steps += count
                    raise Unproved(step.span or self.kernel.span, "a role runs too long between two decisions")
                continue
            if after == END:
                places[number] = END
            self.steps += count
            return after


def _is_clusters(op: Op) -> bool:
    if op.kind in (Kind.CLUSTER_ARRIVE, Kind.CLUSTER_WAIT) or op.what.space == "cluster":
        return True
    places = [*op.writes, *op.reads, *([op.barrier] if op.barrier is not None else [])]
    return any(place.address is not None and _maps(place.address) for place in places)


def _mixed(nodes: list[Any]) -> frozenset[int]:
    """Arrays in which barriers are initialised and data lies."""
    barriers: set[int] = set()
    data: set[int] = set()
    for node in nodes:
        if not isinstance(node, Op):
            continue
        if node.kind is Kind.BAR_INIT and node.barrier is not None and node.barrier.address is not None:
            barriers.add(affine(node.barrier.address, 1, {}) >> ARRAY_SHIFT)
        for place in (*node.writes, *node.reads) if node.kind is not Kind.ASYNC_MMA else ():
            data.add(affine(place.address, 1, {}) >> ARRAY_SHIFT if place.address is not None else 0)
    return frozenset(barriers if 0 in data else barriers & data)


def _maps(expr: Any) -> bool:
    return expr.op == "mapa" or any(_maps(arg) for arg in expr.args)


def _any_rank(shape: tuple[int, int, int], kernel: Kernel, symbols: Symbols) -> dict[str, Value]:
    """The same of blocks that have nothing to do with others of their cluster: one of them stands for all."""
    if kernel.cluster is None:
        return {}
    known: dict[str, Value] = {"cluster_nctarank": prod(shape)}
    known["cluster_ctarank"] = Sum(0, ((symbols.atom("symbol", "cluster_ctarank", (), 0, prod(shape) - 1), 1),))
    for axis, size in zip("xyz", shape, strict=True):
        known[f"cluster_nctaid_{axis}"] = size
        name = f"cluster_ctaid_{axis}"
        known[name] = 0 if size == 1 else Sum(0, ((symbols.atom("symbol", name, (), 0, size - 1), 1),))
    return known


def _ranks(cta: int, shape: tuple[int, int, int], symbols: Symbols) -> dict[str, Value]:
    """What a CTA of a cluster knows of its place."""
    x, y, z = shape
    at = {"x": cta % x, "y": cta // x % y, "z": cta // (x * y)}
    known: dict[str, Value] = {"cluster_ctarank": cta, "cluster_nctarank": x * y * z}
    for axis, size in zip("xyz", shape, strict=True):
        cluster = symbols.symbol(f"clusterid_{axis}", 0)
        known[f"cluster_ctaid_{axis}"] = at[axis]
        known[f"cluster_nctaid_{axis}"] = size
        known[f"clusterid_{axis}"] = cluster
        known[f"ctaid_{axis}"] = add(scale(cluster, size), at[axis])
    return known
