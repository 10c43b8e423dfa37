"""``wgmma``: asynchronous matrix products of a warpgroup.

Each warp of the group holds 16 of the 64 rows of D (and of A, where it is in registers); B is common. A product is
complete in its parts when the fourth warp has executed it, and is carried out some time after that, in the order of the
program: it reads shared memory, A's registers and D's registers, and writes D's. So a kernel that looks at D before
``wgmma.wait_group`` finds what was there before, and one that overwrites a tile too early spoils it.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Immediate, Instruction
from ptxdsl.record import replace
from ptxdsl.sim.host import Fault, Group, Wait, WaitsFor, handles
from ptxdsl.sim.machine.together import WarpRegisters
from ptxdsl.sim.matrix import arithmetic as matrix_arithmetic
from ptxdsl.sim.matrix.mma import read_columns, registers_of, require_all_lanes
from ptxdsl.sim.matrix.sparse import expand
from ptxdsl.sim.matrix.warpgroup import ALL, WARPS, Warpgroup, join, joined, let_join
from ptxdsl.sim.matrix.wgmma_descriptor import CHUNK, Tile, decode, elements, tile
from ptxdsl.sim.matrix.wgmma_form import Form, parse, unsupported
from ptxdsl.sim.matrix.wgmma_hazards import Uses, touched_early

Array = npt.NDArray[Any]

# The cost model: a tensor core multiplies 64 x 16 by 16 x n in n / 2 cycles (the rate of an H100), whatever the type.
LEAST_CYCLES = 16


class Product:
    """One ``wgmma.mma_async`` under way, an agent. a: A's descriptor, None where A is in registers.

    accumulate: whether D is added. negate: whether the product is negated. number: in its warpgroup, from 1; record: of
    it, if host code can execute warps' parts. joined: which of the four warps have executed theirs; columns: those of a
    sparse A's elements, by warp.
    """

    unit = "wgmma"
    harmless_at_exit = False

    def __init__(
        self,
        warpgroup: Warpgroup,
        origin: Instruction,
        form: Form,
        a: int | None,
        b: int,
        accumulate: bool,
        negate: bool,
    ) -> None:
        self.warpgroup = warpgroup
        self.cta = warpgroup.cta
        self.origin = origin
        self.form = form
        self.a = a
        self.b = b
        self.accumulate = accumulate
        self.negate = negate
        self.number = 0
        self.record: memoryview | None = None
        self._joined = 0
        self.columns: list[Array | None] = [None] * WARPS
        self.done = False
        self.cycles = max(form.n // 2, LEAST_CYCLES)
        self.time = 0

    def join(self, rank: int, group: Group) -> None:
        """A warp executes its part."""
        if self.record is None:
            self._joined |= 1 << rank
        else:
            join(self.record, rank)

    @property
    def joined(self) -> int:
        return self._joined if self.record is None else joined(self.record)

    def ready(self) -> bool:
        return self.warpgroup.pending[0] is self and self.joined == ALL

    def step(self) -> bool:
        form, warpgroup = self.form, self.warpgroup
        registers = WarpRegisters(warpgroup.machine, self.cta, WARPS * warpgroup.index, WARPS, self.origin)
        d, a = (registers_of(operand) for operand in self.origin.operands[:2])
        if self.a is None:
            left = form.a_of_registers(registers.read(a))
        else:
            left = form.a_of_memory(self._matrix(self.a, "a"))
        if form.sparse:
            columns = [part for part in self.columns if part is not None]
            left = expand(left, np.concatenate(columns), form.k)
        right = form.b_of_memory(self._matrix(self.b, "b"))
        before = registers.read(d) if self.accumulate else None
        with matrix_arithmetic.quiet():
            registers.write(d, form.multiply(left, right, before, self.negate))
        self.warpgroup.finished(self)
        self.columns = []
        self.done = True
        return True

    def _matrix(self, descriptor: int, operand: str) -> Array:
        """The bytes of A or B in shared memory, in the order of ``wgmma_descriptor.elements``."""
        extent = self.form.extent(operand)
        start, place = _placed(descriptor, operand, *extent)
        address = self.warpgroup.shared_start + start
        machine = self.warpgroup.machine
        memory = machine.memory.view(self.cta, "shared", address, place.size, write=False)
        if machine.watch is not None:
            parts = _of_warps(place, address, operand == "a", extent[-1])
            machine.watch.touches_in_parts(self.cta, "shared", parts, CHUNK, "read")
        return elements(place, memory)

    def missing(self) -> tuple[int, ...]:
        """The warps (by their number in the CTA) that have not executed the instruction yet."""
        first = WARPS * self.warpgroup.index
        return tuple(first + rank for rank in range(WARPS) if not self.joined >> rank & 1)

    def describe(self) -> WaitsFor:
        missing = self.missing()
        if missing:
            names = f"warp{'' if len(missing) == 1 else 's'} {', '.join(map(str, missing))}"
            state = f"{names} of the warpgroup did not execute it"
        else:
            state = "waits for earlier ones of the warpgroup"
        by = tuple(self.cta.warps[index] for index in missing) or (self.warpgroup.pending[0],)
        return WaitsFor("wgmma.mma_async", f"warpgroup {self.warpgroup.index}", state, by=by)


@lru_cache(4096)
def _placed(descriptor: int, operand: str, rows: int, k: int, bits: int, mn_major: bool) -> tuple[int, Tile]:
    """The address at which a matrix lies, and how. Raises Fault E1148."""
    fields = decode(descriptor)
    if not mn_major and 0 < fields.swizzle < k * bits // 8:
        raise Fault(
            "E1148",
            f"{operand.upper()} has rows of {k * bits // 8} bytes along K, its descriptor says swizzling of "
            f"{fields.swizzle} bytes",
            "a K-major matrix lies in rows of one swizzle: use a wider one",
        )
    place = tile(fields, rows, k, bits, mn_major)
    return fields.address + place.offset, place


@lru_cache(1024)
def _of_warps(place: Tile, address: int, apart: bool, mn_major: bool) -> tuple[Array, ...]:
    """Where the chunks lie that each of the four warps multiplies: all of B, of A those that hold the warp's rows."""
    parts = np.array_split(place.chunks, WARPS, axis=1 if mn_major else 0) if apart else [place.chunks] * WARPS
    starts = tuple(address + CHUNK * part.reshape(-1) for part in parts)
    for array in starts:
        array.flags.writeable = False
    return starts


