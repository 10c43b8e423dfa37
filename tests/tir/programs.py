"""Random little programs, and their TIR as a conservative elaborator would write it: every join carries every variable.

A program is a list of statements, nested tuples:
    ("set", variable, operand, number)   ("store", variable)   ("pipe", method, pipeline)   ("step", pipeline)
    ("if", variable, number, then, else)   ("for", start, trips, step, body)   ("while", trips, body)
    ("break",) ("continue",) ("return",)   each under a condition: ("when", variable, number, statement)
"""

from __future__ import annotations

from build_tir import Builder
from hypothesis import strategies as st

from ptxdsl.tir import I32, Const, Kernel, Op, Value

VARIABLES = ("x", "y", "n", "m")  # n and m start as the kernel's parameters
FIRST_PHASE = 1


class Writer:
    """One kernel; ``stages`` gives a pipeline each. Everything is stored at the end if ``observe``. ``signed``: whether
    the ranges of its loops are."""

    def __init__(self, program: list, stages: list[int], observe: bool = True, signed: bool = True) -> None:
        self.b = Builder()
        self.signed = signed
        self.stages = stages
        self.state: dict[str, Value] = {"n": self.b.param("n"), "m": self.b.param("m")}
        self.state |= {"x": Const(I32, 0), "y": Const(I32, 0), "i": Const(I32, 0)}
        self.out = self.b.shared("out", 4096)
        self.bases = [self.b.shared(f"bars{k}", 64 * s) for k, s in enumerate(stages)]
        for k, _ in enumerate(stages):
            self.state |= {f"index{k}": Const(I32, 0), f"phase{k}": Const(I32, FIRST_PHASE), f"count{k}": Const(I32, 0)}
        self.loops: list[Op] = []
        if self.statements(program):
            if observe:
                for slot, value in enumerate(self.state.values()):
                    self.store(slot, value)
            self.b.ret()

    @property
    def kernel(self) -> Kernel:
        return self.b.kernel

    def store(self, slot: int, value: Value) -> None:
        self.b.store(self.b.op("ptr.add", self.out, slot, scale=4, offset=0), value)

    def test(self, variable: str, number: int) -> Value:
        return self.b.op("eq", self.b.op("mod.s", self.state[variable], 3), number % 3)

    def fresh(self) -> dict[str, Value]:
        return {name: Value(I32, name) for name in self.state}

    def statements(self, body: list) -> bool:
        """Whether the end is reached; where not, the block has its terminator."""
        return all(self.statement(statement) for statement in body)

    def statement(self, s: tuple) -> bool:
        b, state = self.b, self.state
        if s[0] == "set":
            state[s[1]] = state[s[2]] if s[3] == 0 else b.op("add", state[s[2]], s[3])
        elif s[0] == "constant":
            state[s[1]] = Const(I32, s[2])
        elif s[0] == "store":
            self.store(VARIABLES.index(s[1]) if s[1] in VARIABLES else 9, state[s[1]])
        elif s[0] in ("wait", "arrive", "step"):
            self.pipeline(s[0], s[1] % len(self.stages))
        elif s[0] == "when":
            return self.branch(self.test(s[1], s[2]), [s[3]], [])
        elif s[0] == "if":
            return self.branch(self.test(s[1], s[2]), s[3], s[4])
        elif s[0] == "for":
            self.for_(s)
        elif s[0] == "while":
            self.while_(s)
        elif s[0] in ("break", "continue") and self.loops:
            (b.leave if s[0] == "break" else b.repeat)(self.loops[-1], *state.values())
            return False
        elif s[0] == "return":
            b.ret()
            return False
        return True

    def pipeline(self, method: str, k: int) -> None:
        names = (f"index{k}", f"phase{k}", f"count{k}")
        index, phase, count = (self.state[n] for n in names)
        pipe, stages = f"p{k}", self.stages[k]
        if method == "wait":
            self.b.pipe(pipe, "wait", self.bases[k], index, phase, stages=stages)
        elif method == "arrive":
            self.b.pipe(pipe, "arrive", self.bases[k], index, stages=stages)
        else:
            step = self.b.pipe(pipe, "step", index, phase, count, stages=stages)
            self.state.update(zip(names, step.results, strict=True))

    def branch(self, condition: Value, then: list, other: list) -> bool:
        before, after = dict(self.state), self.fresh()
        op = self.b.if_(condition, *after.values())
        ends = False
        for which, body in enumerate((then, other)):
            self.state = dict(before)
            with self.b.region(op, which):
                if self.statements(body):
                    ends = True
                    self.b.yield_(*self.state.values())
        self.state = after
        if not ends:
            self.b.emit("unreachable", [], [])
        return ends

    def loop_body(self, op: Op, names: list[str], params: list[Value], body: list) -> None:
        self.state = dict(zip(names, params, strict=True))
        self.loops.append(op)
        if self.statements(body):
            self.b.repeat(op, *self.state.values())
        self.loops.pop()

    def for_(self, s: tuple) -> None:
        _, start, trips, step, body = s
        first = Const(I32, start)
        stop: Value | int = start + step * trips if isinstance(trips, int) else self.state[trips]
        outer = self.state["i"]
        names = list(self.state)
        op = self.b.for_(first, stop, *self.state.values(), step=step, names=" ".join(["i", *names]))
        op.attrs["signed"] = self.signed
        with self.b.region(op) as (index, *params):  # params is a copy
            params[names.index("i")] = index
            self.loop_body(op, names, list(params), body)
        self.state = dict(zip(names, op.results, strict=True))
        self.state["i"] = outer

    def while_(self, s: tuple) -> None:
        _, trips, body = s
        names = list(self.state)
        after = self.fresh()
        op = self.b.loop([*self.state.values()], *after.values(), names=" ".join(names))
        with self.b.region(op) as params:
            inner = dict(zip(names, params, strict=True))
            more = self.b.op("lt.s", inner["y"], trips)
            test = self.b.if_(more)
            with self.b.region(test, 0):
                self.b.yield_()
            with self.b.region(test, 1):
                self.b.leave(op, *params)
            counted = self.b.op("add", inner["y"], 1)
            params = [counted if name == "y" else p for name, p in zip(names, params, strict=True)]
            self.loop_body(op, names, params, body)
        self.state = after


