"""What ``tcgen05`` instructions have in common: the pipe that carries them out, CTA pairs, commit, wait, fence.

``mma``, ``cp``, ``shift`` and ``commit`` become ``Work`` in the pipe of the CTA that issues them; it is carried out
some time later, one piece after the other. The ISA promises an order for some pairs only (``mma`` after ``cp``, say),
but programs that run on the card rely on it for more: scale factors are overwritten by ``cp`` while earlier ``mma`` may
still be under way. A commit's arrival comes when its turn has come, so all earlier work has been carried out; complete
is what the commit's own thread has issued.

Source: PTX ISA, "Issue Granularity", "Memory Consistency Model for 5th generation of TensorCore operations",
"tcgen05.wait", "tcgen05.fence", "tcgen05.commit".
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.barriers.mbarrier import barriers_of, shared_address
from ptxdsl.sim.host import Fault, Group, WaitsFor, handles
from ptxdsl.sim.layout import RANK_SHIFT
from ptxdsl.sim.machine.faults import DIVERGENT
from ptxdsl.sim.machine.waits import lanes_text
from ptxdsl.sim.tcgen05.form import misformed
from ptxdsl.sim.tcgen05.tensor_memory import Access, TensorMemory, tensor_memory
from ptxdsl.sim.watch import How

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.warp import Warp

PAIR = "E1167"
COMMIT_CYCLES = 1


class Work:
    """One asynchronous operation, an agent. accesses: what it does to which CTA's tensor memory.

    It is complete for others once a commit of the thread that issued it has arrived.
    """

    unit = "tcgen05"
    harmless_at_exit = False

    def __init__(self, group: Group, cycles: int) -> None:
        self.machine: Machine = group.machine
        self.cta: Cta = group.cta
        self.origin: Instruction = group.instruction
        self.warp: Warp = group.warp
        self.threads = group.mask
        self.cycles = cycles
        self.time = 0
        self.accesses: list[tuple[TensorMemory, Access]] = []
        self.touched: list[tuple[Cta, Access]] = []  # the same, by CTA
        self.pipe = pipe_of(self.machine, self.cta)

    def touches(self, cta: Cta, access: Access) -> None:
        """An access that it will make. Raises Fault where that is a race already."""
        memory = tensor_memory(self.machine, cta)
        memory.require(access.region, self.origin.opcode)
        self.accesses.append((memory, access))
        self.touched.append((cta, access))

    def issue(self) -> None:
        """Raises Fault where what it touches is not waited for."""
        for memory, access in self.accesses:
            memory.queue(access)
        self.pipe.append(self)
        self.machine.start(self)

    def carry_out(self) -> None:
        raise NotImplementedError

    def ready(self) -> bool:
        return self.pipe[0] is self

    def step(self) -> bool:
        self.carry_out()
        if self.machine.watch is not None:
            for cta, access in self.touched:
                region = access.region
                how: How = "write" if access.writes else "read"
                self.machine.watch.tensor(cta, region.lanes, region.first, region.end, how)
        self.pipe.popleft()
        self.pipe.carried_out += [Carried(self.warp, self.threads, *touched) for touched in self.accesses]
        return True

    def describe(self) -> WaitsFor:
        place = f"the tcgen05 pipe of the CTA of rank {self.cta.rank}"
        first = self.pipe[0]
        if first is self:
            return WaitsFor(".".join(self.origin.parts[:2]), place, "is under way")
        state = f"comes after the {'.'.join(first.origin.parts[:2])} of PTX line {first.origin.line}"
        return WaitsFor(".".join(self.origin.parts[:2]), place, state, by=(first,))


class Carried(NamedTuple):
    """An access of work that is carried out. threads: a mask of the warp's, those that issued it."""

    warp: Warp
    threads: int
    memory: TensorMemory
    access: Access


class Pipe(deque[Work]):
    """A CTA's work in the order of its issue. carried_out: what no commit has followed yet."""

    def __init__(self) -> None:
        super().__init__()
        self.carried_out: list[Carried] = []

    def complete(self, warp: Warp, threads: int) -> None:
        """What these threads issued is complete."""
        left = []
        for done in self.carried_out:
            if done.warp is warp and done.threads & threads:
                done.memory.incomplete.remove(done.access)
            else:
                left.append(done)
        self.carried_out = left


def pipe_of(machine: Machine, cta: Cta) -> Pipe:
    return machine.state(cta, "tcgen05 pipe", Pipe)


# Warps


def whole_warp(group: Group) -> None:
    """For what a warp executes together. Raises Fault where a thread of it has exited: undefined."""
    group.require_whole_warp()
    gone = group.warp.storage.lanes & ~group.mask
    if gone:
        raise Fault(
            DIVERGENT,
            f"'{group.instruction.opcode}' in a warp of which {lanes_text(gone)} exited",
            "all threads of the warp stay until it has been executed",
        )


