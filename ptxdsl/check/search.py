"""The search through the states of a kernel (``proof.py`` says why it is one, and what it finds)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxdsl.check import registers
from ptxdsl.check.agents import Shape, agents
from ptxdsl.check.boxes import box_sizes, published_maps
from ptxdsl.check.cluster import Apart, Blocks
from ptxdsl.check.context import Context
from ptxdsl.check.counters import Counters
from ptxdsl.check.expressions import Common, Expressions
from ptxdsl.check.findings import Fault, Finding, Unproved
from ptxdsl.check.flatten import flatten
from ptxdsl.check.layout import mixed
from ptxdsl.check.learned import BeginAgain, Learned
from ptxdsl.check.merging import weaken
from ptxdsl.check.normal import Normal, TooFarAhead
from ptxdsl.check.parts import Agent
from ptxdsl.check.phases import conclude
from ptxdsl.check.ranks import any_rank, by_rank, is_clusters, is_pairs, ranks
from ptxdsl.check.relevance import Relevance
from ptxdsl.check.running import SAME, Runner
from ptxdsl.check.states import LEFT, State
from ptxdsl.check.supposed import ACQUIRED, WRITTEN
from ptxdsl.check.symmetry import Symmetry
from ptxdsl.check.tables import join
from ptxdsl.check.threads import block_of, warps
from ptxdsl.check.undecided import Undecided, order
from ptxdsl.check.unwritten import Fill, perhaps_never_filled
from ptxdsl.check.values import Symbols
from ptxdsl.effects import Kind
from ptxdsl.hints import Any
from ptxdsl.protocol.model import Kernel, Op
from ptxdsl.record import replace

# States at decisions, and steps, after which a proof gives up.
MAX_STATES = 1_500
MAX_STEPS = 100_000
# Facts about how far roles are ahead.
MAX_FACTS = 200
_AHEAD = (
    "a role runs ahead of the others without end",
    "let it wait for the others: a barrier that they give back, once in so many turns",
)
_RANKS = "let all blocks of the cluster make the same number of turns, and guard the accesses of those with less to do"
# Faults on paths for which launch parameters are looked for.
MAX_FAULTS = 8


class Search(Runner):
    """Of one kernel, in blocks of a shape.

    coarse: tells fewer states apart; what it proves is so. exact: counts the turns of long loops to a constant.
    natural: takes parameters of trip counts not to be negative. races: looks at accesses. counts: keeps how often each
    event has happened. blocks: those of a cluster that one stands for.
    """

    def __init__(
        self, kernel: Kernel, threads: tuple[int, int, int], max_states: int, max_steps: int, *, coarse: bool = False,
        exact: bool = False, natural: bool = True, races: bool = True, counts: bool = False,
        blocks: Blocks | None = None,
    ) -> None:  # fmt: skip
        self.coarse, self.exact, self.natural = coarse, exact, natural
        self.races, self.counts = races, counts
        self.blocks = blocks or Blocks()
        super().__init__(kernel, max_steps)
        self.threads = threads
        self.max_states = max_states
        self.states = 0
        self.faults = 0
        self.shared: set[tuple[int, int]] = set()
        self.detailed: set[tuple[int, int]] = set()
        self.learned = Learned()
        self.doubtful: Finding | None = None  # a fault for which no launch parameters were found

    def prepare(self) -> None:
        """Agents with their programs, and the first state."""
        kernel = self.kernel
        self.seen: dict[Any, Undecided] = {}
        nodes = kernel.nodes
        clusters = any(isinstance(n, Op) and is_clusters(n) for n in nodes)
        if clusters and kernel.cluster is None:
            ptx = kernel.span.source.name.endswith(".ptx")
            said = ".reqnctapercluster x, y, z" if ptx else "@kernel(cluster=(x, y, z))"
            raise Unproved(kernel.span, "the size of the cluster is not known", f"say {said}, or --cluster")
        shape = kernel.cluster or (1, 1, 1)
        ctas = shape[0] * shape[1] * shape[2] if clusters else 1
        blocks = self.blocks
        if blocks.count > 1 and (not clusters or any(isinstance(n, Op) and is_pairs(n) for n in nodes)):
            raise Apart  # one block does for all as it is; or one of a pair for both
        self.counters = Counters(kernel, self.learned, self.coarse, self.exact)
        self.symbols = Symbols()
        block = block_of(self.threads)
        self.context = context = Context(kernel, self.counters, self.symbols, block.size, ctas, blocks)
        context.tracks_uses = any(isinstance(n, Op) and n.kind is Kind.BAR_INVAL for n in nodes)
        context.proxies = any(isinstance(n, Op) and n.what.proxy == "async" for n in nodes)
        context.boxes = box_sizes(kernel)
        for span in published_maps(nodes):
            context.supposed.note(ACQUIRED, span)
        context.mixed = mixed(nodes)
        context.races, context.coarse, context.natural = self.races, self.coarse, self.natural
        context.shared, context.detailed = self.shared, self.detailed
        program = Shape(kernel, block)
        masks = agents(program)
        known = [ranks(cta, shape, self.symbols) for cta in range(ctas)]
        if not clusters:
            known = [any_rank(shape, kernel, self.symbols)]
        common = Common(block, known[0] if ctas > 1 else ())
        if blocks.count > 1:
            common.blocks = [Expressions(common, block.all, self.counters, self.symbols, own) for own in known]
        for cta in range(ctas // blocks.count):
            for mask in masks:
                agent = Agent(len(context.agents), mask, cta, mask.bit_count(), len(warps(mask)) > 1, alone=ctas == 1)
                context.agents.append(agent)
                context.holders += 1
                expressions = Expressions(common, mask, self.counters, self.symbols, known[cta])
                differs = flatten(context, agent, expressions, program)
                if blocks.count > 1:
                    from ptxdsl.check import lockstep  # of clusters alone

                    lockstep.agree(agent.steps, common.differs)
                    others = []
                    for rank in range(1, ctas if differs else 1):
                        other = Agent(agent.number, mask, rank, agent.count, agent.several)
                        own = Expressions(common, mask, self.counters, self.symbols, known[rank], expressions)
                        flatten(context, other, own, program)
                        others.append(other.steps)
                    lockstep.match(agent.steps, others, blocks)
        if kernel.span.source.name.endswith(".ptx"):
            for span in perhaps_never_filled(kernel):
                context.supposed.note(WRITTEN, span)
        join(context)
        outermost = [{step.nesting[0] for step in agent.steps if step.nesting} for agent in context.agents]
        variables = [agent.variables for agent in context.agents]
        programs = [agent.steps for agent in context.agents]
        self.relevance = Relevance(context)
        self.symmetry: Symmetry | None = None
        self.normal = Normal(self.counters, self.symbols, variables, programs, outermost)

    def tells_apart(self, learned: BeginAgain) -> bool:
        """Makes a coarse search ready to begin again with turns that are told apart further; False where that takes
        other programs. What it has seen of barriers before may only let it prove less."""
        if learned.past is None:
            return False
        self.counters.tell_apart(*learned.past)
        self._forget_states()
        return True

    def follows_barriers(self) -> None:
        """Makes a coarse search ready to begin again with more of barriers that is followed."""
        for barrier in self.context.barriers:
            place = barrier.cta, barrier.address
            barrier.shared = barrier.shared or place in self.shared
            barrier.detailed = place in self.detailed
            barrier.relied = None
        self.symmetry = None
        self._forget_states()

    def _forget_states(self) -> None:
        self.seen.clear()
        self.context.last.clear()

    def first(self) -> State:
        state = State()
        state.times = {} if self.counts else None
        state.trips = None if self.coarse else {}
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
        self.pending = list[tuple[Undecided, int]]()
        self.follow(self.first())
        while self.pending:
            way = min(self.pending, key=order) if self.coarse else self.pending[0]
            self.pending.remove(way)
            asked, number = way
            asked.pending.discard(number)
            asked.ended.add(number)
            for state in self._learning(partial(asked.decided, self.context, asked.outcomes[number])):
                if self.follow(state):
                    asked.ended.discard(number)
        if self.symmetry is not None:
            self.symmetry.check()
        for finding in self.context.last.values():
            self.found(finding)
        waits = registers.check(self.context)
        if waits is not None:
            self.found(waits)

    def follow(self, state: State) -> bool:
        """Runs a state until something must be decided; what follows from there is pending if that is new."""
        asked = self.looked_at(state)
        if asked is None:
            return False
        for number in range(len(asked.outcomes))[::-1]:  # the last one first: loops that end
            if number not in asked.pending:
                asked.pending.add(number)
                self.pending.append((asked, number))
        return True

    def looked_at(self, state: State) -> Undecided | None:
        """Runs a state until something must be decided; None where that has been looked at before, or all is over."""
        context = self.context
        context.fit(state)
        try:
            asked = self._learning(partial(self.advance, state))
        except Fault as fault:
            self.found(fault.finding if self.coarse else self._located(state, fault.finding))
            return None
        if asked is None:
            return None
        context.fit(state)
        if self.coarse and self.states:
            if self.symmetry is None:
                self.symmetry = Symmetry(context, state)
            self.symmetry.turn(state)
            if self.detailed:
                conclude(context, state)
            self.relevance.forget(state)
        try:
            key = self.normal.place(state) if self.coarse else self.normal.key(state)
        except TooFarAhead:
            raise Unproved(self.kernel.span, *_AHEAD) from None
        found = self.seen.get(key)
        if found is None:
            found = self.seen[key] = self._new(state, asked)
        elif not self.coarse or not self._merged(found, state):
            return None
        if self.coarse and found.ask(context):
            self.pending = [way for way in self.pending if way[0] is not found]
        return found

    def _located(self, state: State, finding: Finding) -> Finding:
        """A finding with who is where in his loops: of the agent that has gone on last, or of all that cannot."""
        from ptxdsl.check.trips import located  # where there is a fault

        return located(self.context, state, self.context.agents if self.going is None else (self.going,), finding)

    def _new(self, state: State, asked: Any) -> Undecided:
        found = Undecided(state, asked, self.states, self.relevance.knows and self.states > 0)
        self.states += 1
        if len(state.facts.moving) > MAX_FACTS:
            raise Unproved(self.kernel.span, *_AHEAD)
        if len(state.facts.absolute) > MAX_FACTS:
            raise Unproved(self.kernel.span, "its loops compare other values in every turn", SAME)
        if self.exhausted:
            span = by_rank(self.kernel) if len({agent.mask for agent in self.context.agents}) == 1 else None
            if span is not None:
                why = "how often blocks go round this loop depends on their ranks in the cluster, in too many ways"
                raise Unproved(span, why, _RANKS)
            why = f"the roles' loops do not repeat: after {self.states - 1} different states there were more"
            raise Unproved(self.kernel.span, why, SAME)
        return found

    def _merged(self, seen: Undecided, state: State) -> bool:
        """Makes a state stand for another one at the same place as well; whether that makes a difference."""
        context = self.context
        context.fit(seen.state)
        forgets = not seen.forgetful and self.relevance.knows
        if forgets:
            self.relevance.forget(seen.state)
            seen.forgetful = True
        proxied = context.plain | context.tensor | context.initialisations()
        return weaken(seen.state, state, proxied, context.tensor) or forgets

    @property
    def exhausted(self) -> bool:
        """Whether all was looked at that may be."""
        return self.states > self.max_states or self.steps > self.max_steps

    def found(self, finding: Finding) -> None:
        """Raises Fault with launch parameters for which it shows, where there are some."""
        from ptxdsl.check.witness import assignment, is_of_launch, text  # where there is a fault

        if self.coarse:
            raise Fault(finding)
        self.faults += 1
        known = assignment(finding.path) if self.faults <= MAX_FAULTS else None
        if known is not None:
            trips = finding.trips if is_of_launch(finding.path, known) else ()
            raise Fault(replace(finding, witness=text(known), trips=trips))
        self.doubtful = self.doubtful or finding

    def _learning(self, work: Callable[[], Any]) -> Any:
        """What some work gives. The search need not begin again for turns to be told apart where no state was taken for
        one some of these turns before."""
        while True:
            try:
                return work()
            except BeginAgain as found:
                if found.past is None or self.counters.find(found.past[0]) in self.normal.moved:
                    raise
                found.add_to(self.learned)
                self.counters.tell_apart(*found.past)
