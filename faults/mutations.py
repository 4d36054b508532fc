"""Ways to damage a file: bytes of any, fields of JSON and TOML, headers of safetensors."""

import json
import pickle
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["BYTES", "JSON", "SAFETENSORS", "TEXT", "Mutate"]

Mutate = Callable[[bytes, random.Random], bytes]
HOLE = "@@HOLE@@"

# Written where a value was, as it is.
RAW = (
    *("null", "true", "false", "0", "-1", "1.5", "1e308", "-1e308", "1e999", "9" * 99, "9" * 5000),
    *("NaN", "Infinity", "-Infinity", '""', '"x"', '"1"', '"\\ud800"', '"\\u0000"', '"é漢🙂"'),
    *("[]", "{}", "[[]]", '[null, "x", {}]', '{"name": 1}', "[" * 40 + "]" * 40, "[1, [2, [3]]]"),
    *("[" * 100_000 + "]" * 100_000, '{"a":' * 3000 + "1" + "}" * 3000, '"' + "y" * 100_000 + '"'),
    *(
        '"os:abort"',
        '"builtins:input"',
        '"../../etc/passwd"',
        "1000000000000",
        "[10000000]",
        "[67108864]",
        "200000000",
    ),
    *("[" + "0," * 20_000 + "0]", "123456789012345678901234567890", "1e-320", "2147483648"),
)


def _flip(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 8))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _block(content: bytes, draw: random.Random) -> slice:
    start = draw.randrange(len(content))
    return slice(start, start + draw.choice((1, 8, 64, 512, 4096)))


def _zeroed(content: bytes, draw: random.Random) -> bytes:
    changed, where = bytearray(content), _block(content, draw)
    changed[where] = bytes(len(changed[where]))
    return bytes(changed)


def _swapped(content: bytes, draw: random.Random) -> bytes:
    size = draw.choice((1, 8, 64, 512))
    one, two = (draw.randrange(max(1, len(content) - size)) for _ in range(2))
    changed = bytearray(content)
    changed[one : one + size], changed[two : two + size] = (
        content[two : two + size],
        content[one : one + size],
    )
    return bytes(changed[: len(content)])


def _dropped(content: bytes, draw: random.Random) -> bytes:
    where = _block(content, draw)
    return content[: where.start] + content[where.stop :]


def _repeated(content: bytes, draw: random.Random) -> bytes:
    where = _block(content, draw)
    return content[: where.stop] + content[where] + content[where.stop :]


BYTES: dict[str, Mutate] = {
    "bits flipped": _flip,
    "cut": lambda content, draw: content[: draw.randrange(len(content))],
    "longer": lambda content, draw: content + draw.randbytes(draw.choice((1, 9, 5000))),
    "a block of zeros": _zeroed,
    "blocks swapped": _swapped,
    "a block lost": _dropped,
    "a block twice": _repeated,
    "empty": lambda _, __: b"",
    "noise": lambda _, draw: draw.randbytes(draw.choice((1, 40, 5000))),
    "a pickle": lambda _, draw: pickle.dumps([json.dumps, 1], protocol=draw.randrange(5)),
    "ends of lines of another system": lambda content, _: content.replace(b"\n", b"\r\n"),
    "a mark of byte order": lambda content, _: b"\xef\xbb\xbf" + content,
}


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every field: what holds it, and under which key."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _place(content: bytes, draw: random.Random) -> tuple[Any, Any, Any]:
    """A field, near the top rather than among hundreds of numbers."""
    value = json.loads(content)
    holder, key = value, None
    while True:
        holder, key = draw.choice([(holder, k) for _, k in _level(holder)])
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or draw.random() < 0.3:
            return value, holder, key
        holder = inner


