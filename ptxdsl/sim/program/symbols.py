"""Where the variables of a kernel lie: addresses that compiled code has as constants and the machine fills with bytes.

They depend on the program alone, not on a launch. Source: PTX ISA, "State Spaces", "Kernel Function Parameters".
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxdsl.ptx.module import Variable
from ptxdsl.record import dataclass
from ptxdsl.sim.layout import GRANULE_SHIFT, PARAMETERS, SHARED_START, VARIABLES

GRANULE = 1 << GRANULE_SHIFT
DYNAMIC_SHARED_ALIGN = 16  # of dynamic shared memory, where no declaration asks for more


@dataclass(frozen=True, slots=True)
class Place:
    """A variable's address in its own space, as ``mov`` gives it.

    Of shared memory without the CTA's rank (each CTA adds ``rank << RANK_SHIFT``); of local memory the offset in the
    thread's frame; of a global, a const variable and a kernel's parameter it is the generic address too.
    """

    variable: Variable
    address: int


@dataclass(frozen=True, slots=True)
class Symbols:
    """places: by name. static_shared: bytes from SHARED_START; dynamic shared memory starts at ``dynamic_start``.

    parameter_bytes: of the kernel's parameters, from PARAMETERS. local_bytes: a thread's frame. variable_bytes: of all
    global and const variables. arrays_start: the first address of global memory that no variable has.
    """

    places: dict[str, Place]
    static_shared: int
    dynamic_start: int
    parameter_bytes: int
    local_bytes: int
    variable_bytes: int
    arrays_start: int


def lay_out(variables: Iterable[Variable], parameters: Iterable[Variable]) -> Symbols:
    """The places of all variables that a kernel and the functions it calls name, and of the kernel's parameters.

    In the order given; names must be distinct. Globals and constants get granules of their own with an empty one
    between them, so that running over an end is found.
    """
    places: dict[str, Place] = {}
    parameter_end = 0
    for parameter in parameters:
        start = _aligned(parameter_end, parameter.align)
        places[parameter.name] = Place(parameter, PARAMETERS + start)
        parameter_end = start + (parameter.size or 0)
    next_global, shared_end, local_end, variable_bytes = VARIABLES, SHARED_START, 0, 0
    dynamic: list[Variable] = []
    for variable in variables:
        if variable.space == "shared":
            if variable.size is None:
                dynamic.append(variable)
                continue
            start = _aligned(shared_end, variable.align)
            shared_end = start + variable.size
        elif variable.space == "local":
            start = _aligned(local_end, variable.align)
            local_end = start + (variable.size or 0)
        else:
            start = _aligned(next_global, max(variable.align, GRANULE))
            next_global = _aligned(start + (variable.size or 0), GRANULE) + GRANULE
            variable_bytes += variable.size or 0
        places[variable.name] = Place(variable, start)
    dynamic_start = _aligned(shared_end, max((v.align for v in dynamic), default=1))
    if dynamic:
        dynamic_start = _aligned(dynamic_start, DYNAMIC_SHARED_ALIGN)
    for variable in dynamic:
        places[variable.name] = Place(variable, dynamic_start)
    local_bytes = _aligned(local_end, 16)
    static_shared = shared_end - SHARED_START
    return Symbols(places, static_shared, dynamic_start, parameter_end, local_bytes, variable_bytes, next_global)


def _aligned(value: int, align: int) -> int:
    return -(-value // align) * align
