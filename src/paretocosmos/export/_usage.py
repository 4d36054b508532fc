"""How to call an exported file: code that runs as it is."""

from pprint import pformat
from typing import Any

from paretocosmos.export._deployed import Shared
from paretocosmos.export.metadata import KEY, Takes
from paretocosmos.runs.like import predicts_at
from paretocosmos.runs.run import Run

_ONNX = """\
session = ort.InferenceSession({name!r})
about = json.loads(session.get_modelmeta().custom_metadata_map[{key!r}])
"""

_PROGRAM = """\
import torch

files = {{{key!r}: ""}}
program = torch.export.load({name!r}, extra_files=files).module()
about = json.loads(files[{key!r}])
"""

_ENCODE = """
def number(column, value):
    if value is None or value != value:  # missing
        return np.nan
    categories = column["categories"]
    if categories is None:
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1, 1.0 and "1" are one category
    return categories.index(str(value)) if str(value) in categories else -1

rows = [
{row}
]
x = np.array(
    [[number(column, row[column["name"]]) for column in about["columns"]] for row in rows],
    dtype=np.float32,
)
"""

_NOISE = """
x = np.zeros({shape}, dtype=np.float32)  # what the network was trained on, prepared alike
"""

_RUN_ONNX = """\
outputs = session.run(None, {"x": x, "preference": preference})
"""

_RUN_PROGRAM = """\
with torch.inference_mode():
    outputs = program(torch.from_numpy(x), torch.from_numpy(preference))
"""


def usage(run: Run, shared: Shared, name: str, takes: Takes) -> str:
    """Python that loads the file beside it and calls it on one row.

    Args:
        run: what was exported.
        shared: likewise.
        name: the file's.
        takes: how many preferences it takes.
    """
    onnx = name.endswith(".onnx")
    lines = "import json\n\nimport numpy as np\n"
    lines += "import onnxruntime as ort\n\n" if onnx else ""
    lines += (_ONNX if onnx else _PROGRAM).format(name=name, key=KEY)
    if run.table is None:
        lines += _NOISE.format(shape=(1, *shared.row))
    else:
        row = pformat(_row(run), width=96, indent=1, sort_dicts=False)
        lines += _ENCODE.format(row="\n".join(f"    {line}" for line in f"{row},".splitlines()))
    asked = predicts_at(run).ray or [1 / shared.objectives] * shared.objectives
    ray = [[round(part, 4) for part in asked]]
    lines += f"preference = np.array({ray}, dtype=np.float32)  # {_order(takes)}\n"
    lines += _RUN_ONNX if onnx else _RUN_PROGRAM
    return lines + 'print(dict(zip(about["outputs"], outputs)))\n'


def _order(takes: Takes) -> str:
    """What the rows of a preference are."""
    each = "one for each row"
    return {"any": f"one for all rows, or {each}", "each": each, "one": "one for all rows"}[takes]


def _row(run: Run) -> dict[str, Any]:
    """A row such as there may be: the medians and the first categories."""
    table = run.table
    assert table is not None
    return {**table.numeric, **{name: every[0] for name, every in table.categorical.items()}}
