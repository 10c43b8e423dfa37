"""What RolePipeline must not let through, each at the user's own line: code, line, column, message."""

import pytest
from elaborate_support import diagnostics, in_kernel, where

CONSUMER = "var p = RolePipeline[3, False](m, m.unsafe_offset(3))\n"
PRODUCER = "var p = RolePipeline[3, True](m, m.unsafe_offset(3))\n"

WRONG_ROLE = [
    (CONSUMER + "p.acquire()", "`acquire` belongs to the producer; this pipeline's role is consumer", "wait()"),
    (CONSUMER + "p.commit()", "`commit` belongs to the producer; this pipeline's role is consumer", "release()"),
    (
        CONSUMER + "p.commit_mma()",
        "`commit_mma` belongs to the producer; this pipeline's role is consumer",
        "release()",
    ),
    (
        CONSUMER + "p.commit_mma(1)",
        "`commit_mma` belongs to the producer; this pipeline's role is consumer",
        "release()",
    ),
    (PRODUCER + "p.wait()", "`wait` belongs to the consumer; this pipeline's role is producer", "acquire()"),
    (PRODUCER + "p.release()", "`release` belongs to the consumer; this pipeline's role is producer", "commit()"),
    (
        PRODUCER + "p.release_no_step()",
        "`release_no_step` belongs to the consumer; this pipeline's role is producer",
        "commit()",
    ),
]


@pytest.mark.parametrize(("body", "message", "instead"), WRONG_ROLE)
def test_method_of_the_other_role(body: str, message: str, instead: str) -> None:
    (problem,) = diagnostics(in_kernel(body))
    assert where(problem) == ("E0504", 5, 5)
    assert problem.message == message
    assert instead in (problem.help or "")


REJECTED = [
    # parameters: the span is the type that the user wrote
    ("var p = RolePipeline[0, True](m, m)", "E0501", 4, 13, "a pipeline needs at least one stage, not 0"),
    ("var p = RolePipeline[-2](m, m)", "E0501", 4, 13, "a pipeline needs at least one stage, not -2"),
    ("var s = PipelineState[0]()", "E0501", 4, 13, "a pipeline needs at least one stage, not 0"),
    ("var p = RolePipeline[2, True, 0](m, m)", "E0502", 4, 13, "`producer_sub_stages` must be at least 1, not 0"),
    ("var p = RolePipeline[2, True, 1, -1](m, m)", "E0502", 4, 13, "`consumer_sub_stages` must be at least 1, not -1"),
    ("var p = RolePipeline[2, True, 1, 1, 3](m, m)", "E0503", 4, 13, "`cta_group` is 1 or 2, not 3"),
    # sub-stages
    (PRODUCER + "p.acquire[-1]()", "E0505", 5, 5, "sub-stage -1 of a pipeline with consumer_sub_stages = 1"),
    (PRODUCER + "p.acquire[1]()", "E0505", 5, 5, "sub-stage 1 of a pipeline with consumer_sub_stages = 1"),
    (CONSUMER + "p.release[1]()", "E0505", 5, 5, "sub-stage 1 of a pipeline with consumer_sub_stages = 1"),
    (CONSUMER + "p.release_no_step[4]()", "E0505", 5, 5, "sub-stage 4 of a pipeline with consumer_sub_stages = 1"),
    (CONSUMER + "_ = p.producer_mbar[1]()", "E0505", 5, 9, "sub-stage 1 of a pipeline with producer_sub_stages = 1"),
    # constructor arguments
    ("var p = RolePipeline[3, True](m)", "E0325", 4, 13, "`__init__` lacks argument `consumer_mbar_base`"),
    ("var p = RolePipeline[3, True](m, 5)", "E0301", 4, 38, "IntLiteral"),
    ("var p = RolePipeline[3, True](m, m, m)", "E0322", 4, 41, "`__init__` takes 2 arguments, 3 are given"),
    ("var p = RolePipeline[3, True](m, n)", "E0301", 4, 38, "found Int32"),
    # parameters that are not compile-time values, or unknown
    ("var p = RolePipeline[n, True](m, m)", "E0401", 4, 26, "a run-time value where a compile-time value is needed"),
    ("var s = 3\nvar p = RolePipeline[s, True](m, m)", "E0401", 5, 26, "a run-time value where"),
    ("var p = RolePipeline[3, stages=4](m, m)", "E0307", 4, 29, "`RolePipeline` has no parameter `stages`"),
    ("var p = RolePipeline[3, True, 1, 1, 1, 1](m, m)", "E0306", 4, 44, "takes 5 parameters, more are given"),
    ("var p = RolePipeline[3, 4.5](m, m)", "E0301", 4, 29, "expected Bool"),
    # elect
    (PRODUCER + "p.commit_mma(1.5)", "E0301", 5, 18, "expected Int32, found FloatLiteral"),
    (PRODUCER + "p.commit_mma(True)", "E0301", 5, 18, "expected Int32, found Bool"),
    (PRODUCER + "p.commit_mma(Int64(1))", "E0301", 5, 18, "expected Int32, found Int64"),
    # names, initialisation, redefinition
    (PRODUCER + "p.aquire()", "E0330", 5, 7, "has no `aquire`"),
    ("var p = RolePipelin[3, True](m, m)", "E0201", 4, 13, "unknown name `RolePipelin`"),
    ("var p: RolePipeline[3, True]\np.acquire()", "E0209", 5, 5, "`p` is used before it is given a value"),
    (
        PRODUCER + "p.num_stages = 3",
        "E0337",
        5,
        7,
        "`num_stages` of RolePipeline[3, True, 1, 1, 1] is a compile-time name",
    ),
    (
        PRODUCER + "p.cta_group = 2",
        "E0337",
        5,
        7,
        "`cta_group` of RolePipeline[3, True, 1, 1, 1] is a compile-time name",
    ),
    (PRODUCER + "p.state = 3", "E0301", 5, 15, "expected PipelineState[3], found IntLiteral"),
    (PRODUCER + "var q: RolePipeline[2, True] = p", "E0301", 5, 36, "found RolePipeline[3, True, 1, 1, 1]"),
    (PRODUCER + "p.acquire(1)", "E0322", 5, 15, "`acquire` takes 0 arguments, 1 are given"),
    (CONSUMER + "p.release[n]()", "E0401", 5, 15, "a run-time value where a compile-time value is needed"),
    ("var p = ConsumerPipeline[3](m, m)\np.commit()", "E0504", 5, 5, "`commit` belongs to the producer"),
    ("var p = ProducerPipeline[3](m, m)\np.wait()", "E0504", 5, 5, "`wait` belongs to the consumer"),
    (PRODUCER + "var p = 3", "E0202", 5, 9, "`p` is already declared in this scope"),
    ("q.acquire()", "E0201", 4, 5, "unknown name `q`"),
]


