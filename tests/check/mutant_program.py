"""The lines of a kernel's text as the operators of mutants see them: pipelines, slots, blocks, who belongs to whom."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

PIPELINE = re.compile(
    r"var (?P<var>\w+) = RolePipeline\[(?P<stages>\w+)(?P<consumer>, False)?[^\]]*\]\((?P<bases>.*)\)"
)
SHARED = re.compile(r"var (\w+) = .*(?:address_space=\.SHARED|dynamic_shared)")
INIT = re.compile(r"\.init(?:\[.*\])?\(")
BARRIER_USE = re.compile(
    r"\.(?:wait\w*|arrive\w*|expect_bytes\w*|init|acquire|commit\w*|release\w*|step|inval)(?:\[.*\])?\("
)
ARRIVE = re.compile(r"\.arrive(?:_cluster|_drop)?\(|mma_arrive|umma_arrive|commit_mma|store_async|async_copy_arrive")
COPY = re.compile(r"^(?:cp_async_bulk_shared\w*|tma_load\w*|cp_async_bulk_tensor_shared\w*)\(")
EXPECT = re.compile(r"\.expect_bytes(?:_\w+)?\(")
WAIT_GROUP = re.compile(r"^(?:(?:cp_async_bulk|async_copy)_wait_group|(?:\w+ )*(?:= )?wgmma_wait_group_sync)\[(\d+)")
COMMIT_GROUP = re.compile(r"^(?:cp_async_bulk_commit_group|async_copy_commit_group|wgmma_commit_group_sync)\(\)$")
ARRIVES = re.compile(rf"{ARRIVE.pattern}|{EXPECT.pattern}|\.release|\.commit\(\)")
ELECT = re.compile(r"^if (elect_one_sync\(\)|lane == 0):$")
RAW_WAIT = re.compile(r"\]?\.wait(?:_cluster)?\((.+)\)$")
LOOP = re.compile(r"^for (\w+) in range\((?:(.+), )?([^,]+)\):$")


class Program:
    """The lines of a kernel's text, and which of them belong together."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.code = [line.split("#")[0].strip() for line in self.lines]

    @cached_property
    def pipelines(self) -> list[Pipeline]:
        found = []
        for i, code in enumerate(self.code):
            match = PIPELINE.match(code)
            if match:
                scope = frozenset(range(i, max(self.suite(i)) + 1))
                producer = match["consumer"] is None
                found.append(Pipeline(match["var"], scope, match["bases"], match["stages"], producer))
        return found

    def pipeline(self, i: int, var: str) -> Pipeline | None:
        """The pipeline that a name means at a line."""
        return next((p for p in self.pipelines if p.var == var and i in p.scope), None)

    @cached_property
    def slots(self) -> set[str]:
        """Names of arrays in shared memory that hold data."""
        return {m[1] for code in self.code if (m := SHARED.match(code)) and "SharedMemBarrier" not in code}

    @cached_property
    def last_init(self) -> int:
        return max((i for i, code in enumerate(self.code) if INIT.search(code)), default=-1)

    def touches(self, i: int) -> bool:
        """Whether a line has to do with data in shared memory."""
        words = set(re.findall(r"\w+", self.code[i]))
        return bool(words & self.slots) and not SHARED.match(self.code[i])

    def indent(self, i: int) -> int:
        return len(self.lines[i]) - len(self.lines[i].lstrip())

    def suite(self, i: int) -> set[int]:
        """The lines of the block that a line stands in, with its heading."""
        depth = self.indent(i)
        first = last = i
        while first > 0 and (not self.code[first] or self.indent(first) >= depth):
            first -= 1
        while last + 1 < len(self.lines) and (not self.code[last + 1] or self.indent(last + 1) >= depth):
            last += 1
        return set(range(first, last + 1))

    def body(self, i: int) -> set[int]:
        """The lines below a heading."""
        last = i
        while last + 1 < len(self.lines) and (not self.code[last + 1] or self.indent(last + 1) > self.indent(i)):
            last += 1
        return set(range(i, last + 1))

    def named(self, i: int) -> list[Pipeline]:
        """The pipelines that a line names."""
        return [p for p in self.pipelines if i in p.scope and re.search(rf"\b{p.var}\b", self.code[i])]

    def role(self, pipeline: Pipeline) -> set[int]:
        """The lines that name a pipeline, or a variable that is made of it."""
        lines = {i for i in pipeline.scope if re.search(rf"\b{pipeline.var}\b", self.code[i])}
        made = {match[1] for i in lines if (match := re.match(r"var (\w+) =", self.code[i]))}
        return lines | {i for i in pipeline.scope if made & set(re.findall(r"\w+", self.code[i]))}

    def ring(self, i: int) -> set[int]:
        """The lines of all ends of the rings that a line names; where it names none, of everything with barriers."""
        named = self.named(i)
        if not named:
            return {j for j, code in enumerate(self.code) if BARRIER_USE.search(code) or self.named(j)}
        bases = {pipeline.bases for pipeline in named}
        ends = [pipeline for pipeline in self.pipelines if pipeline.bases in bases]
        lines = {line for pipeline in ends for line in self.role(pipeline)}
        lines |= {line for one in bases for line in self.unnamed(one)}
        return lines | {line for j in lines for line in self.called(j)}

    def unnamed(self, bases: str) -> set[int]:
        """The lines of ends that are parts of something else: where they are made, and where that is named."""
        made = [i for i, code in enumerate(self.code) if f"]({bases})" in code and not PIPELINE.match(code)]
        found = set(made)
        for i in made:
            match = re.match(r"var (\w+) =", self.code[i])
            found |= {j for j in self.suite(i) if match and re.search(rf"\b{match[1]}\b", self.code[j])}
        return found

    def called(self, i: int) -> set[int]:
        """The lines of the file's functions that a line calls."""
        names = set(re.findall(r"\b(\w+)(?:\[[^\]]*\])?\(", self.code[i]))
        defined = {j: m[1] for j, code in enumerate(self.code) if (m := re.match(r"def (\w+)", code))}
        return {line for j, name in defined.items() if name in names for line in self.body(j)}


@dataclass(frozen=True)
class Pipeline:
    """A variable that holds one end of a ring. scope: the lines where its name means it. bases: its barriers."""

    var: str
    scope: frozenset[int]
    bases: str
    stages: str
    producer: bool
