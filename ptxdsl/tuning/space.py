"""Configurations: values for a kernel's comptime parameters, and the numbers of its launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

from ptxdsl.api.kernel import Kernel
from ptxdsl.cuda.configuration import Shape, shape_of
from ptxdsl.cuda.shape import block_of
from ptxdsl.diagnostics import LaunchError, launch_error, nearest
from ptxdsl.record import dataclass
from ptxdsl.shown import shown

Configuration = Mapping[str, Any]
# of a launch; a configuration that has one of them goes before the keyword of the same name
LAUNCH = ("grid", "block", "smem", "cluster", "cooperative", "pdl")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A configuration, the kernel specialised for it, and what its launch asks for; block None: as it is declared."""

    configuration: Configuration
    kernel: Kernel
    launch: Mapping[str, Any]

    def shape(self, block: Any) -> Shape:
        """The shape of the launch. block: what the kernel is declared for. Raises LaunchError."""
        return shape_of(**{**self.launch, "block": block_of(self.launch["block"], block, self.kernel.name)})


def configurations(space: Any, keep: Callable[[Configuration], Any] | None) -> list[Configuration]:
    """All of a space: a mapping of names to their values, or the configurations themselves. Raises E0940."""
    if isinstance(space, Mapping):
        values = []
        for name, given in space.items():
            if isinstance(given, str) or not isinstance(given, Iterable):
                text = shown(given)
                raise _wrong(f"the values of '{name}' are {text}", f"give a list: {{{name!r}: [{text}]}}")
            values.append(list(given))
        found: list[Configuration] = [dict(zip(space, chosen, strict=True)) for chosen in product(*values)]
    else:
        found = list(space) if isinstance(space, Iterable) else []
        if not isinstance(space, Iterable) or not all(isinstance(configuration, Mapping) for configuration in found):
            raise _wrong("the space is neither a mapping of names to values nor a list of configurations")
    kept = [configuration for configuration in found if keep is None or keep(configuration)]
    if not kept:
        raise _wrong("there is no configuration" + (" that `keep` keeps" if found else " in the space"))
    return kept


def candidate(kernel: Kernel, configuration: Configuration, launch: Mapping[str, Any]) -> Candidate:
    """launch: of all configurations; values, and functions of the configuration. Raises LaunchError E0940 for a name
    that is neither the kernel's nor the launch's, E0913 for a value that no parameter can have."""
    parameters = _parameters(kernel)
    for name in configuration:
        if name not in parameters and name not in LAUNCH:
            near = nearest(str(name), [*parameters, *LAUNCH])
            known = f"its parameters are {', '.join(parameters)}" if parameters else "it has no comptime parameters"
            message = f"'{name}' is neither a comptime parameter of kernel '{kernel.name}' nor a part of a launch"
            raise _wrong(message, f"did you mean '{near}'?" if near else f"{known}; a launch has {', '.join(LAUNCH)}")
    constants = {name: value for name, value in configuration.items() if name in parameters}
    asked = {name: value(configuration) if callable(value) else value for name, value in launch.items()}
    asked |= {name: value for name, value in configuration.items() if name not in parameters}
    return Candidate(configuration, kernel.specialize(**constants), asked)


def _parameters(kernel: Kernel) -> tuple[str, ...]:
    definition = kernel._program.definitions().get(kernel.name)
    return () if definition is None else tuple(param.name for param in definition.params)


def _wrong(message: str, help: str | None = None) -> LaunchError:
    return launch_error("E0940", message, help=help)
