"""Values that a caller has given, as messages show them: never too long, whatever they are."""

from __future__ import annotations

from ptxdsl.hints import Any

_MOST_BITS = 128  # of an integer that is written out; Python itself refuses one of more than 4300 digits
_MOST_CHARACTERS = 200


def shown(value: Any) -> str:
    """As Python writes it; of what is too long for that, or cannot be written, what it is."""
    return written(value) or _kind(value)


def shown_with_type(value: Any) -> str:
    """``float 0.5``; of what is too long or cannot be written, what it is."""
    text = written(value)
    return f"{type(value).__name__} {text}" if text else _kind(value)


def written(value: Any) -> str | None:
    """As Python writes it; None for what is too long for a message, or cannot be written."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return None
    try:
        text = repr(value)
    except Exception:  # of a class of the caller's, or a container of numbers too long to be written
        return None
    return text if len(text) <= _MOST_CHARACTERS else None


def _kind(value: Any) -> str:
    return f"an int of {value.bit_length()} bits" if isinstance(value, int) else f"a {type(value).__name__}"
