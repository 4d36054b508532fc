"""Predictions for data frames by one exported file: on Ray, on Spark, or anywhere."""

import json
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.export.formats import require_onnx
from paretocosmos.export.network import KEY
from paretocosmos.io.files import user_path
from paretocosmos.pareto.front import Array
from paretocosmos.pareto.rays import Rays, as_rays
from paretocosmos.problems.tables import Table

if TYPE_CHECKING:
    import pandas as pd


class FramePredictor:
    """Adds the predictions of an exported file to data frames.

    It holds the content of the file, so that it can be pickled and sent to machines that have
    this package and onnxruntime, but not the file: as a map function of ``ray.data``, and with
    `map_frames` as one of Spark's ``mapInPandas``.

    Args:
        file: an ONNX file that `export` wrote for a table.
        preference: one entry per objective, or weights by name; by default that of the estimator
            that was exported.
        threads: of onnxruntime; a cluster has a process per core.
    """

    def __init__(
        self, file: str | PathLike[str], preference: Rays | None = None, *, threads: int = 1
    ) -> None:
        self._content, self._threads = user_path(fspath(file)).read_bytes(), threads
        self._session: Any = None
        metadata = self._get_session().get_modelmeta().custom_metadata_map
        about = json.loads(metadata.get(KEY, "{}"))
        if "columns" not in about:
            raise ConfigurationError(
                f"`file` must be an ONNX file that `export` wrote for a table, found `{file}`: "
                "export a run on a table"
            )
        if preference is not None and "reached" in about:
            raise ConfigurationError(
                f"`preference` cannot be given for `{fspath(file)}`, which is frozen at "
                f"{about['predicts_at']}: leave it out"
            )
        preference = about.get("predicts_at") if preference is None else preference
        if preference is None:
            raise ConfigurationError(
                "`preference` must be given, since the file has none of its own: "
                f"try {[1 / len(about['objectives'])] * len(about['objectives'])}"
            )
        ray = as_rays(preference, len(about["objectives"]), names=about["objectives"])
        self._preference = ray.numpy().astype(np.float32)
        self._classes, self._threshold = about["classes"], about.get("threshold", MIDDLE)
        categories = {column["name"]: column["categories"] for column in about["columns"]}
        numbers = [name for name, labels in categories.items() if labels is None]
        # the file standardises: here the columns need only be read
        self._table = Table(
            numeric=dict.fromkeys(numbers, 0.0),
            flagged=(),
            categorical={name: labels for name, labels in categories.items() if labels is not None},
            mean=(),
            scale=(float("inf"),) * len(numbers),
        )

    def __call__(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """Return the rows with their predictions, in the columns that `predict` writes."""
        inputs = {"x": self._table.encode(frame), "preference": self._preference}
        session = self._get_session()
        # a frozen file takes no preference
        taken = {node.name: inputs[node.name] for node in session.get_inputs()}
        outputs = session.run(None, taken)[0].astype(np.float64)
        return add_predictions(frame, outputs, self._classes, self._threshold)

    def map_frames(self, frames: "Iterable[pd.DataFrame]") -> "Iterator[pd.DataFrame]":
        """Yield each frame with its predictions."""
        return map(self, frames)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_session": None}

    def _get_session(self) -> Any:
        """Return the session, which is built again after pickling."""
        if self._session is None:
            require_onnx()
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads, options.log_severity_level = self._threads, 3
            self._session = onnxruntime.InferenceSession(
                self._content, options, providers=["CPUExecutionProvider"]
            )
        return self._session


def add_predictions(
    frame: "pd.DataFrame", outputs: Array, classes: Sequence[str], threshold: float
) -> "pd.DataFrame":
    """Return rows with a column `prediction`, and the probabilities of classes.

    Args:
        frame: the rows.
        outputs: as `Run.predict` returns them.
        classes: the names of the classes; empty if a number is predicted.
        threshold: the probability above which the second of two classes is predicted.
    """
    names, added = np.array(classes, object), dict[str, Any]()
    if not classes:
        added["prediction"] = outputs
    elif outputs.ndim > 1:
        added |= {f"probability_{n}": p for n, p in zip(classes, outputs.T, strict=True)}
        added["prediction"] = names[outputs.argmax(axis=1)]
    else:
        chosen = (outputs > threshold).astype(np.int64)
        added |= {"probability": outputs, "prediction": names[chosen]}
    # the caller's own columns are never overwritten
    duplicates = [name for name in added if name in frame.columns]
    if duplicates:
        raise DataError(f"the table already has a column `{duplicates[0]}`: rename it")
    return frame.assign(**added)
