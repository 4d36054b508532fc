"""Texts that every machine with Python and torch has: source code, and the prose that explains it.

To train a base: the standard library's code without docstrings and comments, and its docstrings. To
adapt it: torch's C++ headers, and the topics of Python's manual. A file belongs to one split.
"""

import ast
import hashlib
import sysconfig
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import torch
from torch import Tensor

NAMES = ("code", "prose")
SKIPPED = {"site-packages", "test", "tests", "idlelib", "lib2to3", "encodings", "pydoc_data"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
HEADERS = ("c10", "torch/csrc/api")
SPLITS = ("train", "val", "test")


def corpora() -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """What the base reads: the standard library's code and docstrings."""
    root = Path(sysconfig.get_paths()["stdlib"])
    texts: dict[str, dict[str, str]] = {name: {} for name in NAMES}
    for path in sorted(root.rglob("*.py")):
        inner = path.relative_to(root)
        if SKIPPED & set(inner.parts):
            continue
        try:
            code, prose = _apart(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        texts["code"][str(inner)], texts["prose"][str(inner)] = code, prose
    return _split(texts, f"Python {sysconfig.get_python_version()} standard library")


def foreign() -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """What it is adapted to and has never read: torch's C++ headers, and Python's manual."""
    root = Path(torch.__file__).parent / "include"
    found = [path for part in HEADERS for path in sorted((root / part).rglob("*.h"))]
    code = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in found}
    texts = {"code": code, "prose": dict(sorted(topics.items()))}
    return _split(texts, f"headers of torch {torch.__version__}, topics of Python's manual")


def _split(
    texts: dict[str, dict[str, str]], source: str
) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """Bytes by split and corpus, and what they are: sizes and hashes.

    Which split a text belongs to is the first byte of a hash of its name.
    """
    parts: dict[str, dict[str, list[str]]] = {s: {name: [] for name in NAMES} for s in SPLITS}
    for name, every in texts.items():
        for inner, text in every.items():
            share = hashlib.sha256(inner.encode()).digest()[0] / 256
            split = "test" if share < 0.1 else "val" if share < 0.15 else "train"
            parts[split][name].append(text)
    joined = {s: {n: "\n\n".join(own).encode() for n, own in parts[s].items()} for s in SPLITS}
    about = {
        "source": source,
        "texts": {name: len(every) for name, every in texts.items()},
        "bytes": {s: {name: len(text) for name, text in joined[s].items()} for s in SPLITS},
        "sha256": {
            s: {name: hashlib.sha256(text).hexdigest() for name, text in joined[s].items()}
            for s in SPLITS
        },
    }
    data = {
        s: {
            name: torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
            for name, text in at.items()
        }
        for s, at in joined.items()
    }
    return data, about


def _apart(text: str) -> tuple[str, str]:
    """A file's code and its docstrings."""
    tree, docs = ast.parse(text), []
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED):
            doc = ast.get_docstring(node)
            if doc:
                docs.append(doc)
                node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree), "\n\n".join(docs)


def windows(text: Tensor, count: int, length: int, generator: torch.Generator) -> Tensor:
    """Windows ``[count, length]`` of a text, at places drawn."""
    starts = torch.randint(len(text) - length, (count, 1), generator=generator)
    return text[starts + torch.arange(length)]


def even_windows(text: Tensor, count: int, length: int) -> Tensor:
    """Windows ``[count, length]`` evenly over a text, the same every time."""
    starts = torch.linspace(0, len(text) - length - 1, count).long().unsqueeze(1)
    return text[starts + torch.arange(length)]
