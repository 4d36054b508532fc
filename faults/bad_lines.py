"""Bad command lines, made from the program's own commands and options.

Every line is bad in truth: a user would want to be told. What can be read as something good
(`--seed 1_000` is a whole number) is left out.
"""

import random
import string
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, count
from typing import Any

from faults.fixtures import BAD_PATHS, BAD_RECIPES, BAD_RUNS, BAD_TABLES

__all__ = ["GROUND", "Line", "lines"]

GROUND = "../ground"
"""Where what a line names lies, seen from where it is called."""
RUN, TABLE, PEOPLE = f"{GROUND}/run", f"{GROUND}/table", f"{GROUND}/people.csv"

Words = tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """A bad command line; the attributes are those of a `Call`.

    Attributes:
        inside: a new folder that it is called in, by its name.
    """

    kind: str
    arguments: Words
    alone: bool = False
    closed: tuple[int, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=())
    inside: str = ""


ON_TABLE = ("train", PEOPLE, "--target", "rich", "--sensitive", "sex", "--epochs", "1")
GOOD: dict[str, Words] = {
    "demo": ("demo",),
    "list": ("list",),
    "train": ("train", "toy_convex", "--epochs", "1"),
    "evaluate": ("evaluate", RUN),
    "choose": ("choose", RUN),
    "check": ("check", TABLE, PEOPLE, "--max", "tpr_gap=0.5"),
    "predict": ("predict", RUN, PEOPLE, "--ray", "0.5,0.5"),
    "export": ("export", RUN),
    "explore": ("explore", RUN, "--no-open"),
    "compare": ("compare", "toy_convex", "--epochs", "1", "--methods", "cosmos"),
    "sweep": ("sweep", "toy_convex", "--epochs", "1", "--grid", "penalty=1 2"),
    "reproduce": ("reproduce", "intuition", "--only", "linear", "--epochs", "1"),
    "report": ("report", "table_1", "--out", f"{GROUND}/empty_folder"),
    "serve": ("serve", RUN, "--port", "0"),
}
"""What a bad option is added to; alone it would be right."""

LONG = "x" * 100_000
NO_TEXT = (
    "",
    " ",
    LONG,
    "🙂",
    "\u202egnp.exe",
    "\x1b[31mred\x07",
    "a\nb",
    "\udcff\udcfe",
    "../../..",
)
NO_NUMBER = (*NO_TEXT, "abc", "1,5", "0x10", "1e", "--", "½", "1/2", "True", "[1]", "1 2")
NO_WHOLE = (*NO_NUMBER, "1.5", "1e3", "nan", "inf", "-inf")
HUGE = ("-1", "-9223372036854775809", "18446744073709551616", "1" + "0" * 40, "9" * 5000)
NO_NAME = (
    *NO_TEXT,
    "unknown",
    "None",
    "nul",
    "json:nobody",
    "no_such_module:Thing",
    ":",
    "a:",
    ":b",
)
NO_SEEDS = (
    "",
    ",",
    "1,",
    "1,,2",
    "a",
    "1,b",
    "1.5",
    "1,1",
    "-1",
    "1;2",
    "1-5",
    "nan",
    LONG,
    "9" * 30,
)
NO_DEVICE = ("", "gpu", "cuda:99", "cuda:-1", "cpu:x", "tpu", "0", "cuda:" + "9" * 30, "meta", LONG)
NO_PLACE = (
    "missing",
    "a_file",
    "pipe",
    "socket",
    "broken_link",
    "loop",
    "n" * 300,
    "/dev/null",
    "~nosuch_user/x",
)
NO_OUT = (
    f"{GROUND}/a_file",
    f"{GROUND}/a_file/below",
    f"{GROUND}/run",
    f"{GROUND}/loop",
    f"{GROUND}/loop/below",
    "n" * 300,
    "~nosuch_user/x",
    "d/" * 2500,
    "/proc/none/deeper",
    "/dev/null",
    "/dev/full/x",
    "/sys/none",
)
NO_RAY = (
    "",
    "1",
    "0.5;0.5",
    "a,b",
    "0.5,0.6",
    "-0.5,1.5",
    "nan,1",
    "inf,0",
    "1,0,0",
    "0,0",
    ",",
    LONG,
)
NO_BOUND = ("", "=", "second", "second=", "=1", "second=x", "nobody=1", "second=nan", "a=1=2", LONG)


