"""The options of one compilation: everything besides the text that the PTX is a function of."""

from __future__ import annotations

from ptxdsl.hints import Literal
from ptxdsl.record import dataclass

WaitForm = Literal["try", "probe"]
CheckForm = Literal["off", "warn", "error"]
_VERSIONS = 1000  # there are fewer


@dataclass(frozen=True)
class Options:
    """arch: a key of ``targets.TARGETS``. ptx_version: ``(8, 6)``, or None for the lowest that the target needs.

    wait: ``try`` is a ``try_wait`` loop, ``probe`` one ``test_wait`` before it. contract: fuse ``a * b + c`` to fma.
    lineinfo: keep ``.loc`` lines. ring_unroll: unroll ring loops by their stage count (``rings/``). check: whether
    faults of the kernels' protocols are looked for, and are warnings or errors. include: folders of modules, besides
    the program's own.
    """

    arch: str = "sm_90a"
    ptx_version: tuple[int, int] | None = None
    wait: WaitForm = "try"
    contract: bool = True
    lineinfo: bool = False
    ring_unroll: bool = True
    check: CheckForm = "warn"
    include: tuple[str, ...] = ()


def checked(options: Options) -> Options:
    """Options that a caller has given from Python. Raises TypeError for a value that is none of its option's."""
    from ptxdsl.shown import shown  # the command checks its options itself

    version = options.ptx_version
    pair = isinstance(version, tuple | list) and len(version) == 2
    if version is not None and not (pair and all(type(part) is int and abs(part) < _VERSIONS for part in version)):
        raise TypeError(f"ptx_version is two numbers such as (8, 6), or None; not {shown(version)}")
    if not isinstance(options.wait, str) or options.wait not in ("try", "probe"):
        raise TypeError(f"wait is 'try' or 'probe', not {shown(options.wait)}")
    if not isinstance(options.check, str) or options.check not in ("off", "warn", "error"):
        raise TypeError(f"check is 'off', 'warn' or 'error', not {shown(options.check)}")
    for name in ("contract", "lineinfo", "ring_unroll"):
        if not isinstance(given := getattr(options, name), bool):
            raise TypeError(f"{name} is True or False, not {shown(given)}")
    return options
