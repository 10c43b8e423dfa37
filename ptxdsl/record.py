"""``dataclass`` for a command that is started often: what a class needs is made of what other classes need.

The standard decorator writes and compiles five to ten functions for every class when its module is imported. With a
hundred classes that is a third of the time of a whole compilation, and the ``dataclasses`` module itself, which imports
``inspect``, another 15 ms. This decorator has the same parameters and meaning, with two differences: constructors of
equally many fields are one compiled function under other names, and ``frozen`` is left to the type checker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from types import CodeType, FunctionType

from ptxdsl import record_patterns
from ptxdsl.hints import TYPE_CHECKING, Any

__all__ = ["Slotted", "dataclass", "field", "field_names", "replace"]


class _Missing:
    def __repr__(self) -> str:  # as `help` shows a default that is made
        return "…"


_MISSING: Any = _Missing()


class _Field:
    """What is said of a field beside its type and a plain default."""

    def __init__(self, default: Any, default_factory: Callable[[], Any] | None, repr: bool) -> None:
        self.default = default
        self.default_factory = default_factory
        self.repr = repr


if TYPE_CHECKING:
    from dataclasses import Field, dataclass, field, replace
    from typing import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        return lambda cls: cls

    def field(*, default: Any = _MISSING, default_factory: Callable[[], Any] | None = None, repr: bool = True) -> Any:
        return _Field(default, default_factory, repr)

    def replace(record: Any, /, **changes: Any) -> Any:
        """A new record with the fields of ``record`` but for ``changes``."""
        return type(record)(**{name: getattr(record, name) for name in record._record_fields} | changes)

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        eq: bool = True,
        slots: bool = False,
        repr: bool = True,
    ) -> Any:
        if cls is None:
            return lambda decorated: _record(decorated, frozen, eq, slots, repr)
        return _record(cls, frozen, eq, slots, repr)


def field_names(cls: type) -> tuple[str, ...]:
    """The names of a record's fields, inherited ones first."""
    return tuple(cls._record_fields)  # type: ignore[attr-defined]  # ``_record`` gives it to each


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
class Slotted(type):
    """The metaclass of records with slots: these must be known when a class is made, so ``dataclass(slots=True)``, a
    decorator, has it made twice. For what has dozens of classes: a class takes as long as a hundred calls.

    A class that names its ``__slots__`` is none of them but derives from one.
    """

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        frozen: bool = True,
        eq: bool = False,
        repr: bool = True,
    ) -> Slotted:
        if "__slots__" not in namespace:
            own = _own(namespace)
            fields = _fields(namespace, bases, own)
            namespace = _slotted(namespace, own, _members(namespace, fields, frozen, eq, repr))
        return super().__new__(cls, name, bases, namespace)


def _record(cls: type, frozen: bool, eq: bool, slots: bool, repr: bool) -> type:
    namespace = dict(cls.__dict__)
    own = _own(namespace)
    fields = _fields(namespace, cls.__bases__, own)
    made = _members(namespace, fields, frozen, eq, repr)
    if slots:
        slotted = _slotted(namespace, own, made)
        return type(cls)(cls.__name__, cls.__bases__, {**slotted, "__qualname__": cls.__qualname__})
    for name in own:
        if isinstance(namespace.get(name), _Field):
            delattr(cls, name)
    for name, value in made.items():
        setattr(cls, name, value)
    return cls


def _own(namespace: Mapping[str, Any]) -> list[str]:
    """The fields that a class declares itself."""
    kinds = namespace.get("__annotations__", {}).items()
    return [name for name, kind in kinds if not kind.startswith(("ClassVar", "typing.ClassVar"))]


def _fields(namespace: Mapping[str, Any], bases: tuple[type, ...], own: Iterable[str]) -> dict[str, Any]:
    """All fields with what is said of them, inherited ones first."""
    fields: dict[str, Any] = {}
    for base in reversed(bases):
        fields.update(getattr(base, "_record_fields", {}))
    for name in own:
        fields[name] = namespace.get(name, _MISSING)
    return fields


def _members(
    namespace: Mapping[str, Any], fields: Mapping[str, Any], frozen: bool, eq: bool, repr: bool
) -> dict[str, Any]:
    """What a record has beside what its author wrote."""
    names = tuple(fields)
    made: dict[str, Any] = {
        "_record_fields": fields,
        "__match_args__": names,
        "__dataclass_fields__": _Fields(),
        "__init__": namespace.get("__init__", _first_init),
    }
    if repr:
        made["__repr__"] = _repr
    if eq and "__eq__" not in namespace:
        made.update(_equality(names, frozen))
    return {name: value for name, value in made.items() if name not in namespace or name == "__init__"}


