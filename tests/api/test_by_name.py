"""Arguments that are given by the names of their parameters: to launches, prepared ones and simulations."""

import inspect

import numpy as np
import pytest

import ptxdsl
from ptxdsl.api import by_name, launcher
from ptxdsl.api.kernel import Kernel
from ptxdsl.api.module import Module
from ptxdsl.source import Source

TEXT = """
@kernel
def scale[factor: Int = 2](src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], count: Int32):
    if Int32(thread_idx.x) < count:
        res[unsafe_offset=thread_idx.x] = src[unsafe_offset=thread_idx.x] * Float32(factor)


@kernel
def stores(stream: Int32, res: Pointer[Int32, MutAnyOrigin]):
    res[] = stream
"""


@pytest.fixture
def scale(driver):
    driver.sizes = (8, 8, 4)
    return Module(Source("scale.pdsl", TEXT), driver=driver).scale


GIVEN = [
    lambda a, b: ((a, b, 9), {}),
    lambda a, b: ((a, b), {"count": 9}),
    lambda a, b: ((a,), {"count": 9, "res": b}),
    lambda a, b: ((), {"count": 9, "res": b, "src": a}),
]


def test_every_way_to_give_the_arguments_is_the_same_launch(scale, driver, tensor):
    launcher, a, b = scale[1, 32], tensor(0x40), tensor(0x80)
    for _ in range(3):  # in general, then by the quick way
        for given in GIVEN:
            arguments, named = given(a, b)
            launcher(*arguments, **named)
    launcher(a, b, smem=64, count=9)
    assert {bytes(launch["data"][2]) for launch in driver.launches} == {(9).to_bytes(4, "little")}
    assert {bytes(launch["data"][1]) for launch in driver.launches} == {(0x80).to_bytes(8, "little")}
    assert [launch["shared"] for launch in driver.launches] == [0] * 12 + [64]


def test_prepared_and_simulated_launches_take_names_too(scale, driver, tensor):
    scale.prepare(1, 32, tensor(0x40), count=9, res=tensor(0x80))()
    assert bytes(driver.launches[0]["data"][2]) == (9).to_bytes(4, "little")
    src, res = np.ones(4, np.float32), np.zeros(4, np.float32)
    assert scale.simulate(src, count=4, res=res, block=4).finished and (res == 2).all()


def test_a_name_that_launches_have_themselves_is_given_by_position():
    res = np.zeros(1, np.int32)
    ptxdsl.loads(TEXT).stores[1, 1](7, res=res, target="sim", stream=0)
    assert res == 7


def test_where_a_name_of_launches_was_meant_for_the_argument_that_is_said():
    stores = ptxdsl.loads(TEXT).stores
    with pytest.raises(ptxdsl.LaunchError) as caught:
        stores[1, 1](stream=0, res=np.zeros(1, np.int32), target="sim")
    (found,) = caught.value.diagnostics
    assert found.message == "kernel 'stores' is given no argument 'stream'"
    assert found.help == "'stream' is also a keyword of launches: give it by position"


def test_the_names_that_launches_have_themselves():
    calls = launcher.Launcher.__call__, Kernel.prepare, Kernel.simulate
    signatures = [inspect.signature(call).parameters.values() for call in calls]
    plain = {p.name for each in signatures for p in each if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    assert plain - {"self"} | launcher._RARE == by_name.KEYWORDS


@pytest.mark.parametrize(
    ("arguments", "named", "message", "help"),
    [
        ((1, 2), {"cuont": 3}, "kernel 'scale' has no argument 'cuont'", "did you mean 'count'?"),
        ((1, 2), {"x": 3}, "kernel 'scale' has no argument 'x'", "its arguments: src, res, count"),
        (
            (1, 2, 3), {"factor": 3}, "kernel 'scale' has no argument 'factor'",
            "it is a compile-time parameter: scale.specialize(factor=…)[grid, block](…)",
        ),
        ((1, 2, 3), {"res": 3}, "argument 'res' of kernel 'scale' is given by position and by name", None),
        ((1,), {"count": 3}, "kernel 'scale' is given no argument 'res'", None),
        ((), {"count": 3}, "kernel 'scale' is given no argument 'src', 'res'", None),
    ],
)  # fmt: skip
def test_mistakes(scale, driver, arguments, named, message, help):
    for call in scale[1, 32], scale.simulate:
        with pytest.raises(ptxdsl.LaunchError) as caught:
            call(*arguments, **named)
        (found,) = caught.value.diagnostics
        assert (found.code, found.message, found.help) == ("E0903", message, help)
    assert driver.launches == []
