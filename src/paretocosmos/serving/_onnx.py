"""An exported file that answers instead of PyTorch."""

import json
from pathlib import Path
from typing import Any, final

import numpy as np

from paretocosmos.errors import MissingExtraError, RunError
from paretocosmos.export.network import KEY
from paretocosmos.io.files import one_line
from paretocosmos.problems.tables.answers import DECISION
from paretocosmos.runs.run import Run
from paretocosmos.serving._network import Answers, Network, Rays, TorchNetwork, rows_of_a_pass
from paretocosmos.serving._rows import Numbers, Rows

__all__ = ["OnnxNetwork"]

# The largest difference to PyTorch that rounding explains; `export` allows a tenth of it.
LIMIT = 1e-4
TRIED = 8
# Bytes of a file at most, which its format cannot pass, and its first: the number of its format.
LARGEST, FIRST = 2**31 - 1, b"\x08"


def _opened(path: Path, threads: int) -> Any:
    """A session of onnxruntime, unless the file cannot be an export."""
    if not path.is_file() or path.stat().st_size > LARGEST:  # a device has no end
        raise ValueError("not a regular file, or too large")
    with path.open("rb") as stream:
        if stream.read(1) != FIRST:
            raise ValueError("something else")
    try:
        import onnxruntime  # only now: it leaves files of its own
    except ModuleNotFoundError as error:
        raise MissingExtraError("onnxruntime", "onnx", "serving an ONNX file") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@final
class OnnxNetwork(Network):
    """A file that `export` wrote for a run, run by onnxruntime on the CPU.

    It is compared with the run's own network when it is loaded, so that the answers are the same.

    Args:
        path: the file.
        run: what it was exported from.
        rows: how its rows become inputs.
        threads: of a pass.
    """

    def __init__(self, path: Path, run: Run, rows: Rows, *, threads: int) -> None:
        try:
            self._session = _opened(path, threads)
            said = self._session.get_modelmeta().custom_metadata_map
            about = json.loads(said.get(KEY, "{}"))
            named = [column["name"] for column in about.get("columns", ())]
            inputs = {given.name: given for given in self._session.get_inputs()}
            one_for_all = inputs["preference"].shape[0] == 1
        except MissingExtraError:
            raise
        except Exception as error:  # a runtime's errors have no family
            raise RunError(
                f"`{path}` is not a file that `paretocosmos export` wrote "
                f"({one_line(error)[:200]}): export the run again"
            ) from error
        self._table, self._rows = run.table is not None, rows
        heads = [given.name for given in self._session.get_outputs()]
        # a request has a threshold of its own
        self._heads = [head for head in heads if head != DECISION or not self._table]
        self.mixes, self.limit = not one_for_all, rows_of_a_pass(run)
        columns = None if run.table is None else list(run.table.columns)
        if about.get("objectives") != list(run.front.names) or columns != (named or None):
            raise RunError(
                f"`{path}` was exported from another run than `{run.folder}` (its objectives or "
                "columns differ): export this one"
            )
        self._compare(path, TorchNetwork(run, rows), run)

    def call(self, rows: Numbers, rays: Rays) -> Answers:
        # the preprocessing of a table is inside the file
        with np.errstate(over="ignore"):
            x = rows.astype(np.float32) if self._table else self._rows.features(rows)
        outputs = self._session.run(self._heads, {"x": x, "preference": rays})
        if self._heads == ["logits"]:
            return {"outputs": outputs[0]}
        return dict(zip(self._heads, outputs, strict=True))

    def _compare(self, path: Path, own: TorchNetwork, run: Run) -> None:
        generator = np.random.default_rng(0)
        if run.table is None:
            rows = generator.standard_normal((TRIED, *run.record["input_shape"]))
        else:
            scale, fills = np.array(run.table.scale), np.array(list(run.table.numeric.values()))
            numbers = fills + scale[: len(fills)] * generator.standard_normal((TRIED, len(fills)))
            codes = [generator.integers(-1, len(c), TRIED) for c in run.table.categorical.values()]
            rows = np.column_stack([numbers, *codes])
        rays = generator.dirichlet(np.ones(run.front.objectives), TRIED).astype(np.float32)
        mine, its = own.answer(rows, rays), self.answer(rows, rays)
        worst = max(
            (float(np.abs(out - its[head]).max() / max(1, np.abs(out).max())) if head in its else 1)
            for head, out in mine.items()
        )
        if not worst <= LIMIT:
            raise RunError(
                f"`{path}` differs from the run in `{run.folder}` by up to {worst:.2g}: "
                "export this run again"
            )
