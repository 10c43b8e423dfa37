"""PTX texts damaged at random: what a broken tool, a bad disk or an attacker hands over."""

from __future__ import annotations

import random
import re

_PIECES = (
    "{", "}", "(", ")", "[", "]", ";", ",", ":", "@", "!", "|", "%", "_", ".", "/*", "*/", "//", '"', "\0", "\n", " ",
    "-", "+", "0x", "0f", "::", "<", ">", "=", "\x80", "é", "99999999999999999999", "%r<4000000000>", ".reg", ".b32",
    ".param", ".loc 1 1 1", ".entry", ".func", "bra", "call", "ret;", "WARP_SZ", ".branchtargets", "((((((((",
)  # fmt: skip
_TOKEN = re.compile(r"[\w$%.]+|\s+|.", re.DOTALL)


def mutate(text: str, rng: random.Random, other: str) -> str:
    """The text with up to six random changes; pieces of ``other`` may be put in."""
    for _ in range(rng.randint(1, 6)):
        if not text:
            break
        at = rng.randrange(len(text))
        size = int(rng.paretovariate(0.7))
        match rng.randrange(7):
            case 0:
                text = text[:at] + text[at + size :]
            case 1:
                text = text[:at] + rng.choice(_PIECES) + text[at:]
            case 2:
                text = text[:at] + text[at : at + size] * rng.randint(2, 4) + text[at + size :]
            case 3 if other:
                start = rng.randrange(len(other))
                text = text[:at] + other[start : start + size] + text[at:]
            case 4:
                text = text[:at] + rng.choice(_PIECES) + text[at + 1 :]
            case 5:  # two words of the text change places, or one stands in for the other
                words = [m.span() for m in _TOKEN.finditer(text, max(at - 2000, 0), at + 2000)]
                (a, b), (c, d) = sorted(rng.choices(words, k=2))
                if b <= c:
                    text = text[:a] + text[c:d] + text[b:c] + rng.choice((text[a:b], text[c:d])) + text[d:]
            case 6 if rng.random() < 0.3:
                text = text[:at]
    return text