# CTA pairs


def cta_group(opcode: str) -> int:
    return 2 if ".cta_group::2" in opcode else 1


def ctas_of(group: Group, alive: bool = True) -> tuple[Cta, ...]:
    """The CTA, or with ``.cta_group::2`` the pair, the even one first. Raises Fault where there is none.

    alive: the peer's threads must not have exited.
    Faults too where instructions of the kernel differ in ``.cta_group``, which the ISA forbids.
    """
    instruction = group.instruction
    size = cta_group(instruction.opcode)
    first: Instruction = group.machine.state(group.machine, "tcgen05 cta_group", lambda: instruction)
    if cta_group(first.opcode) != size:
        raise Fault(
            PAIR,
            f"{instruction.opcode} in a kernel whose {'.'.join(first.parts[:2])} of PTX line {first.line} has "
            f".cta_group::{cta_group(first.opcode)}",
            "all tcgen05 instructions of a kernel have the same .cta_group",
        )
    if size == 1:
        return (group.cta,)
    even = group.cta.rank & ~1
    peers = group.cta.cluster.ctas[even : even + 2]
    if len(peers) < 2:
        raise Fault(
            PAIR,
            f"{instruction.opcode} in the CTA of rank {group.cta.rank} of a cluster of {len(group.cta.cluster.ctas)}: "
            "it has no peer",
            "a pair is two CTAs of a cluster whose ranks differ in the last bit: launch with clusters of 2, 4, …",
        )
    for peer in peers:
        if alive and peer.exited:
            raise Fault(
                PAIR,
                f"{instruction.opcode}: the threads of the peer CTA, of rank {peer.rank}, have exited",
                "both CTAs of a pair stay until the work of the pair is complete: put barrier.cluster before the exit",
            )
    return tuple(peers)


# commit


class Commit(Work):
    """An arrival at mbarriers when the work before it is complete. addresses: shared ones, with the CTA's rank."""

    def __init__(self, group: Group, addresses: list[int]) -> None:
        super().__init__(group, COMMIT_CYCLES)
        self.addresses = addresses

    def carry_out(self) -> None:
        self.pipe.complete(self.warp, self.threads)
        table = barriers_of(self.machine, self.cta)
        for address in self.addresses:
            table.find(self.cta, address, "tcgen05.commit").arrive(1, 1, time=self.time)


def _commit_unsupported(instruction: Instruction) -> str | None:
    known = {
        "tcgen05", "commit", "cta_group::1", "cta_group::2", "mbarrier::arrive::one", "shared::cluster",
        "multicast::cluster", "b64",
    }  # fmt: skip
    other = next((part for part in instruction.parts if part not in known), None)
    return f"tcgen05.commit with .{other}" if other else misformed(instruction)


@handles("tcgen05.commit", check=_commit_unsupported)
def commit(group: Group) -> None:
    instruction = group.instruction
    ctas_of(group)
    space = "shared::cluster" if "shared::cluster" in instruction.parts else ""
    addresses = group.values(instruction.operands[0], "u64")
    multicast = "multicast::cluster" in instruction.parts
    masks = group.values(instruction.operands[1], "u16") if multicast else [0] * len(addresses)
    table = barriers_of(group.machine, group.cta)
    size = len(group.cta.cluster.ctas)
    for address, mask in zip(addresses, masks, strict=True):
        # The card takes the low 32 bits of a generic address; Triton gives a shared one where a generic one is due.
        address = shared_address("shared::cluster" if address >> 32 == 0 else space, address)
        targets = [address]
        if multicast:
            if mask >> size:
                raise Fault(
                    PAIR,
                    f"tcgen05.commit with the CTA mask {mask:#06x} in a cluster of {size}",
                    "bit i of the mask is the CTA of rank i",
                )
            offset = address & (1 << RANK_SHIFT) - 1
            targets = [rank << RANK_SHIFT | offset for rank in range(size) if mask >> rank & 1]
        for target in targets:
            group.touch(table.find(group.cta, target, "tcgen05.commit"))
        Commit(group, targets).issue()


# wait, fence


@handles("tcgen05.wait::ld", "tcgen05.wait::st", check=misformed)
def wait(group: Group) -> None:
    group.require_whole_warp()
    tensor_memory(group.machine, group.cta).waited(group.warp, writes=group.instruction.parts[1] == "wait::st")


@handles("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync", check=misformed)
def fence(group: Group) -> None:
    """Orders asynchronous work with synchronisation between threads; here everything issued is in order anyway."""
