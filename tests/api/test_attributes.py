"""Clusters, cooperative and dependent launches, occupancy: what reaches the driver and what is refused before."""

from dataclasses import replace

import numpy as np
import pytest

import ptxdsl
from ptxdsl.api.module import Module
from ptxdsl.source import Source

TEXT = """
@kernel
def k(p: Pointer[Float32, MutAnyOrigin]):
    p[] = 1

@kernel(cluster=(2, 1, 1))
def pairs(p: Pointer[Float32, MutAnyOrigin]):
    p[] = 1
"""
DEVICE = "device 0 (NVIDIA H200, compute capability 9.0)"


@pytest.fixture
def module(driver):
    return Module(Source("k.pdsl", TEXT), driver=driver)


def refusal(call):
    with pytest.raises(ptxdsl.LaunchError) as caught:
        call()
    found = caught.value.diagnostics[0]
    return found.code, found.message


def test_attributes_reach_the_driver(module, driver, tensor):
    a = tensor(0x40)
    for _ in range(2):  # the general way, and the quick one
        module.k[(8, 2), 64](a, cluster=(4, 2), cooperative=True, pdl=True)
        assert driver.launches[-1] == {
            "grid": (8, 2, 1), "block": (64, 1, 1), "shared": 0, "stream": 0x77, "data": [],
            "cluster": (4, 2, 1), "cooperative": (1, 0, 0), "pdl": (1, 0, 0),
        }  # fmt: skip
    module.k[(8, 2), 64](a)
    assert "cluster" not in driver.launches[-1]
    assert driver.large_clusters == 0


def test_a_cluster_of_more_than_8_is_asked_for(module, driver, tensor):
    module.k[32, 64](tensor(0x40), cluster=16)
    assert driver.large_clusters == 1


def test_the_kernels_own_cluster_is_no_attribute(module, driver, tensor):
    for cluster in (None, 2, (2, 1, 1)):
        module.pairs[4, 32](tensor(0x40), cluster=cluster)
        assert "cluster" not in driver.launches[-1]


@pytest.mark.parametrize(
    ("kernel", "grid", "keywords", "message"),
    [
        ("k", 34, {"cluster": 17}, "cluster (17, 1, 1) has 17 blocks; at most 16 are possible"),
        ("k", 6, {"cluster": 4}, "grid.x is 6, not a multiple of the cluster's 4 (kernel 'k')"),
        ("k", (4, 3), {"cluster": (2, 2)}, "grid.y is 3, not a multiple of the cluster's 2 (kernel 'k')"),
        ("k", 4, {"cluster": 0}, "cluster.x is 0; it must be at least 1"),
        ("k", 4, {"cluster": 2.0}, "cluster.x must be an integer, got float 2.0"),
        (
            "pairs",
            4,
            {"cluster": 4},
            "kernel 'pairs' has clusters of (2, 1, 1) blocks; cluster is (4, 1, 1)",
        ),
    ],
)
def test_clusters_that_cannot_be(module, driver, tensor, kernel, grid, keywords, message):
    assert refusal(lambda: module[kernel][grid, 32](tensor(0x40), **keywords)) == ("E0908", message)
    assert driver.launches == []


def test_a_cluster_that_finds_no_room(module, driver, tensor):
    driver.clusters = 0
    assert refusal(lambda: module.k[16, 64](tensor(0x40), cluster=16, smem=1000)) == (
        "E0908",
        "cluster (16, 1, 1) has 16 blocks; with block (64, 1, 1) and 1000 bytes of shared memory, clusters of kernel "
        f"'k' have at most 8 blocks on {DEVICE}",
    )


def test_what_older_devices_do_not_have(module, driver, tensor):
    driver.device = replace(driver.device, capability=(8, 0))
    assert refusal(lambda: module.k[2, 32](tensor(0x40), cluster=2))[1].startswith("clusters need compute capability")
    assert refusal(lambda: module.k[2, 32](tensor(0x40), pdl=True)) == (
        "E0918",
        "pdl=True needs compute capability 9.0 or later; this is device 0 (NVIDIA H200, compute capability 8.0)",
    )


def test_a_cooperative_launch_must_fit(module, driver, tensor):
    module.k[2 * 132, 64](tensor(0x40), cooperative=True)
    assert refusal(lambda: module.k[265, 64](tensor(0x40), cooperative=True)) == (
        "E0918",
        "a cooperative launch runs all blocks at the same time: grid (265, 1, 1) has 265, and at most 264 blocks of "
        f"kernel 'k' fit {DEVICE}",
    )
    module.k[32, 64](tensor(0x40), cooperative=True, cluster=4)
    assert refusal(lambda: module.k[36, 64](tensor(0x40), cooperative=True, cluster=4)) == (
        "E0918",
        "a cooperative launch runs all blocks at the same time: grid (36, 1, 1) has 36, and at most 8 clusters of 4 of "
        f"kernel 'k' fit {DEVICE}",
    )


