"""`python scripts/run_notebooks.py`: run the notebooks of the docs, and keep their outputs.

Each runs in an empty folder, as a reader would run it; what it writes is gone afterwards.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
# Seconds that a cell may take on a slow machine.
TIMEOUT = 600


def executed(path: Path) -> Any:
    """A notebook after all its cells were run, without what differs from run to run by itself.

    Args:
        path: the notebook, which stays as it is.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        # the kernel starts elsewhere, so places must not be relative to here
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(one).absolute()) for one in sys.path)
        try:
            client = NotebookClient(
                notebook,
                timeout=TIMEOUT,
                resources={"metadata": {"path": folder}},
                record_timing=False,
            )
            client.execute()
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}  # whichever version ran it
    return notebook


def main() -> None:
    """Run every notebook in place."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(path), path)
        print(path.relative_to(FOLDER.parents[1]))


if __name__ == "__main__":
    main()
