"""What came of things done wrong."""

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Outcome"]


@dataclass
class Outcome:
    """Counts of what was done and of what happened, and everything that broke a promise.

    Attributes:
        done: how often each kind of thing was done (a kill before a rename, a bit flipped in
            `front.json`).
        answered: how often each allowed answer came (the same bits, one sentence).
        broken: a sentence for each promise that was broken, enough to repeat it.
        measured: the largest of what was measured, by name (seconds, megabytes).
    """

    done: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    measured: dict[str, float] = field(default_factory=dict)

    def measure(self, name: str, value: float) -> None:
        """Keep the largest."""
        self.measured[name] = max(value, self.measured.get(name, value))

    def add(self, other: "Outcome") -> None:
        """Take up what another came to."""
        self.done += other.done
        self.answered += other.answered
        self.broken += other.broken
        for name, value in other.measured.items():
            self.measure(name, value)