@pytest.mark.parametrize(
    ("keywords", "code", "message"),
    [
        ({"cooperative": 1}, "E0918", "cooperative is True or False, got int 1"),
        ({"pdl": "yes"}, "E0918", "pdl is True or False, got str 'yes'"),
        ({"smem": "4"}, "E0909", "smem must be a number of bytes, got str '4'"),
        ({"smem": True}, "E0909", "smem must be a number of bytes, got bool True"),
        ({"smem": 2.5}, "E0909", "smem must be a number of bytes, got float 2.5"),
        ({"smem": -4}, "E0909", "smem is -4; it must not be negative"),
        ({"timeout": 0}, "E0915", "timeout is a positive number of seconds, got int 0"),
        ({"timeout": "1"}, "E0915", "timeout is a positive number of seconds, got str '1'"),
        ({"timeout": True}, "E0915", "timeout is a positive number of seconds, got bool True"),
        ({"timeout": 10**400}, "E0915", "timeout is a positive number of seconds, got an int of 1329 bits"),
        ({"timeout": float("inf")}, "E0915", "timeout is a positive number of seconds, got float inf"),
        ({"target": "cpu"}, "E0908", "target='cpu' is not 'gpu', 'sim' or None"),
        (
            {"stream": "fast"},
            "E0910",
            "stream must be a stream of PyTorch or CuPy, an object with __cuda_stream__, or a handle; got str",
        ),
    ],
)
def test_wrong_keywords(module, driver, tensor, keywords, code, message):
    for _ in range(2):
        assert refusal(lambda: module.k[1, 32](tensor(0x40), **keywords)) == (code, message)
        module.k[1, 32](tensor(0x40))  # now there is a fast path
    assert len(driver.launches) == 2


@pytest.mark.parametrize(
    ("good", "wrong"),
    [
        ({"smem": 1}, {"smem": True}),
        ({"smem": 1}, {"smem": 1.0}),
        ({"pdl": True}, {"pdl": 1}),
        ({"cooperative": True}, {"cooperative": 1}),
        ({"cluster": 1}, {"cluster": True}),
        ({}, {"cluster": np.array([2, 1])}),
        ({}, {"target": np.array([2, 1])}),
        ({"smem": 1}, {"smem": np.array([1, 1])}),
        ({"cluster": 2, "cooperative": True}, {"cluster": 2, "cooperative": 1}),
    ],
)
def test_wrong_keywords_after_equal_ones_that_were_right(module, driver, tensor, good, wrong):
    launcher = module.k[2, 64]
    launcher(tensor(0x40), **good)
    with pytest.raises(ptxdsl.LaunchError):
        launcher(tensor(0x40), **wrong)
    assert len(driver.launches) == 1


def test_a_list_is_looked_at_anew(module, driver, tensor):
    cluster = [2]
    for size in (2, 4):
        cluster[0] = size
        module.k[4, 64](tensor(0x40), cluster=cluster)
        assert driver.launches[-1]["cluster"] == (size, 1, 1)


def test_occupancy(module, driver):
    found = module.k.occupancy(96, smem=100)
    assert (found.blocks, found.warps, found.max_warps, found.clusters) == (2, 6, 64, None)
    assert found.fraction == 6 / 64
    assert module.pairs.occupancy(64).clusters == 8
    assert refusal(lambda: module.k.occupancy()) == ("E0908", "kernel 'k' needs a block size")
    driver.fails["occupancy"] = ("CUDA_ERROR_INVALID_VALUE", "")
    code, message = refusal(lambda: module.k.occupancy(64))
    assert code == "E0912" and message.endswith("the driver refused a value of the call (CUDA_ERROR_INVALID_VALUE)")


def test_shapes_that_only_look_like_numbers(module, tensor):
    """1 == True == 1.0: none of them finds the launcher of another."""
    a = tensor(0x40)
    module.k[1, 32](a)
    assert module.k[1, 32] is module.k[1, 32]
    for shape in ((True, 32), (1.0, 32), ((True,), 32)):
        assert refusal(lambda given=shape: module.k[given])[0] == "E0908"
    module.k[[1, 1], [32]](a)  # lists are taken, too


def test_many_shapes_are_forgotten_again(module, driver, tensor):
    for grid in range(1, 600):
        module.k[grid, 32](tensor(0x40))
    assert len(driver.launches) == 599 and len(driver.images) == 1
    assert len(module.k._launchers) <= 256
    assert len(module.k._loaded[0]._plans) <= 256


def test_many_streams_are_forgotten_again(module, driver, tensor):
    for stream in range(1, 200):
        module.k[1, 32](tensor(0x40), stream=stream)
    assert [made["stream"] for made in driver.launches] == list(range(1, 200))
    assert len(module.k[1, 32]._last[1].configs) <= 64
