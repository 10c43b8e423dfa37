"""``dataclass`` for a command that is started often: what a class needs is made when it is first needed.

The standard decorator writes and compiles five to ten functions for every class when its module is imported. With a
hundred classes that is a third of the time of a whole compilation, and the ``dataclasses`` module itself, which imports
``inspect``, another 15 ms. This decorator has the same parameters and meaning, with two differences: the constructor is
compiled when it has been called a few times, and ``frozen`` is left to the type checker.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "field_names", "replace"]

_MISSING: Any = object()

# Half of the classes have fewer objects than this in a compilation. Compiling a constructor takes as long as 30 calls
# of the general one.
_CALLS_BEFORE_COMPILING = 10
_calls: dict[type, int] = {}


class _Field:
    """What is said of a field beside its type and a plain default."""

    def __init__(self, default: Any, default_factory: Callable[[], Any] | None, repr: bool) -> None:
        self.default = default
        self.default_factory = default_factory
        self.repr = repr


if TYPE_CHECKING:
    from dataclasses import Field, dataclass, field, replace
else:

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
    return tuple(cls._record_fields)  # type: ignore[attr-defined]


def _record(cls: type, frozen: bool, eq: bool, slots: bool, repr: bool) -> type:
    own = [name for name, kind in cls.__annotations__.items() if not kind.startswith(("ClassVar", "typing.ClassVar"))]
    inherited: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited.update(base.__dict__.get("_record_fields", {}))
    fields = {**inherited, **{name: cls.__dict__.get(name, _MISSING) for name in own}}
    names = tuple(fields)
    namespace = dict(cls.__dict__)
    made: dict[str, Any] = {
        "_record_fields": fields,
        "__match_args__": names,
        "__dataclass_fields__": _Fields(),
        "__init__": namespace.get("__init__", _early_init),
    }
    if repr:
        made["__repr__"] = _repr
    if eq and "__eq__" not in namespace:
        made.update(_equality(names, frozen))
    made = {name: value for name, value in made.items() if name not in namespace or name == "__init__"}
    if not slots:
        for name in own:
            if isinstance(namespace.get(name), _Field):
                delattr(cls, name)
        for name, value in made.items():
            setattr(cls, name, value)
        return cls
    for name in (*own, "__dict__", "__weakref__"):
        namespace.pop(name, None)
    bases = {slot for base in cls.__mro__[1:] for slot in base.__dict__.get("_record_fields", ())}
    namespace.update(made, __slots__=tuple(name for name in own if name not in bases), __qualname__=cls.__qualname__)
    return type(cls)(cls.__name__, cls.__bases__, namespace)


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


def _early_init(self: Any, *args: Any, **keywords: Any) -> None:
    """The constructor of a class's first objects. What it cannot do (raise a good TypeError), the compiled one does."""
    cls = type(self)
    calls = _calls[cls] = _calls.get(cls, 0) + 1
    fields = cls._record_fields
    given = dict(zip(fields, args, strict=False))
    if calls > _CALLS_BEFORE_COMPILING or len(args) > len(fields) or not given.keys().isdisjoint(keywords):
        return _compiled_init(self, *args, **keywords)
    given.update(keywords)
    used = 0
    for name, default in fields.items():
        if name in given:
            used += 1
            value = given[name]
        elif default.__class__ is _Field:
            value = default.default if default.default_factory is None else default.default_factory()
        else:
            value = default
        if value is _MISSING:
            return _compiled_init(self, *args, **keywords)
        setattr(self, name, value)
    if used < len(given):
        return _compiled_init(self, *args, **keywords)
    if hasattr(cls, "__post_init__"):
        self.__post_init__()
    return None


def _compiled_init(self: Any, *args: Any, **keywords: Any) -> None:
    """Compiles the constructor of the class that has none yet, puts it in ``_early_init``'s place, and calls it."""
    cls = next(c for c in type(self).__mro__ if c.__dict__.get("__init__") is _early_init)
    arguments, body = ["self"], []
    values: dict[str, Any] = {"MISSING": _MISSING}
    for name, default in cls._record_fields.items():  # type: ignore[attr-defined]
        value = name
        if isinstance(default, _Field):
            if default.default_factory is not None:
                values[f"make_{name}"] = default.default_factory
                arguments.append(f"{name}=MISSING")
                value = f"make_{name}() if {name} is MISSING else {name}"
                body.append(f"self.{name} = {value}")
                continue
            default = default.default
        if default is not _MISSING:
            values[f"default_{name}"] = default
            arguments.append(f"{name}=default_{name}")
        else:
            arguments.append(name)
        body.append(f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    namespace: dict[str, Any] = {}
    code = f"def __init__({', '.join(arguments)}):\n " + "\n ".join(body or ["pass"])
    exec(code, values, namespace)
    setattr(cls, "__init__", namespace["__init__"])  # noqa: B010
    namespace["__init__"](self, *args, **keywords)


class _Fields:
    """What ``dataclasses.fields`` and ``replace`` look at, made when they do."""

    def __get__(self, instance: object, cls: type) -> dict[str, Field[Any]]:
        import dataclasses

        names = cls._record_fields  # type: ignore[attr-defined]
        made = dataclasses.make_dataclass(cls.__name__, list(names))
        fields: dict[str, Field[Any]] = getattr(made, "__dataclass_fields__")  # noqa: B009
        setattr(cls, "__dataclass_fields__", fields)  # noqa: B010
        return fields