def warpgroup_of(group: Group) -> tuple[Warpgroup, int]:
    """The group's warpgroup, and the warp's number in it."""
    index, rank = divmod(group.warp.index, WARPS)
    warps = len(group.cta.warps)
    if (index + 1) * WARPS > warps:
        raise group.fault(
            "E1142",
            f"{'.'.join(group.instruction.parts[:2])} in warp {group.warp.index} of {warps}: a warpgroup of "
            f"{warps % WARPS} warp{'' if warps % WARPS == 1 else 's'}",
            "wgmma is for groups of four warps, the first of which has a number divisible by four: launch a multiple "
            "of 128 threads",
        )
    found = group.machine.state(group.cta, ("wgmma", index), lambda: Warpgroup(group.machine, group.cta, index))
    return found, rank


def issued_before(group: Group) -> int:
    """How many products the group's warp has issued."""
    warpgroup = group.cta.states.get(("wgmma", group.warp.index // WARPS))
    return warpgroup.issued[group.warp.index % WARPS] if isinstance(warpgroup, Warpgroup) else 0


@handles("wgmma.mma_async", check=unsupported)
def execute_mma(group: Group) -> Wait | None:
    require_all_lanes(group)
    instruction = group.instruction
    form = parse(instruction.opcode)
    assert isinstance(form, Form)
    warpgroup, rank = warpgroup_of(group)
    if not warpgroup.fenced[rank]:
        raise group.fault(
            "E1143",
            "wgmma.mma_async without a wgmma.fence before it",
            "wgmma.fence.sync.aligned orders earlier accesses to the registers before the first wgmma.mma_async",
        )
    _, a, b = instruction.operands[:3]
    scale_d, *immediates = instruction.operands[form.scale_d :]
    signs = [item.value for item in immediates[:2] if isinstance(item, Immediate)]
    product = Product(
        warpgroup,
        instruction,
        form.transposed(instruction),
        None if form.a_in_registers(instruction) else group.uniform(a, "b64"),
        group.uniform(b, "b64"),
        bool(group.uniform(scale_d, "pred")),
        signs.count(-1) == 1,
    )
    columns = read_columns(group, form.sparse, *instruction.operands[3:5]) if form.sparse else None
    product = warpgroup.issue(rank, group, product)
    product.columns[rank] = columns
    if not _serialised(group):
        if product.record is not None and columns is None:
            let_join(product.record, _site_of(group))
        return None
    return Wait(lambda: product.done, product.describe, then=lambda group: None, at=lambda: product.time)


def _site_of(group: Group) -> int:
    """The number of the group's instruction."""
    machine = group.machine
    numbers: dict[int, int] = machine.state(
        machine, "site numbers", lambda: {id(site.instruction): number for number, site in enumerate(machine.sites)}
    )
    return numbers[id(group.instruction)]


def _serialised(group: Group) -> bool:
    """Whether the program touches the product's registers before it waits; warned of when first asked."""
    machine, instruction = group.machine, group.instruction
    known: dict[Instruction, bool] = machine.state(machine, "wgmma hazards", dict)
    found = known.get(instruction)
    if found is None:
        uses: Uses = machine.state(machine, "wgmma hazards of blocks", dict)
        early = touched_early(machine.program.blocks, instruction, uses)
        found = known[instruction] = early is not None
        if early is not None:
            warning = machine.places.diagnostic(
                "W1141",
                f"{early.opcode} uses registers of this wgmma.mma_async on a path on which it is not waited for",
                instruction,
                help="ptxas makes such instructions wait for their results at once, which is slow: place a "
                "wgmma.wait_group before the first use",
                notes=((machine.places.span(early), "the use"),),
            )
            machine.warnings.append(replace(warning, severity="warning"))
    return found


@handles("wgmma.fence")
def execute_fence(group: Group) -> None:
    require_all_lanes(group)
    warpgroup, rank = warpgroup_of(group)
    warpgroup.fenced[rank] = 1


@handles("wgmma.commit_group")
def execute_commit(group: Group) -> None:
    require_all_lanes(group)
    warpgroup, rank = warpgroup_of(group)
    warpgroup.commit(rank)


@handles("wgmma.wait_group")
def execute_wait(group: Group) -> Wait | None:
    require_all_lanes(group)
    warpgroup, rank = warpgroup_of(group)
    (allowed,) = group.instruction.operands
    assert isinstance(allowed, Immediate)
    return warpgroup.wait(rank, group, allowed.value)
