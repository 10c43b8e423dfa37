"""An agent's steps, as they are made of the model's operations one after the other (``flatten.py`` has the order)."""

from __future__ import annotations

from ptxdsl.check.accesses import Accesses, expressions_of
from ptxdsl.check.answers import asked
from ptxdsl.check.barrier_steps import barrier_step
from ptxdsl.check.collectives import WarpSync, collective_step
from ptxdsl.check.context import Context
from ptxdsl.check.copies import Copy
from ptxdsl.check.expressions import Expressions
from ptxdsl.check.groups import WGMMA, Start, group_step
from ptxdsl.check.held import written
from ptxdsl.check.parts import Agent
from ptxdsl.check.program import Nesting, Step
from ptxdsl.check.registers import RegisterMove
from ptxdsl.check.tensor import Allocation, tensor_steps
from ptxdsl.check.threads import Mask, whole_warpgroups, whole_warps
from ptxdsl.check.warpgroups import WarpgroupSync, is_of_warpgroup
from ptxdsl.effects import ACCESSES, Kind
from ptxdsl.protocol.answers import asks
from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Op


class Steps:
    """nesting: the loops around what is put next. used: variables that steps look at. landed: the last step that
    something jumps to. differs: whether more than values of variables differs between CTAs."""

    def __init__(self, context: Context, agent: Agent, expressions: Expressions) -> None:
        self.context = context
        self.agent = agent
        self.expressions = expressions
        self.steps: list[Step] = agent.steps
        self.nesting: Nesting = ()
        self.used: set[int] = set()
        self.accesses = Accesses(expressions)
        self.landed = -1
        self.differs = False

    def put(self, step: Step) -> Step:
        if isinstance(step, WarpSync) and step.idle:
            return step
        step.number = len(self.steps)
        step.nesting = self.nesting
        self.steps.append(step)
        return step

    def here(self) -> int:
        return len(self.steps)

    def land(self) -> int:
        """The next step's number, as a target."""
        self.landed = len(self.steps)
        return self.landed

    def use(self, *exprs: Expr | None) -> None:
        for expr in exprs:
            if expr is not None:
                self.used |= expr.variables
                self.compare(expr)

    def compare(self, expr: Expr) -> None:
        """Notes whether an expression differs between CTAs."""
        self.differs = self.differs or self.expressions.common.differs(expr)

    def operation(self, op: Op, mask: Mask) -> None:
        if op.kind in ACCESSES and op.what.space != "tensor":
            if op.what.convergent and mask != whole_warps(mask, self.context.every):  # ldmatrix, stmatrix
                self.flush()
                self.put(WarpSync(op, mask, self.expressions)).mask = mask
            mask = mask & self.expressions.block.leaders if op.elected else mask
            if mask:
                self.used |= self.accesses.add(op, mask)
                for expr in expressions_of(op):
                    self.compare(expr)
                sometimes = not self.accesses.certain or bool(self.accesses.spread)
                told = written(op, mask, sometimes, self.expressions)
                if told is not None:
                    self.flush()
                    self.used.update(told.uses)
                    self.put(told)
            return
        self.flush()
        exprs = [e for e in (op.parity, op.count, op.bytes, op.id, op.mask, *expressions_of(op)) if e is not None]
        uses = frozenset[int]().union(*(e.variables for e in exprs))
        self.use(*exprs)
        if is_of_warpgroup(op):
            if sum(whole_warpgroups(mask)) != mask:
                self.put(WarpgroupSync(op, mask)).mask = mask
            if op.kind is Kind.REGISTERS:
                count = self.expressions.constant(op.count) if op.count is not None else None
                if isinstance(count, int):
                    self.put(RegisterMove(op, mask, count))
                return
        before = self.steps[-1] if self.steps else None
        follows = before is not None and before.mask == mask and self.landed != self.here()
        if follows and isinstance(before, (Copy, Start)) and before.takes(op, self.expressions, self.context):
            before.uses = uses.union(before.uses)
            return
        of_tensor = tensor_steps(op, mask, self.expressions, self.context, self.agent)
        if of_tensor is not None:
            for one in of_tensor:
                one.uses = uses if isinstance(one, (Start, Allocation)) else ()
                self.put(one)
            return
        if op.elected:  # all lanes of a warp come to ``elect.sync``, and one of them goes on
            sync = self.put(WarpSync(op, mask, self.expressions))
            sync.mask = mask
            mask &= self.expressions.block.leaders
            if not mask:
                return
        if (
            op.what.completes_on == WGMMA
            and op.kind is Kind.WAIT_GROUP
            and mask != whole_warps(mask, self.context.every)
        ):
            self.put(WarpSync(op, mask, self.expressions)).mask = mask  # the lanes of a warp come together
        for make in (barrier_step, collective_step, group_step):
            step = make(op, mask, self.expressions, self.context, self.agent)
            if step is not None:
                step.mask, step.uses = mask, uses
                self.put(step)
                break
        if asks(op):
            self.put(asked(op, mask, self.expressions, self.context, self.nesting))

    def flush(self) -> None:
        """Puts the accesses collected so far."""
        for step in self.accesses.steps():
            self.put(step)
