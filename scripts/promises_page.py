"""docs/promises.md: what is promised, with the counts of `make faults`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["promises_page"]

COUNTED = Path(__file__).resolve().parents[1] / "results" / "faults.json"

HEAD = """# What is promised

What happens when something goes wrong: a process is killed, a disk is full, a file is damaged, a folder comes from a stranger, a command is mistyped, a client is hostile. Each promise is kept by tests, and tried hundreds or thousands of times by a program that does such things on purpose, `make faults`. The counts below are its own; written by `make docs` from `results/faults.json`."""

PARTS: dict[str, tuple[str, str]] = {
    "kills": (
        "A kill",
        "Kill a training at any moment, even with `kill -9`, and start it again with `--resume`: it ends with the same bits as one that was never stopped. Files are written to a temporary name and renamed, so there is always a whole one. Two checkpoints are kept. Several seeds that train together are saved in one step. Leftovers are removed when training goes on, and a second process cannot train in the same folder.",
    ),
    "files": (
        "A damaged file",
        "Run folders hold the SHA-256 of their files, and checkpoints that of their content. A file that was changed is refused with one sentence. A damaged checkpoint is passed over for the intact one beside it, and you are told. A wrong result is never given silently.",
    ),
    "commands": (
        "A bad command line",
        "Whatever you mistype, and whatever file you name by mistake, the answer is one sentence on stderr and exit code 2: no traceback, within 1 GB of memory and 60 seconds of computing, and nothing is left behind. Names that are nearly right get a suggestion. Letters that would steer your terminal are shown, not sent.",
    ),
    "requests": (
        "A hostile request",
        "`paretocosmos serve` answers what it cannot use with a 4xx and one sentence; what is odd but right gets its answer. It gives no 5xx, with one exception: a server with more to do than it can says 503, and that it is busy. Its memory stays below 1 GB, slow clients are dropped, and it goes on answering others with the same bits. SIGTERM and Ctrl-C end it with exit code 0 once what was begun is finished.",
    ),
}

DISK = """## A full disk

What was saved before stays intact, and you get one sentence that says what could not be written. Make room and continue with `--resume`."""

STRANGER = """## A stranger's folder

Opening is reading. A run folder, a recipe or a front names things of this package only; nothing else is imported. Code of your own is allowed by you, with `--trust my_package` or `load_run(..., trust=["my_package"])`, never by a file. No pickle is loaded. Sizes are checked before memory is spent:

| what | at most |
|---|---|
| a JSON file of ours | 32 MB, nested 32 deep |
| epochs, rays | 1,000,000 |
| a packed table, unpacked | 1 GB; a line 1 MB |
| MNIST's and CelebA's files, unpacked | 256 MB |
| a picture | 64 MB, 33 million pixels |
| a download | its known size; no redirect away from the web |
| a request to the server | 4 MB and 10,000 rows, unless you say otherwise |"""

END = """## What is not promised

Hashes tell damage, not who did it. [SECURITY.md](../SECURITY.md) says what else is not promised, and how to report what breaks a promise."""


def promises_page(counted: Path = COUNTED) -> str:
    """The page; parts that were not run have no counts."""
    parts = json.loads(counted.read_text())["parts"] if counted.exists() else {}
    sections = {name: _section(name, parts.get(name)) for name in PARTS}
    order = (
        sections["kills"],
        DISK,
        sections["files"],
        STRANGER,
        sections["commands"],
        sections["requests"],
    )
    return "\n\n".join([HEAD, *order, END]) + "\n"


def _section(name: str, told: Mapping[str, Any] | None) -> str:
    title, text = PARTS[name]
    return f"## {title}\n\n{text}" + ("" if told is None else f"\n\n{_counts(told)}")


def _counts(told: Mapping[str, Any]) -> str:
    broken = len(told["broken"])
    kept = "no promise was broken" if broken == 0 else f"promises broken: {broken}"
    rows = [
        f"Tried {sum(told['done'].values()):,} times: {kept}.",
        "",
        "| answer | times |",
        "|---|---:|",
        *(f"| {_answer(name)} | {count:,} |" for name, count in told["answered"].items()),
    ]
    most = ", ".join(f"{value:,.4g} {name}" for name, value in told["measured"].items())
    return "\n".join(rows) + (f"\n\nAt most {most}." if most else "")


def _answer(name: str) -> str:
    return f"HTTP {name}" if name[:3].isdecimal() else name
