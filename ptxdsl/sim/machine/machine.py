"""The machine: clusters, warps and asynchronous agents under a schedule.

CTAs are started in order, and lazily: another cluster begins when few warps are resident or when nothing that is
resident can move. So any grid needs little memory, and CTAs that spin on one another still come on.

A turn of a warp is in ``turns``; what happens when nothing can move, in ``stall``.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy.typing as npt

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.host import Agent, Fault
from ptxdsl.sim.layout import LAUNCH, cells, offset
from ptxdsl.sim.limits import Limits, Progress, Statistics
from ptxdsl.sim.machine.cta import AgentEntity, Cluster, Cta, CtaStorage
from ptxdsl.sim.machine.endless import Endless
from ptxdsl.sim.machine.exits import check_exit, warn_at_exit
from ptxdsl.sim.machine.faults import ACCESS_CODES, Places, SimulationFault, cta_text
from ptxdsl.sim.machine.host_turns import HostTurns
from ptxdsl.sim.machine.memory import AccessFault, Memory, host_address
from ptxdsl.sim.machine.polling import Snapshots
from ptxdsl.sim.machine.schedule import Recorder, RoundRobin, Schedule
from ptxdsl.sim.machine.sites import site_of
from ptxdsl.sim.machine.stall import Stall
from ptxdsl.sim.machine.timeline import Trace
from ptxdsl.sim.machine.turns import Turns
from ptxdsl.sim.machine.warp import Warp
from ptxdsl.sim.watch import AccessLog, How

if TYPE_CHECKING:
    from ptxdsl.sim.arguments import Shape
    from ptxdsl.sim.run_options import RunOptions
    from ptxdsl.sim.translate.warp_code import WarpCode

T = TypeVar("T")
Dim3 = tuple[int, int, int]

RESIDENT_WARPS = 32  # while fewer are resident, another cluster is started
_CHECK_EVERY = 256  # turns between looks at limits and progress
_PROGRESS_SECONDS = 0.1

WRITES_QUAD = offset(LAUNCH, "writes") // 8


class Machine:
    """Runs one launch. ``memory`` holds the arguments already."""

    def __init__(
        self,
        code: WarpCode,
        memory: Memory,
        shape: Shape,
        places: Places,
        schedule: Schedule,
        limits: Limits,
        seen_by: RunOptions,
        *,
        together: bool,
    ) -> None:
        """seen_by: of these options all but schedule and limits count. together: all clusters begin at once."""
        grid, block, cluster = shape.grid, shape.block, shape.cluster
        watch = seen_by.get("watch")
        program = code.program
        self.code = code
        self.program = program
        self.symbols = program.symbols
        self.memory = memory
        self.grid, self.block, self.cluster_shape = grid, block, cluster
        self.together = together
        self.schedule = schedule
        self.limits = limits
        self.endless = Endless(self, limits.idle_steps)
        self.places = places
        self.trace = Trace() if seen_by.get("trace") else None
        self.progress = seen_by.get("progress")
        self.stdout = seen_by.get("stdout")
        self.watch = watch
        self.log = AccessLog(memory) if watch is not None else None
        self.statistics = Statistics()
        self.warnings: list[Diagnostic] = []
        self.output: list[str] = []  # printf
        self.states: dict[object, Any] = {}
        self.touches: dict[object, dict[Warp, Instruction]] = {}  # of each barrier, who arrived on it last and where
        self.row_numbers: dict[Any, Any] = {}  # WarpGroup.read_many
        self.changes = 0  # host instructions and agents' steps that changed something
        self.current: Warp | AgentEntity | None = None
        self.resident: dict[int, Cluster] = {}
        self.cta_count = grid[0] * grid[1] * grid[2]
        self.cluster_size = cluster[0] * cluster[1] * cluster[2]
        self.cluster_count = self.cta_count // self.cluster_size
        self.next_cluster = 0
        self.shared_end = self.symbols.dynamic_start + shape.shared_bytes
        self.fuel = self.schedule.recorded.fuel if self.schedule.recorded else self.schedule.fuel
        self.recorder = Recorder(self.fuel) if seen_by.get("record") else None
        self.picker = self.schedule.picker()
        self.pollers: dict[Warp, None] = {}  # those with a loop that waits for memory to change
        self.sites = [site_of(site) for site in code.sites]
        self.snapshots = Snapshots(code)
        self.launch_quads = cells(memory.record_bytes, "Q")
        self._told = 0  # warp-instructions that the code has been told of
        self._next_progress = 0.0
        self._spare: list[list[CtaStorage]] = []
        self._resident_warps = 0
        self._cta_warps = -(-block[0] * block[1] * block[2] // 32)
        record_fields = memory.launch
        record_fields["cta_count"] = grid
        record_fields["thread_count"] = block
        record_fields["cluster_shape"] = cluster
        record_fields["cluster_count"] = tuple(g // c for g, c in zip(grid, cluster, strict=True))
        record_fields["dynamic_shared"] = shape.shared_bytes
        record_fields["total_shared"] = self.shared_end
        self.turns = Turns(self)
        self.host_turns = self._host_turns(seen_by)
        self.stall = Stall(self)

    def _host_turns(self, seen_by: RunOptions) -> HostTurns | None:
        """Where turns in host code are of use, and nobody asks for what they do not tell."""
        if not isinstance(self.picker, RoundRobin) or seen_by.get("trace") or self.recorder is not None:
            return None
        if self.watch is not None and not self.watch.in_bulk:
            return None
        made = HostTurns(self)
        if not made.useful:
            return None
        self.picker = made.queue
        return made

    # Services for handlers

    def state(self, owner: Machine | Cluster | Cta | Warp, key: object, factory: Callable[[], T]) -> T:
        """A family's own data, kept by the machine, a cluster, a CTA or a warp; made when it is first asked for."""
        found = owner.states.get(key)
        if found is None:
            found = owner.states[key] = factory()
        return found

    def start(self, agent: Agent) -> None:
        """Lets asynchronous work begin. Its clock starts with that of the warp or agent that starts it."""
        cta: Cta = agent.cta
        number = cta.agent_numbers.get(agent.unit, 0)
        cta.agent_numbers[agent.unit] = number + 1
        clock = self.current.clock if self.current is not None else 0
        entity = AgentEntity(agent, f"{cta.name}.{agent.unit}#{number}", self.statistics.agents, clock)
        if self.host_turns is not None:
            self.host_turns.enter(entity)
        cta.agents += 1
        self.statistics.agents += 1
        if self.trace is not None:
            self.trace.add(clock, entity.name, "begin", agent.origin.opcode, agent.origin.line)
        if self.watch is not None:
            self.watch.issued(entity)
        if agent.ready():
            self._queue(entity)
        else:
            entity.cluster.blocked[entity] = None

    def event(self, kind: str, detail: str, line: int = 0, time: int | None = None) -> None:
        """Adds an event of the entity whose turn it is to the trace, if there is one."""
        if self.trace is not None and self.current is not None:
            self.trace.add(self.current.clock if time is None else time, self.current.name, kind, detail, line)

    def accesses(self, cta: Cta, space: str, starts: int | npt.NDArray[Any], size: int, how: How) -> None:
        """Tells the watch, if there is one (``Watch.touches``)."""
        if self.watch is not None:
            self.watch.touches(cta, space, starts, size, how)

    def print(self, text: str) -> None:
        """Adds to the output of the program. It is kept for the report, and counts as memory used."""
        self.output.append(text)
        self.memory.allocated += len(text)
        if self.stdout is not None:
            self.stdout(text)

    @property
    def version(self) -> int:
        """Grows whenever memory changes or a host instruction or an agent changes something else."""
        return self.launch_quads[WRITES_QUAD] + self.memory.host_writes + self.changes

    # Running

    def run(self) -> str:
        """``finished`` or ``deadlock``. Raises SimulationFault, LimitReached, KeyboardInterrupt, and CompileError for a
        recorded schedule that does not fit."""
        picker, turns, host_turns, recorder = self.picker, self.turns, self.host_turns, self.recorder
        statistics = self.statistics
        check = statistics.turns + 1
        if self.watch is not None:
            self.watch.begin(self)
        self._start_clusters()
        while True:
            if not len(picker):
                if not self.resident and self.next_cluster == self.cluster_count:
                    break
                if not self.stall.resolve():
                    return "deadlock"
                continue
            if host_turns is None or self.pollers or not host_turns.run(check - statistics.turns):
                entity = picker.take()
                entity.queued = False
                if recorder is not None:
                    recorder.took(entity.name)
                self.current = entity
                if entity.unit == "warp":
                    turns.turn(entity)
                else:
                    self._agent_turn(entity)
                statistics.turns += 1
            if statistics.turns >= check:
                check = statistics.turns + _CHECK_EVERY
                self._check()
        self._tell_code()
        if self.progress is not None:
            self._report_progress()
        return "finished"

    def _check(self) -> None:
        self._tell_code()
        self.limits.check(self.statistics, self.memory.allocated)
        self.endless.look()
        if self.progress is not None and perf_counter() > self._next_progress:
            self._report_progress()

    def _tell_code(self) -> None:
        executed = self.statistics.warp_instructions
        self.code.has_executed(executed - self._told)
        self._told = executed

    def _report_progress(self) -> None:
        assert self.progress is not None
        statistics = self.statistics
        self.progress(Progress(statistics.ctas, self.cta_count, statistics.thread_instructions, statistics.turns))
        self._next_progress = perf_counter() + _PROGRESS_SECONDS

    def _agent_turn(self, entity: AgentEntity) -> None:
        agent = entity.agent
        cta = entity.cta
        agent.time = entity.clock + agent.cycles
        if self.watch is not None:
            self.watch.turn(entity)
        try:
            done = agent.step()
        except (Fault, AccessFault) as fault:
            raise self.agent_fault(entity, fault) from None
        self.changes += 1
        if done:
            entity.clock = agent.time
            if entity.clock > self.statistics.cycles:
                self.statistics.cycles = entity.clock
            cta.agents -= 1
            if self.host_turns is not None:
                self.host_turns.leave(entity)
            if self.trace is not None:
                self.trace.add(entity.clock, entity.name, "end", agent.origin.opcode, agent.origin.line)
        self.wake(entity.cluster, agent.time)
        if not done:
            if agent.ready():
                self._queue(entity)
            else:
                entity.cluster.blocked[entity] = None
        elif cta.done:
            self._retire(cta)

    def agent_fault(self, entity: AgentEntity, fault: Fault | AccessFault) -> SimulationFault:
        origin = entity.agent.origin
        if isinstance(fault, Fault):
            code, message, help, at = fault.code, fault.message, fault.help, fault.notes
        else:
            code, message, help, at = ACCESS_CODES[fault.kind], f"{origin.opcode}: {fault.text}", None, ()
        message = f"{message} ({entity.unit} of {cta_text(entity.cta)} of kernel '{self.program.kernel.name}')"
        return SimulationFault(self.places.diagnostic(code, message, origin, help=help, at=at))

    def _queue(self, entity: Warp | AgentEntity) -> None:
        entity.queued = True
        self.picker.add(entity)

    def wake(self, cluster: Cluster, time: int) -> None:
        """Something changed in a cluster, at a time: whoever is ready now may move; loops that wait for memory too."""
        blocked = cluster.blocked
        if blocked:
            ready = None
            for entity in blocked:
                if entity.agent.ready() if entity.unit != "warp" else self.turns.any_ready(entity):
                    if ready is None:
                        ready = [entity]
                    else:
                        ready.append(entity)
            if ready is not None:
                for entity in ready:
                    del blocked[entity]
                    entity.woken(time)
                    self._queue(entity)
        if self.pollers:
            self.wake_pollers()

    def wake_pollers(self) -> None:
        """Memory has changed, somewhere."""
        for warp in list(self.pollers):
            if not warp.queued and warp is not self.current and self.turns.any_ready(warp):
                warp.cta.cluster.blocked.pop(warp, None)
                self._queue(warp)

    # Clusters

    def _start_clusters(self) -> None:
        while self.next_cluster < self.cluster_count and (self.together or self._resident_warps < RESIDENT_WARPS):
            self.start_cluster()

    def cancel_cluster(self) -> int | None:
        """The next one, which then never begins; None where all have begun."""
        if self.next_cluster == self.cluster_count:
            return None
        self.next_cluster += 1
        return self.next_cluster - 1

    def first_cta(self, cluster: int) -> tuple[int, int, int]:
        """The coordinates in the grid of a cluster's first CTA."""
        x, y, _ = (extent // shape for extent, shape in zip(self.grid, self.cluster_shape, strict=True))
        at = cluster % x, cluster // x % y, cluster // (x * y)
        first = tuple(place * shape for place, shape in zip(at, self.cluster_shape, strict=True))
        return first[0], first[1], first[2]

    def start_cluster(self) -> None:
        """Begins the next one. Raises LimitReached where there is no memory for it."""
        if self._spare:
            storages = self._spare.pop()
        else:
            storages = [self._storage() for _ in range(self.cluster_size)]
        cluster = Cluster(self.next_cluster, self.grid, self.cluster_shape, storages, self.fuel)
        if self.host_turns is not None:
            self.host_turns.begin(cluster)
        self.resident[cluster.index] = cluster
        self.next_cluster += 1
        self._resident_warps += self.cluster_size * self._cta_warps
        now = self.current.clock if self.current is not None else 0
        for cta in cluster.ctas:
            for warp in cta.warps:
                warp.clock = now
                if self.trace is not None:
                    self.trace.add(now, warp.name, "start", "", 0)
                self._queue(warp)

    def _storage(self) -> CtaStorage:
        symbols = self.symbols
        threads = self.block[0] * self.block[1] * self.block[2]
        size = self.shared_end + threads * symbols.local_bytes + self._cta_warps * self.code.register_bytes
        self.limits.check_memory(self.memory.allocated, size)
        storage = CtaStorage(
            self.block,
            self.shared_end,
            symbols.local_bytes,
            self.code.register_bytes,
            host_address(self.memory.record_bytes),
        )
        self.memory.allocated += storage.bytes
        return storage

    def warp_exited(self, warp: Warp) -> None:
        """All lanes of a warp have exited."""
        cta = warp.cta
        cta.live_warps -= 1
        if warp.clock > self.statistics.cycles:
            self.statistics.cycles = warp.clock
        if self.trace is not None:
            self.trace.add(warp.clock, warp.name, "exit", "", 0)
        self.pollers.pop(warp, None)
        if cta.live_warps == 0:
            check_exit(self, cta)
            cta.cluster.cut_off(cta)
            warn_at_exit(self, cta)
            if self.watch is not None:
                self.watch.exited(cta)
        self.changes += 1
        self.wake(cta.cluster, warp.clock)
        if cta.done:
            self._retire(cta)

    def _retire(self, cta: Cta) -> None:
        self.statistics.ctas += 1
        cluster = cta.cluster
        if all(peer.done for peer in cluster.ctas):
            del self.resident[cluster.index]
            if self.host_turns is not None:
                self.host_turns.gone(cluster)
            self._spare.append(cluster.storages)
            self._resident_warps -= self.cluster_size * self._cta_warps
            if self.watch is not None:
                self.watch.gone(cluster)
            if self.touches:
                gone = [key for key, who in self.touches.items() if next(iter(who)).cta.cluster is cluster]
                for key in gone:
                    del self.touches[key]
            self._start_clusters()