def _at(places: Words) -> Words:
    return tuple(p if p.startswith(("/", "..", "~")) else f"{GROUND}/{p}" for p in places)


BAD: dict[str, Words] = {
    "seed": (*NO_WHOLE, *HUGE),
    "seeds": NO_SEEDS,
    "epochs": (*NO_WHOLE, *HUGE, "0", "2000000000", "1000001"),
    "rays": (*NO_WHOLE, *HUGE, "0", "1000000000"),
    "evaluations": (*NO_WHOLE, *HUGE, "0", "1"),
    "penalty": (*NO_NUMBER, "nan", "inf", "-inf", "-1", "1e400"),
    "alpha": (
        *(text for text in NO_NUMBER if text != "1,5"),
        *("nan", "inf", "0", "-1", "1,2,3", "1e400", "1e-400"),
    ),
    "method": NO_NAME,
    "grid": ("", " ", "=", "penalty", "penalty=", "unknown=1 2", LONG),
    "samples": (*NO_WHOLE, *HUGE, "0"),
    "measure": NO_NAME,
    "methods": (*NO_NAME, ",", "cosmos,unknown", "cosmos,cosmos"),
    "backbone": (*NO_NAME, "lenet", "resnet18"),
    "conditioning": (*NO_NAME, "none", "transposed_conv"),
    "preset": (*NO_NAME, "Paper", "default,paper"),
    "protocol": (*NO_NAME, "Paper", "both"),
    "engine": (*NO_NAME, "captured", "EAGER"),
    "precision": (*NO_NAME, "fp8", "32", "float"),
    "device": NO_DEVICE,
    "split": (*NO_NAME, "Test", "all"),
    "ray": NO_RAY,
    "at_most": NO_BOUND,
    "at_least": NO_BOUND,
    "near": (*NO_BOUND, "first=inf"),
    "minimize": NO_NAME,
    "maximize": NO_NAME,
    "weights": NO_RAY[:4] + NO_RAY[5:],
    "only": ("unknown", "adult,unknown", LONG, "\x1b[31m", "toy_convex", "\udcff"),
    "target": NO_TEXT[:-1],
    "sensitive": (*NO_TEXT[:-1], "skill:200000000", "skill:inf"),
    "positive": (*NO_TEXT[:-1], "2", "yes"),
    "drop": (*NO_TEXT[:-1], "nobody"),
    "keep": (*NO_TEXT[:-1], "nobody"),
    "task": NO_NAME[:-1],
    "small_groups": NO_NAME[:-1],
    "class_weight": NO_NAME[:-1],
    "fairness": NO_NAME[:-1],
    "separator": ("", "ab", "a", LONG, "\n"),
    "decimal": ("", ";", "ab", LONG),
    "encoding": ("", "utf-99", LONG, "🙂", "hex", "base64", "rot13", "undefined"),
    "val": _at(NO_PLACE),
    "test": _at(NO_PLACE),
    "confidence": (*NO_NUMBER, "nan", "0", "1", "-1", "2"),
    "threshold": (*NO_NUMBER, "nan", "0", "1", "-1", "2"),
    "host": (
        "",
        " ",
        "no such host",
        "256.1.1.1",
        "a" * 300,
        "localhost:80",
        "🙂",
        "\udcff",
        "::g",
    ),
    "port": (*NO_WHOLE, *HUGE, "65536", "99999999"),
    "token": ("", "short", "with a space in it ok", "ümlaut-ümlaut-ümlaut", "\udcff" * 20),
    "workers": (*NO_WHOLE, *HUGE),
    "max_rows": (*NO_WHOLE, "-1", "0"),
    "max_bytes": (*NO_WHOLE, "-1", "0"),
    "timeout": (*NO_NUMBER, "nan", "inf", "0", "-1", "1e9"),
    "data": _at(NO_PLACE),
    "changes": (
        *("", "=", "=1", "epochs", "epochs=x", "epochs=nan", "epochs=0", "nobody=1", "hidden=-1"),
        *(
            "hidden=0",
            "hidden=x",
            "hidden=99999999999",
            "hidden=2000000",
            "batch_size=0",
            "batch_size=1000000000",
        ),
        *("learning_rate=nan", "learning_rate=0", "learning_rate=inf", "weight_decay=-1"),
        *(
            "rays=0",
            "rays=2000000000",
            "rays_per_batch=3",
            "accumulate=3",
            "evaluate_every=0",
            "decay=0",
        ),
        *("milestones=a", "reference=1", "reference=nan,1", "reference=1,2,3", "penalty=x"),
        *("method.nobody=1", "training.nobody=1", "nobody.epochs=1", ".=1", "epochs =1 2"),
        *(f"{LONG}=1", f"epochs={LONG}", "__class__=1", "self=1", "problem=adult", "seed=x"),
        *("hidden=" + ",".join(["8"] * 5000), "hidden=1e9", "epochs=" + "9" * 5000, "\udcff=1"),
    ),
    "log_to": ("", " ", "nobody", "=", "=runs", "Tensorboard", "🙂", LONG),
    "origins": ("", "*", "null", "example.org", "https://", "https://a.org/b", "ftp://a.org"),
    "out": NO_OUT,
    "trust": (),
}
"""Values that are wrong for an option, whatever the command, by the name of its parameter."""