def statements(pipelines: int) -> st.SearchStrategy:
    """Random bodies. ``y`` counts the turns of a while loop, so that nothing else sets it."""
    numbers, targets, sources = st.integers(0, 2), st.sampled_from("xm"), st.sampled_from("xynmi")
    simple = st.one_of(
        st.tuples(st.just("set"), targets, sources, numbers),
        st.tuples(st.just("constant"), targets, numbers),
        st.tuples(st.just("store"), sources),
        st.tuples(st.sampled_from(["wait", "arrive", "step"]), st.integers(0, pipelines - 1)),
    )
    jumps = st.sampled_from([("break",), ("continue",), ("return",)])
    leaf = simple | st.tuples(st.just("when"), sources, numbers, jumps)

    def nest(inner: st.SearchStrategy) -> st.SearchStrategy:
        body = st.lists(inner, max_size=4)
        return st.one_of(
            st.tuples(st.just("if"), sources, numbers, body, body),
            st.tuples(st.just("for"), numbers, st.integers(0, 4) | st.just("n"), st.sampled_from([1, 1, 2, -1]), body),
            st.tuples(st.just("while"), st.integers(0, 3), body),
        )

    return st.lists(st.recursive(leaf, nest, max_leaves=10), max_size=6)


@st.composite
def ring_loops(draw: st.DrawFn, pipelines: int) -> list:
    """A loop that steps each pipeline once on every path, whatever else it does; then some of the same again.

    Steps hide in branches and before a ``continue``; ``break`` and ``return`` come anywhere.
    """
    numbers, sources = st.integers(0, 2), st.sampled_from("xnmi")
    simple = st.one_of(
        st.tuples(st.just("set"), st.sampled_from("xm"), sources, numbers),
        st.tuples(st.just("store"), sources),
        st.tuples(st.sampled_from(["wait", "arrive"]), st.integers(0, pipelines - 1)),
        st.tuples(st.just("when"), sources, numbers, st.sampled_from([("break",), ("return",)])),
        st.tuples(
            st.just("for"), numbers, st.integers(0, 2), st.just(1), st.lists(st.tuples(st.just("store"), sources))
        ),
    )
    filler = st.lists(simple, max_size=3)
    stepped: list = [("step", k) for k in range(pipelines)]

    def step(k: int) -> tuple:
        one, shape = ("step", k), draw(st.integers(0, 2))
        if shape == 0:
            return one
        then = [*draw(filler), one, *draw(filler)]
        if shape == 2:  # the rest of the body is skipped, so the rest of the pipelines step before
            then += [*stepped[k + 1 :], ("continue",)]
        return ("if", draw(sources), draw(numbers), then, [*draw(filler), one])

    body = draw(filler)
    for k in range(pipelines):
        body += [step(k), *draw(filler)]
    trips = draw(st.sampled_from(["n", "n", *range(21)]))
    loop = draw(
        st.sampled_from([("for", draw(numbers), trips, draw(st.sampled_from([1, 1, 1, 3, -1, -2])), body),
                         ("while", draw(st.integers(0, 20)), body)])
    )  # fmt: skip
    before = stepped * draw(st.integers(0, 2))
    outer = [*draw(filler), *before, loop, *draw(filler)]
    return draw(st.sampled_from([outer, [*before, ("for", 0, draw(st.integers(0, 3)), 1, [*draw(filler), loop])]]))
