"""One place of an access: from an agent's variables to the bytes that its threads touch, and in whose memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import product

from ptxdsl.check import classes
from ptxdsl.check.expressions import Environment, Expressions, Function
from ptxdsl.check.findings import Fault, Finding, Unproved
from ptxdsl.check.intervals import Intervals, Places, intervals_of, merged, moved
from ptxdsl.check.ranks import names_rank
from ptxdsl.check.threads import Lanes, Mask
from ptxdsl.check.values import UNKNOWN, Sum, Value
from ptxdsl.protocol.expressions import ARRAY_SHIFT, CTA_SHIFT, Expr
from ptxdsl.protocol.model import Place, Written
from ptxdsl.record import dataclass
from ptxdsl.source import Span

BEYOND = "this may reach beyond the array that it accesses"
WITHIN = "keep all threads' indices within the array for every size of the block and every turn, or make it larger"


@lru_cache(256)
def _range(lanes: Lanes) -> tuple[int, int]:
    return min(lanes), max(lanes)


@lru_cache(1024)
def _all_bytes(places: Places) -> Intervals:
    return merged([moved(intervals_of(lanes or (0,), width), at) for lanes, at, width in places])


@dataclass(frozen=True, slots=True)
class Turns:
    """A loop whose turns all count at once. index: its counter, a variable. values: those of the counter, none: any."""

    index: int
    values: tuple[int, ...]
    start: Expr
    step: int


Spread = tuple[Turns, ...]


class Part:
    """One place of an access: from an agent's variables to bytes.

    spread: loop counters with the values that all count at once (none: any). boxes: bytes of places without a width.
    certain: whether all who come to the site access it, and their first access it is. happens: whether it is accessed
    in some launch by each thread that comes to it. offsets: of places that lie by constants from the first one;
    written: what is written at each.
    """

    def __init__(
        self,
        place: Place,
        span: Span,
        mask: Mask,
        expressions: Expressions,
        spread: Spread = (),
        boxes: Mapping[int, int] | None = None,
        certain: bool = True,
        happens: bool = True,
    ) -> None:
        self.place = place
        self.expressions = expressions
        self.happens = happens
        self.written: tuple[Written | None, ...] = (place.written,)
        self.span = span
        self.certain = certain and all(turns.values for turns in spread)
        self.width = place.width if place.width is not None or boxes is None else boxes.get(id(place))
        self.spread = tuple((turns.index, turns.values) for turns in spread)
        self.starts = {turns.index: (turns.start, turns.step) for turns in spread}
        self.function: Function = lambda env: UNKNOWN
        self.lanes: Lanes | None = None
        self.least = self.most = 0  # of them
        self.ranked = False  # whether it is in the block of a rank
        self.variables: frozenset[int] = frozenset()
        self.root = 0
        self.offsets: tuple[int, ...] = (0,)
        if place.address is not None:
            self.function, self.lanes, self.variables = expressions.split(place.address, mask)
            self.root = expressions.root(place.address)
            if self.lanes:
                self.least, self.most = _range(self.lanes)
            self.ranked = names_rank(place.address)
        self.width_function = expressions.function(place.width) if isinstance(place.width, Expr) else None
        if isinstance(place.width, Expr):
            self.variables |= place.width.variables
        turning = frozenset(self.starts)
        self.slot_function = None if place.address is None else expressions.slot(place.address, turning)
        # Whether it is certain, and where it is and how wide, when compiling.
        self.fixed = self.certain and isinstance(place.width, int) and place.address is not None and not self.variables
        self.elsewhere: tuple[Part, ...] = ()  # the same of other blocks, as ``Step.elsewhere``
        self._base: dict[int, Intervals] = {}

    def takes(self, place: Place, span: Span, expressions: Expressions, certain: bool, happens: bool) -> bool:
        """Takes another place, written at the same line, whose address differs by a constant alone."""
        own = self.place.address
        if (
            self.spread
            or own is None
            or place.address is None
            or not isinstance(place.width, int)
            or (place.width, span, certain, happens) != (self.width, self.span, self.certain, self.happens)
        ):
            return False
        by = expressions.distance(own, place.address)
        if by is None or (self.root ^ self.root + by) >> ARRAY_SHIFT:
            return False
        self.offsets += (by,)
        self.written += (place.written,)
        return True

    def of(self, rank: int) -> Part:
        return self.elsewhere[rank - 1] if rank and self.elsewhere else self

    def names_block(self, env: Environment) -> bool:
        """Whether it is told in whose memory it is."""
        addresses = self.addresses(env)
        return addresses is None or any((address + self.most) >> CTA_SHIFT for address in addresses)

    def cta(self, address: int, own: int, count: int, *, said: bool) -> int:
        """In whose memory an address is, of as many blocks (said: as the kernel says). Raises Fault where it is in none
        of them, and Unproved where that depends on the launch or it is in several."""
        rank = (address + self.least) >> CTA_SHIFT
        if rank != (address + self.most) >> CTA_SHIFT:
            raise Unproved(
                self.span,
                "threads access the memory of different blocks here",
                "access each block's memory by a statement of its own",
            )
        cta = rank - 1 if rank or self.ranked else own
        if 0 <= cta < count:
            return cta
        if not self.ranked:
            raise Unproved(self.span, BEYOND, WITHIN)
        what, remedy = f"the cluster has no block of rank {cta}", "ranks are counted from 0: keep them below its size"
        if self.fixed and said:
            raise Fault(Finding(classes.STALE_STAGE, what, self.span, (), remedy))
        raise Unproved(self.span, what, remedy)

    def base(self, width: int) -> Intervals:
        found = self._base.get(width)
        if found is None:
            found = self._base[width] = intervals_of(self.lanes or (0,), width)
        return found

    def all_bytes(self, pieces: list[tuple[Part, int, int]]) -> Intervals:
        """The bytes of parts, of which this one is the first, each at an address and of a width. Those of stages differ
        by where they begin alone."""
        _, first, width = pieces[0]
        if len(pieces) == 1:
            return moved(self.base(width), first)
        return moved(_all_bytes(tuple([(part.lanes, at - first, width) for part, at, width in pieces])), first)

    def bytes_of(self, env: Environment) -> int | None:
        """The width of each thread's access; of an unknown one the most that it can be, None where that is unknown."""
        if self.width_function is None:
            return self.width if isinstance(self.width, int) else None
        value = self.width_function(env)
        if isinstance(value, int):
            return value
        if isinstance(value, Sum) and len(value.terms) == 1 and value.terms[0][1] == 1:
            high = value.terms[0][0].high
            return high + value.constant if high < 1 << 40 else None
        return None

    def slot(self, env: Environment) -> Value:
        """What may be the number of the stage."""
        return UNKNOWN if self.slot_function is None else self.slot_function(env)

    def addresses(self, env: Environment) -> list[int] | None:
        """The shared part of the address, for all values of the spread; None where it is unknown."""
        if not self.spread:
            value = self.function(env)
            return [value + by for by in self.offsets] if type(value) is int else None
        if any(v in self.variables and not values for v, values in self.spread):
            return None
        turning = [(v, values) for v, values in self.spread if v in self.variables]
        env = env[:]
        found = []
        for values in product(*(values for _, values in turning)):
            for (v, _), value in zip(turning, values, strict=True):
                env[v] = value
            address = self.function(env)
            if type(address) is not int:
                return None
            found.append(address)
        return found


def parts_of(
    places: Iterable[Place],
    span: Span,
    mask: Mask,
    expressions: Expressions,
    *,
    spread: Spread = (),
    boxes: Mapping[int, int] | None = None,
    certain: bool = True,
    happens: bool = True,
    to: list[Part] | None = None,
) -> list[Part]:
    """The parts for places of threads of a mask, behind others of the same mask."""
    parts = [] if to is None else to
    for place in places:
        if spread or not parts or not parts[-1].takes(place, span, expressions, certain, happens):
            parts.append(Part(place, span, mask, expressions, spread, boxes, certain, happens))
    return parts
