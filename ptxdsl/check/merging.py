"""One state for several that differ in what is known alone.

Where the agents stand, what the barriers have and what is decided is the *place* that a search has come to; how it came
there shows in who knows what. A search need not follow each way on its own. Let a state be *weaker* than another one at
the same place if whatever is in the way in the other one is in its way too: what has happened and is not known, what
threads have not met since, bytes that have been read in an earlier turn. No step is made possible by what somebody does
not know, nor does a step lead elsewhere because of it; so what is proved of the weaker state is proved of the other.

The same goes for facts (``facts.py``) about values that are the same in the whole launch: with fewer a state has more
to decide. Two things must be seen to. What a step asks is decided in full before anything of it is forgotten
(``Undecided.decided``). And a state stands for others that are some turns further on (``normal.py``), so what turns
decide is no fact about the launch (``Facts._outcome``): ``n <= 0``, found where a role left its loop in the first turn,
would mean another n if it was a later one.

``weaken`` makes of a state the strongest one that is weaker than it and another one. A place is looked at again when a
way to it brings something new; as there are only so many events, that comes to an end. What is found to be wrong may be
so on no single way, and is looked for again without merging (``proof.py``).
"""

from __future__ import annotations

from ptxdsl.check.states import State


def weaken(state: State, other: State, proxied: int, fenced: int) -> bool:
    """Makes a state stand for another one at the same place as well; whether that makes a difference.

    proxied, fenced: events of which anybody asks who knows them so.
    """
    here, there = state.live, other.live
    either, only_here, only_there = here | there, here & ~there, there & ~here
    changed = False
    # What has not happened on one of the ways is in nobody's way there, as if all knew it.
    for mine, others, asked in (
        (state.known, other.known, -1),
        (state.proxied, other.proxied, proxied),
        (state.fenced, other.fenced, fenced),
    ):
        for number, (a, b) in enumerate(zip(mine, others, strict=True)):
            if a != b or only_there:
                both = a & b | a & only_here | b & only_there
                mine[number] = both
                changed = changed or asked & either & ~both & ~(here & ~a) != 0
    state.live = either
    for number, (a, b) in enumerate(zip(state.fresh, other.fresh, strict=True)):
        met, met_there = state.met[number], other.met[number]
        if a != b or met != met_there:
            changed = changed or b & ~a != 0 or met & a & b & ~met_there != 0
            state.met[number] = met & met_there | met & a & ~b | met_there & b & ~a
            state.fresh[number] = a | b
    changed |= state.facts.weaken(other.facts)
    return state.fill.weaken(other.fill) or changed
