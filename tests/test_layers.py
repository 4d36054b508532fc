"""The direction of imports, as CONTRIBUTING draws it, and what `import paretocosmos` may cost."""

import ast
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import paretocosmos

SOURCE = Path(paretocosmos.__file__).parent
LEVELS = (
    "types errors _version",
    "registry",
    "io",
    "runtime",
    "nn.kernels nn.norms pareto",
    "objectives nn methods problems",
    "fairness",
    "config",
    "evaluation",
    "runs",
    "plotting",
    "explorer",
    "training",
    "export",
    "estimators integrations",
    "serving paper",
    "cli",
    "__main__",
)
"""Subpackages from the bottom up. Each imports from lower levels only."""

LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names.split()}
SIDEWAYS = {("problems", "objectives")}
HIGHEST_OF_ROOT = LEVEL["training"]  # what __init__ may name
LONGEST_CHAIN = 21
"""Modules that import one another in a row, when they are imported; fewer is better."""

CONVENIENT = {
    ("nn.conditioning.base", "nn.conditioning.fixed_ray"),
    ("pareto.front", "pareto.selection"),
    ("pareto.front", "plotting"),
    ("pareto.selection", "objectives"),
    ("runs.run", "explorer"),
    ("runs.run", "runs.load"),
}
"""Lazy imports that would close a circle, for methods on values: `front.plot`, `model.at`."""

HEAVY = (
    "matplotlib",
    "pandas",
    "sklearn",
    "rich",
    "typer",
    "moocore",
    "plotly",
    "pydantic",
    "cryptography",
)


def _modules() -> dict[str, Path]:
    """Every module by its dotted name inside the package; "" is the package itself."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        dotted = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        found[dotted.removesuffix("__init__").removesuffix(".")] = path
    return found


MODULES = _modules()


def imported(source: str) -> Iterator[tuple[str, int]]:
    """What of the package a text imports, by dotted names inside it, and in which line.

    Imports inside functions and `if TYPE_CHECKING` count too: they are arrows as well.
    """
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.ImportFrom) and node.level:
            yield ".", line
        elif isinstance(node, ast.ImportFrom) and node.module:
            package, _, rest = node.module.partition(".")
            if package == "paretocosmos":
                for alias in node.names:
                    inner = f"{rest}.{alias.name}".lstrip(".")
                    yield inner if inner in MODULES or not rest else rest, line
        elif isinstance(node, ast.Import):
            for alias in node.names:
                package, _, rest = alias.name.partition(".")
                if package == "paretocosmos":
                    yield rest, line


def opened(source: str) -> Iterator[tuple[str, int]]:
    """The packages whose data a text opens: `files("paretocosmos") / "config" / "paper.toml"`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("files"):
            path = r"'paretocosmos(?:\.([a-z_.]+))?'\)(?: / '(\w+)')?"
            found = re.search(path, _whole(node, source))
            if found:
                yield found[1] or found[2] or "", node.lineno


def _whole(call: ast.Call, source: str) -> str:
    """A call with the path that is put together from it."""
    holders = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.BinOp))
    texts = [ast.unparse(node) for node in holders if ast.unparse(call) in ast.unparse(node)]
    return max(texts, key=len, default=ast.unparse(call))


def violations(module: str, source: str) -> list[str]:
    """What is wrong with the imports of a module, named from inside the package."""
    own = _split(module)[0]
    if own and own not in LEVEL:
        return [f"`{module}` has no level; add `{own}` to LEVELS and to CONTRIBUTING"]
    every = itertools.chain(imported(source), opened(source))
    arrows = [(t, line) for t, line in every if (module, t) not in CONVENIENT]
    found = {(target, line): _mistake(own, target) for target, line in arrows}
    return [f"`{module}`, line {line}: {why}" for (_, line), why in found.items() if why]


