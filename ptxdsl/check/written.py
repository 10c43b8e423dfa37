"""Threads that write the same bytes in one execution of a statement: whether they write the same there.

Where they do not, it is a race: no order of the two is promised. Where it is not known what they write, or which bytes,
the proof takes it for granted that they do not get into each other's way, and says so.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import gcd

from ptxdsl.check.addresses import Part
from ptxdsl.check.context import Context
from ptxdsl.check.expressions import Environment
from ptxdsl.check.guards import Guard, together
from ptxdsl.check.intervals import Form, by_one_thread
from ptxdsl.check.parts import Clash, Touch
from ptxdsl.check.supposed import APART
from ptxdsl.check.threads import Mask, members
from ptxdsl.check.values import UNKNOWN
from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import TURN, Written


@lru_cache(1024)
def _meeting(form: Form) -> tuple[tuple[int, bool, tuple[int, ...]], ...]:
    """The places of an access at which threads write the same bytes: the place's number, whether all write the same
    bytes of it or some only parts of another's, and these threads."""
    if by_one_thread(form):
        return ()
    threads = members(form.mask)
    if len(threads) * sum(width for *_, width in form.places) == sum(end - start for start, end in form.intervals):
        return ()
    found = []
    for place, (lanes, _, width) in enumerate(form.places):
        by_start: dict[int, list[int]] = {}
        for i, thread in enumerate(threads):
            by_start.setdefault(lanes[i] if lanes is not None else 0, []).append(thread)
        apart: list[tuple[int, list[int]]] = []  # where the last byte of what a group writes ends, and the group
        for start in sorted(by_start):
            if apart and start < apart[-1][0]:
                found.append((place, False, (*apart[-1][1], *by_start[start])))
            apart.append((start + width, by_start[start]))
        found += [(place, True, tuple(group)) for group in by_start.values() if len(group) > 1]
    return tuple(found)


def clash(context: Context, touch: Touch, written: list[tuple[Part, Written | None]]) -> Clash | None:
    """Of a write to known bytes. written: by which parts, and what, at each of its places."""
    if not touch.exact:
        return None
    for form in (touch, *touch.elsewhere):
        for place, whole, threads in _meeting(form.form):
            found = _of_place(context, *written[place], whole, threads, touch.when)
            if found is not None:
                return found
    return None


def _of_place(
    context: Context, part: Part, written: Written | None, whole: bool, threads: tuple[int, ...], when: Guard | None
) -> Clash | None:
    """Of threads that meet at one place. whole: all write the same bytes of it."""
    context.supposed.by_values = True
    told_by = None if written is None else written.told_by()
    if told_by is None:
        context.supposed.note(APART, part.span)
        return None
    differ = _differ(part, told_by, threads, when)
    if differ is not None and part.happens:
        return Clash(part.span, *differ)
    if differ is not None or not whole:
        context.supposed.note(APART, part.span)
    return None


def suppose(context: Context, part: Part, env: Environment, mask: Mask, when: Guard | None) -> None:
    """Of a write to bytes that are not known: notes what is taken for granted of them."""
    if by_one_thread(Form(mask, ((0, 1),), (), when)):
        return
    context.supposed.by_values = True
    told_by = [None if written is None else written.told_by() for written in part.written]
    if all(told == () or (told == (TURN,) and not part.spread) for told in told_by):
        return
    if not (len(told_by) == 1 and apart(part, env, mask)):
        context.supposed.note(APART, part.span)


def _differ(
    part: Part, told_by: tuple[Expr, ...], threads: tuple[int, ...], when: Guard | None
) -> tuple[int, int] | None:
    """Two threads, of some that all write the same bytes, that have different values."""
    rows = [part.expressions.row(expr) for expr in told_by if expr is not TURN]
    cases = together(when, when)
    before: dict[tuple[int, ...], tuple[int, int]] = {}  # by value: when threads come to it, and one of them
    for thread in threads:
        value = tuple([row[thread] for row in rows if isinstance(row, list)])
        comes = 1 if cases is None else cases[0][thread]
        for other, (others, one) in before.items():
            if other != value and others & comes:
                return one, thread
        others, one = before.get(value, (0, thread))
        before[value] = others | comes, one
    return None


def apart(part: Part, env: Environment, mask: Mask) -> bool:
    """Whether threads write different bytes wherever these lie: their own parts of the address keep them apart, in one
    turn of the loops around and from turn to turn."""
    address = part.place.address
    width = part.bytes_of(env)
    if address is None or width is None:
        return False
    own = [0] * mask.bit_count()
    turning = {v for v, _ in part.spread}
    step = 0  # what the turns of loops add is a multiple of it
    for leaf, factor in part.expressions.terms(address).items():
        start = part.starts.get(leaf.value) if leaf.op == "var" else None
        row = part.expressions.row(start[0] if start is not None else leaf)
        if row is not None:
            of_threads = [row] * len(own) if isinstance(row, int) else [row[t] for t in members(mask)]
            own = [at + of_thread * factor for at, of_thread in zip(own, of_threads, strict=True)]
        if start is not None:
            step = gcd(step, factor * start[1])
        if row is not None:
            continue
        inside = leaf.variables & turning
        if part.expressions.varies(leaf) or (not inside and part.expressions.function(leaf)(env) is UNKNOWN):
            return False
        if any(part.expressions.varies(part.starts[v][0]) for v in inside):
            return False
        if inside:
            step = gcd(step, factor)
    starts = sorted(at % step if step else at for at in own)
    if step:
        starts.append(starts[0] + step)
    return all(after - before >= width for before, after in pairwise(starts))