OF_TABLES = (
    *("positive", "drop", "keep", "task", "small_groups", "class_weight", "fairness"),
    *("separator", "decimal", "encoding", "val", "test"),
)
"""Options that say something of a table."""

NOT_BAD = {
    # of its own kind in that command
    ("report", "out"),
    *((name, "cluster") for name in ("train", "compare", "sweep", "reproduce")),
    # a place may have data where another has none; refused only by what reads data
    *((name, "data") for name in ("evaluate", "choose", "explore", "serve", "reproduce")),
    # refused only beside a file to read
    *(("evaluate", how) for how in ("separator", "decimal", "encoding")),
    # what is continued or written anew
    ("demo", "out"),
    ("reproduce", "out"),
    ("explore", "out"),
    ("export", "out"),
}
"""Pairs of a command and a parameter that have lines of their own below."""


def lines(seed: int) -> Iterator[Line]:
    """Different bad lines without end: first all that are known, mixed, then made up."""
    draw = random.Random(seed)
    known = list(dict.fromkeys(chain(_of_options(), _of_arguments(), _by_hand(), _surrounded())))
    draw.shuffle(known)
    yield from known
    seen = set(known)
    for _ in count():
        line = _made_up(draw)
        if line not in seen:
            seen.add(line)
            yield line


@cache
def _commands() -> dict[str, Any]:
    import typer

    from paretocosmos.cli import app

    group: Any = typer.main.get_command(app)
    commands: dict[str, Any] = group.commands
    return commands


def _of_options() -> Iterator[Line]:
    """Every option of every command with every value that is wrong for it."""
    for name, command in _commands().items():
        for option in command.params:
            if option.param_type_name != "option":
                continue
            flag = option.opts[0]
            kind = f"{name} {flag}"
            if option.is_flag:
                yield Line(kind, (*GOOD[name], f"{flag}=yes"))
                continue
            yield Line(kind, (*GOOD[name], flag))  # and no value, at the end
            if (name, option.name) in NOT_BAD:
                continue
            base = ON_TABLE if option.name in ("target", "sensitive") else GOOD[name]
            if option.name == "changes":
                base = (name, "toy_convex")
            if option.name == "penalty":
                base = (*GOOD[name], "--method", "cosmos")
            if option.name in OF_TABLES:
                base = ON_TABLE if name == "train" else ("compare", *ON_TABLE[1:])
            for value in BAD[option.name]:
                yield Line(
                    kind,
                    (
                        *base,
                        f"{flag}={value}" if value[:1] == "-" else flag,
                        *(() if value[:1] == "-" else (value,)),
                    ),
                )


