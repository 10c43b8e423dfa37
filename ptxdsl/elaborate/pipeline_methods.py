"""The methods of RolePipeline and PipelineState: calls become ``pipe.*`` operations. ``role_pipeline.py`` has
what they mean."""

from __future__ import annotations

from ptxdsl import tir
from ptxdsl.elaborate.arguments import Bound
from ptxdsl.elaborate.builtins import HANDLERS, Builtins, Handler
from ptxdsl.elaborate.entities import Runtime, RValue, StructValue
from ptxdsl.elaborate.role_pipeline import METHOD_ROLES, initial_state
from ptxdsl.hints import Any


class Pipeline:
    """One RolePipeline value at one call: its parameters and its five machine values."""

    def __init__(self, e: Builtins, bound: Bound) -> None:
        self.e, self.bound, self.span = e, bound, bound.span
        self.value: StructValue = e.struct_argument(bound, "self")
        params = e.instance(self.value.type).params
        number = {k: e.comptime_int(v, bound.span) for k, v in params.items()}
        self.stages = number["number_of_stages"]
        self.is_producer = bool(number["is_producer"])
        self.subs = {"full": number["producer_sub_stages"], "empty": number["consumer_sub_stages"]}
        self.cta_group = number["cta_group"]
        full, empty, state = self.value.fields
        self.bases = {"full": e.runtime(full, self.span), "empty": e.runtime(empty, self.span)}
        self.state = state

    def state_values(self) -> list[tir.Value]:
        """index, phase, count."""
        return [self.e.runtime(v, self.span).value for v in self.e.fields(self.state)]

    def attrs(self, side: str | None = None, sub: int = 0) -> dict[str, Any]:
        attrs: dict[str, Any] = {
            "pipeline": self.e.receiver_name(self.bound),
            "method": self.bound.decl.name,
            "producer": self.is_producer,
            "stages": self.stages,
        }
        return attrs if side is None else {**attrs, "side": side, "subs": self.subs[side], "sub": sub}

    def check_role(self) -> str:
        """E0504 for a method of the other role; returns the table that the method works on."""
        method = self.bound.decl.name
        wants_producer, side, instead = METHOD_ROLES[method]
        if wants_producer != self.is_producer:
            mine, other = ("producer", "consumer") if self.is_producer else ("consumer", "producer")
            raise self.e.fail(
                "E0504", f"`{method}` belongs to the {other}; this pipeline's role is {mine}", self.span,
                help=f"call `{instead}()` here, or make it a {other}: RolePipeline[{self.stages}, {wants_producer}]",
            )  # fmt: skip
        return side

    def sub_stage(self, side: str) -> int:
        """The method's sub-stage, in range of the table's (E0505)."""
        sub = self.e.comptime_int(self.bound.binding.values["sub_stage_idx"], self.span)
        if not 0 <= sub < self.subs[side]:
            name = "producer_sub_stages" if side == "full" else "consumer_sub_stages"
            raise self.e.fail(
                "E0505", f"sub-stage {sub} of a pipeline with {name} = {self.subs[side]}", self.span,
                help=f"sub-stages are 0 to {self.subs[side] - 1}; give the pipeline more of them with `{name}`",
            )  # fmt: skip
        return sub

    def barrier(self, side: str, sub: int) -> Runtime:
        """base + 8 * (index * sub-stages + sub)."""
        e, subs = self.e, self.subs[side]
        index = e.runtime(e.fields(self.state)[0], self.span)
        scaled = e.offset(self.bases[side], index, 8 * subs, self.span)
        return e.advance(scaled, 8 * sub, self.span)

    def wait(self) -> None:
        side = self.check_role()
        sub = self.sub_stage(side) if self.bound.decl.name == "acquire" else 0
        self.e.require("mbarrier.try_wait", self.span, f"`{self.bound.decl.name}` (mbarrier.try_wait)")
        index, phase, _ = self.state_values()
        self.e.emit("pipe.wait", [self.bases[side].value, index, phase], [], self.span, **self.attrs(side, sub))

    def arrive(self) -> None:
        side = self.check_role()
        sub = 0 if side == "full" else self.sub_stage(side)
        self.e.require("mbarrier", self.span, f"`{self.bound.decl.name}` (mbarrier.arrive)")
        index = self.state_values()[0]
        self.e.emit("pipe.arrive", [self.bases[side].value, index], [], self.span, **self.attrs(side, sub))

    def commit_mma(self) -> None:
        side = self.check_role()
        self.e.require("tcgen05", self.span, "`commit_mma` (tcgen05.commit)")
        operands = [self.bases[side].value, self.state_values()[0]]
        if "elect" in self.bound.args:
            operands.append(self.e.runtime(self.e.argument(self.bound, "elect"), self.span).value)
        self.e.emit("pipe.commit_mma", operands, [], self.span, **self.attrs(side), cta_group=self.cta_group)

    def step(self) -> None:
        stepped = self.e.emit(
            "pipe.step", self.state_values(), [tir.I32] * 3, self.span, **{**self.attrs(), "method": "step"}
        )
        fields = self.e.fields(self.state)
        state = self.e.with_fields(self.state, [self.e.like(f, v) for f, v in zip(fields, stepped, strict=True)])
        value = self.e.with_fields(self.value, [*self.value.fields[:2], state])
        self.e.write_argument(self.bound, "self", value)


