"""What messages about a kernel's PTX call its shared memory: the names and roles that the source gives it."""

from __future__ import annotations

from ptxdsl.artifact import Compiled, SharedName
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.source import Source

BARRIERS = "SharedMemBarrier, address_space=.SHARED, alignment=8]().unsafe_origin_cast[MutAnyOrigin]()"
INIT = "    bars[unsafe_offset=thread_idx.x].init(32)\n    barrier()\n"


def names_of(body: str) -> dict[str, SharedName]:
    text = f"@kernel\ndef k(res: Pointer[Float32, MutAnyOrigin]):\n{body}"
    compiled = compile_source(Source("k.pdsl", text), options=Options("sm_90a"))
    assert isinstance(compiled, Compiled)
    declared = {symbol for symbol in compiled.shared_names if f" {symbol}[" in compiled.ptx}
    assert declared == set(compiled.shared_names), compiled.ptx
    return compiled.shared_names


def test_a_ring_has_its_variables_and_each_barrier_its_stage() -> None:
    body = f"""\
    var bars = unsafe_stack_allocation[4, {BARRIERS}
    var buf = unsafe_stack_allocation[64, Float32, address_space=.SHARED, alignment=128]()
{INIT}
    if thread_idx.x < 32:
        var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
        p.acquire()
        buf[unsafe_offset=thread_idx.x] = 1
        p.commit()
    else:
        var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
        c.wait()
        res[unsafe_offset=thread_idx.x - 32] = buf[unsafe_offset=thread_idx.x - 32]
        c.release()
"""
    found = names_of(body)
    assert found["k_buf"].variable == "buf" and found["k_buf"].element == 4 and not found["k_buf"].roles
    assert found["k_bars"].variable == "bars" and found["k_bars"].element == 8
    assert found["k_bars"].roles == {
        0: "producer_mbar of stage 0",
        8: "producer_mbar of stage 1",
        16: "consumer_mbar of stage 0",
        24: "consumer_mbar of stage 1",
    }


def test_sub_stages_are_named() -> None:
    body = f"""\
    var bars = unsafe_stack_allocation[6, {BARRIERS}
{INIT}
    var p = RolePipeline[2, True, 1, 2](bars, bars.unsafe_offset(2))
    p.acquire[1]()
    p.commit()
"""
    roles = names_of(body)["k_bars"].roles
    assert roles[0] == "producer_mbar of stage 0"
    assert [roles[i] for i in (16, 24, 40)] == [
        "consumer_mbar[0] of stage 0",
        "consumer_mbar[1] of stage 0",
        "consumer_mbar[1] of stage 1",
    ]


def test_two_pipelines_on_one_barrier_are_both_named() -> None:
    body = f"""\
    var bars = unsafe_stack_allocation[3, {BARRIERS}
{INIT}
    var p = RolePipeline[1, True](bars, bars.unsafe_offset(1))
    var q = RolePipeline[1, True](bars.unsafe_offset(1), bars.unsafe_offset(2))
    p.acquire()
    q.commit()
"""
    roles = names_of(body)["k_bars"].roles
    assert roles[8] == "consumer_mbar of stage 0 of `p`, producer_mbar of stage 0 of `q`"
    assert roles[0] == "producer_mbar of stage 0"


def test_dynamic_shared_memory_has_roles_without_a_name() -> None:
    body = f"""\
    var smem = external_memory[UInt8, address_space=AddressSpace.SHARED, alignment=128]()
    var bars = smem.unsafe_offset(1024).bitcast[SharedMemBarrier]().unsafe_origin_cast[MutAnyOrigin]()
{INIT}
    var p = RolePipeline[1, True](bars, bars.unsafe_offset(1))
    p.acquire()
    p.commit()
"""
    found = names_of(body)["k_dynamic"]
    assert found.variable is None
    assert found.roles == {1024: "producer_mbar of stage 0", 1032: "consumer_mbar of stage 0"}


def test_a_name_that_stands_twice_is_left_out() -> None:
    body = f"""\
    if thread_idx.x < 32:
        var bars = unsafe_stack_allocation[1, {BARRIERS}
        bars[].init(32)
        _ = bars[].arrive()
    else:
        var bars = unsafe_stack_allocation[2, {BARRIERS}
        bars[].init(16)
        _ = bars[].arrive()
"""
    assert names_of(body) == {}


def test_stages_behind_the_end_of_a_variable_have_no_names() -> None:
    body = f"""\
    var bars = unsafe_stack_allocation[6, {BARRIERS}
{INIT}
    var p = RolePipeline[{2**63 - 1}, True](bars, bars.unsafe_offset(4))
    p.acquire()
    p.commit()
"""
    assert list(names_of(body)["k_bars"].roles) == [0, 8, 16, 24, 32, 40]
