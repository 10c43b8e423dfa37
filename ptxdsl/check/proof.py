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
to who knows it (``relevance.py``) and what all have decided (``normal.py``), and one state stands for all that differ
in what is known (``merging.py``); and it takes states that differ in how far a ring has been turned for one
(``symmetry.py``, which is exact). Where the blocks of a cluster are alike it is made with one of them first
(``lockstep.py``). What it proves is proved. What it does not is looked at again by the *fine* search, which has the
last word, and all that is said of faults.

Source of the idea: marked graphs (Commoner, Holt, Even, Pnueli 1971), which rings with equal bodies are; the states
here are their reachable markings with the tokens' histories.
"""

from __future__ import annotations

from math import prod

from ptxdsl.check import classes
from ptxdsl.check.agents import Diverges, TooManyAgents
from ptxdsl.check.boxes import guesses
from ptxdsl.check.cluster import Apart, Blocks, ways
from ptxdsl.check.counted_up import counted_up
from ptxdsl.check.counters import LARGE_TRIP
from ptxdsl.check.counting import ranges_of
from ptxdsl.check.decisive import with_reads
from ptxdsl.check.findings import Again, Fault, Finding, Reason, Unproved
from ptxdsl.check.learned import BeginAgain
from ptxdsl.check.search import MAX_STATES, MAX_STEPS, Search
from ptxdsl.check.threads import block_of
from ptxdsl.check.unwritten import never_filled
from ptxdsl.check.written_out import written_out
from ptxdsl.protocol.model import Branch, Kernel, Loop
from ptxdsl.record import dataclass, replace

PROVED, FAULT, UNPROVED = "proved", "fault", "not provable here"


@dataclass(frozen=True)
class Proof:
    """verdict: one of the three above. findings: faults, and for ``not provable here`` why not.

    states, steps: how much was looked at. assumptions: what it takes for granted, each as a clause. by_values: whether
    it looks at what threads write. not_negative: parameters of trip counts that it takes for that.
    """

    verdict: str
    findings: tuple[Finding, ...] = ()
    reasons: tuple[Reason, ...] = ()
    states: int = 0
    steps: int = 0
    assumptions: tuple[str, ...] = ()
    by_values: bool = False
    not_negative: tuple[str, ...] = ()


def prove(
    kernel: Kernel, threads: tuple[int, int, int], *, max_states: int = MAX_STATES, max_steps: int = MAX_STEPS
) -> Proof:
    """Proves a kernel for blocks of a shape."""
    kernel = written_out(counted_up(ranges_of(with_reads(kernel))), block_of(threads))
    found = _searched(kernel, threads, max_states, max_steps)
    if found.verdict == FAULT:
        from ptxdsl.check.left_out import with_left_out  # where there is a fault
        from ptxdsl.check.ring_ends import explained

        findings = [explained(kernel, with_left_out(kernel, finding)) for finding in found.findings]
        return replace(found, findings=tuple(findings))
    if found.not_negative:
        found = _of_any_sign(kernel, threads, max_states, max_steps, found)
    unfilled = never_filled(kernel)
    return found if unfilled is None else Proof(FAULT, (unfilled,), (), found.states, found.steps)


def _is_long(loop: Loop) -> bool:
    """Whether its number of turns is a constant that is taken for an unknown one."""
    return loop.range is not None and loop.range.stop.op == "const" and loop.range.stop.value >= LARGE_TRIP


def _of_any_sign(kernel: Kernel, threads: tuple[int, int, int], max_states: int, max_steps: int, found: Proof) -> Proof:
    """The same without taking parameters not to be negative, if that is proved too."""
    for coarse in (True, False):
        general = Search(kernel, threads, max_states, max_steps, coarse=coarse, natural=False)
        if searched(general, in_general=False).verdict == PROVED:
            return replace(found, not_negative=())
    names = " and ".join(found.not_negative)
    clause = f"if {names} {'is' if len(found.not_negative) == 1 else 'are'} not negative"
    return replace(found, assumptions=(*found.assumptions, clause))


def _searched(kernel: Kernel, threads: tuple[int, int, int], max_states: int, max_steps: int) -> Proof:
    """What the coarse search comes to, or the fine one where that has not the last word."""
    for blocks in ways(prod(kernel.cluster or ())):
        found = in_lockstep(kernel, threads, blocks, max_states, max_steps)
        if found is not None:
            return found
    coarse = Search(kernel, threads, max_states, max_steps, coarse=True)
    found = searched(coarse)
    if found.verdict != PROVED and any(isinstance(node, Loop) and _is_long(node) for node in kernel.nodes):
        # how many turns they are may be what it depends on
        counted = searched(Search(kernel, threads, max_states, max_steps, exact=True), in_general=False)
        if counted.verdict != UNPROVED:
            return counted
    if found.verdict == PROVED and coarse.context.supposed.written:
        finer = searched(Search(kernel, threads, max_states, max_steps))
        return finer if finer.verdict == PROVED else found
    if found.verdict == PROVED or (found.verdict == UNPROVED and coarse.exhausted):
        return found
    found = searched(Search(kernel, threads, max_states, max_steps))
    if found.verdict != FAULT:
        return found
    kind = found.findings[0].kind
    if kind == classes.DATA_RACE:
        # What keeps the threads apart may be missing because some of them never come to it: that is said first.
        other = searched(Search(kernel, threads, max_states, max_steps, races=False))
        first = other.findings[0].kind if other.verdict == FAULT else None
        return other if first in (classes.DIVERGENT, classes.EARLY_USE) else found
    if kind in (classes.READ_BEFORE_FULL, classes.OVERWRITTEN, classes.UNDRAINED):
        return searched(Search(kernel, threads, max_states, max_steps, counts=True))  # who is ahead
    return found


def in_lockstep(
    kernel: Kernel,
    threads: tuple[int, int, int],
    blocks: Blocks,
    max_states: int = MAX_STATES,
    max_steps: int = MAX_STEPS,
) -> Proof | None:
    """A proof by one block of each cluster; None where there is none."""
    try:
        found = searched(Search(kernel, threads, max_states, max_steps, coarse=True, blocks=blocks))
    except Apart:
        return None
    return found if found.verdict == PROVED else None


def searched(search: Search, *, in_general: bool = True) -> Proof:
    """What one search comes to; it begins again where it has learned something of barriers.

    in_general: whether numbers may be tried for what is not known before the launch.
    """
    prepared = False
    try:
        while True:
            try:
                if not prepared:
                    search.prepare()
                search.run()
                break
            except Again as found:
                if search.blocks.count > 1 and not found.shared:
                    raise Apart from None
                (search.shared if found.shared else search.detailed).update(found.barriers)
                search.doubtful = None
                if search.coarse:
                    search.follows_barriers()
                prepared = search.coarse
            except BeginAgain as found:
                found.add_to(search.learned)
                search.doubtful = None
                prepared = search.coarse and search.tells_apart(found)
    except Unproved as unproved:
        return Proof(UNPROVED, (), (unproved.reason,), search.states, search.steps)
    except TooManyAgents as found:
        reason = Reason(found.span or search.kernel.span, found.why, found.remedy)
        return Proof(UNPROVED, (), (reason,), search.states, search.steps)
    except Diverges as found:
        return Proof(FAULT, (_divergent(found),), (), search.states, search.steps)
    except Fault as fault:
        return Proof(FAULT, (fault.finding,), (), search.states, search.steps)
    if search.doubtful is not None:
        from ptxdsl.check.witness import goes_by_memory  # seldom

        finding = search.doubtful
        shown = _shown(search, finding) if in_general else None
        if shown is not None:
            return Proof(FAULT, (shown,), (), search.states, search.steps)
        on = "what is read from memory" if goes_by_memory(finding.path) else "how trip counts are related"
        why = f"whether this can happen depends on {on} ({finding.kind}: {finding.message})"
        reason = Reason(
            finding.span,
            why,
            f"compute {'it once for all who use it' if goes_by_memory(finding.path) else 'them from one value'}",
        )
        return Proof(UNPROVED, (), (reason,), search.states, search.steps)
    supposed = search.context.supposed
    assumptions = (*guesses(search.kernel, search.context.boxes), *supposed.clauses())
    natural = tuple(sorted(supposed.not_negative))
    return Proof(PROVED, (), (), search.states, search.steps, assumptions, supposed.by_values, natural)


def _shown(search: Search, finding: Finding) -> Finding | None:
    """A fault of a small launch."""
    from ptxdsl.check.instances import MOST_STATES, MOST_STEPS, instances  # seldom

    for kernel, launch in instances(search.kernel, finding):
        found = searched(Search(kernel, search.threads, MOST_STATES, MOST_STEPS), in_general=False)
        if found.verdict == FAULT:
            (shown,) = found.findings
            return replace(shown, witness=", ".join(filter(None, (launch, shown.witness))))
    return None


def _divergent(found: Diverges) -> Finding:
    op = found.collective
    how = "take this branch differently" if isinstance(found.branch, Branch) else "go round this loop differently often"
    return Finding(
        classes.DIVERGENT,
        f"threads of a warp may {how}, but all of them must come to `{op.called}`",
        found.branch.span,
        ((op.span, "this waits for all threads"),),
        "keep threads that have nothing to do in the kernel until its last barrier, or branch by whole warps",
    )
