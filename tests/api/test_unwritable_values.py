"""Values that no message can hold: what is wrong with them is said all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import kernels
from ptxdsl.shown import shown, shown_with_type
from ptxdsl.sim.limits import Limits

HUGE = 10**5000  # Python writes no integer of more than 4300 digits
TEXT = """
@kernel
def k[N: Int = 1](res: Pointer[Int32, MutAnyOrigin], b: Bool, f: Float32):
    res[] = Int32(N)
"""


class Unwritable:
    def __repr__(self) -> str:
        raise RuntimeError


UNWRITABLE = (HUGE, -HUGE, (HUGE, 6), [0] * 100_000, {"N": HUGE}, Unwritable(), [Unwritable()], np.zeros(3))
Given = Callable[[Any], object]
RESULT = np.zeros(1, np.int32)
MATRIX = np.zeros((64, 64), np.float16)


def launched(flag: Any = True, number: Any = 1.0, **keywords: Any) -> object:
    return ptxdsl.loads(TEXT).k[1, 1](RESULT, flag, number, **{"target": "sim"} | keywords)


def tensor_map(**keywords: Any) -> object:
    return ptxdsl.TensorMap(MATRIX, **{"box": (8, 8)} | keywords)


PLACES: dict[str, Given] = {
    "tensor map's swizzle": lambda x: tensor_map(swizzle=x),
    "tensor map's data_type": lambda x: tensor_map(data_type=x),
    "tensor map's box": lambda x: tensor_map(box=(x, 8)),
    "tensor map's shape": lambda x: tensor_map(shape=(x, 8)),
    "tensor map's strides": lambda x: tensor_map(strides=(x, 2)),
    "Bool": lambda x: launched(flag=x),
    "timeout": lambda x: launched(timeout=x),
    "target": lambda x: launched(target=x),
    "grid": lambda x: ptxdsl.loads(TEXT).k[x, 1](RESULT, True, 1.0),
    "smem": lambda x: launched(smem=x),
    "pdl": lambda x: launched(pdl=x),
    "constant": lambda x: ptxdsl.loads(TEXT).k.specialize(N=x),
    "repetitions": lambda x: ptxdsl.autotune(ptxdsl.loads(TEXT).k, [], {"N": [1]}, grid=1, block=1, repetitions=x),
    "scale": lambda x: kernels.gemm(MATRIX, MATRIX, MATRIX.copy(), scale=x),
    "activation": lambda x: kernels.gemm(MATRIX, MATRIX, MATRIX.copy(), activation=x),
    "config": lambda x: kernels.gemm(MATRIX, MATRIX, MATRIX.copy(), config=x),
    "ptx_version": lambda x: ptxdsl.loads(TEXT, ptx_version=x),
    "wait": lambda x: ptxdsl.loads(TEXT, wait=x),
    "lineinfo": lambda x: ptxdsl.loads(TEXT, lineinfo=x),
    "part of ptx_version": lambda x: ptxdsl.loads(TEXT, ptx_version=(x, 6)),
    "schedule": lambda x: ptxdsl.loads(TEXT).k.simulate(RESULT, True, 1.0, block=1, schedule=x),
    "kernel": lambda x: ptxdsl.compile(ptxdsl.loads(TEXT), kernel=x),
}


@pytest.mark.parametrize("place", PLACES)
def test_values_that_cannot_be_written(place: str) -> None:
    for value in UNWRITABLE:
        with pytest.raises((TypeError, ptxdsl.LaunchError)) as refused:
            PLACES[place](value)
        assert 10 < len(str(refused.value)) < 1000


def test_constants_are_a_dict() -> None:
    with pytest.raises(TypeError, match="constants are a dict"):
        ptxdsl.compile(ptxdsl.loads(TEXT), constants=np.zeros(3))


def test_a_scale_is_a_number() -> None:
    for value in ("2", b"2", True, 10**400):
        with pytest.raises(ptxdsl.LaunchError, match=r"scale is a (number|float32)"):
            kernels.gemm(MATRIX, MATRIX, MATRIX.copy(), scale=value)


def test_a_limit_is_not_negative() -> None:
    with pytest.raises(TypeError, match="the limit turns is a whole number from 0, not -1"):
        ptxdsl.loads(TEXT).k.simulate(RESULT, True, 1.0, block=1, limits=Limits(turns=-1))


def test_what_is_shown() -> None:
    assert shown("a") == "'a'" and shown(-3) == "-3" and shown_with_type(0.5) == "float 0.5"
    assert shown(1 << 200) == "an int of 201 bits" and shown_with_type(1 << 200) == "an int of 201 bits"
    assert shown([0] * 1000) == "a list" and shown_with_type(Unwritable()) == "a Unwritable"