@pytest.mark.parametrize(("body", "code", "line", "column", "message"), REJECTED, ids=[r[0][-48:] for r in REJECTED])
def test_rejected(body: str, code: str, line: int, column: int, message: str) -> None:
    problems = diagnostics(in_kernel(body))
    assert [where(p) for p in problems] == [(code, line, column)]
    assert message in problems[0].message


def test_did_you_mean() -> None:
    (problem,) = diagnostics(in_kernel(PRODUCER + "p.aquire()"))
    assert problem.help == "did you mean `acquire`?"


def test_mutating_method_of_an_immutable_value() -> None:
    (problem,) = diagnostics("""\
        def helper(p: RolePipeline[3, True]):
            p.commit()

        @kernel
        def k():
            var m = unsafe_stack_allocation[6, SharedMemBarrier, address_space=.SHARED]()
            var p = RolePipeline[3, True](m, m.unsafe_offset(3))
            helper(p)
        """)
    assert where(problem) == ("E0321", 2, 5)
    assert problem.message == "`commit` changes its value, which is read-only here"
    assert problem.notes[0][0].line == 8


NEEDS_TARGET = [
    (PRODUCER + "p.commit_mma()", "sm_100", "`commit_mma` (tcgen05.commit)"),
    (PRODUCER + "p.commit_mma()", "sm_120a", "`commit_mma` (tcgen05.commit)"),
    (PRODUCER + "p.commit_mma()", "sm_90a", "`commit_mma` (tcgen05.commit)"),
    (PRODUCER + "p.acquire()", "sm_80", "`acquire` (mbarrier.try_wait)"),
    (CONSUMER + "p.wait()", "sm_89", "`wait` (mbarrier.try_wait)"),
]


@pytest.mark.parametrize(("body", "arch", "what"), NEEDS_TARGET)
def test_instruction_that_the_target_lacks(body: str, arch: str, what: str) -> None:
    (problem,) = diagnostics(in_kernel(body), arch=arch)
    assert where(problem) == ("E0701", 5, 5)
    assert what in problem.message and arch in problem.message


@pytest.mark.parametrize("arch", ["sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_110a", "sm_110f"])
def test_commit_mma_where_it_exists(arch: str) -> None:
    assert diagnostics(in_kernel(PRODUCER + "p.commit_mma()"), arch=arch) == []
