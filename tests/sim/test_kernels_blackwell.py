"""``ptxdsl.kernels.gemm`` with a configuration of Blackwell's, in the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl import LaunchError
from ptxdsl.kernels import gemm
from ptxdsl.kernels_blackwell import BlackwellConfig, choose, has_tensor_memory


@pytest.mark.parametrize("config", [BlackwellConfig(columns=128), BlackwellConfig(1, 64, 2)], ids=str)
def test_a_product(config):
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 136, 72)).astype(np.float16), rng.standard_normal((2, 72, 136)).astype(np.float16)
    bias, out = rng.standard_normal(136).astype(np.float32), np.full((2, 136, 136), np.nan, np.float32)
    if config.ctas == 1:  # operands as they lie, transposed
        a, b = (np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1) for x in (a, b))
    gemm(a, b, out, scale=0.5, bias=bias, activation="relu", config=config)
    expected = np.maximum(0.5 * (a.astype(float) @ b.astype(float)) + bias, 0)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_no_groups():
    a, b, out = np.ones((256, 64), np.float16), np.ones((2, 64, 64), np.float16), np.zeros((256, 64), np.float16)
    with pytest.raises(LaunchError, match="no groups"):
        gemm(a, b, out, groups=np.array([0, 1], np.int32), config=BlackwellConfig())


def test_what_is_chosen():
    """Large tiles where they keep all multiprocessors busy."""
    assert choose(4096, 4096, 1, 148) == BlackwellConfig()
    assert choose(2048, 2048, 1, 148).columns == 128
    assert choose(256, 256, 1, 148).ctas == 1
    assert choose(256, 256, 148, 148) == BlackwellConfig()
    assert [has_tensor_memory(c) for c in ((9, 0), (10, 0), (10, 3), (12, 0))] == [False, True, True, False]
