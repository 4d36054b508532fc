"""Results of injected faults."""

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Outcome"]


@dataclass
class Outcome:
    """Counts of faults and of reactions, and all broken guarantees.

    Attributes:
        done: counts of each fault (a kill before a rename, a bit flipped in `front.json`).
        answered: counts of each allowed reaction (the same bits, one sentence).
        broken: a sentence for each broken guarantee, from which it can be repeated.
        measured: the largest value of each measurement, by name (seconds, megabytes).
    """

    done: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    measured: dict[str, float] = field(default_factory=dict)

    def measure(self, name: str, value: float) -> None:
        """Record a value, of which the largest is kept."""
        self.measured[name] = max(value, self.measured.get(name, value))

    def add(self, other: "Outcome") -> None:
        """Add the counts of another outcome."""
        self.done += other.done
        self.answered += other.answered
        self.broken += other.broken
        for name, value in other.measured.items():
            self.measure(name, value)