def _split(module: str) -> tuple[str, str]:
    """The package that has a level, which may lie in another one, and the rest of a name."""
    outer, _, rest = module.partition(".")
    inner, _, deeper = rest.partition(".")
    return (f"{outer}.{inner}", deeper) if f"{outer}.{inner}" in LEVEL else (outer, rest)


def _mistake(own: str, target: str) -> str | None:
    package, inside = _split(target)
    if target == ".":
        return "imports relatively"
    if not package:
        return "imports the package itself, which knows everything" if own else None
    if package not in LEVEL:
        return f"imports `{target}`, which has no level"
    if own == package:
        return None
    private = any(part.startswith("_") for part in inside.split("."))
    if private:
        return f"imports `{target}`, which is private to its package"
    highest = LEVEL[own] if own else HIGHEST_OF_ROOT + 1
    if LEVEL[package] >= highest and (own, package) not in SIDEWAYS:
        return f"imports `{target}`, which is not below it"
    return None


def test_every_import_points_downwards() -> None:
    texts = {module: path.read_text(encoding="utf-8") for module, path in MODULES.items()}
    wrong = [complaint for module, text in texts.items() for complaint in violations(module, text)]
    assert not wrong, "\n".join(wrong)


def test_no_imports_go_round_in_a_circle() -> None:
    arrows = {
        module: {
            target
            for target, _ in imported(path.read_text(encoding="utf-8"))
            if target != module and (module, target) not in CONVENIENT
        }
        for module, path in MODULES.items()
        if module
    }
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " imports ".join((*path[path.index(module) :], module))
        if module not in done:
            for target in sorted(arrows.get(module, ())):
                visit(target, (*path, module))
            done.add(module)

    for module in arrows:
        visit(module, ())


def at_import(source: str) -> Iterator[str]:
    """What of the package is imported with a text: not inside functions, nor for types alone."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (target for target, _ in imported(ast.unparse(node)))


def test_no_chain_of_imports_is_long() -> None:
    """A long one is read from its end to be understood: import the leaf, or join two files."""
    chains: dict[str, tuple[str, ...]] = {}

    def chain(module: str) -> tuple[str, ...]:
        if module not in chains:
            targets = {*at_import(MODULES[module].read_text(encoding="utf-8"))} - {module, ""}
            below = max((chain(one) for one in sorted(targets)), key=len, default=())
            chains[module] = (module, *below)
        return chains[module]

    longest = max(map(chain, MODULES), key=len)
    assert len(longest) <= LONGEST_CHAIN, " imports ".join(longest)


def outside(source: str) -> Iterator[str]:
    """The packages of others that are imported with a text."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_help_and_version_import_neither_torch_nor_numpy() -> None:
    """What the command line imports before it knows which command it runs."""
    reached: set[str] = set()
    left = ["", "__main__", "cli"]
    while left:
        module = left.pop()
        if module in reached:
            continue
        reached.add(module)
        package = module.rpartition(".")[0]
        left += [package, *at_import(MODULES[module].read_text(encoding="utf-8"))]
    assert {"cli", "cli.console"} <= reached
    others = {name for one in reached for name in outside(MODULES[one].read_text(encoding="utf-8"))}
    assert "typer" in others
    assert not others & {"torch", "numpy", "pandas", "pydantic", "scipy"}


