"""``contextmanager`` for a command that is started often: of ``contextlib``, without the module around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxdsl.hints import TYPE_CHECKING, Any

__all__ = ["contextmanager"]

if TYPE_CHECKING:
    from contextlib import contextmanager
else:

    def contextmanager(function: Callable[..., Iterator[Any]]) -> Callable[..., _Generated]:
        return lambda *arguments, **keywords: _Generated(function(*arguments, **keywords))


class _Generated:
    __slots__ = ("_steps",)

    def __init__(self, steps: Any) -> None:
        self._steps = steps

    def __enter__(self) -> Any:
        return next(self._steps)

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> bool:
        """Whether the generator takes the exception for settled: it ends, and raises nothing."""
        if problem is None:
            next(self._steps, None)
            return False
        try:
            self._steps.throw(problem)
        except StopIteration:
            return True
        except BaseException as raised:
            if raised is problem:
                return False
            raise
        raise RuntimeError("the generator of a context went on after an exception")
