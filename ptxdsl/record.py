"""``dataclass`` for a command that is started often: what a class needs is made of what other classes need.

The standard decorator writes and compiles five to ten functions for every class when its module is imported. With a
hundred classes that is a third of the time of a whole compilation, and the ``dataclasses`` module itself, which imports
``inspect``, another 15 ms. This decorator has the same parameters and meaning, with two differences: constructors of
equally many fields are one compiled function under other names, and ``frozen`` is left to the type checker.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import CodeType, FunctionType

from ptxdsl import record_patterns
from ptxdsl.hints import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "field_names", "replace"]


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
    return tuple(cls._record_fields)  # type: ignore[attr-defined]  # ``_record`` gives it to each


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
        "__init__": namespace.get("__init__", _first_init),
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