def make(e: Builtins, bound: Bound) -> RValue:
    """``RolePipeline[…](producer_mbar_base, consumer_mbar_base)``: the role's initial state."""
    t = bound.owner
    assert t is not None
    full, empty = (e.argument(bound, n) for n in ("producer_mbar_base", "consumer_mbar_base"))
    params = e.instance_params(t)
    producer = bool(e.comptime_int(params["is_producer"], bound.span))
    stages = e.comptime_int(params["number_of_stages"], bound.span)
    subs = tuple(e.comptime_int(params[n], bound.span) for n in ("producer_sub_stages", "consumer_sub_stages"))
    operands = [e.runtime(v, bound.span).value for v in (full, empty)]
    name = e.naming or "pipeline"
    attrs = {"pipeline": name, "producer": producer, "stages": stages, "full_subs": subs[0], "empty_subs": subs[1]}
    e.emit("pipe.new", operands, [], bound.span, **attrs)
    _, _, (_, state_type) = e.fields_of(t)  # type: ignore[arg-type]
    return e.struct_of(t, [full, empty, e.pipeline_state(state_type, *initial_state(producer))])


def _wait(e: Builtins, bound: Bound) -> RValue:
    Pipeline(e, bound).wait()
    return e.none


def _arrive_step(e: Builtins, bound: Bound) -> RValue:
    pipeline = Pipeline(e, bound)
    pipeline.arrive()
    pipeline.step()
    return e.none


def _arrive(e: Builtins, bound: Bound) -> RValue:
    Pipeline(e, bound).arrive()
    return e.none


def _commit_mma(e: Builtins, bound: Bound) -> RValue:
    Pipeline(e, bound).commit_mma()
    return e.none


def _step(e: Builtins, bound: Bound) -> RValue:
    Pipeline(e, bound).step()
    return e.none


def _mbar(side: str) -> Handler:
    def handler(e: Builtins, bound: Bound) -> RValue:
        pipeline = Pipeline(e, bound)
        return pipeline.barrier(side, pipeline.sub_stage(side))

    return handler


def _state_step(e: Builtins, bound: Bound) -> RValue:
    """PipelineState.step(), for pipelines that are written by hand."""
    state = e.struct_argument(bound, "self")
    span = bound.span
    stages = e.comptime_int(e.instance(state.type).params["num_stages"], span)
    values = [e.runtime(v, span).value for v in state.fields]
    attrs = {"pipeline": e.receiver_name(bound), "method": "step", "producer": False, "stages": stages}
    stepped = e.emit("pipe.step", values, [tir.I32] * 3, span, **attrs)
    parts = [e.like(f, v) for f, v in zip(state.fields, stepped, strict=True)]
    e.write_argument(bound, "self", e.with_fields(state, parts))
    return e.none


HANDLERS.update(
    {
        "RolePipeline.__init__": make,
        "RolePipeline.producer_mbar": _mbar("full"),
        "RolePipeline.consumer_mbar": _mbar("empty"),
        "RolePipeline.acquire": _wait,
        "RolePipeline.wait": _wait,
        "RolePipeline.commit": _arrive_step,
        "RolePipeline.release": _arrive_step,
        "RolePipeline.release_no_step": _arrive,
        "RolePipeline.commit_mma": _commit_mma,
        "RolePipeline.step": _step,
        "PipelineState.step": _state_step,
    }
)
