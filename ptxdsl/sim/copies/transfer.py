"""Asynchronous copies under way, and the groups of them that threads commit and wait for.

A transfer is an agent of two steps: the first reads its source, the second writes its destination and tells whoever is
to know (an mbarrier, the groups that wait). Between them anything may happen; what a program may not do before the end
of a copy therefore shows under some schedule. Source: PTX ISA, "Asynchronous copy", "Completion Mechanisms".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.host import Group, Wait, WaitsFor

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta

BULK, CP_ASYNC = "bulk group", "cp.async group"


class Transfer:
    """One instruction's copy, of all lanes that executed it together.

    read takes the source; write stores it and signals completion, given the time. what: for a deadlock report.
    leaves: it writes to global memory; once it has read, its CTA may exit. elsewhere: it uses no shared memory of its
    CTA, and goes on when that has exited: who needs it is the CTA that it writes to.
    """

    __slots__ = (
        "_read",
        "_write",
        "cta",
        "cycles",
        "done",
        "elsewhere",
        "leaves",
        "origin",
        "read_done",
        "time",
        "unit",
        "what",
    )

    def __init__(
        self,
        unit: str,
        group: Group,
        read: Callable[[], None],
        write: Callable[[int], None],
        cycles: int = 0,
        what: str = "",
        leaves: bool = False,
        elsewhere: bool = False,
    ) -> None:
        self.unit = unit
        self.cta: Cta = group.cta
        self.origin: Instruction = group.instruction
        self.cycles = cycles
        self.time = 0
        self.what = what
        self.leaves = leaves
        self.elsewhere = elsewhere
        self.read_done = self.done = False
        self._read = read
        self._write = write

    @property
    def harmless_at_exit(self) -> bool:
        return self.elsewhere or (self.leaves and self.read_done)

    def ready(self) -> bool:
        return True

    def step(self) -> bool:
        if not self.read_done:
            self._read()
            self.read_done = True
            return False
        self._write(self.time)
        self.done = True
        return True

    def describe(self) -> WaitsFor:
        return WaitsFor(self.unit, f"{self.origin.opcode} of line {self.origin.line}", self.what)


class After:
    """An agent of one step that comes when some transfers are done: an arrival that tracks them."""

    harmless_at_exit = False

    __slots__ = ("_act", "_transfers", "cta", "cycles", "origin", "time", "unit")

    def __init__(self, unit: str, group: Group, transfers: list[Transfer], act: Callable[[int], None]) -> None:
        self.unit = unit
        self.cta: Cta = group.cta
        self.origin: Instruction = group.instruction
        self.cycles = 0
        self.time = 0
        self._transfers = transfers
        self._act = act

    def ready(self) -> bool:
        return all(transfer.done for transfer in self._transfers)

    def step(self) -> bool:
        self._act(self.time)
        return True

    def describe(self) -> WaitsFor:
        left = sum(not transfer.done for transfer in self._transfers)
        return WaitsFor(self.unit, f"{self.origin.opcode} of line {self.origin.line}", _copies(left))


class _History:
    """Lanes with the same copies behind them. open: not committed yet; committed: groups, the oldest first."""

    __slots__ = ("committed", "mask", "open")

    def __init__(self, mask: int, open: list[Transfer], committed: list[list[Transfer]]) -> None:
        self.mask = mask
        self.open = open
        self.committed = committed


class Groups:
    """The groups of a warp's lanes, each lane its own. Lanes that do the same share one history."""

    def __init__(self) -> None:
        self._histories = [_History(0xFFFFFFFF, [], [])]

    def _of(self, mask: int) -> Iterator[_History]:
        """The histories of these lanes alone; one that others share is split."""
        for history in self._histories[:]:
            inside = history.mask & mask
            if not inside:
                continue
            if inside != history.mask:
                others = _History(history.mask & ~mask, history.open[:], history.committed[:])
                self._histories.append(others)
                history.mask = inside
            yield history

    def add(self, mask: int, transfer: Transfer) -> None:
        for history in self._of(mask):
            history.open.append(transfer)

    def commit(self, mask: int) -> None:
        for history in self._of(mask):
            history.committed.append(history.open)
            history.open = []
            self._forget(history)

    def pending(self, mask: int, keep: int) -> list[Transfer]:
        """The copies that must be over so that of each lane's groups only the ``keep`` newest are not."""
        found = []
        for history in self._of(mask):
            self._forget(history)
            waited = history.committed[: len(history.committed) - keep] if keep else history.committed
            found += [transfer for group in waited for transfer in group if not transfer.done]
        return found

    def prior(self, mask: int) -> Iterator[tuple[int, list[Transfer]]]:
        """All copies of these lanes that are not over, committed or not, with the lanes they are of."""
        for history in self._of(mask):
            self._forget(history)
            transfers = [transfer for group in history.committed for transfer in group] + history.open
            yield history.mask, [transfer for transfer in transfers if not transfer.done]

    def _forget(self, history: _History) -> None:
        """Drops complete groups at the old end: nobody waits for them any more."""
        committed = history.committed
        done = 0
        while done < len(committed) and all(transfer.done for transfer in committed[done]):
            done += 1
        if done:
            del committed[:done]


def groups_of(group: Group, kind: str) -> Groups:
    """The warp's groups of a kind, ``BULK`` or ``CP_ASYNC``."""
    made: Groups = group.machine.state(group.warp, kind, Groups)
    return made


def wait_for(group: Group, kind: str, keep: int, *, reads: bool = False) -> Wait | None:
    """What ``wait_group keep`` returns. reads: only the sources need to have been read (``.read``)."""
    transfers = groups_of(group, kind).pending(group.mask, keep)
    if reads:
        transfers = [transfer for transfer in transfers if not transfer.read_done]
    if not transfers:
        return None

    def over(transfer: Transfer) -> bool:
        return transfer.read_done if reads else transfer.done

    def describe() -> WaitsFor:
        left = [transfer for transfer in transfers if not over(transfer)] or transfers[-1:]
        first = left[0].origin
        return WaitsFor(kind, f"{first.opcode} of line {first.line}", _copies(len(left)), key=kind, by=tuple(left))

    return Wait(
        lambda: all(over(transfer) for transfer in transfers),
        describe,
        then=_go_on,
        at=lambda: max(transfer.time for transfer in transfers),
    )


def _go_on(group: Group) -> None:
    return None


def _copies(number: int) -> str:
    return f"{number} cop{'y' if number == 1 else 'ies'} under way"