def _slotted(namespace: dict[str, Any], own: Sequence[str], made: Mapping[str, Any]) -> dict[str, Any]:
    """The namespace of a class with slots: its fields have no values there."""
    slotted = {**namespace, **made}
    for name in (*own, "__dict__", "__weakref__"):
        slotted.pop(name, None)
    slotted["__slots__"] = tuple(own)
    return slotted


def _equality(names: tuple[str, ...], frozen: bool) -> dict[str, Any]:
    key: Callable[[Any], Any] = attrgetter(*names) if names else type

    def __eq__(self: Any, other: object) -> bool:
        if other is self:
            return True
        return bool(key(self) == key(other)) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(key(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _repr(self: Any) -> str:
    shown = (name for name, default in self._record_fields.items() if default.__class__ is not _Field or default.repr)
    parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({parts})"


def _first_init(self: Any, *args: Any, **keywords: Any) -> None:
    """The constructor of a class that has no object yet: many have none in a compilation."""
    cls = next(c for c in type(self).__mro__ if c.__dict__.get("__init__") is _first_init)
    made = _constructor(cls, cls._record_fields)  # type: ignore[attr-defined]
    setattr(cls, "__init__", made)  # noqa: B010  (mypy takes no assignment)
    made(self, *args, **keywords)  # not self's own: that of a subclass may have called this one


def _constructor(cls: type, fields: dict[str, Any]) -> Callable[..., None]:
    """The function for fields of this pattern, under their names."""
    values: dict[str, Any] = {"MISSING": _MISSING}
    defaults: list[Any] = []
    pattern = ""
    for number, default in enumerate(fields.values()):
        made = default.default_factory if default.__class__ is _Field else None
        pattern += "f" if made else "v"
        if made:
            values[f"make{number}"] = made
            defaults.append(_MISSING)
            continue
        value = default.default if default.__class__ is _Field else default
        if value is not _MISSING:
            defaults.append(value)
        elif defaults:
            raise TypeError(f"{cls.__name__}.{list(fields)[number]} has no default, but a field before it has")
    if hasattr(cls, "__post_init__"):
        pattern += "+"
    code = _patterns.get(pattern) or _patterns.setdefault(pattern, _compiled(pattern))
    names = tuple(fields)
    fitted = {f"v{number}": name for number, name in enumerate(names)}
    code = code.replace(
        co_name="__init__",
        co_qualname=f"{cls.__qualname__}.__init__",
        co_varnames=("self", *names),
        co_names=tuple(fitted.get(name, name) for name in code.co_names),
    )
    return FunctionType(code, values, "__init__", tuple(defaults))


_patterns: dict[str, CodeType] = {}


def _compiled(pattern: str) -> CodeType:
    name = _name(pattern)
    found = getattr(record_patterns, name, None)
    if found is None:
        namespace: dict[str, Any] = {}
        exec(source(pattern), namespace)
        found = namespace[name]
    code: CodeType = found.__code__
    return code


def _name(pattern: str) -> str:
    return f"init_{pattern.replace('+', '_post')}"


def source(pattern: str) -> str:
    """A constructor: for each field ``v``, ``f`` for one that is made where it is not given; ``+``: with post-init."""
    kinds = pattern.rstrip("+")
    body = [
        f"self.v{n} = " + (f"v{n}" if kind == "v" else f"make{n}() if v{n} is MISSING else v{n}")
        for n, kind in enumerate(kinds)
    ]
    if pattern != kinds:
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *(f"v{n}" for n in range(len(kinds)))])
    return f"def {_name(pattern)}({parameters}): {'; '.join(body) or 'pass'}\n"


class _Fields:
    """What ``dataclasses.fields`` and ``replace`` look at, made when they do."""

    def __get__(self, instance: object, cls: type) -> dict[str, Field[Any]]:
        import dataclasses

        names = cls._record_fields  # type: ignore[attr-defined]
        made = dataclasses.make_dataclass(cls.__name__, list(names))
        fields: dict[str, Field[Any]] = getattr(made, "__dataclass_fields__")  # noqa: B009  (nor does it know of these)
        setattr(cls, "__dataclass_fields__", fields)  # noqa: B010
        return fields
