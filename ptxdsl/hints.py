"""What annotations take of ``typing``, without the module: importing it takes a fortieth of a compilation.

Annotations are never evaluated; where one of these names stands in an alias or as a base, something must be there.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any as Any
    from typing import ClassVar as ClassVar
    from typing import Literal as Literal
    from typing import Protocol as Protocol
else:

    class Any:
        """Stands for itself and for all types of one argument list."""

        def __class_getitem__(cls, arguments):
            return cls

    ClassVar = Literal = Any
    Protocol = object
