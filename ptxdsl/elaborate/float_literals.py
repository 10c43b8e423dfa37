"""What float literals are: exact fractions, and the one zero among them that has a sign.

Imported where there is a float literal: ``fractions`` has ``decimal`` and ``numbers`` behind it, 11 of the 400 million
instructions of a process that compiles a kernel without one.
"""

from __future__ import annotations

from fractions import Fraction


class NegativeZero(Fraction):
    """The float literal ``-0.0``: a zero in all arithmetic of literals, but its sign reaches the type it meets."""
