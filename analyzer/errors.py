"""The one family of errors a user may see: what happened, where, why, and what to do."""

from __future__ import annotations


class AnalyzerError(ValueError):
    """A clear error for the user; damaged *evidence* never raises, it becomes a gap."""

    def __init__(self, what: str, *, where: str = "", why: str = "", cure: str = "") -> None:
        self.what, self.where, self.why, self.cure = what, where, why, cure
        super().__init__(str(self))

    def __str__(self) -> str:
        """Return one paragraph: `where: what: why. cure`."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.why:
            text += f": {self.why}"
        if self.cure:
            text += f". {self.cure}" if not text.endswith(".") else f" {self.cure}"
        return text


class UnreadableBundle(AnalyzerError):
    """The bundle itself is not there or cannot be opened; of several, the others may be well."""