def _of_arguments() -> Iterator[Line]:
    """Folders, recipes and tables that are none, or damaged."""
    for name in ("evaluate", "choose", "export", "explore", "serve"):
        for place in (*BAD_PATHS, *BAD_RUNS):
            yield Line(f"{name} RUN", (name, *_at((place,)), *GOOD[name][2:]))
        for text in NO_TEXT:
            yield Line(f"{name} RUN", (name, text, *GOOD[name][2:]))
    for name in ("reproduce", "report"):
        for place in (*BAD_PATHS, *BAD_RECIPES):
            yield Line(f"{name} RECIPE", (name, *_at((place,))))
        for text in (*NO_NAME, "table_99", "Table_1", "table_1.toml"):
            yield Line(f"{name} RECIPE", (name, text))
    for name in ("train", "compare"):
        for place in BAD_TABLES:
            yield Line(f"{name} CSV", (name, f"{GROUND}/{place}", *ON_TABLE[2:]))
        for text in (
            *NO_NAME,
            "adlut",
            "Adult",
            "missing.csv",
            "..",
            ".csv",
            "/dev/zero",
            f"{LONG}.csv",
        ):
            yield Line(f"{name} PROBLEM", (name, text, "--epochs", "1"))
        yield Line(f"{name} CSV", (name, PEOPLE, "--epochs", "1"))
        yield Line(f"{name} CSV", (name, PEOPLE, "--target", "rich", "--epochs", "1"))
        for end in ("pipe", "loop", "broken_link", "empty_folder", "socket"):
            link = f"{GROUND}/{end}.csv"
            yield Line(f"{name} CSV", (name, link, *ON_TABLE[2:]))


