"""The control flow of a kernel as LLVM IR: blocks, jumps between them, and the ways out to the machine.

A kernel's blocks are divided into parts, one LLVM function each, so that the code generator's work stays linear in the
size of the kernel. Within a part a jump of the whole group is a jump of the host; all else goes through ``rt.dispatch``.
A block's lane-wise code is a loop over the chunks of the warp that have active lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.ptx.module import Immediate, Instruction, Operand, Register, Sink
from ptxdsl.sim.layout import CTA, RANK_SHIFT, WARP, offset
from ptxdsl.sim.program import COLLECTIVE, HOST, NO_EFFECT, Block, Program
from ptxdsl.sim.translate import access, atomics
from ptxdsl.sim.translate.collectives import collective, is_direct
from ptxdsl.sim.translate.emitter import WIDTH, Emit, Unsupported, splat, vector
from ptxdsl.sim.translate.lanes import LaneEmitter, Slot, register_bits
from ptxdsl.sim.translate.runtime_control import DISPATCH, own

MAX_PART = 2000  # instructions
SCRATCH = 6  # rows of 256 bytes behind the registers: operands of collectives that lie in no register

MEMORY_OPS: dict[str, Emit] = {
    "ld": access.emit_ld,  # type: ignore[dict-item]
    "ldu": access.emit_ld,  # type: ignore[dict-item]
    "st": access.emit_st,  # type: ignore[dict-item]
    "mov": access.emit_mov,  # type: ignore[dict-item]
    "cvta": access.emit_cvta,  # type: ignore[dict-item]
    "isspacep": access.emit_isspacep,  # type: ignore[dict-item]
    "mapa": access.emit_mapa,  # type: ignore[dict-item]
    "getctarank": access.emit_getctarank,  # type: ignore[dict-item]
    "createpolicy": access.emit_createpolicy,  # type: ignore[dict-item]
    "atom": atomics.emit_atom,  # type: ignore[dict-item]
    "red": atomics.emit_atom,  # type: ignore[dict-item]
}
_JUMPS = frozenset(("bra", "brx", "exit", "ret", "trap", "brkpt"))


class Frame:
    """Makes the IR of one program. problems: what is not supported, one diagnostic an instruction."""

    def __init__(
        self, program: Program, slots: Mapping[str, Slot], scratch: int, operations: Mapping[str, Emit], traced: bool
    ) -> None:
        self.program = program
        self.slots = slots
        self.scratch = scratch  # byte offset in the register file
        self.operations = operations
        self.problems: list[Diagnostic] = []
        self.e = LaneEmitter(program.registers, slots, program.symbols)
        self.e.traced = traced
        self.constants: dict[str, str] = {}

    def text(self) -> str:
        """The whole module; without meaning if there are problems."""
        parts = list(_parts(self.program.blocks))
        functions = [self.part(number, blocks) for number, blocks in enumerate(parts)]
        cases = "".join(f" i32 {k}, label %p{number}" for number, blocks in enumerate(parts) for k in blocks)
        calls = "".join(
            f"p{number}:\n %r{number} = call i32 @part{number}(ptr %warp, i32 %pc)\n br label %came\n"
            for number in range(len(parts))
        )
        came = ", ".join(f"[ %r{number}, %p{number} ]" for number in range(len(parts)))
        run = (
            "define i32 @run(ptr %warp) {\n call void @rt.enter(ptr %warp)\n br label %loop\n"
            "loop:\n %pc = call i32 @rt.dispatch(ptr %warp)\n %stop = icmp slt i32 %pc, 0\n"
            " br i1 %stop, label %out, label %go\n"
            "out:\n %code = sub i32 -1, %pc\n ret i32 %code\n"
            f"go:\n switch i32 %pc, label %loop [{cases} ]\n{calls}"
            f"came:\n %r = phi i32 {came}\n %again = icmp eq i32 %r, {DISPATCH}\n"
            " br i1 %again, label %loop, label %back\nback:\n ret i32 %r\n}\n"
        )
        definitions = (*self.constants.values(), *self.e.definitions.values(), *self.e.declared.values())
        return "".join((*definitions, *functions, run))

    def part(self, number: int, blocks: range) -> str:
        e = self.e
        e.text = lines = []
        self.inside = blocks
        self.away: list[tuple[int, str]] = []  # (block to go to, label we come from)
        self.renewing: list[int] = []
        self.faulting: list[tuple[int, str]] = []
        cases = "".join(f" i32 {k}, label %b{k}" for k in blocks)
        lines.append(
            f"define internal i32 @part{number}(ptr %warp, i32 %pc) {{\nentry:\n"
            f" %regs.at = getelementptr i8, ptr %warp, i64 {offset(WARP, 'registers')}\n %regs = load ptr, ptr %regs.at\n"
            f" %cta.at = getelementptr i8, ptr %warp, i64 {offset(WARP, 'cta')}\n %cta = load ptr, ptr %cta.at\n"
            f" %launch.at = getelementptr i8, ptr %cta, i64 {offset(CTA, 'launch')}\n %launch = load ptr, ptr %launch.at\n"
            f" %rank.at = getelementptr i8, ptr %cta, i64 {offset(CTA, 'rank')}\n %rank = load i32, ptr %rank.at\n"
            f" %rank.wide = zext i32 %rank to i64\n %rank_base = shl i64 %rank.wide, {RANK_SHIFT}\n"
        )
        for name in ("group", "others", "slice", "count"):
            lines.append(f" %{name} = getelementptr i8, ptr %warp, i64 {own(name)}\n")
        for name in ("issued", "retired", "fault_kind"):
            lines.append(f" %{name} = getelementptr i8, ptr %warp, i64 {offset(WARP, name)}\n")
        lines.append(f" switch i32 %pc, label %lost [{cases} ]\nlost:\n ret i32 {DISPATCH}\n")
        for k in blocks:
            self.block(k, self.program.blocks[k])
        if self.away:
            phi = ", ".join(f"[ {target}, %{label} ]" for target, label in self.away)
            lines.append(
                f"away:\n %there = phi i32 {phi}\n %all = load i32, ptr %group\n"
                f" call void @rt.split(ptr %warp, i32 %all, i32 %there, i32 %there)\n ret i32 {DISPATCH}\n"
            )
        phi = ", ".join(f"[ {k}, %b{k} ]" for k in self.renewing)
        lines.append(
            f"renew:\n %renewed = phi i32 {phi}\n %renew.r = call i32 @rt.renew(ptr %warp, i32 %renewed)\n ret i32 %renew.r\n"
        )
        if self.faulting:
            phi = ", ".join(f"[ {k}, %{label} ]" for k, label in self.faulting)
            lines.append(
                f"faulted:\n %at.fault = phi i32 {phi}\n %fault.r = call i32 @rt.faulted(ptr %warp, i32 %at.fault)\n"
                " ret i32 %fault.r\n"
            )
        lines.append("}\n")
        return "".join(lines)

    # ------------------------------------------------------------------ blocks

    def block(self, k: int, block: Block) -> None:
        run = self.e.run
        count = len(block.instructions)
        self.label(f"b{k}")
        self.renewing.append(k)
        run(f"%s{k} = load i32, ptr %slice")
        run(f"%z{k} = icmp eq i32 %s{k}, 0")
        run(f"br i1 %z{k}, label %renew, label %s{k}.x")
        self.label(f"s{k}.x")
        run(f"%s{k}.n = sub i32 %s{k}, 1")
        run(f"store i32 %s{k}.n, ptr %slice")
        run(f"%g{k} = load i32, ptr %group")
        if count:
            run(f"%i{k} = load i64, ptr %issued")
            run(f"%i{k}.n = add i64 %i{k}, {count}")
            run(f"store i64 %i{k}.n, ptr %issued")
            run(f"%c{k} = load i32, ptr %count")
            run(f"%c{k}.w = zext i32 %c{k} to i64")
            run(f"%c{k}.m = mul i64 %c{k}.w, {count}")
            run(f"%r{k} = load i64, ptr %retired")
            run(f"%r{k}.n = add i64 %r{k}, %c{k}.m")
            run(f"store i64 %r{k}.n, ptr %retired")
        if block.kind == HOST:
            self.host_block(k, block.instructions[0], block.first)
        elif block.kind == COLLECTIVE:
            self.collective_block(k, block.instructions[0], block.first)
        else:
            self.lane_block(k, block)

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
            e.run(f"call void @rt.split(ptr %warp, i32 %g{k}, i32 {k + 1}, i32 {k + 1})")
        taken = self.chunks(k, lanes) if body or guard is not None or indexed else None
        if e.accesses:
            self.check_faults(k)
        if indexed:
            e.run(f"ret i32 {DISPATCH}")
        elif end is None:
            self.edge(k, k + 1)
        else:
            self.finish(k, block, end, taken)

    def finish(self, k: int, block: Block, end: Instruction, taken: str | None) -> None:
        """The jump, exit or trap at a block's end. taken: its lanes, None for all."""
        run = self.e.run
        first = end.opcode.partition(".")[0]
        lanes = taken if taken is not None else f"%g{k}"
        if taken is not None:
            run(f"%none{k} = icmp eq i32 {taken}, 0")
            run(f"br i1 %none{k}, label %fall{k}, label %some{k}")
            self.label(f"fall{k}")
            self.edge(k, k + 1, "f")
            self.label(f"some{k}")
        if first == "bra":
            (target,) = block.targets
            if taken is not None:
                run(f"%full{k} = icmp eq i32 {taken}, %g{k}")
                run(f"br i1 %full{k}, label %jump{k}, label %part{k}")
                self.label(f"part{k}")
                run(f"call void @rt.split(ptr %warp, i32 {taken}, i32 {target}, i32 {k + 1})")
                run(f"ret i32 {DISPATCH}")
                self.label(f"jump{k}")
            self.edge(k, target, "t")
        elif first in ("exit", "ret"):
            run(f"%rest{k} = call i32 @rt.leave(ptr %warp, i32 {lanes})")
            if taken is None:
                run(f"ret i32 {DISPATCH}")
            else:
                run(f"%left{k} = icmp eq i32 %rest{k}, 0")
                run(f"br i1 %left{k}, label %gone{k}, label %on{k}")
                self.label(f"gone{k}")
                run(f"ret i32 {DISPATCH}")
                self.label(f"on{k}")
                self.edge(k, k + 1, "o")
        else:
            site = block.first + len(block.instructions) - 1
            run(f"%trap{k} = call i32 @rt.trapped(ptr %warp, i32 {lanes}, i32 {k}, i32 {k + 1}, i32 {site})")
            run(f"ret i32 %trap{k}")

    def edge(self, k: int, target: int, key: str = "e") -> None:
        """The group goes to a block, unless lanes of the warp that are behind it have to come first."""
        run = self.e.run
        label = f"go{k}{key}"
        run(f"br label %{label}")
        self.label(label)
        self.away.append((target, label))
        if target not in self.inside:
            run("br label %away")
            return
        run(f"%o{k}{key} = load i32, ptr %others")
        run(f"%b{k}{key} = icmp sgt i32 %o{k}{key}, {target}")
        run(f"br i1 %b{k}{key}, label %b{target}, label %away")

    def label(self, name: str) -> None:
        self.e.text.append(f"{name}:\n")

    def check_faults(self, k: int) -> None:
        run = self.e.run
        run(f"%fk{k} = load i32, ptr %fault_kind")
        run(f"%fz{k} = icmp eq i32 %fk{k}, 0")
        run(f"br i1 %fz{k}, label %fine{k}, label %bad{k}")
        self.label(f"bad{k}")
        self.faulting.append((k, f"bad{k}"))
        run("br label %faulted")
        self.label(f"fine{k}")

    def chunks(self, k: int, body: Callable[[], str | None]) -> str | None:
        """A loop over the chunks that have active lanes. body emits one and may give its lanes of a condition (i8);
        the result is then those of the warp (i32)."""
        e, run = self.e, self.e.run
        run(f"br label %h{k}")
        self.label(f"h{k}")
        head = len(e.text)
        run(f"%l{k}.s = trunc i64 %l{k} to i32")
        run(f"%l{k}.g = lshr i32 %g{k}, %l{k}.s")
        run(f"%l{k}.b = trunc i32 %l{k}.g to i{WIDTH}")
        run(f"%l{k}.z = icmp eq i{WIDTH} %l{k}.b, 0")
        run(f"br i1 %l{k}.z, label %n{k}, label %d{k}")
        self.label(f"d{k}")
        run(f"%l{k}.m = bitcast i{WIDTH} %l{k}.b to {vector('i1')}")
        e.start(f"%l{k}", f"%l{k}.m", f"%l{k}.b")
        bits = body()
        if bits is not None:
            run(f"%t{k}.w = zext i{WIDTH} {bits} to i32")
            run(f"%t{k}.s = shl i32 %t{k}.w, %l{k}.s")
            run(f"%t{k}.o = or i32 %t{k}, %t{k}.s")
        run(f"br label %n{k}")
        self.label(f"n{k}")
        if bits is not None:
            run(f"%t{k}.n = phi i32 [ %t{k}, %h{k} ], [ %t{k}.o, %d{k} ]")
        run(f"%l{k}.n = add i64 %l{k}, {WIDTH}")
        run(f"%l{k}.e = icmp ult i64 %l{k}.n, 32")
        run(f"br i1 %l{k}.e, label %h{k}, label %x{k}")
        self.label(f"x{k}")
        before = self.before_loop(k)
        phis = f" %l{k} = phi i64 [ 0, %{before} ], [ %l{k}.n, %n{k} ]\n"
        if bits is not None:
            phis += f" %t{k} = phi i32 [ 0, %{before} ], [ %t{k}.n, %n{k} ]\n"
        e.text.insert(head, phis)
        return f"%t{k}.n" if bits is not None else None

    def before_loop(self, k: int) -> str:
        return f"s{k}.x"

    # ------------------------------------------------------------------ instructions

    def lane(self, instruction: Instruction, site: int) -> None:
        e = self.e
        first = instruction.opcode.partition(".")[0]
        with self.reporting(instruction):
            emit = self.operations.get(first)
            if emit is None:
                if first in NO_EFFECT:
                    return
                raise Unsupported("the simulator does not have this instruction")
            e.site = site
            e.begin(instruction)
            emit(e, instruction)

    def reporting(self, instruction: Instruction) -> _Reporting:
        return _Reporting(self, instruction)

    def table_jump(self, end: Instruction, block: Block, k: int, site: int) -> None:
        e = self.e
        name = f"@table{k}"
        entries = ", ".join(f"i32 {target}" for target in block.targets)
        self.constants[name] = f"{name} = private constant [{len(block.targets)} x i32] [{entries}]\n"
        index = e.read(end.operands[0], "u32")
        e.accesses = True
        e.run(
            f"call void @rt.branch_table(ptr %warp, i64 {e.index}, i{WIDTH} {e.active()}, {vector('i32')} {index}, "
            f"ptr {name}, i32 {len(block.targets)}, i32 {site})"
        )

    def host_block(self, k: int, instruction: Instruction, site: int) -> None:
        e, run = self.e, self.e.run
        lanes = f"%g{k}"
        if instruction.guard is not None:

            def guard() -> str:
                e.begin(instruction)
                return e.active()

            lanes = self.chunks(k, guard) or lanes
            run(f"%none{k} = icmp eq i32 {lanes}, 0")
            run(f"br i1 %none{k}, label %fall{k}, label %some{k}")
            self.label(f"fall{k}")
            self.edge(k, k + 1, "f")
            self.label(f"some{k}")
        run(f"%host{k} = call i32 @rt.host(ptr %warp, i32 {lanes}, i32 {k}, i32 {k + 1}, i32 {site})")
        run(f"ret i32 %host{k}")

    def collective_block(self, k: int, instruction: Instruction, site: int) -> None:
        with self.reporting(instruction):
            self.collective_steps(k, instruction, site)

    def collective_steps(self, k: int, instruction: Instruction, site: int) -> None:
        e, run = self.e, self.e.run
        what = collective(instruction)
        rows: dict[int, tuple[Operand, str, int]] = {}  # operands that lie in no slot: by place in `given`
        given = [*what.results, *what.sources]
        if what.members is not None:
            given.append((what.members, "b32"))
        for i, (operand, type) in enumerate(given):
            if i >= len(what.results) and not self.in_memory(operand, type):
                rows[i] = (operand, type, self.scratch + 256 * (len(rows) + 1))

        def lanes() -> str | None:
            taken = None
            if instruction.guard is not None:
                e.begin(instruction)
                taken = e.active()
                e.guard = None
            for operand, type, byte in rows.values():
                element = "i64" if type == "b64" else "i32"
                value = e.read(operand, type)
                if type == "pred":
                    value = e.do(f"sext {vector('i1')} {value} to {vector('i32')}")
                base = e.do(f"getelementptr i8, ptr %regs, i64 {byte}")
                at = e.do(f"getelementptr {element}, ptr {base}, i64 {e.index}")
                run(f"store {vector(element)} {value}, ptr {at}, align 4")
            return taken

        group = f"%g{k}"
        if rows or instruction.guard is not None:
            taken = self.chunks(k, lanes)
            if taken is not None:
                run(f"%none{k} = icmp eq i32 {taken}, 0")
                run(f"br i1 %none{k}, label %fall{k}, label %some{k}")
                self.label(f"fall{k}")
                self.edge(k, k + 1, "f")
                self.label(f"some{k}")
                run(f"%full{k} = icmp eq i32 {taken}, %g{k}")
                run(f"br i1 %full{k}, label %whole{k}, label %part{k}")
                self.label(f"part{k}")
                run(f"call void @rt.narrow(ptr %warp, i32 {taken}, i32 {k + 1})")
                run(f"br label %whole{k}")
                self.label(f"whole{k}")
                group = taken
        pointers = [
            f"ptr {e.do(f'getelementptr i8, ptr %regs, i64 {rows[i][2]}') if i in rows else self.pointer(operand, type)}"
            for i, (operand, type) in enumerate(given)
        ]
        lanes_now = group
        if what.members is not None:
            barrier = "true" if what.function is None else "false"
            run(f"%exec{k} = call i32 @rt.gather(ptr %warp, i32 {k}, i32 {site}, {pointers.pop()}, i1 {barrier})")
            run(f"%wait{k} = icmp eq i32 %exec{k}, 0")
            run(f"br i1 %wait{k}, label %stay{k}, label %run{k}")
            self.label(f"stay{k}")
            self.check_faults(k)
            run(f"ret i32 {DISPATCH}")
            self.label(f"run{k}")
            lanes_now = f"%exec{k}"
        if what.function == "set":
            pointers.append(f"i32 {lanes_now}")
        if what.function is not None:
            run(f"call void @rt.{what.function}({', '.join((f'i32 {lanes_now}', *pointers))})")
        if what.members is not None:
            run(f"%every{k} = icmp eq i32 %exec{k}, {group}")
            run(f"br i1 %every{k}, label %jump{k}, label %apart{k}")
            self.label(f"apart{k}")
            run(f"call void @rt.split(ptr %warp, i32 %exec{k}, i32 {k + 1}, i32 {k})")
            run(f"ret i32 {DISPATCH}")
            self.label(f"jump{k}")
        self.edge(k, k + 1)

    def in_memory(self, operand: Operand, type: str) -> bool:
        """Whether the 32 lanes of a source lie somewhere already."""
        if isinstance(operand, Register):
            return operand.name in self.slots
        return is_direct(operand)

    def pointer(self, operand: Operand, type: str) -> str:
        """Of an operand's 32 lanes."""
        bits = {"pred": 1, "b64": 64}.get(type, 32)
        if isinstance(operand, Register):
            slot = self.slots.get(operand.name)
            if slot is None or register_bits(self.program.registers[operand.name]) != bits:
                raise Unsupported(f"{operand.name} is no .{type} register")
            return self.e.do(f"getelementptr i8, ptr %regs, i64 {slot.offset}")
        if isinstance(operand, Sink):
            return self.e.do(f"getelementptr i8, ptr %regs, i64 {self.scratch}")
        if not isinstance(operand, Immediate):
            raise Unsupported("a result goes to a register")
        value = -int(operand.value != 0) if type == "pred" else operand.value
        element = f"i{max(bits, 32)}"
        name = f"@lanes.{element}.{value & ((1 << 64) - 1)}"
        scalar = splat(element, value).removeprefix("splat (").removesuffix(")")
        self.constants[name] = f"{name} = private constant [32 x {element}] [{', '.join([scalar] * 32)}]\n"
        return name


class _Reporting:
    """Makes a diagnostic of what an instruction's translation refuses."""

    def __init__(self, frame: Frame, instruction: Instruction) -> None:
        self.frame = frame
        self.instruction = instruction

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, refused: BaseException | None, _: object) -> bool:
        if refused is None:
            return False
        if isinstance(refused, Unsupported):
            message = str(refused)
        elif isinstance(refused, IndexError | ValueError | KeyError):
            message = "operands that do not fit this instruction"
        else:
            return False
        problem = self.frame.program.problem("E1110", f"{self.instruction.opcode}: {message}", self.instruction)
        self.frame.problems.append(problem)
        return True


def _parts(blocks: Sequence[Block]) -> Iterator[range]:
    """Ranges of blocks with at most MAX_PART instructions together (a single block is never divided)."""
    start, size = 0, 0
    for k, block in enumerate(blocks):
        weight = len(block.instructions) + 4  # a block's frame is work too
        if size and size + weight > MAX_PART:
            yield range(start, k)
            start, size = k, 0
        size += weight
    yield range(start, len(blocks))