def _bound_names(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements at the top of a module bind."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.If | ast.Try):
            yield from _bound_names(node.body)
        else:
            targets = (n for n in ast.walk(node) if isinstance(n, ast.Name))
            yield from (n.id for n in targets if isinstance(n.ctx, ast.Store))


@pytest.mark.parametrize("module", MODULES)
def test_every_exported_name_exists(module: str) -> None:
    """An import of `*` fails at the first that does not."""
    body = ast.parse(MODULES[module].read_text(encoding="utf-8")).body
    bound = {*_bound_names(body)}
    lists = [
        n for n in body if isinstance(n, ast.Assign) and "__all__" in map(ast.unparse, n.targets)
    ]
    exported = {name for node in lists for name in ast.literal_eval(node.value)}
    assert exported <= bound or "__getattr__" in bound, sorted(exported - bound)


def test_the_top_level_is_a_table_of_contents() -> None:
    inside = (path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py"))
    packages = {name.removesuffix(".py") for name in inside} - {"__init__", "__main__"}
    assert packages == {name for name in LEVEL if "." not in name} - {"__main__"}
    assert len(packages) <= 26


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pareto.rays", "from paretocosmos.training.fit import fit"),
        ("pareto.rays", "from paretocosmos import training"),
        ("pareto.rays", "import paretocosmos"),
        ("pareto.rays", "def f():\n    from paretocosmos.objectives import Deo"),
        ("pareto.rays", "if TYPE_CHECKING:\n    from paretocosmos.cli import main"),
        ("pareto.rays", "from .front import Front"),
        ("pareto.rays", "from paretocosmos.nowhere import a"),
        ("nowhere", ""),
        ("objectives.fairness", "from paretocosmos.problems.tables.public import adult"),
        ("training.loop", "from paretocosmos.problems._hidden import Problem"),
        ("nn.kernels.conv_pool_ops", "from paretocosmos.nn.backbones.lenet import LeNet"),
        ("config.settings", 'files("paretocosmos") / "paper" / "recipes"'),
        ("config.settings", 'resources.files("paretocosmos.paper").joinpath("paper.toml")'),
        ("", "from paretocosmos.estimators import ParetoClassifier"),
    ],
)
def test_the_checker_catches_a_bad_import(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pareto.rays", "import torch\nfrom paretocosmos.errors import unknown"),
        ("pareto.metrics", "from paretocosmos.pareto.front import Front"),
        ("problems.tables.public", "from paretocosmos.objectives import Deo"),
        ("training.fit", "from paretocosmos import registry\nfrom paretocosmos.runs import run"),
        ("runs.provenance", "from paretocosmos._version import __version__"),
        ("config.settings", 'resources.files("paretocosmos") / "config" / "paper.toml"'),
        ("", "from paretocosmos.training.fit import fit"),
    ],
)
def test_the_checker_lets_a_good_import_pass(module: str, source: str) -> None:
    assert violations(module, source) == []


def _said(code: str) -> str:
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return found.stdout.strip()


@pytest.mark.system
def test_importing_the_package_takes_no_time() -> None:
    """Nothing but the standard library; what takes seconds comes with the first name asked for."""
    heavy = (*HEAVY, "torch", "numpy", "moocore")
    assert (
        _said(f"import sys, paretocosmos; print([m for m in {heavy} if m in sys.modules])") == "[]"
    )


@pytest.mark.system
def test_its_names_draw_in_no_plotting_no_server_and_no_data_set() -> None:
    code = "import sys; from paretocosmos import *; from paretocosmos import __all__ as every; "
    code += "print(all(name in globals() for name in every), "
    assert _said(code + f"[m for m in {HEAVY} if m in sys.modules])") == "True []"


@pytest.mark.system
@pytest.mark.parametrize("command", ["--help", "train --help"])
def test_asking_for_help_draws_in_no_validation(command: str) -> None:
    """Which comes with the first file that is read; Typer has its own reasons to, for a command."""
    code = f"import sys; sys.argv = ['paretocosmos', *{command.split()}]\n"
    code += "from paretocosmos.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
    names = "paretocosmos.io.schema.", *(["pydantic"] if command == "--help" else [])
    code += f"print([name for name in sys.modules if name.startswith({tuple(names)})])"
    assert _said(code).endswith("[]")


def test_every_name_has_its_place() -> None:
    assert sorted(paretocosmos._MODULE) == sorted(paretocosmos.__all__)
    assert set(paretocosmos.__all__) <= set(dir(paretocosmos))
    with pytest.raises(AttributeError, match="has no attribute 'fitt'"):
        paretocosmos.fitt  # noqa: B018
