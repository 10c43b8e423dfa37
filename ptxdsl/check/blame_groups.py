"""What to do about asynchronous work that is not waited for, by what it completes with."""

from __future__ import annotations

from ptxdsl.check.parts import Touch
from ptxdsl.check.states import State
from ptxdsl.record import dataclass


@dataclass(frozen=True)
class Completion:
    """work: what completes so. commit: what closes a group of it; empty where there are no groups. wait: for all."""

    work: str
    commit: str
    wait: str


_COMPLETIONS = {
    "bulk-group": Completion("bulk copy", "cp_async_bulk_commit_group()", "`cp_async_bulk_wait_group[0]()`"),
    "cp-async-group": Completion("asynchronous copy", "async_copy_commit_group()", "`async_copy_wait_all()`"),
    "wgmma-group": Completion("matrix product", "wgmma_commit_group_sync()", "`wgmma_wait_group_sync[0](…)`"),
    "tcgen05-wait-ld": Completion("load from tensor memory", "", "`tcgen05_load_wait(…)`"),
    "tcgen05-wait-st": Completion("store to tensor memory", "", "`tcgen05_store_wait()`"),
}
_TENSOR_CORES = Completion("work of the tensor cores", "", "a wait for the barrier of an `mma_arrive` behind it")


def completion(state: State, touch: Touch) -> tuple[Completion, bool] | None:
    """How work completes that its agent has not waited for, and whether its group is open; None of other work."""
    if touch.pipe:
        return _TENSOR_CORES, False
    for mechanism, groups in state.groups[touch.agent].items():
        if any(touch.bit & group for group in groups):
            return _COMPLETIONS.get(mechanism, _TENSOR_CORES), bool(touch.bit & groups[0])
    return None


def remedy(state: State, touch: Touch, when: str) -> str | None:
    """The help for work that its agent has not waited for; None of other work. when: what comes too early."""
    found = completion(state, touch)
    if found is None:
        return None
    how, is_open = found
    if how.commit and is_open:
        return f"`{how.commit}` has to stand between it and its wait, which is for closed groups alone"
    return f"wait for it {when}: {how.wait}"
