"""Two corpora that every machine with Python has: source code, and the prose that explains it.

Both come from the standard library's files: the code without docstrings and comments, and the
docstrings. A file belongs to one split, by a hash of its name, in both corpora.
"""

import ast
import hashlib
import sysconfig
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

NAMES = ("code", "prose")
SKIPPED = {"site-packages", "test", "tests", "idlelib", "lib2to3", "encodings", "pydoc_data"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
SPLITS = ("train", "val", "test")


def corpora() -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """Bytes by split and corpus, and what they are: sizes and hashes."""
    root = Path(sysconfig.get_paths()["stdlib"])
    texts: dict[str, dict[str, list[str]]] = {s: {name: [] for name in NAMES} for s in SPLITS}
    files = 0
    for path in sorted(root.rglob("*.py")):
        inner = path.relative_to(root)
        if SKIPPED & set(inner.parts):
            continue
        try:
            code, prose = _apart(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        share = hashlib.sha256(str(inner).encode()).digest()[0] / 256
        split = "test" if share < 0.1 else "val" if share < 0.15 else "train"
        texts[split]["code"].append(code)
        texts[split]["prose"].append(prose)
        files += 1
    joined = {s: {n: "\n\n".join(parts).encode() for n, parts in texts[s].items()} for s in SPLITS}
    about = {
        "source": f"Python {sysconfig.get_python_version()} standard library",
        "files": files,
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
