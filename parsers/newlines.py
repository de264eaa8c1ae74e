"""How many lines end in a stretch of bytes: the one thing that looks at every byte of a log besides the scan."""

from __future__ import annotations

WORTH = 1 << 15
"""From so many bytes on NumPy counts faster than `bytes.count`: 11,600 MB/s against 2,500 for a mebibyte."""


def newlines(text: bytes, start: int, stop: int) -> int:
    """Return the number of newlines in text[start:stop]; 0 <= start, and stop <= len(text)."""
    if stop - start < WORTH:
        return text.count(b"\n", start, stop)
    import numpy as np  # 90 ms, unless pandas has brought it: only for what is large

    return int(np.count_nonzero(np.frombuffer(text, np.uint8, stop - start, start) == ord("\n")))
