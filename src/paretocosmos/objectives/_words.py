"""The words for the numbers of this package, by their names in fronts."""

import dataclasses
from collections.abc import Mapping

from paretocosmos import registry
from paretocosmos.types import Measure

_SHARE: Mapping[str, Measure] = {
    "accuracy": Measure(
        "right answers",
        "more right answers",
        "The share of answers that are right.",
        "of 100",
        True,
    ),
    "misclassification": Measure(
        "wrong answers", "fewer wrong answers", "The share of answers that are wrong.", "of 100"
    ),
    "positive_rate": Measure(
        "selected", "", "The share of all rows that get the positive answer.", "of 100"
    ),
    "selection_rate": Measure(
        "selected", "", "The share of a group that gets the positive answer.", "of 100"
    ),
    "recall": Measure(
        "found", "", "Of those who belong to a class, the share that is found.", "of 100", True
    ),
    "largest_share": Measure(
        "given the most common answer",
        "",
        "The share of rows that get the most common answer; at 100 of 100 everybody gets the same.",
        "of 100",
    ),
    "calibration_error": Measure(
        "calibration error",
        "",
        "How far the predicted probabilities lie from what happens, on average.",
        "points",
    ),
    "roc_auc": Measure(
        "area under the ROC curve",
        "",
        "The chance that a positive row is scored above a negative one.",
        larger=True,
    ),
    "rmse": Measure(
        "typical error (root mean square)",
        "a smaller typical error",
        "The square root of the mean squared error, in the unit of what is predicted.",
    ),
    "mae": Measure(
        "average error",
        "a smaller average error",
        "The average distance of a prediction from the truth, in the unit of what is predicted.",
    ),
}


def measure_of(name: str) -> Measure:
    """The words for an objective or a metric of this package, by its name in a front.

    What follows a known name, as in ``accuracy_top_left``, says of what; a name that nobody knows
    is its own label.

    >>> measure_of("demographic_parity").unit, measure_of("accuracy_top_left").label
    ('points', 'right answers, top left')
    """
    if name in registry.names("objectives"):
        kind = registry.find("objectives", name)
        found: Measure = getattr(kind, "measure", None) or Measure(name.replace("_", " "))
        said = found.meaning or str(getattr(kind, "meaning", ""))
        return dataclasses.replace(found, meaning=sentence(said))
    for known, measure in _SHARE.items():
        if name == known:
            return measure
        if name.startswith(f"{known}_"):
            of = name.removeprefix(f"{known}_").replace("_", " ")
            return dataclasses.replace(measure, label=f"{measure.label}, {of}", goal="")
    gap, _, of = name.rpartition("_in_units")
    if gap and not of and gap in registry.names("objectives"):
        return dataclasses.replace(measure_of(gap), unit="")
    return Measure(name.replace("_", " "))


def named_label(name: str, measure: Measure) -> str:
    """What a number is called, and its name in commands and requests where that differs.

    >>> named_label("accuracy", measure_of("accuracy"))
    'right answers (accuracy)'
    """
    label = measure.label
    return label if label.replace(" ", "_") == name else f"{label} ({name})"


def sentence(text: str) -> str:
    """A text with a capital letter and a full stop.

    >>> sentence("the share that is found")
    'The share that is found.'
    """
    whole = text.strip()
    return f"{whole[:1].upper()}{whole[1:].rstrip('.')}." if whole else ""
