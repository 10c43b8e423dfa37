"""``autotune`` on a device that the driver in C plays: what is launched, flushed, timed, and how a lost one ends."""

import json

import numpy as np
import pytest

import ptxdsl
from ptxdsl.cuda.driver import CudaDriver
from ptxdsl.cuda.errors import DriverError

TEXT = """
@kernel
def fill[width: Int](res: Pointer[Float32, MutAnyOrigin]):
    res[unsafe_offset=thread_idx.x] = Float32(width)
"""


@pytest.fixture
def tune(fake):
    res = ptxdsl.to_device(np.zeros(64, np.float32))
    kernel = ptxdsl.loads(TEXT, "fill.pdsl").fill

    def run(widths=(1, 2), arguments=(res,), **more):
        return ptxdsl.autotune(kernel, {"width": list(widths)}, arguments, block=64, **more)

    return run


def milliseconds(fake, *values):
    fake.milliseconds[: len(values)] = values


def test_the_median_of_the_launches_counts(tune, fake):
    milliseconds(fake, 0.003, 0.001, 0.002, 0.005, 0.004, 0.009, 0.009, 0.009)
    tuned = tune(repetitions=5)
    assert [(t.time, t.low, t.high, t.runs) for t in tuned.trials] == [
        pytest.approx((3, 1, 5, 5), rel=1e-6), pytest.approx((9, 1, 9, 5), rel=1e-6),
    ]  # fmt: skip
    assert tuned.best.configuration == {"width": 1} and tuned.best.unit == "us"
    # one launch before the timed ones; the cache of 1000 bytes is written over twice before each of these
    assert (fake.launches, fake.fills, fake.filled, fake.events) == (12, 10, 2000, 0)


def test_without_a_flush(tune, fake):
    """The cache is filled again by a launch that is not timed."""
    tune(repetitions=2, flush_l2=False)
    assert (fake.launches, fake.fills, fake.timed) == (10, 4, 4)


@pytest.mark.parametrize(("first", "runs"), [(0.1, 20), (400, 3), (5000, 3), (100, 10)])
def test_long_launches_are_made_less_often(tune, fake, first, runs):
    """About a second's worth, three at least."""
    milliseconds(fake, *[first] * 8)
    assert tune(widths=[1]).best.runs == runs


def test_the_launch_of_the_best(tune, fake):
    milliseconds(fake, 4, 4, 1, 1)
    tuned = tune(repetitions=2, grid=lambda c: 10 * c["width"], smem=50000)
    assert tuned.best.configuration == {"width": 2}
    tuned.launch(ptxdsl.to_device(np.zeros(64, np.float32)), stream=0x55)
    assert (list(fake.grid), list(fake.block), fake.shared_bytes, fake.stream) == ([20, 1, 1], [64, 1, 1], 50000, 0x55)


def test_a_launch_that_is_refused_is_a_row(tune):
    tuned = tune(smem=lambda c: 1 << (15 + 2 * c["width"]))  # 128 KiB, 512 KiB
    assert [t.code for t in tuned.trials] == [None, "E0909"]
    assert "smem is 524288 bytes" in tuned.trials[1].message


def test_a_hang_ends_the_run_and_the_next_goes_on(tune, fake, tmp_path):
    path = tmp_path / "results.jsonl"
    fake.endless = 1
    with pytest.raises(ptxdsl.DeviceError, match="E0915"):
        tune(results=path, timeout=0.02)
    (row,) = map(json.loads, path.read_text().splitlines())
    assert (row["code"], row["configuration"], row["device"]) == ("E0915", {"width": 1}, "Fake")
    fake.endless = 0
    tuned = tune(results=path)
    assert [t.code for t in tuned.trials] == ["E0915", None]
    assert tuned.best.configuration == {"width": 2}


def test_memory_is_not_given_back_to_a_device_that_hangs(tune, fake, monkeypatch):
    """It would be waited for as long as the kernel."""
    real = CudaDriver.mark

    def mark(driver, stream):  # of the timed launches
        fake.endless = 1
        return real(driver, stream)

    monkeypatch.setattr(CudaDriver, "mark", mark)
    with pytest.raises(ptxdsl.DeviceError, match="E0915"):
        tune(timeout=0.02)
    assert fake.frees == 0


def test_a_fault_between_two_timed_launches_ends_the_run(tune, fake, tmp_path, monkeypatch):
    """It shows when the cache is emptied; the configurations behind it have no rows."""
    path, real = tmp_path / "results.jsonl", CudaDriver.fill

    def fill(driver, *given):
        real(driver, *given)
        if fake.fills == 2:
            fake.fails = 700
            raise DriverError("cuMemsetD8Async", "CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(CudaDriver, "fill", fill)
    with pytest.raises(ptxdsl.DeviceError, match=r"E0916.*outside of any allocation"):
        tune(results=path)
    (row,) = map(json.loads, path.read_text().splitlines())
    assert (row["code"], row["configuration"]) == ("E0916", {"width": 1})


def test_a_device_that_another_process_has(tune, monkeypatch):
    def refuses(driver, ordinal):
        raise DriverError("cuDevicePrimaryCtxRetain", "CUDA_ERROR_DEVICE_UNAVAILABLE")

    arguments = (ptxdsl.to_device(np.zeros(64, np.float32)),)
    monkeypatch.setattr(CudaDriver, "context", refuses)
    with pytest.raises(ptxdsl.LaunchError, match=r"E0912.*the device is busy, or used by another process alone"):
        tune(arguments=arguments)


def test_a_fault_of_what_was_launched_before_is_no_row(tune, fake, tmp_path):
    fake.fails = 700
    with pytest.raises(ptxdsl.LaunchError, match="what was launched before has failed"):
        tune(results=tmp_path / "results.jsonl")
    assert not (tmp_path / "results.jsonl").exists()


def test_results_are_of_a_device_and_of_arguments(tune, fake, tmp_path):
    path = tmp_path / "results.jsonl"
    tune(results=path, repetitions=1)
    launches = fake.launches
    tune(results=path, repetitions=1)
    assert fake.launches == launches
    for changed in (
        {"arguments": (ptxdsl.to_device(np.zeros(65, np.float32)),)}, {"repetitions": 2}, {"grid": 2},
        {"flush_l2": False}, {"target": "sim", "arguments": (np.zeros(64, np.float32),)},
    ):  # fmt: skip
        before = len(path.read_text().splitlines())
        tune(**{"results": path, "repetitions": 1, **changed})
        assert len(path.read_text().splitlines()) == before + 2, changed


@pytest.mark.parametrize("value", [0, True, 2.5])
def test_repetitions(tune, value):
    with pytest.raises(ptxdsl.LaunchError, match="E0940"):
        tune(repetitions=value)
