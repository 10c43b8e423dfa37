"""How a launch is run, beside what is launched: the keywords that the simulator's doors hand on to one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from ptxdsl.sim.limits import Limits, Progress
    from ptxdsl.sim.machine.schedule import Schedule
    from ptxdsl.sim.watch import Watch


class RunOptions(TypedDict, total=False):
    """Which turns are taken and how many, and who sees them.

    schedule: None for round robin, a text as ``--schedule`` has it, or one that was recorded. limits: where the run
    ends. trace: collect events for a timeline. record: keep the turns for a replay. progress: called every tenth of a
    second or so. stdout: called with what the kernel prints, at once. watch: is told of all that happens.
    """

    schedule: Schedule | str | None
    limits: Limits | None
    trace: bool
    record: bool
    progress: Callable[[Progress], None] | None
    stdout: Callable[[str], None] | None
    watch: Watch | None