def _by_hand() -> Iterator[Line]:
    """What people mistype, and what contradicts itself."""
    typed: tuple[Words, ...] = (
        ("tarin", "adult"),
        ("Train", "adult"),
        ("train",),
        ("train", "adult", "compas"),
        ("train", "adult", "--epoch", "1"),
        ("train", "adult", "-epochs", "1"),
        ("train", "adult", "--epochs=1=2"),
        ("train", "adult", "--epochs", "1", "--method=cosmos,linear"),
        ("train", "--adult"),
        ("train", "adult", "—epochs", "1"),
        ("train", "adult", "--lr", "0.1"),
        ("train", "adult", "--batch-size", "8"),
        ("train", "adult", "--set", "epochs=1", "--set", "lr=1"),
        ("train", "adult", "--epochs", "1", "--seed", "2", "--seeds", "1,2"),
        ("train", "adult", "--target", "income"),
        ("train", "toy_convex", "--sensitive", "sex"),
        ("train", "toy_convex", "--data", f"{GROUND}/empty_folder", "--epochs", "1"),
        ("train", "adult", "--data", f"{GROUND}/empty_folder", "--epochs", "1"),
        ("train", "multi_mnist", "--data", f"{GROUND}/empty_folder", "--epochs", "1"),
        ("train", "celeba", "--data", f"{GROUND}/empty_folder", "--epochs", "1"),
        ("train", PEOPLE, "--data", PEOPLE, "--target", "rich", "--sensitive", "sex"),
        ("train", PEOPLE, "--target", "rich", "--sensitive", "rich", "--epochs", "1"),
        ("train", PEOPLE, "--target", "skill", "--sensitive", "sex", "--epochs", "1"),
        ("train", PEOPLE, "--target", "sex", "--sensitive", "nobody", "--epochs", "1"),
        ("train", PEOPLE, "--target", "rich", "--sensitive", "sex", "--drop", "skill"),
        ("train", "toy_convex", "--method", "phn_ls", "--conditioning", "concat"),
        ("train", "toy_convex", "--method", "mgda", "--conditioning", "concat"),
        ("train", "toy_convex", "--method", "mgda", "--set", "rays_per_batch=4"),
        ("train", "toy_convex", "--method", "linear", "--penalty", "1"),
        ("train", "toy_convex", "--method", "cosmos", "--backbone", "lenet"),
        ("train", "toy_convex", "--resume", "--out", f"{GROUND}/table"),
        ("train", "toy_convex", "--out", RUN),
        ("train", "toy_convex", "--seeds", "1,2", "--out", f"{GROUND}/a_file"),
        ("train", "toy_convex", "--device", "cuda", "--device", "nowhere"),
        ("evaluate",),
        ("evaluate", RUN, TABLE),
        ("evaluate", RUN, "--ray", "0.5,0.5", "--rays", "5"),
        ("evaluate", RUN, "--ray", "0.5,0.5", "--ray", "x"),
        ("evaluate", RUN, "--data", f"{GROUND}/people.csv"),
        ("evaluate", TABLE, "--data", f"{GROUND}/empty.csv"),
        ("evaluate", TABLE, "--data", f"{GROUND}/missing.csv.gz"),
        ("evaluate", TABLE, "--data", f"{GROUND}/three.csv"),
        ("evaluate", TABLE, "--data", f"{GROUND}/empty_folder"),
        ("evaluate", RUN, "--json", "--split", "valid"),
        ("choose",),
        ("choose", RUN, "--max", "second=0.1", "--max", "second=0.2"),
        ("choose", RUN, "--max", "second=-1000"),
        ("choose", RUN, "--min", "first=1e9"),
        ("choose", RUN, "--max", "second=0", "--min", "second=1"),
        ("choose", RUN, "--knee", "--weights", "0.5,0.5"),
        ("choose", RUN, "--minimize", "first", "--maximize", "first"),
        ("choose", RUN, "--knee", "--minimize", "first"),
        ("choose", RUN, "--near", "first=1", "--weights", "1,1"),
        ("choose", RUN, "--max", "second<0.1"),
        ("choose", RUN, "--max", "second 0.1"),
        ("choose", RUN, "second=0.1"),
        ("choose", TABLE, "--max", "tpr_gap=200%"),
        ("choose", TABLE, "--data", f"{GROUND}/missing.csv.gz", "--knee"),
        ("export",),
        ("export", RUN, "--out", "model.pt2"),
        ("export", RUN, "--out", f"{GROUND}/empty_folder"),
        ("export", RUN, "--out", "/proc/none/model.onnx"),
        ("export", RUN, "--out", "/dev/full"),
        ("export", RUN, "--out", f"{GROUND}/a_file/model.onnx"),
        ("export", RUN, "--out", "n" * 300 + ".onnx"),
        ("explore",),
        ("explore", RUN, f"{GROUND}/missing", "--no-open"),
        ("explore", RUN, "--no-open", "--out", "page.txt"),
        ("explore", RUN, "--no-open", "--out", "missing/page.html"),
        ("explore", RUN, "--no-open", "--out", f"{GROUND}/a_file/page.html"),
        ("explore", RUN, "--no-open", "--out", f"{GROUND}/empty_folder"),
        ("explore", RUN, "--no-open", "--out", "n" * 300 + ".html"),
        ("explore", RUN, "--no-open", "--out", "/proc/page.html"),
        ("explore", RUN, TABLE, "--no-open", "--data", "x"),
        ("compare",),
        ("compare", "toy_convex", "--methods"),
        ("compare", "toy_convex", "--seed", "2", "--seeds", "1,2"),
        ("compare", "toy_convex", "--resume", "--out", RUN),
        ("compare", "toy_convex", "--set", "nobody.epochs=1"),
        ("compare", "toy_convex", "--set", "cosmos.nobody=1"),
        ("reproduce",),
        ("reproduce", "table_1", "--only", "adult,nobody"),
        ("reproduce", "table_1", "--workers", "-1"),
        ("reproduce", "table_1", "--workers", "2", "--cluster"),
        ("reproduce", "table_1", "--epochs", "1", "--cluster", "no such address:1"),
        ("reproduce", "table_1", "--out", f"{GROUND}/a_file", "--epochs", "1"),
        ("reproduce", "table_1", "--out", f"{GROUND}/loop", "--epochs", "1"),
        ("reproduce", "table_1", "--out", "/proc/none", "--epochs", "1"),
        ("reproduce", "table_1", "--out", "n" * 300, "--epochs", "1"),
        ("demo", "--out", f"{GROUND}/a_file"),
        ("demo", "--out", "/proc/none"),
        ("demo", "now"),
        ("list", "problem"),
        ("report", "table_1", "--out", f"{GROUND}/missing"),
        ("report", "--out", f"{GROUND}/missing"),
        ("report", "--out", f"{GROUND}/a_file"),
        ("report", "--out", RUN),
        ("report", "--out", "/dev/null"),
        ("report", "--out", f"{GROUND}/loop"),
        ("report", "--out", "n" * 300),
        ("report", "--out", "~nosuch_user/x"),
        ("reproduce", "table_1", "--out", "~nosuch_user/x", "--epochs", "1"),
        ("explore", RUN, "--no-open", "--out", "~nosuch_user/page.html"),
        ("export", RUN, "--out", "~nosuch_user/model.onnx"),
        ("serve",),
        ("serve", RUN, "--host", "0.0.0.0"),
        ("serve", RUN, "--host", "192.0.2.1", "--token", "x" * 20),
        ("serve", RUN, "--port", "1e3"),
        ("serve", RUN, "--workers", "0"),
        ("list", "problems"),
        ("list", "--all"),
        ("--verson",),
        ("-v",),
        ("help",),
        ("",),
        ("--",),
        ("-",),
        ("\x1b[2J",),
        ("train " * 1000,),
        ("train", *["toy_convex"] * 2000),
        ("train", "toy_convex", *["--set", "epochs=0"] * 500),
        ("--json", "list"),
    )
    for arguments in typed:
        yield Line("by hand", arguments)


