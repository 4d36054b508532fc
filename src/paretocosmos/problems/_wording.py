"""How a problem is told to whoever decides."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paretocosmos.types import Measure

__all__ = ["Wording"]

CROSS_ENTROPY = (
    "How far the predicted probabilities are from the truth: a confident mistake costs most."
)


@dataclass(frozen=True)
class Wording:
    """A problem in plain words; names of columns and classes replace what is left out.

    Attributes:
        title: what is asked: "Who earns more than 50,000 dollars a year?".
        rows: what the samples are, several of them: "people".
        data: where they come from: "the US census of 1994".
        groups: the sensitive groups in their order, several of each: "men", "women".
        positive: what is true of the positive class, of several: "earn more than 50,000".
        told: what a positive answer says of them: "predicted to earn over 50,000".
        tasks: by the target of a head, what is answered, several of them: "left images".
        wrong: what is wrong with such an answer: "are read wrong".
        measures: objectives and metrics by name, in the problem's own words.
        instead: by the name of an objective, the metric that says the same in plainer numbers.

    >>> Wording(rows="people").groups
    ()
    """

    title: str = ""
    rows: str = "rows"
    data: str = ""
    groups: tuple[str, ...] = ()
    positive: str = ""
    told: str = ""
    tasks: Mapping[str, str] = field(default_factory=dict)
    wrong: str = "are wrong"
    measures: Mapping[str, Measure] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_tasks(
        cls, title: str, rows: str, tasks: Mapping[str, str], *, wrong: str = "are wrong"
    ) -> "Wording":
        """The wording of a problem with a head for each task, whose accuracy is a metric.

        >>> words = Wording.of_tasks("Which digits?", "pairs", {"left": "left digits"})
        >>> words.measures["accuracy_left"].label, words.instead
        ('right answers on left digits', {'left': 'accuracy_left'})
        """
        measures = {}
        for head, one in tasks.items():
            goal = f"fewer mistakes on {one}"
            measures[head] = Measure(f"loss on {one} (cross-entropy)", goal, CROSS_ENTROPY)
            measures[f"accuracy_{head}"] = Measure(
                f"right answers on {one}",
                goal,
                f"The share of {one} that are answered rightly.",
                "of 100",
                larger=True,
            )
        instead = {head: f"accuracy_{head}" for head in tasks}
        return cls(
            title=title, rows=rows, tasks=tasks, wrong=wrong, measures=measures, instead=instead
        )
