"""A CSV file of yours."""

from pathlib import Path

from paretocosmos.errors import DataError
from paretocosmos.problems._base import Protocol
from paretocosmos.problems.tables.frames import CSV_ENDINGS, read_csv
from paretocosmos.problems.tables.tabular import TabularProblem

__all__ = ["table"]


def table(
    *,
    data: str,
    target: str,
    sensitive: str,
    positive: str | bool | int | float | None = None,
    fairness: str = "tpr_gap",
    categorical: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    split_seed: int = 1,
    protocol: Protocol = "clean",
) -> TabularProblem:
    """A CSV file: predict one column and treat the groups of another alike.

    Args:
        data: the file, ``.csv``, ``.csv.gz`` or ``.csv.xz``, with a header and commas.
        target: the column to predict.
        sensitive: the column whose groups are compared; it is not a feature.
        positive: the class that counts as positive; the second of two by default.
        fairness: what is compared between groups, ``"tpr_gap"`` or another name; see
            `TabularProblem.from_frame`.
        categorical: columns to read as categories although they hold numbers.
        drop: columns to leave out, such as row numbers and names.
        split_seed: decides which rows are train, val and test.
        protocol: ``"clean"`` fits the preprocessing on the train rows, ``"paper"`` on all.
    """
    path = Path(data).expanduser()
    if not path.name.lower().endswith(CSV_ENDINGS):
        raise DataError(f"a table is a file {', '.join(CSV_ENDINGS)}, found `{data}`")
    if not path.is_file():
        raise DataError(f"`{data}` does not exist or is no file; give the path of a CSV file")
    frame = read_csv(path, "a table is text in UTF-8 with a header and commas")
    if frame.shape[1] < 2:
        raise DataError(
            "a table has several columns separated by commas, found only "
            f"`{str(frame.columns[0])[:60]}` in "
            f"`{data}`: if it uses another separator, save it with commas"
        )
    return TabularProblem.from_frame(
        frame,
        target=target,
        sensitive=sensitive,
        positive=positive,
        fairness=fairness,
        categorical=categorical,
        drop=drop,
        name=path.name.partition(".")[0],
        seed=split_seed,
        protocol=protocol,
    )
