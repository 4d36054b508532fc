"""Files for bad command lines: two small runs, and files and folders with every kind of damage."""

import gzip
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

__all__ = [
    "BAD_PATHS",
    "BAD_RECIPES",
    "BAD_RUNS",
    "BAD_TABLES",
    "create_files",
    "list_files",
    "train_runs",
]

PEOPLE = "people.csv"
ROWS = 60

BAD_TABLES: dict[str, bytes] = {
    "empty.csv": b"",
    "blank.csv": b"\n\n\n",
    "header.csv": b"skill,sex,rich\n",
    "one_row.csv": b"skill,sex,rich\n1,f,0\n",
    "ragged.csv": b"skill,sex,rich\n" + b"1,f,0,7,8\n2,m,1,7,8\n" * 20,
    "binary.csv": bytes(range(256)) * 4,
    "latin.csv": "größe,sex,rich\n1,weiß,0\n2,m,1\n".encode("latin-1") * 5,
    "utf16.csv": "skill,sex,rich\n1,f,0\n2,m,1\n".encode("utf-16"),
    "nul.csv": b"skill,sex,rich\n\0,\0,\0\n" * 20,
    "quote.csv": b'skill,sex,rich\n"1,f,0\n2,m,1\n',
    "constant.csv": b"skill,sex,rich\n" + b"1,f,0\n2,m,0\n" * 30,
    "one_group.csv": b"skill,sex,rich\n" + b"1,f,0\n2,f,1\n" * 30,
    "missing.csv": b"skill,sex,rich\n" + b"1,f,\n2,m,\n" * 30,
    "three.csv": b"skill,sex,rich\n" + b"1,f,a\n2,m,b\n3,m,c\n" * 30,
    "twice.csv": b"sex,sex,rich\n" + b"1,f,0\n2,m,1\n" * 30,
    "no_features.csv": b"sex,rich\n" + b"f,0\nm,1\n" * 30,
    "semicolons.csv": b"skill;sex;rich\n" + b"1;f;0\n2;m;1\n" * 30,
    "page.csv": b"<!DOCTYPE html><html><body>404</body></html>\n",
    "long_line.csv": b"skill,sex,rich\n" + b"1" * (5 << 20) + b",f,0\n",
    "no_gzip.csv.gz": b"skill,sex,rich\n1,f,0\n",
    "cut.csv.gz": gzip.compress(b"skill,sex,rich\n" + b"1,f,0\n2,m,1\n" * 500)[:40],
    "no_xz.csv.xz": b"\xfd7zXZ\x00garbage",
}
"""CSV files that `--target rich --sensitive sex` cannot be trained on."""

CELL = '[[experiment]]\nproblem = "toy_convex"\nmethod = "cosmos"\n'
HEAD = 'title = "A title"\nsource = "Table 1"\n'
BAD_RECIPES: dict[str, bytes] = {
    "empty.toml": b"",
    "broken.toml": b"title = ",
    "binary.toml": bytes(range(256)),
    "latin.toml": 'title = "größe"\n'.encode("latin-1"),
    "number.toml": b"title = 3\n",
    "list.toml": b"title = []\nexperiment = 1\n",
    "deep.toml": b"a = " + b"[" * 3000 + b"]" * 3000 + b"\n",
    "digits.toml": b"seeds = [" + b"9" * 6000 + b"]\n",
    "unknown.toml": (HEAD + "nonsense = true\n" + CELL).encode(),
    "json.toml": b'{"title": "A title"}',
    "twice.toml": b'title = "a"\ntitle = "b"\n',
    "date.toml": b"title = 1979-05-27T07:32:00Z\nseeds = [1979-05-27]\n",
    "inf.toml": b"title = inf\nseeds = [nan, -inf]\n",
    "keys.toml": b"".join(b"a" * 200 + b"%d = 1\n" % i for i in range(2000)),
}

BAD_PATHS = (
    *("missing", "missing/deeper", "a_file", "a_file/below", "pipe", "socket", "broken_link"),
    *("loop", "n" * 300, "d/" * 2500, "empty_folder", "/dev/null", "/dev/zero", "/dev/full"),
    *("/proc/self/mem", "/proc/1/root/none", "~nosuch_user/x"),
)
"""Paths that are no run folder, recipe or table."""

BAD_RUNS = (
    *("cut", "no_front", "no_model", "not_json", "other_model", "deep", "newer", "flipped"),
    *("linked", "no_rights", "nan"),
)
"""Run folders that are damaged."""


def train_runs(folder: Path) -> None:
    """Train the two runs, in a process of its own: threads of torch do not survive a fork."""
    code = (
        "import sys, torch; torch.set_num_threads(1); from paretocosmos import fit\n"
        "folder = sys.argv[1]\n"
        "fit('toy_convex', epochs=1, settings={'rays': 5}, out=f'{folder}/run', device='cpu',"
        " engine='eager')\n"
        "settings = {'target': 'rich', 'sensitive': 'sex', 'hidden': '4', 'rays': 5}\n"
        "fit(f'{folder}/people.csv', epochs=1, settings=settings, out=f'{folder}/table',"
        " device='cpu', engine='eager')\n"
    )
    lines = [f"{row % 17},{'fm'[row % 2]},{int(row % 3 == 0)}" for row in range(ROWS)]
    (folder / PEOPLE).write_text("\n".join(["skill,sex,rich", *lines]) + "\n")
    subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", code, str(folder)],
        check=True,
        capture_output=True,
    )


def create_files(folder: Path) -> None:
    """Make every file and folder that lines name, in a folder where `train_runs` was called."""
    for name, content in {**BAD_TABLES, **BAD_RECIPES}.items():
        (folder / name).write_bytes(content)
    (folder / "a_file").write_text("nothing\n")
    (folder / "empty_folder").mkdir()
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        here = Path.cwd()
        os.chdir(folder)  # the path of a socket has a hundred letters at most
        sock.bind("socket")
        os.chdir(here)
    (folder / "broken_link").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    good = folder / "run"
    for name in BAD_RUNS:
        shutil.copytree(good, folder / name)
    record = (good / "run.json").read_bytes()
    told = json.loads(record)
    (folder / "cut" / "run.json").write_bytes(record[: len(record) // 2])
    (folder / "no_front" / "front.json").unlink()
    (folder / "no_model" / "model.safetensors").unlink()
    (folder / "not_json" / "run.json").write_bytes(b"\0\xff")
    (folder / "other_model" / "model.safetensors").write_bytes(b"\0" * 64)
    (folder / "deep" / "run.json").write_bytes(b"[" * 100_000)
    (folder / "newer" / "run.json").write_text(json.dumps(told | {"format": 999, "version": "9"}))
    (folder / "nan" / "run.json").write_text(record.decode().replace(": 1,", ": NaN,"))
    weights = bytearray((good / "model.safetensors").read_bytes())
    weights[-5] ^= 0x40
    (folder / "flipped" / "model.safetensors").write_bytes(weights)
    (folder / "linked" / "front.json").unlink()
    (folder / "linked" / "front.json").symlink_to("front.json")
    (folder / "no_rights" / "run.json").unlink()
    os.mkfifo(folder / "no_rights" / "run.json")


def list_files(folder: Path) -> dict[str, tuple[int, int]]:
    """List every file and folder below a folder, with its size and time of change."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            about = path.lstat()
            plain = stat.S_ISREG(about.st_mode)
            known = (about.st_size, about.st_mtime_ns) if plain else (0, 0)
            found[str(path.relative_to(folder))] = known
    return found
