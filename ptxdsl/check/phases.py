"""Phases of mbarriers: arrivals, bytes, completions and waits, and that each falls into the phase it is meant for.

A wait for parity p means one phase: the last completed one, or the current one. It means the same one in every schedule
if, when it begins, the completion before that phase is known to the waiter (else the wait may look too early and be let
through by an older phase), and if the completion after it knows that the wait is over (else the barrier may run ahead,
and the parity means the phase after). So too an arrival: the completion before its phase must be known to who arrives,
unless he alone makes up the phases; else his arrival may fall into the phase before.
"""

from __future__ import annotations

from ptxdsl.check import blame
from ptxdsl.check.cluster import Apart
from ptxdsl.check.context import Context
from ptxdsl.check.findings import Again, Unproved
from ptxdsl.check.parts import Agent, Barrier
from ptxdsl.check.program import WAIT, Step
from ptxdsl.check.scopes import is_waited_for_narrowly
from ptxdsl.check.states import UNINITIALISED, Phase, State
from ptxdsl.check.states import phase as made_phase
from ptxdsl.check.threads import Mask, whole_warps
from ptxdsl.check.values import add
from ptxdsl.hints import Any


def need_initialised(
    context: Context, state: State, agent: Agent, barrier: Barrier, step: Step, *, remote: bool = False
) -> Phase:
    """The barrier's phase. Raises Fault where its initialisation is not visible to who uses it.

    remote: by the async proxy or another CTA, which takes a fence of the initialising thread as well.
    """
    phase = state.phases[barrier.number]
    if not phase.expected:
        raise blame.uninitialised(context, state, agent, barrier, step)
    known = state.known[agent.number] & ~context.hidden(state, agent, step.mask)
    if not known & barrier.init:
        raise blame.early_use(context, state, agent, barrier, step)
    unmet = _unmet(context, state, agent, barrier, step)
    if unmet:
        found = blame.early_use(context, state, agent, barrier, step)
        if unmet & ~whole_warps(context.masks[barrier.init], agent.mask):
            raise found
        context.tell_last(step, found)  # of one warp: that others may come too early is said first
    if remote and not state.proxied[agent.number] & barrier.init:
        raise blame.unfenced_init(context, state, agent, barrier, step)
    return phase


def _unmet(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step) -> Mask:
    """Those who use a barrier and have not met the thread of their own agent that has initialised it."""
    if not state.fresh[agent.number] & barrier.init:
        return 0
    by = context.masks[barrier.init]
    met = whole_warps(by, agent.mask) if state.met[agent.number] & barrier.init else by
    return step.mask & ~met


def initialise(
    context: Context, state: State, agent: Agent, barrier: Barrier, step: Step, count: int, mask: Mask
) -> None:
    """mask: the thread that does it."""
    if state.live & barrier.init and not state.phases[barrier.number].expected:
        known = state.known[agent.number] & ~context.hidden(state, agent, step.mask)
        if not known & barrier.init or _unmet(context, state, agent, barrier, step):
            raise blame.initialised_early(context, state, agent, barrier, step)
    if state.phases[barrier.number].expected:
        raise blame.initialised_again(context, state, agent, barrier, step)
    if problem := blame.beyond_array(context, state, barrier, step):
        raise problem
    assert step.span is not None
    lives = state.lives.get(barrier.number, ())
    if lives[-1:] != ((step.span, count),):  # another life: those who arrive may be others
        lives = state.lives[barrier.number] = (*lives[-3:], (step.span, count))
    barrier.live(lives)
    if barrier.own is not None:
        raise Apart
    bits = barrier.init | barrier.last | barrier.before
    everywhere = context.blocks.everywhere(bits)
    context.forget(state, everywhere)
    state.known[agent.number] |= bits
    state.live |= everywhere
    state.fresh[agent.number] |= barrier.init
    state.met[agent.number] &= ~barrier.init
    context.masks[barrier.init] = mask
    state.known[barrier.holder] |= barrier.last | barrier.before  # all who see the initialisation know as much
    state.phases[barrier.number] = made_phase(count, count, begun=context.coarse)


def invalidate(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step, mask: Mask) -> None:
    """mask: the thread that does it, of which who initialises the barrier again has to know."""
    need_initialised(context, state, agent, barrier, step)
    if context.blocks.count > 1:
        raise Apart
    others = barrier.uses
    for bit in barrier.waits.values():
        others |= bit
    known = state.known[agent.number] & ~context.hidden(state, agent, step.mask)
    if others & state.live & ~known:
        raise blame.still_live(context, state, agent, barrier, step, others & state.live & ~known)
    state.phases[barrier.number] = UNINITIALISED
    state.live &= ~others
    context.forget(state, others | barrier.init)
    state.known[agent.number] |= barrier.init
    state.fresh[agent.number] |= barrier.init
    state.met[agent.number] &= ~barrier.init
    context.masks[barrier.init] = mask


