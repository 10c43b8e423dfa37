"""The methods of RolePipeline and PipelineState: calls become ``pipe.*`` operations. ``role_pipeline.py`` has
what they mean."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl import tir
from ptxdsl.elaborate import types
from ptxdsl.elaborate.builtins import HANDLERS, Builtins, Handler
from ptxdsl.elaborate.entities import NONE_VALUE, Runtime, RValue, StructType, StructValue
from ptxdsl.elaborate.matching import Bound
from ptxdsl.elaborate.memory import parts, with_parts
from ptxdsl.elaborate.role_pipeline import METHOD_ROLES, initial_state
from ptxdsl.elaborate.values import const
from ptxdsl.hints import Any
from ptxdsl.intrinsics.alignment import MBARRIER
from ptxdsl.source import Span
from ptxdsl.tir.features import PIPELINE_FEATURES


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
        self.index, self.phase, _ = (e.runtime(v, self.span) for v in parts(state))

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
        scaled = self.e.offset(self.bases[side], self.index, 8 * self.subs[side], self.span)
        return self.e.advance(scaled, 8 * sub, self.span)

    def wait(self) -> None:
        side = self.check_role()
        sub = self.sub_stage(side) if self.bound.decl.name == "acquire" else 0
        self.e.require(PIPELINE_FEATURES["pipe.wait"], self.span, f"`{self.bound.decl.name}` (mbarrier.try_wait)")
        operands = [self.bases[side].value, self.index.value, self.phase.value]
        self.e.emit("pipe.wait", operands, [], self.span, **self.attrs(side, sub))

    def arrive(self) -> None:
        side = self.check_role()
        sub = 0 if side == "full" else self.sub_stage(side)
        self.e.require(PIPELINE_FEATURES["pipe.arrive"], self.span, f"`{self.bound.decl.name}` (mbarrier.arrive)")
        operands = [self.bases[side].value, self.index.value]
        self.e.emit("pipe.arrive", operands, [], self.span, **self.attrs(side, sub))

    def commit_mma(self) -> None:
        side = self.check_role()
        self.e.require(PIPELINE_FEATURES["pipe.commit_mma"], self.span, "`commit_mma` (tcgen05.commit)")
        operands = [self.bases[side].value, self.index.value]
        if "elect" in self.bound.args:
            operands.append(self.e.runtime(self.e.argument(self.bound, "elect"), self.span).value)
        self.e.emit("pipe.commit_mma", operands, [], self.span, **self.attrs(side), cta_group=self.cta_group)

    def step(self) -> None:
        state = _stepped(self.e, self.state, {**self.attrs(), "method": "step"}, self.span)
        value = StructValue(self.value.type, (*self.value.fields[:2], state))
        self.e.write_argument(self.bound, "self", value)


def _stepped(e: Builtins, state: RValue, attrs: dict[str, Any], span: Span) -> RValue:
    """The next state of a ring."""
    values = [e.runtime(v, span) for v in parts(state)]
    results = e.emit("pipe.step", [v.value for v in values], [tir.I32] * 3, span, **attrs)
    return with_parts(state, tuple(Runtime(v.type, r) for v, r in zip(values, results, strict=True)))


def make(e: Builtins, bound: Bound) -> RValue:
    """``RolePipeline[…](producer_mbar_base, consumer_mbar_base)``: the role's initial state."""
    t = bound.owner
    assert isinstance(t, StructType)
    full, empty = (e.argument(bound, n) for n in ("producer_mbar_base", "consumer_mbar_base"))
    params = e.instance(t).params
    producer = bool(e.comptime_int(params["is_producer"], bound.span))
    stages = e.comptime_int(params["number_of_stages"], bound.span)
    subs = tuple(e.comptime_int(params[n], bound.span) for n in ("producer_sub_stages", "consumer_sub_stages"))
    operands = [e.runtime(v, bound.span).value for v in (full, empty)]
    for base in operands:
        e.want_aligned(base, MBARRIER, "an mbarrier", bound.span)
    name = e.naming or "pipeline"
    attrs = {"pipeline": name, "producer": producer, "stages": stages, "full_subs": subs[0], "empty_subs": subs[1]}
    e.emit("pipe.new", operands, [], bound.span, **attrs)
    _, _, (_, state_type) = e.fields_of(t)
    assert isinstance(state_type, StructType)
    state = tuple(const(types.UINT32, n, comptime=False) for n in initial_state(producer))
    return StructValue(t, (full, empty, StructValue(state_type, state)))


def _does(*actions: Callable[[Pipeline], None]) -> Handler:
    def handler(e: Builtins, bound: Bound) -> RValue:
        pipeline = Pipeline(e, bound)
        for action in actions:
            action(pipeline)
        return NONE_VALUE

    return handler


def _mbar(side: str) -> Handler:
    def handler(e: Builtins, bound: Bound) -> RValue:
        pipeline = Pipeline(e, bound)
        return pipeline.barrier(side, pipeline.sub_stage(side))

    return handler


def _state_step(e: Builtins, bound: Bound) -> RValue:
    """PipelineState.step(), for pipelines that are written by hand."""
    state = e.struct_argument(bound, "self")
    stages = e.comptime_int(e.instance(state.type).params["num_stages"], bound.span)
    attrs = {"pipeline": e.receiver_name(bound), "method": "step", "producer": False, "stages": stages}
    e.write_argument(bound, "self", _stepped(e, state, attrs, bound.span))
    return NONE_VALUE


HANDLERS.update(
    {
        "RolePipeline.__init__": make,
        "RolePipeline.producer_mbar": _mbar("full"),
        "RolePipeline.consumer_mbar": _mbar("empty"),
        "RolePipeline.acquire": _does(Pipeline.wait),
        "RolePipeline.wait": _does(Pipeline.wait),
        "RolePipeline.commit": _does(Pipeline.arrive, Pipeline.step),
        "RolePipeline.release": _does(Pipeline.arrive, Pipeline.step),
        "RolePipeline.release_no_step": _does(Pipeline.arrive),
        "RolePipeline.commit_mma": _does(Pipeline.commit_mma),
        "RolePipeline.step": _does(Pipeline.step),
        "PipelineState.step": _state_step,
    }
)
