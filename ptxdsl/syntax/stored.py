"""Trees as bytes, for the standard library's: a function's is read when more of it is asked for than what declares it.

A compilation declares all functions of the modules that it uses, and calls one in ten of them.
"""

from __future__ import annotations

from _thread import RLock  # as threading has it, without the module around it
from io import BytesIO

from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.source import Source
from ptxdsl.syntax import ast

if TYPE_CHECKING:
    from pickle import Unpickler
else:
    try:
        from _pickle import Unpickler  # what pickle.py would take, without pickle.py: 1 ms
    except ImportError:
        from pickle import Unpickler

_FIRST = ("span", "name", "name_span", "decorators")
_LATER = ("params", "args", "returns", "where", "raises", "docstring", "body")
_reading = RLock()


class FunctionDef(ast.FunctionDef):
    """A function whose tree is read in two parts. later: the second as bytes, None once it is read."""

    __slots__ = ("later",)

    def __init__(self, later: bytes, *first: Any) -> None:
        for name, value in zip(_FIRST, first, strict=True):
            setattr(self, name, value)
        self.later: bytes | None = later

    def __getattr__(self, attribute: str) -> Any:  # called for fields while their slots are empty
        if attribute not in _LATER:
            raise AttributeError(attribute)
        with _reading:
            # Another thread may have been here: two trees must not be mixed.
            if self.later is not None:
                for name, value in zip(_LATER, _read(self.later, self.span.source), strict=True):
                    setattr(self, name, value)
                self.later = None
        return getattr(self, attribute)


def load(data: bytes) -> ast.Module:
    """The module that ``dump`` wrote. Raises whatever a pickle of other times raises; only trusted data may be read."""
    module = Unpickler(BytesIO(data)).load()
    if not isinstance(module, ast.Module):
        raise TypeError(module)
    return module


def dump(module: ast.Module) -> bytes:
    """A module as bytes: one pickle with one for each of its functions and methods in it."""
    import pickle  # where a tree is made; to read one takes less

    class Later(pickle.Pickler):
        def persistent_id(self, value: object) -> object:
            return True if value is module.source else None  # it is in the outer pickle

    def parted(function: ast.FunctionDef) -> tuple[type, tuple[Any, ...]]:
        file = BytesIO()
        Later(file, protocol=5).dump([getattr(function, name) for name in _LATER])
        return FunctionDef, (file.getvalue(), *(getattr(function, name) for name in _FIRST))

    file = BytesIO()
    pickler = pickle.Pickler(file, protocol=5)
    pickler.dispatch_table = {ast.FunctionDef: parted}
    pickler.dump(module)
    return file.getvalue()


def _read(data: bytes, source: Source) -> Any:
    unpickler = Unpickler(BytesIO(data))
    unpickler.persistent_load = lambda _: source  # type: ignore[method-assign]
    return unpickler.load()
