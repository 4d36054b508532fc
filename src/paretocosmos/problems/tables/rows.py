"""Labels, sensitive groups and splits of a table, and every way in which they can be wrong."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError, DataWarning, need, unknown
from paretocosmos.objectives import GroupObjective
from paretocosmos.problems.tables.frames import label_of, labelled, named
from paretocosmos.problems.tables.groups import Codes, Grouping

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Codes",
    "check",
    "check_columns",
    "check_groups",
    "group_targets",
    "known_targets",
    "labels_of",
    "split_rows",
    "together",
]

# 70/10/20, as the published code cuts it: 20 % off for test, then an eighth of the rest for val.
TEST_SHARE, VAL_SHARE = 0.2, 0.125
MIN_ROWS, FEW_ROWS = 10, 100
# Classes that are listed where another one is asked for.
LISTED = 50

# Classes that need no explanation: the negative one, the positive one.
PAIRS = (
    *(("0", "1"), ("-1", "1"), ("false", "true"), ("f", "t"), ("no", "yes"), ("n", "y")),
    *(("negative", "positive"), ("neg", "pos")),
)


def check(
    frame: "pd.DataFrame",
    target: str,
    sensitive: Sequence[str],
    categorical: Collection[str],
    drop: Collection[str],
    keep: Collection[str],
    seed: int,
) -> None:
    """Refuse what can be seen from names and sizes."""
    need("sklearn", "tabular", "splitting a table")
    for key, listed in (("categorical", categorical), ("drop", drop), ("keep", keep)):
        if isinstance(listed, str):
            raise ConfigurationError(
                f"`{key}` must be a list of columns, found {listed!r}: [{listed!r}]"
            )
    for role, columns in (
        ("target column", (target,)),
        ("sensitive column", sensitive),
        ("categorical column", categorical),
        ("column to drop", drop),
        ("column to keep", keep),
    ):
        for column in columns:
            if column not in frame.columns:
                raise unknown(role, column, frame.columns)
    if target in sensitive:
        raise ConfigurationError(
            f"`target` and `sensitive` must be different columns, found `{target}` for both"
        )
    if not 0 <= seed < 2**32:
        raise ConfigurationError(f"the seed of a split must be 0 to 2**32 - 1, found {seed}")
    if len(frame) < MIN_ROWS:
        raise DataError(
            f"a table needs at least {MIN_ROWS} rows to be split 70/10/20, found {len(frame)}"
        )
    if len(frame) < FEW_ROWS:
        warnings.warn(
            f"a table of {len(frame)} rows leaves only a few for validation and test, so the front "
            f"is mostly noise: use at least {FEW_ROWS} rows",
            DataWarning,
            stacklevel=3,
        )
    for role, column in (("target", target), *(("sensitive column", s) for s in sensitive)):
        missing = int(frame[column].isna().sum())
        if missing:
            raise DataError(
                f"the {role} `{column}` must be known in every row, found {missing:,} missing of "
                f"{len(frame):,}: leave those rows out of the data first"
            )


def labels_of(
    series: "pd.Series[Any]", positive: object
) -> tuple[str, str, npt.NDArray[np.float32]]:
    """The positive class, the other one or what stands for all others, and 0/1 labels."""
    codes, classes = labelled(series, own_order=True)
    if len(classes) < 2:
        raise DataError(
            f"the target `{series.name}` must have two classes, found only `{classes[0]}`: "
            "there is nothing to learn"
        )
    if positive is None:
        if len(classes) > 2:
            few = ", ".join(f"`{label}`" for label in classes[:4]) + ", ..." * (len(classes) > 4)
            raise DataError(
                f"the target `{series.name}` must have two classes, found {len(classes):,} values "
                f"({few}): name the positive class with `positive`, or say with `task` that it is "
                "several classes or a number"
            )
        positive = _second(series, classes)
    chosen = label_of(positive)
    if chosen not in classes:
        raise unknown(f"class of `{series.name}`", chosen, classes[:LISTED])
    others = [label for label in classes if label != chosen]
    other = others[0] if len(others) == 1 else f"not {chosen}"
    return chosen, other, (codes == classes.index(chosen)).astype(np.float32)


def known_targets(
    frame: "pd.DataFrame", target: str, classes: tuple[str, str], grouping: Grouping
) -> dict[str, npt.NDArray[Any]]:
    """What rows with known answers are compared with, by classes and groups that are known."""
    check_columns(frame, target, grouping)
    codes, labels = labelled(frame[target])
    positive, negative = classes
    strange = [label for label in labels if label not in classes]
    if negative == f"not {positive}":
        strange = []
    if strange or (codes < 0).any():
        found = f"`{strange[0]}`" if strange else f"{int((codes < 0).sum()):,} missing"
        raise DataError(
            f"the target `{target}` must be `{positive}` or `{negative}` in every row, found "
            f"{found}: "
            "leave such rows out"
        )
    chosen = np.array([label == positive for label in labels])[codes].astype(np.float32)
    return {"label": chosen, **group_targets(frame, grouping)}


def check_columns(frame: "pd.DataFrame", target: str, grouping: Grouping | None) -> None:
    """Refuse rows without the column of the answers or one of the groups."""
    people = () if grouping is None else grouping.attributes
    for role, columns in (
        ("target column", [target]),
        ("sensitive column", [one.name for one in people]),
    ):
        for column in columns:
            if column not in frame.columns:
                raise unknown(role, column, frame.columns)


def group_targets(frame: "pd.DataFrame", grouping: Grouping | None) -> dict[str, Codes]:
    """The group of every row, together and by each column alone; a group that is new is refused."""
    if grouping is None:
        return {}
    groups = grouping.codes(frame)
    lost = np.flatnonzero(groups < 0)
    if len(lost):
        cells = " & ".join(str(frame[one.name].iloc[lost[0]]) for one in grouping.attributes)
        raise DataError(
            f"every row must belong to a group of `{grouping.called}` from training, found "
            f"{len(lost):,} that do not, such as row {lost[0] + 1:,} with `{cells}`: leave such "
            "rows out"
        )
    alone = {f"sensitive_{one.name}": codes for one, codes in grouping.alone(frame)}
    return {"sensitive": groups, **alone}


def _second(series: "pd.Series[Any]", classes: list[str]) -> str:
    """The positive one of two classes that say so themselves, or by their order; else a refusal."""
    import pandas as pd

    ordered = isinstance(series.dtype, pd.CategoricalDtype) and series.cat.ordered
    by_name = {label.strip().lower(): label for label in classes}
    for negative, positive in PAIRS:
        if by_name.keys() == {negative, positive}:
            return by_name[positive]
    if ordered:
        return classes[1]
    raise ConfigurationError(
        f"the target `{series.name}` has the classes `{classes[0]}` and `{classes[1]}`, but it is "
        "not clear which one is positive: name it with `positive`"
    ).by({"positive": None})


def together(
    parts: "Mapping[str, pd.DataFrame | None]",
) -> "tuple[pd.DataFrame, dict[str, int]]":
    """The rows of all files one below the other, and how many of them each has."""
    frames = {key: named(part) for key, part in parts.items() if part is not None}
    import pandas as pd

    first = frames["train"]
    for key, frame in frames.items():
        absent = [f"`{name}`" for name in first.columns if name not in frame.columns]
        if absent:
            raise DataError(
                f"the rows of `{key}` must have the columns of the training rows, found none "
                f"called {', '.join(absent[:3])}: give the same columns"
            )
    sizes = {key: len(frame) for key, frame in frames.items()}
    if len(frames) == 1:
        return first, sizes
    every = [frame[list(first.columns)] for frame in frames.values()]
    return pd.concat(every, ignore_index=True), sizes


def split_rows(sizes: Mapping[str, int], seed: int) -> dict[str, Codes]:
    """The rows of each split, by position; those that were not given are drawn from train."""
    from sklearn.model_selection import train_test_split

    rest, start = np.arange(sizes["train"]), sizes["train"]
    found: dict[str, Codes] = {}
    for key in ("val", "test"):
        if key in sizes:
            found[key] = np.arange(start, start + sizes[key])
            start += sizes[key]
    if "test" not in found:
        rest, found["test"] = train_test_split(rest, test_size=TEST_SHARE, random_state=seed)
    if "val" not in found:
        rest, found["val"] = train_test_split(rest, test_size=VAL_SHARE, random_state=seed)
    return {"train": rest, "val": found["val"], "test": found["test"]}


def check_groups(
    rows: Mapping[str, Codes],
    label: npt.NDArray[np.float32],
    codes: Codes,
    groups: tuple[str, ...],
    fairness: GroupObjective,
) -> None:
    """Refuse a split in which a group has none of the rows that an objective compares."""
    for kind in fairness.over:
        chosen = {"all": label == label, "positives": label > 0, "negatives": label <= 0}[kind]
        for split, index in rows.items():
            found = np.bincount(codes[index][chosen[index]], minlength=len(groups))
            if not found.all():
                empty = ", ".join(f"`{groups[at]}`" for at in np.flatnonzero(found == 0)[:5])
                what = "rows" if kind == "all" else f"{kind.removesuffix('s')} rows"
                raise DataError(
                    f"`{fairness.name}` needs {what} in every group and split, found none of "
                    f"{empty} in `{split}` ({len(index):,} rows): pool small groups with "
                    '`small_groups="pool"`, add rows, or use another `split_seed`'
                ).by({"small_groups": "pool"})
