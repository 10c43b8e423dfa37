"""``autotune`` on a card: its times are those that PyTorch's events give, and the quickest configuration is one."""

from statistics import median

import pytest

import ptxdsl

TEXT = """
@kernel
def scale[width: Int, wrong: Bool = False](
    src: Pointer[Float32, ImmutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32
):
    var first = (Int32(block_idx.x) * Int32(block_dim.x) + Int32(thread_idx.x)) * Int32(width)
    if first < n:
        var values = src.unsafe_load[width=width, alignment=4 * width](first)
        res.unsafe_store[alignment=4 * width](first, values * 2)
    comptime if wrong:
        res[] = -1
"""


@pytest.fixture
def tune(gpu):
    kernel = ptxdsl.loads(TEXT, "scale.pdsl").scale

    def run(n, space, **more):
        src = gpu.rand(n, device="cuda")
        res = gpu.empty_like(src)

        def check(src, res, n):
            assert gpu.equal(res, src * 2), "not twice the source"

        settings = {"grid": lambda c: -(-n // (c["block"] * c["width"])), "check": check, **more}
        return ptxdsl.autotune(kernel, space, (src, res, n), **settings)

    return run


@pytest.mark.device
def test_times_are_those_of_events(gpu, tune, tmp_path):
    n = 1 << 26
    space = {"width": [1, 4], "block": [128, 512, 2048], "wrong": [False, True]}
    tuned = tune(n, space, results=tmp_path / "results.jsonl")
    print(tuned)
    codes = {(*t.configuration.values(),): t.code for t in tuned.trials}
    for (_, block, wrong), code in codes.items():
        assert code == ("E0908" if block == 2048 else "E0941" if wrong else None)
    src, res = gpu.rand(n, device="cuda"), gpu.empty(n, device="cuda")
    room = gpu.empty(1 << 28, dtype=gpu.uint8, device="cuda")
    times = []
    for _ in range(20):
        start, end = (gpu.cuda.Event(enable_timing=True) for _ in range(2))
        room.zero_()
        start.record()
        tuned.launch(src, res, n)
        end.record()
        gpu.cuda.synchronize()
        times.append(1000 * start.elapsed_time(end))
    print(f"by PyTorch's events {median(times):.2f} µs")
    assert gpu.equal(res, src * 2)
    assert tuned.best.time == pytest.approx(median(times), rel=0.1)
    assert 8 * n / tuned.best.time < 5e6  # bytes a microsecond; the card's memory has 4.8 TB/s
    again = tune(n, space, results=tmp_path / "results.jsonl")
    assert again.trials == tuned.trials


@pytest.mark.device
def test_the_flush_empties_the_cache(tune):
    n = 1 << 21  # 16 MiB with the result: less than the cache has
    space = {"width": [4], "block": [256]}
    cold, warm = (tune(n, space, flush_l2=flush).best.time for flush in (True, False))
    print(f"flushed {cold:.2f} µs, not flushed {warm:.2f} µs")
    assert cold > 1.15 * warm
