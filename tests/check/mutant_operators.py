"""The operators that make mutants: what they find at a line, and what they put there (see ``mutants``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from mutant_classes import ACCEPTED
from mutant_program import (
    ARRIVE,
    ARRIVES,
    BARRIER_USE,
    COMMIT_GROUP,
    COPY,
    ELECT,
    EXPECT,
    INIT,
    LOOP,
    PIPELINE,
    RAW_WAIT,
    WAIT_GROUP,
    Pipeline,
    Program,
)

# New codes by line (whole lines where they begin with spaces), and lines beside the changed ones that may be shown.
Edit = tuple[dict[int, str], set[int]]
Find = Callable[[Program, int, str], Iterator[Edit]]
OPERATORS: dict[str, Find] = {}


def operator(name: str) -> Callable[[Find], Find]:
    def add(find: Find) -> Find:
        assert name in ACCEPTED, name
        OPERATORS[name] = find
        return find

    return add


# ----------------------------------------------------------------------------------------------------- dropped


def _drop(name: str, pattern: str, instead: str = "pass", raw: bool = False) -> None:
    compiled = re.compile(pattern)

    @operator(name)
    def find(p: Program, i: int, code: str) -> Iterator[Edit]:
        match = compiled.search(code)
        if match and (raw or p.pipeline(i, match[1])):
            yield {i: match.expand(instead) if match.groups() else instead}, p.suite(i) | p.ring(i)


_drop("drop acquire", r"^(\w+)\.acquire(?:\[.*\])?\(\)$")
_drop("drop wait", r"^(\w+)\.wait\(\)$")
_drop("drop arrival of commit", r"^(\w+)\.commit\(\)$", r"\1.step()")
_drop("drop commit", r"^(\w+)\.commit\(\)$")
_drop("drop arrival of release", r"^(\w+)\.release(?:\[.*\])?\(\)$", r"\1.step()")
_drop("drop release", r"^(\w+)\.release(?:\[.*\])?\(\)$")
_drop("drop release_no_step", r"^(\w+)\.release_no_step(?:\[.*\])?\(\)$")
_drop("drop step", r"^(\w+)\.step\(\)$")
_drop("drop proxy fence", r"^fence_proxy_async\w*(?:\[.*\])?\(\)$", raw=True)
_drop("drop syncwarp", r"^syncwarp\(\)$", raw=True)
_drop("drop init fence", r"^fence_mbarrier_init\(\)$", raw=True)
_drop("drop commit group", COMMIT_GROUP.pattern, raw=True)


@operator("drop init")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if INIT.search(code):
        yield {i: "pass"}, {j for j, c in enumerate(p.code) if BARRIER_USE.search(c)} | p.suite(i)


@operator("drop fill")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    match = re.match(r"(\w+)\[.*?\] = ", code)
    if match and match[1] in p.slots:
        yield {i: "pass"}, p.suite(i) | _uses(p)


@operator("fill in the first turns alone")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    match = re.match(r"(\w+)\[(.*?)\] = ", code)
    loop = _loop(p, i)
    if match and match[1] in p.slots and ".state.index()" in match[2] and loop and not (loop[2] or loop[3].isdigit()):
        yield {i: f"if {loop[1]} < 4: {code}"}, p.suite(i) | _uses(p)


def _loop(p: Program, i: int) -> re.Match[str] | None:
    """The innermost loop that a line is in."""
    around = (LOOP.match(p.code[j]) for j in range(i, -1, -1) if p.code[j] and p.indent(j) < p.indent(i))
    return next((match for match in around if match), None)


@operator("drop named barrier")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if code.startswith("named_barrier"):
        yield {i: "pass"}, p.suite(i) | {j for j, c in enumerate(p.code) if c.startswith("named_barrier")}


@operator("drop barrier")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if code == "barrier()" and i != _first_meeting(p):
        yield {i: "pass"}, p.suite(i) | _uses(p) | p.ring(i)


@operator("drop barrier after init")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if code in ("barrier()", "cluster_sync()") and i == _first_meeting(p):
        yield {i: "pass"}, {j for j, c in enumerate(p.code) if BARRIER_USE.search(c)} | p.suite(i)


@operator("drop last cluster sync")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if code == "cluster_sync()" and not any("cluster_sync" in c for c in p.code[i + 1 :]) and i != _first_meeting(p):
        yield {i: "pass"}, set(range(len(p.lines)))


@operator("drop elect")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if ELECT.match(code) and any(ARRIVES.search(p.code[j]) for j in p.body(i)):
        yield {i: "if True:"}, p.body(i)


@operator("drop expect")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if EXPECT.search(code):
        yield {i: "pass"}, p.suite(i) | p.ring(i)


@operator("drop copy")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if COPY.match(code) and code.endswith(")"):
        yield {i: "pass"}, p.suite(i) | p.ring(i)


@operator("drop wait group")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if WAIT_GROUP.match(code) and not code.startswith("var"):
        yield {i: "pass"}, p.suite(i) | _uses(p)


@operator("drop raw arrival")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if ARRIVE.search(code) and not code.startswith(("if", "from")):
        yield {i: "pass"}, p.suite(i) | p.ring(i)


@operator("drop raw wait")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if RAW_WAIT.search(code) and not code.startswith("if"):
        yield {i: "pass"}, p.suite(i) | p.ring(i)


# ----------------------------------------------------------------------------------------------------- doubled


def _double(name: str, pattern: str, first: str | None = None, role: bool = False, raw: bool = False) -> None:
    compiled = re.compile(pattern)

    @operator(name)
    def find(p: Program, i: int, code: str) -> Iterator[Edit]:
        match = compiled.search(code)
        if match and (raw or p.pipeline(i, match[1])):
            yield {i: f"{match.expand(first) if first else code}; {code}"}, p.ring(i) if role else set()


_double("double commit", r"^(\w+)\.commit\(\)$", role=True)
_double("double arrival of commit", r"^(\w+)\.commit\(\)$", r"_ = \1.producer_mbar()[].arrive()")
_double("double release", r"^(\w+)\.release(?:\[.*\])?\(\)$", role=True)
_double("double arrival of release", r"^(\w+)\.release(\[.*\])?\(\)$", r"\1.release_no_step\2()")
_double("double release_no_step", r"^(\w+)\.release_no_step(?:\[.*\])?\(\)$")
_double("double step", r"^(\w+)\.(?:step|commit|release)(?:\[.*\])?\(\)$", r"\1.step()", role=True)
_double("double raw arrival", rf"^(?!if |from )(.*)(?:{ARRIVE.pattern})", raw=True)
_double("double expect", rf"^(.*){EXPECT.pattern}", raw=True)
_double("double copy", rf"{COPY.pattern}.*\)$", raw=True)
_double("double init", rf"^(?!for|if)(.*){INIT.pattern}", raw=True)
_double("double acquire", r"^(\w+)\.acquire(?:\[.*\])?\(\)$")
_double("double wait", r"^(\w+)\.wait\(\)$")
_double("double meeting", r"^(?:barrier|syncwarp|cluster_sync)\(\)$", raw=True)
_double("double fence", r"^fence_\w+(?:\[.*\])?\(\)$", raw=True)
_double("double commit group", COMMIT_GROUP.pattern, raw=True)
_double("double wait group", rf"^(?!var )(?:{WAIT_GROUP.pattern[1:]})", raw=True)


# ----------------------------------------------------------------------------------------------------- changed


@operator("more arrivals expected")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    for _, made in _counts(code, ("{} + 1", "2 * ({})")):
        yield {i: made}, set()


@operator("fewer arrivals expected")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    for old, made in _counts(code, ("{} - 1", "{} // 2")):
        if not old.isdigit() or int(old) > 1:
            yield {i: made}, set()


def _counts(code: str, forms: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    match = re.search(r"\.init\((.+)\)$", code)
    if match:
        for form in forms:
            yield match[1], code[: match.start(1)] + form.format(match[1]) + code[match.end(1) :]
    for match in re.finditer(r"(num_(?:producer|consumer)=)([\w* ]+)", code):
        for form in forms:
            yield match[2], code[: match.start(2)] + form.format(match[2]) + code[match.end(2) :]


def _constructor(name: str, change: Callable[[Pipeline, re.Match[str]], str | None]) -> None:
    @operator(name)
    def find(p: Program, i: int, code: str) -> Iterator[Edit]:
        match = PIPELINE.match(code)
        made = change(_of(p, i, match["var"]), match) if match else None
        if made is not None:
            yield {i: made}, p.ring(i)


def _of(p: Program, i: int, var: str) -> Pipeline:
    found = p.pipeline(i, var)
    assert found is not None
    return found


def _first_stage(p: Pipeline, match: re.Match[str]) -> str | None:
    return f"{match.string}; {p.var}.state._index = 1" if p.stages != "1" else None


def _fewer_stages(p: Pipeline, match: re.Match[str]) -> str | None:
    code = match.string
    return f"{code[: match.end('stages')]} - 1{code[match.end('stages') :]}" if p.stages != "1" else None


def _exchanged(p: Pipeline, match: re.Match[str]) -> str | None:
    bases = p.bases.split(", ")
    return f"{match.string[: match.start('bases')]}{bases[1]}, {bases[0]})" if len(bases) == 2 else None


_constructor("other first phase", lambda p, match: f"{match.string}; {p.var}.state._phase = {0 if p.producer else 1}")
_constructor("other first stage", _first_stage)
_constructor("other number of stages", _fewer_stages)
_constructor("exchanged barriers", _exchanged)


@operator("other parity")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    match = RAW_WAIT.search(code)
    if match and not code.startswith("if"):
        yield {i: f"{code[: match.start(1)]}({match[1]}) ^ 1)"}, set()


@operator("other slot")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    for match in re.finditer(r"(\w+)\.state\.index\(\)", code):
        pipeline = p.pipeline(i, match[1])
        if pipeline and pipeline.stages != "1" and (p.touches(i) or code.startswith("var ")):
            stages = pipeline.stages if pipeline.stages.isdigit() else f"UInt32({pipeline.stages})"
            slot = f"(({match[0]} + 1) % {stages})"
            yield {i: code[: match.start()] + slot + code[match.end() :]}, _users(p, i)


def _users(p: Program, i: int) -> set[int]:
    """The lines that use a variable which a line declares, and those that a line calls."""
    match = re.match(r"var (\w+) =", p.code[i])
    return p.called(i) | ({j for j in p.suite(i) if re.search(rf"\b{match[1]}\b", p.code[j])} if match else set())


@operator("other bytes expected")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    match = re.search(r"\.expect_bytes(?:_\w+)?\((?:.*, )?(.+)\)$", code)
    if match:
        for form in ("{} + 16", "{} - 16"):
            yield {i: code[: match.start(1)] + form.format(match[1]) + ")"}, set()


@operator("other bytes copied")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    match = re.match(r"cp_async_bulk_shared_c\w+\(.*, (\d+), \w+(?:, 0x\w+)?\)$", code)
    if match:
        yield {i: code[: match.start(1)] + f"{match[1]} - 16" + code[match.end(1) :]}, set()


@operator("consumer goes round once more")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    yield from _trips(p, i, code, False, "{} + 1")


@operator("producer goes round once less")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    yield from _trips(p, i, code, True, "{} - 1")


def _trips(p: Program, i: int, code: str, producer: bool, form: str) -> Iterator[Edit]:
    match = LOOP.match(code)
    if match is None:
        return
    body = p.body(i)
    turning = [pipeline for pipeline in p.pipelines if body & p.role(pipeline)]
    if turning and all(pipeline.producer == producer for pipeline in turning):
        ring = {line for pipeline in turning for line in p.ring(min(pipeline.scope))}
        yield {i: code[: match.start(3)] + form.format(match[3]) + code[match.end(3) :]}, body | ring


@operator("more groups under way")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    match = WAIT_GROUP.match(code)
    if match:
        yield {i: code[: match.start(1)] + str(int(match[1]) + 1) + code[match.end(1) :]}, p.suite(i) | _uses(p)


@operator("other named barrier")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    match = re.match(r"named_barrier(?:_arrive)?\[(\d+)\]\((.+)\)$", code)
    if match:
        yield {i: code[: match.start(2)] + f"{match[2]} + 1)"}, set()
        yield {i: code[: match.start(1)] + str(int(match[1]) + 32) + code[match.end(1) :]}, set()


@operator("other multicast mask")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    match = re.search(r"0x([13F])\)$", code)
    if match:
        yield {i: code[: match.start(1)] + {"1": "3", "3": "1", "F": "3"}[match[1]] + ")"}, p.suite(i) | p.ring(i)


@operator("other block of the cluster")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    match = re.search(r"\.arrive_cluster\((.+?)\)$", code)
    if match:
        yield {i: code[: match.start(1)] + f"({match[1]}) ^ 1)"}, p.suite(i) | p.ring(i)


# ------------------------------------------------------------------------------------------------------- moved


def _swap(name: str, first: Callable[[Program, int], bool], second: Callable[[Program, int], bool]) -> None:
    @operator(name)
    def find(p: Program, i: int, code: str) -> Iterator[Edit]:
        j = i + 1
        if j == len(p.lines) or not p.code[j] or p.indent(i) != p.indent(j):
            return
        if _simple(code) and _simple(p.code[j]) and first(p, i) and second(p, j):
            yield {i: p.code[j], j: code}, p.called(i) | p.called(j)


def _simple(code: str) -> bool:
    return (
        not code.endswith((":", "(", ",", "["))
        and code.count("(") == code.count(")")
        and code.count("[") == code.count("]")
    )


def _is(pattern: str) -> Callable[[Program, int], bool]:
    return lambda p, i: re.search(pattern, p.code[i]) is not None


def _access(p: Program, i: int) -> bool:
    return p.touches(i) and not p.code[i].startswith("var slot")


_ACQUIRE, _COMMIT = r"^\w+\.acquire(?:\[.*\])?\(\)$", r"^\w+\.commit\(\)$"
_WAIT, _RELEASE = r"^\w+\.wait\(\)$", r"^\w+\.release(?:_no_step)?(?:\[.*\])?\(\)$"
_ANY_ARRIVAL = rf"{_RELEASE}|{_COMMIT}|{ARRIVE.pattern}"
_swap("fill before acquire", _is(_ACQUIRE), _access)
_swap("fill after commit", _access, _is(_COMMIT))
_swap("read before wait", _is(_WAIT), _access)
_swap("read after release", _access, _is(_RELEASE))
_swap("fence after arrival", _is(r"^fence_proxy_async"), _is(_ANY_ARRIVAL))
_swap("fence before write", _access, _is(r"^fence_proxy_async"))
_swap(
    "group waited for after arrival",
    lambda p, i: bool(WAIT_GROUP.match(p.code[i])),
    _is(_ANY_ARRIVAL),
)
_swap("arrival before syncwarp", _access, _is(r"^syncwarp\(\)$"))
_swap("copy announced after its start", _is(EXPECT.pattern), _is(COPY.pattern))


@operator("barrier before init")
def _(p: Program, i: int, code: str) -> Iterator[Edit]:
    if i != _first_meeting(p) or p.last_init < 0:
        return
    start = min(p.suite(p.last_init))
    while p.indent(start) > p.indent(i):
        start = min(p.suite(start))
    if all(p.code[start:i]):
        yield dict(zip(range(start, i + 1), [p.lines[i], *p.lines[start:i]], strict=True)), _inits(p)


def _inits(p: Program) -> set[int]:
    return {j for j, code in enumerate(p.code) if BARRIER_USE.search(code)}


def _first_meeting(p: Program) -> int:
    after = range(p.last_init + 1, len(p.code)) if p.last_init >= 0 else ()
    return next((i for i in after if p.code[i] in ("barrier()", "cluster_sync()")), -1)


def _uses(p: Program) -> set[int]:
    return {i for i in range(len(p.code)) if p.touches(i)}
