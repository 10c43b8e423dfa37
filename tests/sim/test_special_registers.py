"""Special registers, as the launch's records say."""

import numpy as np
import pytest
from harness import Launch, compile_kernel

from ptxdsl.sim import layout


def read(register: str, bits: int, change: dict[str, object]) -> np.ndarray:
    """What the lanes of warp 1 of 64 threads read. change: fields of the records (``cta.rank``)."""
    out = np.zeros(64, np.uint64)
    text = f"""
.visible .entry k(.param .u64 p0) {{ .reg .b64 %d, %e; .reg .b{bits} %v; .reg .b32 %t;
ld.param.u64 %d, [p0]; mov.u32 %t, %tid.x; mad.wide.u32 %d, %t, 8, %d;
mov.u{bits} %v, {register}; {"cvt.u64.u32" if bits == 32 else "mov.u64"} %e, %v; st.global.u64 [%d], %e; ret; }}"""
    made = Launch(compile_kernel(text), [out], threads=64)
    for name, value in change.items():
        record, _, field = name.partition(".")
        (made.launch if record == "launch" else made.cta)[0][field] = value
    assert made.run(1) == layout.ALL_STOPPED
    return out[32:]


@pytest.mark.parametrize(
    ("register", "change", "want"),
    [
        ("%tid.x", {}, np.arange(32, 64)),
        ("%tid.y", {}, 0),
        ("%ntid.x", {}, 64),
        ("%ntid.z", {"launch.thread_count": (8, 4, 2)}, 2),
        ("%ctaid.y", {"cta.id": (3, 4, 5)}, 4),
        ("%nctaid.z", {"launch.cta_count": (3, 4, 5)}, 5),
        ("%laneid", {}, np.arange(32)),
        ("%warpid", {}, 1),
        ("%nwarpid", {"launch.thread_count": (33, 3, 1)}, 4),
        ("%cluster_ctarank", {"cta.rank": 3}, 3),
        ("%cluster_nctarank", {"launch.cluster_shape": (2, 2, 1)}, 4),
        ("%cluster_ctaid.x", {"cta.cluster_cta_id": (1, 0, 0)}, 1),
        ("%clusterid.x", {"cta.cluster_id": (7, 0, 0)}, 7),
        ("%nclusterid.y", {"launch.cluster_count": (7, 8, 9)}, 8),
        ("%dynamic_smem_size", {"launch.dynamic_shared": 4096}, 4096),
        ("%total_smem_size", {"launch.total_shared": 5120}, 5120),
        ("%smid", {"cta.smid": 11}, 11),
        ("%clock", {"launch.clock": (1 << 32) + 5}, 9),
        ("%clock_hi", {"launch.clock": (1 << 32) + 5}, 1),
    ],
)
def test_values(register: str, change: dict[str, object], want: object) -> None:
    assert (read(register, 32, change) == want).all()


@pytest.mark.parametrize("register", ["%clock64", "%globaltimer"])
def test_wide_clocks(register: str) -> None:
    """The machine's time, and one more for each of the first four instructions of the kernel."""
    assert (read(register, 64, {"launch.clock": 1 << 40}) == (1 << 40) + 4).all()


def test_time_goes_on_within_a_run() -> None:
    made = Launch(
        compile_kernel(
            """.visible .entry k() { .reg .b64 %a, %b, %d; .reg .b32 %i; .reg .pred %p;
mov.u64 %a, %clock64; mov.u32 %i, 0;
L: add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 50; @%p bra L;
mov.u64 %b, %clock64; sub.u64 %d, %b, %a; st.global.u8 [%d], 1; }"""
        )
    )
    assert made.run() == layout.FAULT  # of the last store, with the difference as its address
    assert int(made.warps[0]["fault_address"]) == 3 * 50 + 2
