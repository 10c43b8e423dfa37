"""Cluster launch control: clusters that run take over others; each tile is worked on once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxdsl

KERNELS = ptxdsl.load(Path(__file__).with_name("cluster_launch.pdsl"))
MARK = KERNELS["mark"]


def mark(grid, schedule=None, **constants):
    width, height, depth = grid
    done, by = np.zeros((depth, height, width), np.int32), np.full((depth, height, width), -1, np.int32)
    ctas = constants.get("CTAS", 1)
    report = MARK.specialize(**constants).simulate(
        done, by, width, height, grid=grid, block=256, cluster=ctas, arch="sm_100a", schedule=schedule
    )
    return report, done, by


@pytest.mark.parametrize("schedule", [None, "random:3", "slow:tma"])
@pytest.mark.parametrize(("grid", "ctas"), [((7, 3, 2), 1), ((8, 2, 2), 2), ((1, 1, 1), 1)])
def test_every_tile_once(grid, ctas, schedule):
    report, done, by = mark(grid, schedule, CTAS=ctas)
    assert report.finished, report.render()
    assert (done == 1).all()
    taken_over = (by.ravel() != np.arange(by.size)).sum()
    assert (taken_over > 0) == (by.size > 4)  # so many blocks of 8 warps begin at once
    assert report.statistics.ctas == by.size - taken_over


@pytest.mark.parametrize("schedule", [None, "random:3", "slow:tma"])
@pytest.mark.parametrize(("tiles", "ctas"), [(1, 1), (3, 1), (41, 1), (1, 2), (2, 2), (23, 2)])
def test_the_scheduler_gives_every_role_every_tile_once(tiles, ctas, schedule):
    done = np.zeros((ctas, 3, tiles), np.int32)
    report = (
        KERNELS["mark_by_roles"]
        .specialize(CTAS=ctas)
        .simulate(done, tiles, grid=ctas * tiles, block=128, cluster=ctas, arch="sm_100a", schedule=schedule)
    )
    assert report.finished, report.render()
    assert (done == 1).all()
    assert report.statistics.ctas < ctas * tiles or tiles <= 4


def test_asking_after_a_refusal():
    report, _, _ = mark((1, 1, 1), TOO_OFTEN=True)
    (said,) = report.diagnostics
    assert said.code == "E1152"
    assert "after an earlier one whose refusal was seen" in said.message


@pytest.mark.parametrize(("grid", "ctas"), [(1, 1), (3, 1), (2, 2)])
def test_a_launch_of_another_number_of_blocks_is_stopped(grid, ctas):
    """Its other tiles would stay as they are, or blocks would have tiles that there are not."""
    report = (
        KERNELS["mark_by_roles"]
        .specialize(CTAS=ctas)
        .simulate(np.zeros((ctas, 3, 4), np.int32), 2, grid=grid, block=128, cluster=ctas, arch="sm_100a")
    )
    assert "the launch has a cluster for each tile" in report.diagnostics[0].message
