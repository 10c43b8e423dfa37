"""A witness: a launch and a schedule under which a kernel shows a fault, in a file.

The file is a recorded schedule (``schedule.Recording``) with the launch that it belongs to. ``ptxdsl run FILE
--schedule WITNESS`` takes from it what its command line leaves out, so that nothing else need be said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptxdsl.diagnostics import error
from ptxdsl.record import dataclass, field
from ptxdsl.sim.machine.schedule import BAD_SCHEDULE, Recording

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """args: ``--arg`` entries by name. smem: dynamic shared memory, in bytes."""

    kernel: str | None
    constants: Mapping[str, str]
    arch: str
    grid: Dim3
    block: Dim3
    cluster: Dim3 | None = None
    smem: int | None = None
    args: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Witness:
    """shows: the code of what it shows, and the line of the text. races: the trace check must look for it; lanes: by
    lanes (``races.by_lanes``). differs: the results are not those of the default schedule."""

    launch: Launch
    schedule: Recording
    shows: str
    races: bool = False
    differs: bool = False
    lanes: bool = False

    def to_json(self) -> str:
        import json  # recorded schedules alone

        schedule = json.loads(self.schedule.to_json())
        launch = {
            "kernel": self.launch.kernel,
            "constants": dict(self.launch.constants),
            "arch": self.launch.arch,
            "grid": self.launch.grid,
            "block": self.launch.block,
            "cluster": self.launch.cluster,
            "smem": self.launch.smem,
            "args": dict(self.launch.args),
        }
        told = {"shows": self.shows, "races": self.races, "lanes": self.lanes, "differs": self.differs}
        return json.dumps({**told, "launch": launch, **schedule}, separators=(",", ":")) + "\n"


def read_witness(text: str, recording: Recording) -> Witness | None:
    """Of a recorded schedule's text, with its turns; None of a schedule alone. Raises E1103."""
    import json

    data = json.loads(text)
    launch = data.get("launch")
    if launch is None:
        return None
    try:
        made = Launch(
            None if launch["kernel"] is None else str(launch["kernel"]),
            {str(name): str(value) for name, value in launch["constants"].items()},
            str(launch["arch"]),
            _dims(launch["grid"]),
            _dims(launch["block"]),
            None if launch["cluster"] is None else _dims(launch["cluster"]),
            None if launch["smem"] is None else int(launch["smem"]),
            {str(name): str(value) for name, value in launch["args"].items()},
        )
        said = {name: bool(data.get(name)) for name in ("races", "differs", "lanes")}
        return Witness(made, recording, str(data["shows"]), **said)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        what = f"the launch of a witness cannot be read ({type(problem).__name__}: {problem})"
        raise error(BAD_SCHEDULE, what, None) from None


def _dims(value: Any) -> Dim3:
    x, y, z = map(int, value)
    return x, y, z
