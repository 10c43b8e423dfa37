"""A part of a kernel as one LLVM function: blocks, jumps between them, and the ways out to the machine.

A jump of the whole group is a jump of the host; all else goes through ``rt.dispatch``. A block's lane-wise code is a
loop over the chunks of the warp that have active lanes.

Labels of block k: ``b<k>`` its code, where the dispatcher goes; ``a<k>`` where the group arrives by itself, and stops
if lanes that are behind it have to come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.ptx.module import Instruction
from ptxdsl.record import dataclass, field
from ptxdsl.sim.layout import CTA, RANK_SHIFT, WARP, offset
from ptxdsl.sim.program.program import COLLECTIVE, HOST, NO_EFFECT, Block, Program
from ptxdsl.sim.translate.access import trace_fence
from ptxdsl.sim.translate.emitter import WIDTH, Unsupported, vector
from ptxdsl.sim.translate.lanes import LaneEmitter
from ptxdsl.sim.translate.meetings import emit_collective
from ptxdsl.sim.translate.reporting import Reporting
from ptxdsl.sim.translate.runtime_control import DISPATCH
from ptxdsl.sim.translate.runtime_fields import own
from ptxdsl.sim.translate.slots import Slot

FENCES = frozenset(("fence", "membar"))

Operation = Callable[[LaneEmitter, Instruction], None]


@dataclass(slots=True, eq=False)
class Kernel:
    """What the parts of a kernel share. problems: what is not supported, one diagnostic an instruction.

    emitter: appends to the part being written; it has what all of them declare. scratch: byte offset in the register
    file of rows of 256 bytes that belong to nobody. constants: definitions by name.
    """

    program: Program
    slots: Mapping[str, Slot]
    scratch: int
    operations: Mapping[str, Operation]
    emitter: LaneEmitter
    constants: dict[str, str] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)

    def entries(self, part: range) -> Iterator[int]:
        """The blocks of a part at which lanes may stand."""
        return (k for k in part if self.program.blocks[k].entered or k == part.start)


class Part:
    """Writes the function of some blocks of a kernel.

    here: the label of the code being written. open: whether the block before runs on into this one. group: the lanes
    that run together. counted: the number of the first instruction that ``issued`` has not counted yet.
    """

    def __init__(self, kernel: Kernel, blocks: range) -> None:
        self.kernel = kernel
        self.program = kernel.program
        self.slots = kernel.slots
        self.e = kernel.emitter
        self.inside = blocks
        self.arrivals: dict[int, None] = {}  # blocks whose label a<k> is used
        self.renewing: list[tuple[int, str]] = []  # (block, label we come from)
        self.faulting: list[tuple[int, str]] = []
        self.leaving: list[int] = []  # host instructions without a guard
        self.here = "lost"
        self.open = False
        self.group = ""
        self.counted = 0

    def text(self, number: int) -> str:
        """The function ``@part<number>``; without meaning if there are problems."""
        self.e.text = lines = []
        cases = "".join(f" i32 {k}, label %b{k}" for k in self.kernel.entries(self.inside))
        lines.append(
            f"define internal i32 @part{number}(ptr %warp, i32 %pc) {{\nentry:\n"
            f" %regs.at = getelementptr i8, ptr %warp, i64 {offset(WARP, 'registers')}\n"
            " %regs = load ptr, ptr %regs.at\n"
            f" %cta.at = getelementptr i8, ptr %warp, i64 {offset(WARP, 'cta')}\n %cta = load ptr, ptr %cta.at\n"
            f" %launch.at = getelementptr i8, ptr %cta, i64 {offset(CTA, 'launch')}\n"
            f" %launch = load ptr, ptr %launch.at\n"
            f" %rank.at = getelementptr i8, ptr %cta, i64 {offset(CTA, 'rank')}\n %rank = load i32, ptr %rank.at\n"
            f" %rank.wide = zext i32 %rank to i64\n %rank_base = shl i64 %rank.wide, {RANK_SHIFT}\n"
        )
        for name in ("group", "others", "slice"):
            lines.append(f" %{name} = getelementptr i8, ptr %warp, i64 {own(name)}\n")
        for name in ("issued", "fault_kind"):
            lines.append(f" %{name} = getelementptr i8, ptr %warp, i64 {offset(WARP, name)}\n")
        lines.append(f" switch i32 %pc, label %lost [{cases} ]\nlost:\n ret i32 {DISPATCH}\n")
        for k in self.inside:
            self.block(k, self.program.blocks[k])
        self.arrive()
        self.tails()
        lines.append("}\n")
        return "".join(lines)

    def arrive(self) -> None:
        """The labels a<k>."""
        run = self.e.run
        for k in self.arrivals:
            self.label(f"a{k}")
            if k in self.inside:
                run(f"%o{k} = load i32, ptr %others")
                run(f"%oz{k} = icmp sgt i32 %o{k}, {k}")
                run(f"br i1 %oz{k}, label %b{k}, label %away")
            else:
                run("br label %away")

    def tails(self) -> None:
        """Ways out that the blocks of a part share."""
        run = self.e.run
        if self.arrivals:
            self.label("away")
            run("%there = phi i32 " + ", ".join(f"[ {k}, %a{k} ]" for k in self.arrivals))
            run("%all = load i32, ptr %group")
            run("call void @rt.split(ptr %warp, i32 %all, i32 %there, i32 %there)")
            run(f"ret i32 {DISPATCH}")
        for name, places in (("renew", self.renewing), ("faulted", self.faulting)):
            if places:
                self.label(name)
                run(f"%{name}.k = phi i32 " + ", ".join(f"[ {k}, %{label} ]" for k, label in places))
                run(f"%{name}.r = call i32 @rt.{name}(ptr %warp, i32 %{name}.k)")
                run(f"ret i32 %{name}.r")
        if self.leaving:
            self.label("hosts")
            run("%host.k = phi i32 " + ", ".join(f"[ {k}, %b{k} ]" for k in self.leaving))
            sites = ((k, self.program.blocks[k].first) for k in self.leaving)
            run("%host.site = phi i32 " + ", ".join(f"[ {site}, %b{k} ]" for k, site in sites))
            run("%host.next = add i32 %host.k, 1")
            run("%host.group = load i32, ptr %group")
            self.count("host", 1)
            run("%host.r = call i32 @rt.host(ptr %warp, i32 %host.group, i32 %host.k, i32 %host.next, i32 %host.site)")
            run("ret i32 %host.r")

    # ------------------------------------------------------------------ blocks

    def block(self, k: int, block: Block) -> None:
        run = self.e.run
        if block.entered or k == self.inside.start:
            self.label(f"b{k}")
            if block.kind == HOST and block.instructions[0].guard is None:
                self.leaving.append(k)
                run("br label %hosts")
                self.open = False
                return
            if block.loop:
                run(f"%s{k} = load i32, ptr %slice")
                run(f"%z{k} = icmp eq i32 %s{k}, 0")
                self.renewing.append((k, self.here))
                run(f"br i1 %z{k}, label %renew, label %s{k}.x")
                self.label(f"s{k}.x")
                run(f"%s{k}.n = sub i32 %s{k}, 1")
                run(f"store i32 %s{k}.n, ptr %slice")
            run(f"%g{k} = load i32, ptr %group")
            self.group = f"%g{k}"
            weight = self.weight(k)
            self.counted = block.first + weight
            self.count(str(k), weight)
        elif not self.open:
            return  # nothing leads here
        self.open = True
        if block.kind == HOST:
            self.host_block(k, block.instructions[0], block.first)
        elif block.kind == COLLECTIVE:
            with self.reporting(block.instructions[0]):
                emit_collective(self, k, block.instructions[0], block.first)
            self.edge(k + 1)
        else:
            self.lane_block(k, block)

    def weight(self, k: int) -> int:
        """Instructions from block k to the next one at which lanes may stand."""
        blocks = self.program.blocks
        total = len(blocks[k].instructions)
        for following in range(k + 1, self.inside.stop):
            if blocks[following].entered:
                break
            total += len(blocks[following].instructions)
        return total

    def count(self, key: str, instructions: int) -> None:
        run = self.e.run
        if instructions:
            run(f"%i{key} = load i64, ptr %issued")
            run(f"%i{key}.n = add i64 %i{key}, {instructions}")
            run(f"store i64 %i{key}.n, ptr %issued")

    def lane_block(self, k: int, block: Block) -> None:
        end = block.end
        body = block.instructions[:-1] if end is not None else block.instructions
        guard = end.guard if end is not None else None
        indexed = end is not None and end.opcode.startswith("brx")
        e = self.e
        e.accesses = False

        def lanes() -> str | None:
            for i, instruction in enumerate(body):
                self.lane(instruction, block.first + i)
            taken = None
            if end is not None and (guard is not None or indexed):
                with self.reporting(end):
                    e.begin(end)
                    if indexed:
                        self.table_jump(end, block, k, block.first + len(body))
                    taken = e.active()
            e.guard = None
            e.finish(lambda name: self.program.liveness.wanted_after(k, name))
            return taken

        if indexed:
            e.run(f"call void @rt.split(ptr %warp, i32 {self.group}, i32 {k + 1}, i32 {k + 1})")
        taken = None
        if body or indexed:
            taken = self.chunks(k, lanes)
        elif end is not None and guard is not None:
            taken = self.true_lanes(k, end)
        if e.accesses:
            self.check_faults(k)
        if indexed:
            e.run(f"ret i32 {DISPATCH}")
            self.open = False
        elif end is None:
            self.edge(k + 1)
        else:
            self.finish(k, block, end, taken)

    def true_lanes(self, k: int, instruction: Instruction) -> str:
        """The lanes of the group in which an instruction's guard, that has a slot, is true."""
        assert instruction.guard is not None
        register, negated = instruction.guard
        slot = self.slots.get(register.name)
        if slot is None or not slot.is_predicate:
            with self.reporting(instruction):
                raise Unsupported(f"{register.name} is not a predicate register")
            return self.group
        at = self.e.do(f"getelementptr i8, ptr %regs, i64 {slot.offset}")
        self.e.run(
            f"%true{k} = call i32 @rt.true_lanes(ptr {at}, i32 {self.group}, i1 {'true' if negated else 'false'})"
        )
        return f"%true{k}"

    def unless_none(self, k: int, taken: str) -> None:
        """The group goes on to the next block if no lane is taken."""
        run = self.e.run
        run(f"%none{k} = icmp eq i32 {taken}, 0")
        run(f"br i1 %none{k}, label {self.arrival(k + 1)}, label %some{k}")
        self.label(f"some{k}")

    def finish(self, k: int, block: Block, end: Instruction, taken: str | None) -> None:
        """The jump, exit or trap at a block's end. taken: its lanes, None for all."""
        run = self.e.run
        first = end.opcode.partition(".")[0]
        lanes = taken if taken is not None else self.group
        self.open = False
        if taken is not None:
            self.unless_none(k, taken)
        if first == "bra":
            (target,) = block.targets
            if taken is None:
                run(f"br label {self.arrival(target)}")
                return
            run(f"%full{k} = icmp eq i32 {taken}, {self.group}")
            run(f"br i1 %full{k}, label {self.arrival(target)}, label %part{k}")
            self.label(f"part{k}")
            run(f"call void @rt.split(ptr %warp, i32 {taken}, i32 {target}, i32 {k + 1})")
            run(f"ret i32 {DISPATCH}")
        elif first in ("exit", "ret"):
            run(f"%rest{k} = call i32 @rt.leave(ptr %warp, i32 {lanes})")
            if taken is None:
                run(f"ret i32 {DISPATCH}")
                return
            run(f"%left{k} = icmp eq i32 %rest{k}, 0")
            run(f"br i1 %left{k}, label %gone{k}, label {self.arrival(k + 1)}")
            self.label(f"gone{k}")
            run(f"ret i32 {DISPATCH}")
        else:
            site = block.first + len(block.instructions) - 1
            run(f"%trap{k} = call i32 @rt.trapped(ptr %warp, i32 {lanes}, i32 {k}, i32 {k + 1}, i32 {site})")
            run(f"ret i32 %trap{k}")

    def arrival(self, target: int) -> str:
        self.arrivals[target] = None
        return f"%a{target}"

    def edge(self, target: int) -> None:
        """The group goes on to the following block."""
        if target in self.inside and not self.program.blocks[target].entered:
            return
        self.e.run(f"br label {self.arrival(target)}")
        self.open = False

    def label(self, name: str) -> None:
        self.here = name
        self.e.text.append(f"{name}:\n")

    def check_faults(self, k: int) -> None:
        run = self.e.run
        run(f"%fk{k} = load i32, ptr %fault_kind")
        run(f"%fz{k} = icmp eq i32 %fk{k}, 0")
        self.faulting.append((k, self.here))
        run(f"br i1 %fz{k}, label %fine{k}, label %faulted")
        self.label(f"fine{k}")

    def chunks(self, k: int, body: Callable[[], str | None]) -> str | None:
        """A loop over the chunks that have active lanes. body emits one and may give its lanes of a condition (i8);
        the result is then those of the warp (i32)."""
        e, run = self.e, self.e.run
        before = self.here
        run(f"br label %h{k}")
        self.label(f"h{k}")
        head = len(e.text)
        run(f"%l{k}.s = trunc i64 %l{k} to i32")
        run(f"%l{k}.g = lshr i32 {self.group}, %l{k}.s")
        run(f"%l{k}.b = trunc i32 %l{k}.g to i{WIDTH}")
        run(f"%l{k}.z = icmp eq i{WIDTH} %l{k}.b, 0")
        run(f"br i1 %l{k}.z, label %n{k}, label %d{k}")
        self.label(f"d{k}")
        run(f"%l{k}.m = bitcast i{WIDTH} %l{k}.b to {vector('i1')}")
        e.start(f"%l{k}", f"%l{k}.m", f"%l{k}.b", f"d{k}")
        bits = body()
        if bits is not None:
            run(f"%t{k}.w = zext i{WIDTH} {bits} to i32")
            run(f"%t{k}.s = shl i32 %t{k}.w, %l{k}.s")
            run(f"%t{k}.o = or i32 %t{k}, %t{k}.s")
        run(f"br label %n{k}")
        self.label(f"n{k}")
        if bits is not None:
            run(f"%t{k}.n = phi i32 [ %t{k}, %h{k} ], [ %t{k}.o, %{e.label} ]")
        run(f"%l{k}.n = add i64 %l{k}, {WIDTH}")
        run(f"%l{k}.e = icmp ult i64 %l{k}.n, 32")
        run(f"br i1 %l{k}.e, label %h{k}, label %x{k}")
        self.label(f"x{k}")
        phis = f" %l{k} = phi i64 [ 0, %{before} ], [ %l{k}.n, %n{k} ]\n"
        if bits is not None:
            phis += f" %t{k} = phi i32 [ 0, %{before} ], [ %t{k}.n, %n{k} ]\n"
        e.text.insert(head, phis)
        return f"%t{k}.n" if bits is not None else None

    # ------------------------------------------------------------------ instructions

    def lane(self, instruction: Instruction, site: int) -> None:
        e = self.e
        first = instruction.opcode.partition(".")[0]
        with self.reporting(instruction):
            emit = self.kernel.operations.get(first)
            if emit is None:
                if first in NO_EFFECT:
                    if e.traced and first in FENCES:
                        e.begin(instruction)
                        trace_fence(e, site)
                    return
                raise Unsupported("the simulator does not have this instruction")
            e.site, e.ahead = site, self.counted - site - 1
            e.begin(instruction)
            emit(e, instruction)

    def reporting(self, instruction: Instruction) -> Reporting:
        return Reporting(self.program, self.kernel.problems, instruction)

    def table_jump(self, end: Instruction, block: Block, k: int, site: int) -> None:
        e = self.e
        name = f"@table{k}"
        entries = ", ".join(f"i32 {target}" for target in block.targets)
        self.kernel.constants[name] = f"{name} = private constant [{len(block.targets)} x i32] [{entries}]\n"
        index = e.read(end.operands[0], "u32")
        e.accesses = True
        e.run(
            f"call void @rt.branch_table(ptr %warp, i64 {e.index}, i{WIDTH} {e.active()}, {vector('i32')} {index}, "
            f"ptr {name}, i32 {len(block.targets)}, i32 {site})"
        )

    def host_block(self, k: int, instruction: Instruction, site: int) -> None:
        """A host instruction with a guard."""
        lanes = self.true_lanes(k, instruction)
        self.unless_none(k, lanes)
        self.e.run(f"%host{k} = call i32 @rt.host(ptr %warp, i32 {lanes}, i32 {k}, i32 {k + 1}, i32 {site})")
        self.e.run(f"ret i32 %host{k}")
        self.open = False