def _surrounded() -> Iterator[Line]:
    """Descriptors that are closed, variables and locales that are odd; each a real process."""
    wrong = (("train", "adlut"), ("evaluate", f"{GROUND}/missing"), ("train",), ("serve", "\udcff"))
    for arguments in wrong:
        yield Line("as a process", arguments, alone=True)
        for closed in ((0,), (1,), (0, 1)):
            yield Line("a descriptor is closed", arguments, closed=closed)
        for name, value in (
            ("LC_ALL", "C"),
            ("PYTHONUTF8", "0"),
            ("PYTHONIOENCODING", "ascii:strict"),
            ("COLUMNS", "1"),
            ("COLUMNS", "nonsense"),
            ("TERM", "dumb"),
            ("HOME", "/nowhere"),
            ("TMPDIR", "/nowhere"),
            ("PYTHONWARNINGS", "error::nonsense"),
            ("PARETOCOSMOS_TOKEN", "\udcff"),
            ("PARETOCOSMOS_DATA", "/dev/null"),
            ("OMP_NUM_THREADS", "-3"),
            ("CUDA_VISIBLE_DEVICES", "nonsense"),
            ("RANK", "x"),
        ):
            yield Line("an odd environment", arguments, alone=True, environment=((name, value),))
    for name in ("train", "compare"):
        on_table = (name, f"../{PEOPLE}", *ON_TABLE[2:])
        yield Line("in a folder whose name is no text", on_table, inside="b\udcff")
    for text in ("\udcff\udcfe", "🙂", "\x1b[31m"):
        for name, value in (("LC_ALL", "C"), ("PYTHONIOENCODING", "ascii:strict")):
            yield Line(
                "an odd environment", ("train", text), alone=True, environment=((name, value),)
            )
    given = (("RANK", "0"), ("WORLD_SIZE", "nan"), ("MASTER_ADDR", "127.0.0.1"))
    yield Line("an odd environment", GOOD["train"], alone=True, environment=given)


def _made_up(draw: random.Random) -> Line:
    """A line that nobody wrote before: a misspelling, or letters where a number belongs."""
    commands = _commands()
    name = draw.choice(sorted(commands))
    options = [o for o in commands[name].params if o.param_type_name == "option" and not o.is_flag]
    noise = "".join(
        draw.choice(string.ascii_letters + "-_=.,;:/\\é🙂\t") for _ in range(draw.randint(1, 40))
    )
    kinds = ["command", "option", *(["value"] if options else [])]
    match draw.choice(kinds):
        case "command":
            return Line("made up: a command", (_misspelt(name, draw), *GOOD[name][1:]))
        case "option":
            return Line("made up: an option", (*GOOD[name], f"--{noise.strip('-')}q"))
    option = draw.choice(options)
    hints = typing.get_type_hints(commands[name].callback)
    if not {int, float} & {hints[option.name], *typing.get_args(hints[option.name])}:
        return Line("made up: a command", (_misspelt(name, draw), *GOOD[name][1:]))
    return Line("made up: a value", (*GOOD[name], f"{option.opts[0]}={noise}q"))


def _misspelt(name: str, draw: random.Random) -> str:
    at = draw.randrange(len(name))
    return (
        f"{name[:at]}{draw.choice(string.ascii_lowercase)}{draw.choice(string.digits)}{name[at:]}"
    )