def _level(holder: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    return ((holder, key) for key in keys)


def _filled(value: Any, raw: str) -> bytes:
    return json.dumps(value).replace(f'"{HOLE}"', raw).encode("utf-8", "surrogatepass")


def _wrong_value(content: bytes, draw: random.Random) -> bytes:
    value, holder, key = _place(content, draw)
    holder[key] = HOLE
    return _filled(value, draw.choice(RAW))


def _without(content: bytes, draw: random.Random) -> bytes:
    value, holder, key = _place(content, draw)
    del holder[key]
    return json.dumps(value).encode()


def _another(content: bytes, draw: random.Random) -> bytes:
    """A field holds what another one does."""
    value, holder, key = _place(content, draw)
    every = list(_places(value))
    other, its = draw.choice(every)
    copied = json.loads(json.dumps(other[its]))
    holder[key] = copied
    return json.dumps(value).encode()


def _twice(content: bytes, draw: random.Random) -> bytes:
    """A key stands twice, the second time perhaps with something else."""
    value = json.loads(content)
    key = draw.choice(list(value))
    before = json.dumps(value[key])
    value[key] = HOLE
    first, second = draw.sample((before, before, *RAW), 2)
    return _filled(value, f"{first}, {json.dumps(key)}: {second}")


def _longer(content: bytes, draw: random.Random) -> bytes:
    value, holder, key = _place(content, draw)
    inner = holder[key]
    if isinstance(inner, list):
        inner.extend(inner[:1] * draw.choice((1, 100, 20_000)))
    elif isinstance(inner, dict):
        inner[draw.choice(("more", "", "__class__", "name", "é"))] = draw.choice((1, None, "x", []))
    elif isinstance(inner, str):
        holder[key] = inner * draw.choice((2, 1000)) + draw.choice(("", "\n", "\x1b[2J", "\x00"))
    else:
        holder[key] = draw.choice((-1, 10**9, 10**18, 1e300, -1e-300))
    return json.dumps(value).encode()


JSON: dict[str, Mutate] = {
    "a wrong value": _wrong_value,
    "a wrong value, too": _wrong_value,
    "a field missing": _without,
    "a field with another's value": _another,
    "a field larger": _longer,
    "a key twice": _twice,
    "laid out otherwise": lambda content, _: json.dumps(json.loads(content), indent=3).encode(),
    "no object": lambda _, draw: draw.choice(RAW).encode("utf-8", "surrogatepass"),
}


def _words(content: bytes, draw: random.Random) -> bytes:
    """A word of a text gives way to another value."""
    words = content.decode().split(" ")
    words[draw.randrange(len(words))] = draw.choice((*RAW, "'x'", "=", "[[", "]", "{", "#", '"""'))
    return " ".join(words).encode("utf-8", "surrogatepass")


def _lines(content: bytes, draw: random.Random) -> bytes:
    lines = content.split(b"\n")
    one, two = draw.randrange(len(lines)), draw.randrange(len(lines))
    how = draw.randrange(3)
    if how == 0:
        del lines[one]
    elif how == 1:
        lines.insert(one, lines[two])
    else:
        lines[one], lines[two] = lines[two], lines[one]
    return b"\n".join(lines)


TEXT: dict[str, Mutate] = {"a word replaced": _words, "lines moved": _lines}


def _header(content: bytes, draw: random.Random) -> bytes:
    """The JSON header of a safetensors file says something else of what follows."""
    size = int.from_bytes(content[:8], "little")
    header, rest = json.loads(content[8 : 8 + size]), content[8 + size :]
    name = draw.choice([key for key in header if key != "__metadata__"])
    own = header[name]
    how = draw.randrange(9)
    if how == 0:
        own["dtype"] = draw.choice(("F64", "I64", "U8", "BOOL", "F16", "BF16", "X9", None, 3))
    elif how == 1:
        own["shape"] = draw.choice(([], [0], [-1], [10**18], [2**40, 2**40], "x", [1.5], None))
    elif how == 2:
        own["data_offsets"] = draw.choice(([0, 0], [0, 10**15], [8, 4], [-1, 4], [], "x", None))
    elif how == 3:
        own["data_offsets"] = header[draw.choice([k for k in header if k != "__metadata__"])][
            "data_offsets"
        ]
    elif how == 4:
        header[draw.choice(("other", "", "é", name + ".x"))] = header.pop(name)
    elif how == 5:
        del header[name]
    elif how == 6:
        header["__metadata__"] = draw.choice(
            ({}, None, 1, {"paretocosmos": "["}, {"x": "y" * 9999})
        )
    elif how == 7:
        header["more"] = {"dtype": "F32", "shape": [1], "data_offsets": [len(rest), len(rest) + 4]}
        rest += bytes(4)
    else:
        text = _wrong_value(json.dumps(header).encode(), draw)
        return struct.pack("<Q", len(text)) + text + rest
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + rest


def _length(content: bytes, draw: random.Random) -> bytes:
    sizes = (0, 1, 2**20, 10**8 + 1, 2**31, 2**40, 2**63, 2**64 - 1)
    return struct.pack("<Q", draw.choice(sizes)) + content[8:]


SAFETENSORS: dict[str, Mutate] = {"another header": _header, "another length": _length}
