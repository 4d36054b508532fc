"""The field's ready-made pickles, read without running anything they name.

A pickle is a program. This reader knows the few words that describe a NumPy array, rebuilds arrays
by itself from their bytes, and refuses every other word, so that no file can reach a function.
"""

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import DataError
from paretocosmos.io.files import one_line
from paretocosmos.problems.images.composites import Composites, held_out
from paretocosmos.problems.images.idx import CLASSES, Bytes

__all__ = ["read_pickle"]

SIDE = 36
PARTS = ("trainX", "trainLabel", "testX", "testLabel")
CHUNK = 4096  # images turned into bytes at a time: the files hold up to 1.2 GB of floats
WAY_OUT = "take the original file, or remove it to have the images made from the idx files"


def read_pickle(path: Path) -> Composites:
    """The composites of a pickle ``(trainX, trainLabel, testX, testLabel)``.

    Images are ``[n, 36, 36]``, bytes, numbers from 0 to 255 or from 0 to 1; labels are ``[n, 2]``.
    """
    train, train_labels, test, test_labels = _arrays(path)
    images = [_images(path, name, part) for name, part in (("trainX", train), ("testX", test))]
    labels = [
        _labels(path, name, part, len(of))
        for name, part, of in (
            ("trainLabel", train_labels, train),
            ("testLabel", test_labels, test),
        )
    ]
    keep, held = held_out(len(train), 0.1)
    order = np.concatenate([keep, held])
    return Composites(
        np.concatenate([images[0][order], images[1]]),
        np.concatenate([labels[0][order], labels[1]]),
        (len(keep), len(held), len(test)),
    )


class _Type:
    """In place of a `numpy.dtype`: numbers only."""

    def __init__(self, code: object, *_: object) -> None:
        if isinstance(code, bytes):
            code = code.decode("latin1")
        if not isinstance(code, str) or not re.fullmatch(r"[<>|=]?[iuf][1248]", code):
            raise DataError(f"its arrays must hold numbers, found the type {code!r}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[object, ...]) -> None:
        if state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder("<" if state[1] == "<" else ">")


class _Array:
    """In place of a `numpy.ndarray`: takes what it would take."""

    value: npt.NDArray[np.generic]

    def __setstate__(self, state: tuple[object, ...]) -> None:
        shape, kind, transposed, raw = state[-4:]
        # Python 2 wrote bytes as text
        self.fill(
            raw.encode("latin1") if isinstance(raw, str) else raw, kind, shape, bool(transposed)
        )

    def fill(self, raw: object, kind: object, shape: object, transposed: bool) -> None:
        if not (
            isinstance(raw, bytes | bytearray)
            and isinstance(kind, _Type)
            and isinstance(shape, tuple)
        ):
            raise DataError("its arrays must be plain numbers, found something else")
        flat = np.frombuffer(raw, kind.dtype)
        self.value = flat.reshape(shape, order="F" if transposed else "C")


def _array(*_: object) -> _Array:
    return _Array()


def _from_buffer(raw: object, kind: object, shape: object, order: object) -> _Array:
    made = _Array()
    made.fill(raw, kind, shape, order == "F")
    return made


def _encode(text: str, encoding: str) -> bytes:
    # the real one would load any codec
    if encoding != "latin1":
        raise DataError(f"its bytes must be latin1, found {encoding!r}")
    return text.encode("latin1")


# How NumPy writes an array, before and after it renamed `core`, in every protocol.
_WORDS: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy", "dtype"): _Type,
    ("numpy", "ndarray"): _array,
    ("_codecs", "encode"): _encode,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _array for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
}


# The one written in Python: that in C takes a list as long as a file says, before reading on.
class _Reader(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Callable[..., object]:
        if (module, name) not in _WORDS:
            raise DataError(
                f"it may hold only NumPy arrays, found `{module}.{name}`, which was not run"
            )
        return _WORDS[module, name]


def _arrays(path: Path) -> list[npt.NDArray[np.generic]]:
    try:
        with path.open("rb") as stream:
            content = _Reader(stream, encoding="latin1").load()
    except DataError as error:
        raise DataError(f"`{path}` was refused: {error}; {WAY_OUT}") from None
    except Exception as error:  # a damaged pickle can raise anything
        raise DataError(
            f"`{path}` should be a pickle of four arrays, but cannot be read ({one_line(error)}): "
            f"{WAY_OUT}"
        ) from error
    parts = list(content) if isinstance(content, tuple | list) else []
    arrays = [part.value for part in parts if isinstance(part, _Array) and hasattr(part, "value")]
    if len(arrays) != len(PARTS) or len(parts) != len(PARTS):
        what = f"{len(parts)} things" if parts else type(content).__name__
        _refuse(path, f"holds the four arrays {', '.join(PARTS)}", what)
    return arrays


def _images(path: Path, name: str, array: npt.NDArray[np.generic]) -> Bytes:
    if array.ndim != 3 or array.shape[1:] != (SIDE, SIDE) or len(array) == 0:
        _refuse(path, f"holds `{name}` of n x {SIDE} x {SIDE}", _size(array))
    low, high = float(array.min()), float(array.max())
    if not (low >= 0 and high <= 255):  # a NaN fails too
        _refuse(path, f"holds `{name}` from 0 to 255, or from 0 to 1", f"{low:g} to {high:g}")
    if array.dtype == np.uint8:
        return array.astype(np.uint8, copy=False)
    scale = 255 if array.dtype.kind == "f" and high <= 1 else 1
    pixels = np.empty(array.shape, np.uint8)
    for start in range(0, len(array), CHUNK):
        part = array[start : start + CHUNK].astype(np.float64)
        pixels[start : start + CHUNK] = np.rint(part * scale)
    return pixels


def _labels(path: Path, name: str, array: npt.NDArray[np.generic], count: int) -> Bytes:
    if array.shape != (count, 2):
        _refuse(path, f"holds `{name}` of {count} x 2, as many as images", _size(array))
    labels = array.astype(np.int64)
    if bool((labels != array).any()) or not 0 <= labels.min() <= labels.max() < CLASSES:
        low, high = array.min(), array.max()
        _refuse(
            path, f"holds `{name}` of whole numbers from 0 to {CLASSES - 1}", f"{low} to {high}"
        )
    return labels.astype(np.uint8)


def _size(array: npt.NDArray[np.generic]) -> str:
    return " x ".join(str(length) for length in array.shape) or "a single number"


def _refuse(path: Path, rule: str, found: str) -> NoReturn:
    raise DataError(f"`{path}` {rule}, found {found}: {WAY_OUT}")
