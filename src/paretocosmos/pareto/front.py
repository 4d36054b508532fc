"""The front: evaluated rays and their values, the one thing metrics, plots and reports accept."""

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError, check_choice, require_extra
from paretocosmos.io.files import one_line, parse_json
from paretocosmos.io.formatting import Grid, format_number, pick_evenly

if TYPE_CHECKING:
    import pandas as pd

    from paretocosmos.pareto.selection import CriteriaOptions
    from paretocosmos.plotting import Picture

Array = npt.NDArray[np.float64]

# Rays that are printed, and the letters that they may take in a line, of a terminal or a notebook.
ROWS, TERMINAL, NOTEBOOK = 9, 80, 110


@dataclass(frozen=True, eq=False)
class Front:
    """Rays and the values of all objectives at each, immutable.

    Attributes:
        rays: ``[N, J]``, the preferences that were evaluated.
        values: ``[N, J]``, the score of each objective, smaller is better.
        names: the J objectives.
        reference: ``[J]``, the point hypervolume is measured from.
        metrics: further numbers per ray, ``{name: [N]}`` (accuracy, ``tpr_gap``).
        split: the data it was evaluated on.
        provenance: where it comes from (problem, method, seed, how scores were averaged).

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> len(front), front.non_dominated.tolist()
    (2, [True, True])
    """

    rays: Array
    values: Array
    names: tuple[str, ...]
    reference: Array
    metrics: Mapping[str, Array]
    split: str
    provenance: Mapping[str, Any]

    def __init__(
        self,
        rays: npt.ArrayLike,
        values: npt.ArrayLike,
        names: Sequence[str],
        reference: npt.ArrayLike,
        metrics: Mapping[str, npt.ArrayLike] = MappingProxyType({}),
        split: str = "test",
        provenance: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        count, objectives = np.shape(values) if np.ndim(values) == 2 else (0, 0)
        if count == 0 or np.shape(rays) != (count, objectives):
            raise ConfigurationError(
                "a front needs `rays` and `values` of one shape [N, J] with N >= 1, found "
                f"{np.shape(rays)} and {np.shape(values)}"
            )
        if len(names) != objectives or np.shape(reference) != (objectives,):
            raise ConfigurationError(
                f"`names` and `reference` need one entry per objective, here {objectives}; "
                f"found {len(names)} and shape {np.shape(reference)}"
            )
        for name, value in metrics.items():
            if np.shape(value) != (count,):
                raise ConfigurationError(
                    f"the metric `{name}` needs one number per ray, here {count}; found shape "
                    f"{np.shape(value)}"
                )
        for key, content in (
            ("rays", _freeze(rays)),
            ("values", _freeze(values)),
            ("names", tuple(names)),
            ("reference", _freeze(reference)),
            ("metrics", MappingProxyType({n: _freeze(value) for n, value in metrics.items()})),
            ("split", split),
            ("provenance", MappingProxyType(dict(provenance))),
        ):
            # the dataclass is frozen, for this method too
            object.__setattr__(self, key, content)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return self._grid(TERMINAL).text()

    def _repr_html_(self) -> str:
        return self._grid(NOTEBOOK).html() + self._sketch()

    def _sketch(self) -> str:
        """Return a small picture of two objectives as SVG, without a style sheet or a library."""
        points = self.values[np.isfinite(self.values).all(axis=1)]
        if self.objectives != 2 or len(points) < 2:
            return ""
        low, width = points.min(axis=0), np.ptp(points, axis=0)
        scaled = (points - low) / np.where(width > 0, width, 1.0)
        dots = "".join(
            f'<circle cx="{15 + 130 * x:.0f}" cy="{105 - 90 * y:.0f}" r="3"/>' for x, y in scaled
        )
        label = html.escape(f"{self.names[1]} (up) against {self.names[0]} (to the right)")
        return (
            f'<svg width="160" height="120" role="img" aria-label="{label}" fill="#0072b2">'
            f'<title>{label}</title><path d="M5 5V115H155" fill="none" stroke="#888"/>{dots}</svg>'
        )

    def _title(self) -> str:
        *others, last = self.names
        names = f"{', '.join(others)} and {last}" if others else last
        return f"Front of {names} on {self.split}, {len(self)} rays"

    def _grid(self, width: int) -> Grid:
        """Tabulate a few rays from end to end: weights, values, and metrics that have room."""
        rows = pick_evenly(len(self), ROWS)
        weights = 1 if self.objectives == 2 else self.objectives  # the second follows
        columns = {f"weight_{n}": self.rays[:, j] for j, n in enumerate(self.names[:weights])}
        columns |= dict(zip(self.names, self.values.T, strict=True))
        room = width - sum(2 + max(len(name), 6) for name in columns)
        for name, values in self.metrics.items():
            room -= 2 + max(len(name), 6)
            if room >= 0:
                columns[name] = values
        cells = [[format_number(float(values[n])) for values in columns.values()] for n in rows]
        absent = [name for name in self.metrics if name not in columns]
        remarks = [f"{len(rows)} of {len(self)} rays"] * (len(rows) < len(self))
        remarks += [f"without {', '.join(absent)}"] * bool(absent)
        notes = [f"Shown: {', '.join(remarks)}. `.to_frame()` returns all."] if remarks else []
        return Grid(self._title(), list(columns), cells, notes)

    def __eq__(self, other: object) -> bool:
        """Compare everything that is stored, to the last bit."""
        return isinstance(other, Front) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # arrays inside, as for numpy's own

    def __reduce__(self) -> tuple[Any, ...]:  # copies and pickles: a mapping proxy has neither
        arrays = (self.rays, self.values, self.names, self.reference, dict(self.metrics))
        return Front, (*arrays, self.split, dict(self.provenance))

    @property
    def objectives(self) -> int:
        """J, the number of objectives."""
        return len(self.names)

    @property
    def non_dominated(self) -> npt.NDArray[np.bool_]:
        """The points that no other point dominates ``[N]`` (duplicates all count; NaN never)."""
        import moocore

        # moocore lets a point with a NaN dominate; a value that does not exist beats nothing
        keep: npt.NDArray[np.bool_] = np.asarray(~np.isnan(self.values).any(axis=1))
        keep[keep] = moocore.is_nondominated(self.values[keep], keep_weakly=True)
        return keep

    def filter(self) -> "Front":
        """Return the front without its dominated points."""
        return self.take(self.non_dominated)

    def take(self, points: npt.ArrayLike) -> "Front":
        """Return some of its points, by index or by a mask ``[N]``."""
        keep = np.asarray(points)
        metrics = {name: value[keep] for name, value in self.metrics.items()}
        return replace(self, rays=self.rays[keep], values=self.values[keep], metrics=metrics)

    def join(self, *others: "Front") -> "Front":
        """Return its points and those of others after them, on the same objectives and split."""
        fronts = (self, *others)
        kinds = {(f.names, tuple(f.reference), f.split, frozenset(f.metrics)) for f in fronts}
        if len(kinds) > 1:
            raise ConfigurationError(
                "fronts that are joined need the same objectives, reference point, split and "
                "metrics, found " + " and ".join(front._title() for front in fronts)
            )
        return replace(
            self,
            rays=np.concatenate([front.rays for front in fronts]),
            values=np.concatenate([front.values for front in fronts]),
            metrics={n: np.concatenate([f.metrics[n] for f in fronts]) for n in self.metrics},
        )

    def choose(self, **criteria: "Unpack[CriteriaOptions]") -> "Point":
        """Return the point that meets the criteria best, among the rays of this front.

        Args:
            criteria: bounds and what is best among the points that keep them, by the keywords of
                `pareto.selection.Criteria`: `max`, `min`, `minimize`, `maximize`, `knee`,
                `weights`, `near` and `allow_constant`.

        Returns:
            The point; refused where none keeps the bounds, saying how close one comes.

        >>> values = [[0.1, 0.9], [0.2, 0.2], [0.9, 0.1]]
        >>> front = Front([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], values, ("loss", "gap"), (2, 2))
        >>> front.choose(knee=True).ray, front.choose(max={"gap": 0.15})["loss"]
        ((0.5, 0.5), 0.9)
        """
        from paretocosmos.pareto import selection

        # `selection` imports this module
        checked = selection.Criteria.from_options(criteria)
        if checked.confidence is not None:
            raise ConfigurationError(
                "`confidence` needs the rows that the front was evaluated on: use `Run.choose`"
            )
        return get_point(self, selection.find_best(self, checked))

    def plot(self, *others: "Front", title: str = "") -> "Picture":
        """Draw the front: a picture that a notebook shows and ``.save("front.png")`` writes.

        Args:
            others: fronts with the same objectives, to be drawn with it.
            title: a line above it.
        """
        from paretocosmos.plotting import Picture, front_figure

        return Picture(front_figure([self, *others], title=title))

    def to_frame(self) -> "pd.DataFrame":
        """Return a row per ray: weights, values, metrics, and whether it is non-dominated.

        >>> front = Front([[1, 0], [0, 1]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
        >>> list(front.to_frame().columns)
        ['weight_loss', 'weight_gap', 'loss', 'gap', 'non_dominated']
        """
        require_extra("pandas", "tabular", "a front as a DataFrame")
        import pandas as pd

        weights = {f"weight_{name}": w for name, w in zip(self.names, self.rays.T, strict=True)}
        values = dict(zip(self.names, self.values.T, strict=True))
        best = {"non_dominated": self.non_dominated}
        return pd.DataFrame(weights | values | dict(self.metrics) | best)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and strings for JSON; a number that does not exist is `None`."""
        return {
            "rays": self.rays.tolist(),
            "values": to_plain(self.values),
            "metrics": to_plain(self.metrics),
            "names": list(self.names),
            "reference": self.reference.tolist(),
            "split": self.split,
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Front":
        """Build a front from what `to_dict` returned."""
        from paretocosmos.io.schema.models import FrontFile, check_part

        check_part(FrontFile, content, "front")
        return cls(**{key.name: content[key.name] for key in fields(cls)})

    def to_json(self) -> str:
        """Return one JSON object as text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Front":
        """Build a front from what `to_json` returned; the numbers are the same bit for bit."""
        try:
            content: Any = parse_json(text)
        except (RecursionError, ValueError) as error:  # nested too deeply, too many digits
            raise DataError(f"this is not JSON ({one_line(error)})") from error
        return cls.from_dict(content)


@dataclass(frozen=True)
class Point:
    """One point of a front.

    Attributes:
        ray: the preference that gives it.
        values: the objectives, by name.
        metrics: further numbers, by name.
        split: the data they were measured on.
        intervals: 95 % intervals of the numbers, where they are known.
        limits: how far a bounded number may be with the confidence asked for, where one was.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> point = front.choose(max={"gap": 0.15})
    >>> point.ray, point["loss"]
    ((0.1, 0.9), 0.5)
    """

    ray: tuple[float, ...]
    values: Mapping[str, float]
    metrics: Mapping[str, float]
    split: str
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        numbers = {**self.metrics, **self.values}
        check_choice("objective or metric", name, numbers)
        return numbers[name]

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers for JSON; a number that does not exist is `None`."""
        return {key.name: to_plain(getattr(self, key.name)) for key in fields(self)}


def get_point(front: Front, index: int) -> Point:
    """Return a point of a front by its index."""
    return Point(
        tuple(front.rays[index].tolist()),
        dict(zip(front.names, front.values[index].tolist(), strict=True)),
        {name: float(values[index]) for name, values in front.metrics.items()},
        front.split,
    )


def get_columns(front: Front) -> dict[str, Array]:
    """Return the numbers of all points ``[N]`` by name: objectives and metrics."""
    return {**front.metrics, **dict(zip(front.names, front.values.T, strict=True))}


def _freeze(value: object) -> Array:
    # asarray, then copy: np.array on a torch tensor warns
    array = np.asarray(value, dtype=np.float64).copy()
    array.flags.writeable = False
    return array


def to_plain(value: Any) -> Any:
    """Return arrays, tuples and mappings as lists and dicts for JSON.

    A number that is not finite is `None`, since JSON has none.
    """
    if isinstance(value, Mapping):
        return {key: to_plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | tuple | list):
        entries = value.tolist() if isinstance(value, np.ndarray) else value
        return [to_plain(entry) for entry in entries]
    return None if isinstance(value, float) and not math.isfinite(value) else value
