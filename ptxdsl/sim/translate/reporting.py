"""What cannot be translated becomes a diagnostic at its instruction, and the translation goes on."""

from __future__ import annotations

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.program.program import Program
from ptxdsl.sim.translate.emitter import Unsupported


class Reporting:
    """Makes a diagnostic of what an instruction's translation refuses."""

    def __init__(self, program: Program, problems: list[Diagnostic], instruction: Instruction) -> None:
        self.program = program
        self.problems = problems
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
        problem = self.program.problem("E1110", f"{self.instruction.opcode}: {message}", self.instruction)
        self.problems.append(problem)
        return True
