"""Which word was meant?"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str], *, say: str = "Known here") -> str:
    """Return a cure for an unknown word: the nearest known one, else all of them."""
    names = sorted(set(known))
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {near[0]}?"
    shown = ", ".join(names[:40]) + (f" and {len(names) - 40} more" if len(names) > 40 else "")
    return f"{say}: {shown or 'none'}."