def arrive(
    context: Context,
    state: State,
    agent: Agent,
    barrier: Barrier,
    step: Step,
    count: int,
    *,
    announce: Any = 0,
    complete: Any = 0,
    brings: int = 0,
    remote: bool = False,
    narrow: bool = False,
    relaxed: bool = False,
    mask: Mask = 0,
) -> None:
    """count arrivals, ``announce`` bytes that are to come, ``complete`` bytes that have; brings: events told with them.

    What the agent knows goes into the barrier. Nothing of what threads have read or written tells what is relaxed, and,
    at another CTA's barrier, what is narrow: an arrival of the own CTA's scope. mask: of the step's threads those that
    arrive at this barrier, if not all.
    """
    phase = need_initialised(context, state, agent, barrier, step, remote=remote)
    known = state.known[agent.number] & ~context.hidden(state, agent, mask or step.mask)
    if step.unordered:
        known &= ~agent.uses
    seen, barrier = barrier, barrier.followed
    number = context.number_there(agent, seen)
    others = phase.arrived & ~(1 << number)
    unclear = phase.unclear
    if (count or announce != 0 or complete != 0) and barrier.relied not in (None, number):
        raise Again(barrier, shared=True)
    if announce != 0 or complete != 0:
        barrier.shared = True
    if count or announce != 0:
        sites = barrier.arrivals.setdefault(number, {})
        sites[step] = max(sites.get(step, 0), count)
        if not phase.unclear and not known & seen.last and not _implied(barrier, known, 1):
            if barrier.arrivals.keys() == {number} and not barrier.shared:
                barrier.relied = number  # he alone makes up the phases, as far as has been seen
            elif len(barrier.arrivals) > 1 and not barrier.detailed:
                raise Again(barrier, shared=False)
            else:  # It matters once somebody waits for it, or if somebody has waited for the phase before.
                early = context.unclear[barrier.number] = blame.arrives_early(context, state, agent, seen, step)
                unclear = True
                if any(bit & state.live for bit in barrier.waits.values()):
                    raise early
    if count > phase.pending:
        raise blame.too_many(context, state, agent, barrier, step, count, phase)
    holder = barrier.holder
    if barrier.detailed and count:
        known |= _arrived(context, state, barrier, number)
    given = known
    if relaxed or (narrow and seen.cta != agent.cta):
        given = known & ~context.plain
    elif seen.cta != agent.cta and known & context.stores and is_waited_for_narrowly(context, seen):
        given = known & ~context.stores
    state.known[holder + 1] |= context.seen_there(seen, given | brings)
    if context.proxies:
        proxied = state.proxied[agent.number] & given | brings & context.tensor
        state.proxied[holder + 1] |= context.seen_there(seen, proxied)
    if context.tracks_uses or seen.cta != agent.cta:
        use(context, state, agent, seen, step)
        state.known[holder + 1] |= barrier.uses & context.seen_there(seen, state.known[agent.number])
    outstanding = phase.bytes
    if announce != 0 or complete != 0:
        outstanding = add(add(outstanding, announce), complete, -1)
    pending = phase.pending - count
    alone = not (others or phase.announced or step.unordered) and announce == 0 and complete == 0
    phase = made_phase(
        phase.expected,
        pending,
        outstanding,
        phase.parity,
        phase.arrived | (1 << number if count else 0),
        phase.announced or announce != 0 or complete != 0,
        phase.begun,
        unclear,
    )
    state.phases[barrier.number] = phase
    if pending:
        return
    if outstanding == 0:
        _complete(context, state, barrier)
        if alone:  # its arrivals have made the phase up: those of its warps that have arrived know of it
            if whole_warps(step.mask, agent.mask) == agent.mask:
                state.known[agent.number] |= seen.last | seen.before
            else:
                barrier.by_some = True
    elif outstanding < 0 if isinstance(outstanding, int) else complete != 0:
        raise blame.wrong_bytes(context, state, agent, barrier, step, outstanding)


def _arrived(context: Context, state: State, barrier: Barrier, number: int) -> int:
    """Notes the arrival of one agent; its bit."""
    bits = context.each_bits(barrier, number)
    context.forget(state, bits[0])
    state.known[number] |= bits[0]
    state.live |= bits[0]
    return bits[0]


