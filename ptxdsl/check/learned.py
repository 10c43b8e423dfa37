"""What a search finds out of counters on its way, and then begins again with.

A state is taken for one some turns before, with the facts about counters moved back by as much (``normal.py``). That is
right while a fact answers what is asked of the same counters. Other cases are found when they are asked:

- *Counters of two groups are compared with one unknown value*, as ``i < n`` in one role and ``j < n`` in another that
  counts by 2. How far i is from j matters then: they are of one group.
- *What is asked of an unknown value is asked without a counter*, as ``n == 7`` behind a loop to n, or the other way
  round: it was, and now a loop goes to n. Then turns are told apart as far as those constants. Beyond ``FARTHEST``, the
  answer is taken for unknown: that allows more than can be. The same goes for what holds whatever the launch and is
  asked with a counter, as ``m % 7 + i < 10``: of all turns it answers the first ones alone, or the others.
- *What is asked grows by another amount than what is known*, as ``2 * i < n`` in a loop to n. Such counters are
  followed turn by turn.
- *A counter begins again*, as ``i`` of ``while i != k`` in a loop over tiles, and what was learned of k in the tile
  before holds. Such counters are followed turn by turn; those of ranges (``counting.py``) are not of this kind.
"""

from __future__ import annotations

from ptxdsl.check.rates import moved
from ptxdsl.check.values import INFINITE
from ptxdsl.hints import TYPE_CHECKING
from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Assign, Loop, walk

if TYPE_CHECKING:
    from ptxdsl.check.counters import Counters

# Counters that are compared with constants beyond this are not told apart so far.
FARTHEST = 400

Rates = tuple[tuple[int, int, int], ...]  # group, turns, what a value grows by in so many turns of the group


class Learned:
    """united: counters that are of one group. past: by counter, up to which value those of its group are told apart.

    followed: counters that are never taken for what they were some turns before.
    """

    def __init__(self) -> None:
        self.united: set[tuple[int, int]] = set()
        self.past: dict[int, int] = {}
        self.followed: set[int] = set()


class BeginAgain(Exception):
    """The search does not hold without what is learned here."""

    def __init__(
        self,
        *,
        united: tuple[int, int] | None = None,
        past: tuple[int, int] | None = None,
        followed: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__()
        self.united = united
        self.past = past
        self.followed = followed

    def add_to(self, learned: Learned) -> None:
        before = len(learned.united), dict(learned.past), len(learned.followed)
        if self.united is not None:
            learned.united.add(self.united)
        if self.past is not None:
            group, value = self.past
            learned.past[group] = max(value, learned.past.get(group, 0))
        learned.followed |= self.followed
        if before == (len(learned.united), learned.past, len(learned.followed)):
            raise RuntimeError("a proof begins again with nothing new")


def answers(known: Rates, asked: Rates, cut: int, counters: Counters) -> bool:
    """Whether a fact that moves with some counters answers what others ask: whether a sum is at least ``cut``."""
    if asked:
        ours = {group: (turns, growth) for group, turns, growth in known}
        theirs = {group: (turns, growth) for group, turns, growth in asked}
        if ours.keys() != theirs.keys():
            first, second, *_ = sorted(ours.keys() | theirs.keys())
            raise BeginAgain(united=(first, second))
        unlike = {g for g, (turns, growth) in ours.items() if growth * theirs[g][0] != theirs[g][1] * turns}
        if unlike - counters.irregular:
            raise BeginAgain(followed=frozenset(unlike - counters.irregular))
        return True
    # counters that are moved back stay beyond ``past``, and so does what the fact says
    return all(
        _apart(group, -(-(cut if cut > 0 else 1 - cut) * turns // abs(growth)), counters)
        for group, turns, growth in known
    )


def settled_for_ever(low: int, high: int, rates: Rates, base: int, counters: Counters) -> tuple[int, int]:
    """What is left of bounds that do not move, for a question that moves from ``base`` on: what it does not pass, or
    passes in turns that are told apart."""
    for group, turns, growth in rates:
        for bound in (low, high):
            if abs(bound) < INFINITE and not _apart(group, (bound - base) * turns // growth + 1, counters):
                limit = base + (counters.past(group) - 1) * growth // turns
                if bound == low:
                    low = min(low, limit) if growth > 0 else -INFINITE
                else:
                    high = INFINITE if growth > 0 else max(high, limit)
    return low, high


def _apart(group: int, value: int, counters: Counters) -> bool:
    """Whether counters of a group are told apart up to a value."""
    if value <= counters.past(group) or group in counters.irregular:
        return True
    if value > (FARTHEST if counters.coarse else 4 * FARTHEST):
        return False
    raise BeginAgain(past=(group, value))


def begin_again(groups: set[int], counters: Counters) -> None:
    """Asks for the search to begin again where counters of these groups do so inside of loops."""
    followed = groups & _restarting(counters) - counters.irregular
    if followed:
        raise BeginAgain(followed=frozenset(followed))


def _restarting(counters: Counters) -> set[int]:
    if counters.restarting is None:
        counters.restarting = {
            group
            for loop in counters.kernel.nodes
            if isinstance(loop, Loop) and not loop.once
            for node in walk(loop.body)
            if isinstance(node, Assign)
            for target, value in zip(node.targets, node.values, strict=True)
            if (group := counters.group(target)) is not None and _from_elsewhere(value, group, counters)
        }
    return counters.restarting


def _from_elsewhere(value: Expr, group: int, counters: Counters) -> bool:
    """Whether a value is no counter of the group, nor one with a constant."""
    source = moved(value)
    return source is None or counters.group(source[0]) != group
