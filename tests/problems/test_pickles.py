"""The field's pickles: read in every protocol, and never run."""

import io
import os
import pickle
import pickletools
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from paretocosmos.errors import DataError
from paretocosmos.problems.images.pickles import read_pickle

DRAW = np.random.default_rng(0)
TRAIN = DRAW.integers(0, 256, (40, 36, 36), dtype=np.uint8)
TEST = DRAW.integers(0, 256, (9, 36, 36), dtype=np.uint8)
LABELS = DRAW.integers(0, 10, (40, 2))
OTHERS = DRAW.integers(0, 10, (9, 2))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "multi_mnist.pickle"


def check(path: Path) -> None:
    made = read_pickle(path)
    train, val, label, label_val = train_test_split(TRAIN, LABELS, test_size=0.1, random_state=42)
    assert made.counts == (36, 4, 9)
    assert made.images.dtype == made.labels.dtype == np.uint8
    np.testing.assert_array_equal(made.images, np.concatenate([train, val, TEST]))
    np.testing.assert_array_equal(made.labels, np.concatenate([label, label_val, OTHERS]))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol(path: Path, protocol: int) -> None:
    path.write_bytes(pickle.dumps((TRAIN, LABELS, TEST, OTHERS), protocol))
    check(path)


@pytest.mark.parametrize("scale", [1.0, 1 / 255])
@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f8"])
def test_floats(path: Path, scale: float, kind: str) -> None:
    content = [(part * scale).astype(kind) for part in (TRAIN, TEST)]
    labels = [part.astype(kind) for part in (LABELS, OTHERS)]
    path.write_bytes(pickle.dumps((content[0], labels[0], content[1], labels[1])))
    check(path)


def test_other_integers_and_fortran_order(path: Path) -> None:
    train = np.asfortranarray(TRAIN.astype(np.int16))
    parts = [train, LABELS.astype(np.uint8), TEST.astype(">i8"), OTHERS.astype(np.int32)]
    path.write_bytes(pickle.dumps(parts))
    check(path)


def test_python_2(path: Path) -> None:
    """Python 2 wrote bytes as strings; no `_codecs.encode` and the old names of NumPy."""
    out = io.BytesIO()

    def text(value: bytes) -> bytes:
        return b"T" + len(value).to_bytes(4, "little") + value

    def array(value: np.ndarray) -> bytes:
        shape = b"(" + b"".join(b"J" + n.to_bytes(4, "little") for n in value.shape) + b"t"
        kind = b"cnumpy\ndtype\n(" + text(value.dtype.str[1:].encode()) + b"K\0K\1tR"
        order = text(value.dtype.str[:1].encode())
        kind += b"(K\3" + order + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
        made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0t" + text(b"b") + b"tR"
        return made + b"(K\1" + shape + kind + b"\x89" + text(value.tobytes()) + b"tb"

    out.write(
        b"\x80\2(" + b"".join([array(part) for part in (TRAIN, LABELS, TEST, OTHERS)]) + b"t."
    )
    pickletools.dis(out.getvalue(), out=io.StringIO())  # a sound pickle
    assert len(pickle.loads(out.getvalue(), encoding="latin1")) == 4  # NumPy agrees
    path.write_bytes(out.getvalue())
    check(path)


class Bomb:
    def __init__(self, call: Any, *arguments: object) -> None:
        self.call = call, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_run(path: Path, protocol: int) -> None:
    marker = path.with_name("marker")
    bombs = [
        (Bomb(os.system, f"touch {marker}"), "`posix.system`|`nt.system`"),
        (Bomb(eval, f"open({str(marker)!r}, 'w')"), r"`(builtins|__builtin__)\.eval`"),
        (Bomb(np.save, str(marker), LABELS), "`numpy.save`"),
        (Bomb(getattr, np, "load"), r"found `(builtins|__builtin__)\.getattr`"),
    ]
    for bomb, name in bombs:
        for content in (bomb, (TRAIN, LABELS, TEST, bomb)):
            try:
                path.write_bytes(pickle.dumps(content, protocol))
            except TypeError:  # a module cannot be written: `getattr` on it neither
                continue
            with pytest.raises(DataError, match=f"refused: .*NumPy.*({name})"):
                read_pickle(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"cos\nsystem\n(S'true'\ntR.", r"`os\.system`.*not run"),
        (b"cnumpy\ndtype\n(S'O'\ntR.", "found the type 'O'"),
        (b"c_codecs\nencode\n(VaQ\nVzlib\ntR.", "latin1, found 'zlib'"),
        (b"", "cannot be read"),
        (b"hello", "cannot be read"),
        (b"cnumpy\nndarray\n(tR(K\1K\1K\1K\1K\1tb.", "found something else"),
        (pickle.dumps((TRAIN, LABELS, TEST, OTHERS))[:-300], "cannot be read"),
        (pickle.dumps((TRAIN, LABELS)), "trainX, .*, found 2 things"),
        (pickle.dumps((TRAIN, LABELS, TEST, [1])), "the four arrays"),
        (pickle.dumps({"trainX": TRAIN}), "four arrays .* found dict"),
        (pickle.dumps((1, 2, 3, np.array(["a"]))), "numbers, found the type 'U1'"),
    ],
)
def test_refused_files(content: bytes, sentence: str, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(DataError, match=sentence) as refused:
        read_pickle(path)
    assert str(path) in str(refused.value)
    assert "take the original file" in str(refused.value)


@pytest.mark.parametrize(
    ("at", "array", "sentence"),
    [
        (0, TRAIN[:, :28], "`trainX` of n x 36 x 36, found 40 x 28 x 36"),
        (0, TRAIN[:0], "`trainX` of n x 36 x 36, found 0 x 36 x 36"),
        (2, TEST[0], "`testX` of n x 36 x 36, found 36 x 36"),
        (2, TEST * 2.0, "`testX` .* 0 to 510"),
        (0, TRAIN.astype(np.int16) - 1, "found -1 to 254"),
        (0, np.where(TRAIN > 250, np.nan, TRAIN), "found nan"),
        (1, LABELS[1:], "`trainLabel` of 40 x 2, .* 39 x 2"),
        (1, LABELS[:, 0], "found 40"),
        (3, OTHERS + 10, "`testLabel` .* 0 to 9, found"),
        (3, OTHERS - 10, "from 0 to 9"),
        (3, OTHERS / 2 + 0.25, "whole numbers"),
    ],
)
def test_refused_arrays(at: int, array: np.ndarray, sentence: str, path: Path) -> None:
    parts = [TRAIN, LABELS, TEST, OTHERS]
    parts[at] = array
    path.write_bytes(pickle.dumps(tuple(parts)))
    with pytest.raises(DataError, match=sentence):
        read_pickle(path)


def test_a_few_bytes_do_not_fill_the_memory(path: Path) -> None:
    """They put something in the 33 millionth place of a list that C would make as long."""
    path.write_bytes(b"\x80\x02Nr\xff\xff\xff\x01.")
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="holds the four arrays"):
            read_pickle(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
