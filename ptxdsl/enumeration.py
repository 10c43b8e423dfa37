"""``Enum`` for a command that is started often: the standard module takes as long to import as a large stage does."""

from __future__ import annotations

from ptxdsl.hints import TYPE_CHECKING, Any

__all__ = ["Enum"]

if TYPE_CHECKING:
    from enum import Enum
else:

    class Enum:
        """What the names in capitals in a subclass stand for become its only objects; ``__members__`` has them all."""

        def __init_subclass__(cls) -> None:
            cls.__members__ = {}
            for name in [name for name in vars(cls) if name.isupper()]:
                member = cls.__members__[name] = object.__new__(cls)
                member.name, member.value = name, getattr(cls, name)
                setattr(cls, name, member)

        def __reduce__(self) -> tuple[Any, ...]:
            return getattr, (type(self), self.name)

        def __repr__(self) -> str:
            return f"<{type(self).__name__}.{self.name}: {self.value!r}>"