def _implied(barrier: Barrier, known: int, generation: int) -> bool:
    """Whether a completion is known because all its arrivals are. generation: 1 of the last phase, 2 of that before."""
    return bool(barrier.each) and all(known & bits[generation] for bits in barrier.each.values())


def conclude(context: Context, state: State) -> None:
    """Who knows of all arrivals of a completed phase knows of its completion."""
    for barrier in context.barriers:
        if barrier.each:
            for generation, completion in ((1, barrier.last), (2, barrier.before)):
                state.known = [k | completion if _implied(barrier, k, generation) else k for k in state.known]


def use(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step) -> None:
    """Notes that an agent has used a barrier, for who invalidates it, and for its CTA's end."""
    bit = context.use_bit(barrier, agent, step)
    everywhere = context.blocks.everywhere(bit)
    context.forget(state, everywhere, seen=False)
    state.known[agent.number] |= bit
    state.live |= everywhere


def _complete(context: Context, state: State, barrier: Barrier) -> None:
    """The phase is complete."""
    holder, last, before = barrier.holder, barrier.last, barrier.before
    brought = state.known[holder + 1]
    waits = 0
    for bit in barrier.waits.values():
        waits |= bit
    late = waits & state.live & ~brought
    if late:
        raise blame.runs_ahead(context, state, barrier, late)
    everywhere = context.blocks.everywhere
    waits = everywhere(waits)
    state.live &= ~waits
    state.fresh = [fresh & ~waits for fresh in state.fresh]
    completed, by = everywhere(last), before.bit_length() - last.bit_length()
    drop = context.events ^ (waits | completed | completed << by)
    state.known = [(k & drop) | (k & completed) << by if k & completed else k & drop for k in state.known]
    seen = state.proxied[holder + 1]
    for now, then, earlier in barrier.each.values():
        three = now | then | earlier
        keep = context.events ^ three
        state.known = [
            k & keep | (then if k & now else 0) | (earlier if k & then else 0) if k & three else k for k in state.known
        ]
        brought = brought & keep | (then if brought & now else 0) | (earlier if brought & then else 0)
        happened = state.live
        state.live = happened & keep | (then if happened & now else 0) | (earlier if happened & then else 0)
    state.known[holder] = (brought & drop & barrier.carries) | last | before
    state.proxied[holder] = seen & barrier.carries
    state.known[holder + 1] = state.proxied[holder + 1] = 0
    phase = state.phases[barrier.number]
    state.phases[barrier.number] = made_phase(
        phase.expected, phase.expected, 0, phase.parity ^ 1, 0, False, True, phase.unclear
    )


def wait(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step, parity: int) -> int:
    """Waits for a parity: the number of the next step, or WAIT."""
    phase = need_initialised(context, state, agent, barrier, step)
    number = agent.number
    if barrier.own is not None:
        raise Apart
    if not barrier.told >> number & 1:
        raise Unproved(
            step.span or context.kernel.span,
            "who waits at this barrier is not the same in every turn",
            "let each barrier have the same waiters in every turn",
        )
    barrier.waiters.setdefault(number, step)
    if phase.unclear:
        raise context.unclear[barrier.number]
    if phase.parity == parity & 1:
        return WAIT
    if not state.known[number] & barrier.before and not _implied(barrier, state.known[number], 2):
        if len(barrier.arrivals) > 1 and not barrier.detailed:
            raise Again(barrier, shared=False)
        if barrier.by_some:
            raise Unproved(
                step.span or context.kernel.span,
                "all warps of a role wait for a phase that some of them complete",
                "let the warps that arrive be a role of their own, by a branch on the warp",
            )
        raise blame.looks_early(context, state, agent, barrier, step)
    holder = barrier.holder
    gained = state.known[holder]
    state.known[number] |= gained
    state.proxied[number] |= state.proxied[holder]
    state.fresh[number] &= ~gained
    state.met[number] &= ~gained
    bit = barrier.waits.get(number) or context.wait_bit(barrier, number)
    if bit & state.live and state.fill.returned[number] >> barrier.number & 1:
        context.tell_last(step, blame.waits_again(context, state, agent, barrier, step))
    everywhere = context.blocks.everywhere(bit)
    keep = context.events ^ everywhere
    state.known = [k & keep for k in state.known]
    state.known[number] |= bit
    state.live |= everywhere
    if agent.several:  # each of its warps knows of its own wait alone
        context.masks[bit] = agent.mask
        context.waits_by_warps |= bit
        state.fresh[number] |= bit
        state.met[number] |= bit
    return step.number + 1
