"""docs/guarantees.md: what the library guarantees, with the counts of `make faults`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pages.common import RESULTS

__all__ = ["write_guarantees"]

COUNTED = RESULTS / "faults.json"

HEAD = """# Guarantees

What happens when a process is killed, a disk is full, a file is damaged, a folder comes from a stranger, a command is mistyped or a client is hostile. The tests check every guarantee, and `make faults` tries to break it hundreds or thousands of times; the counts, of version 0.2 except for requests, are in `results/faults.json`."""

# What `results/faults.json` calls it, and what the page does.
WORDS = {
    "an answer, where nothing tells that it is another": "a result, from a changed file without a hash that is still valid",
    "exit code 2, a sentence, nothing left behind": "exit code 2, one sentence, no files left behind",
    "one sentence": "an error of one sentence",
    "the same bits": "the same result, bit for bit",
    "seconds of the longest": "seconds per trial",
    "megabytes of a process": "megabytes per process",
    "seconds of a request": "seconds per request",
    "write points by name": "named write points",
    "of them struck": "of them hit by a kill",
}

PARTS: dict[str, tuple[str, str]] = {
    "kills": (
        "A kill",
        "Kill a training at any moment, even with `kill -9`, and start it again with `--resume`: the result is the same, bit for bit, as without the kill. Files are written under a temporary name and renamed, so a file is never half written. Two checkpoints are kept, and a second process cannot train in the same folder.",
    ),
    "files": (
        "A damaged file",
        "Run folders hold the SHA-256 of their files, and checkpoints that of their content. A changed file is refused with one sentence. If a checkpoint is damaged, a warning says so and the intact one beside it is used. Checkpoints and `run.json` also hold a hash of the settings and the data, so a run is not continued with other rows or from a checkpoint of another run; of samples that are read during training, eight of each split are compared. No result is silently wrong, except where a change leaves a valid file without a hash, such as a recipe with another number.",
    ),
    "commands": (
        "A bad command line",
        "Whatever you mistype, and whatever file you name by mistake, you get one sentence on stderr and exit code 2: no traceback, at most 1 GB of memory and 60 seconds of computing, and no files left behind. Names that are nearly right get a suggestion. Control characters are escaped before they are printed.",
    ),
    "requests": (
        "A hostile request",
        "`paretocosmos serve` answers an invalid request with a 4xx status and one sentence, and an unusual but valid one correctly. The only 5xx status is 503, when the server is overloaded. Its memory stays below 1 GB, and other clients still get the same answers, bit for bit. SIGTERM and Ctrl-C end it with exit code 0 after the current requests are finished.",
    ),
}

DISK = """## A full disk

Files saved before stay intact, and one sentence says what could not be written. Make room and continue with `--resume`."""

STRANGER = """## A stranger's folder

Opening a file runs no code. A run folder, a recipe or a front can name only what this package contains; nothing else is imported. You allow your own code with `--trust my_package` or `load_run(..., trust=["my_package"])`; a file cannot. No pickle is loaded. Sizes are checked before memory is allocated:

| what | at most |
|---|---|
| a JSON file | 32 MB, nested 32 deep |
| epochs, rays | 1,000,000 |
| weights between hidden layers | 268 million |
| MNIST's files, packed and unpacked | 256 MB |
| a request to the server | 4 MB and 10,000 rows by default |"""

END = """## What is not guaranteed

Hashes detect damage, not who did it. [SECURITY.md](../SECURITY.md) says what else is not guaranteed, and how to report a failure."""


def write_guarantees(counted: Path = COUNTED) -> str:
    """Return the page; parts that were not run have no counts."""
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


def _section(name: str, counted: Mapping[str, Any] | None) -> str:
    title, text = PARTS[name]
    return f"## {title}\n\n{text}" + ("" if counted is None else f"\n\n{_counts(counted)}")


def _counts(counted: Mapping[str, Any]) -> str:
    broken = len(counted["broken"])
    failures = "no failure" if broken == 0 else f"{broken} failures"
    answers = "; ".join(f"{_answer(name)} {count:,}" for name, count in counted["answered"].items())
    most = ", ".join(
        f"{value:,.4g} {WORDS.get(name, name)}" for name, value in counted["measured"].items()
    )
    tried = (
        f"{sum(counted['done'].values()):,} trials, {failures}. {answers[0].upper()}{answers[1:]}."
    )
    return tried + (f" At most {most}." if most else "")


def _answer(name: str) -> str:
    return f"HTTP {name}" if name[:3].isdecimal() else WORDS.get(name, name)
