"""The direction of imports, as DESIGN.md draws it, and what `import paretocosmos` may cost."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import paretocosmos

SOURCE = Path(paretocosmos.__file__).parent
ROOMS = 2  # the layer whose members do not know each other
LAYERS = {
    name: layer
    for layer, members in enumerate(
        (
            "types errors find files locks places schema signatures trust torch_private promises",
            "rays scalarize front choosing metrics solvers kernels stand_in norms",
            "objectives backbones conditioning methods problems",
            "settings networks folders plan planning provenance machine rehearsal seed run loop "
            "stack judging training evaluation engine record distributed checkpoint saved run "
            "resuming loading signing pace refining intervals choice",
            "plotting export explorer serving estimators integrations experiments",
            "cli printing __main__",
        )
    )
    for name in members.split()
}
SIDEWAYS = {("problems", "objectives")}
HIGHEST_OF_PACKAGE = 3  # what __init__ may import
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


def violations(module: str, source: str) -> list[str]:
    """What is wrong with the imports of a module, named from inside the package ("" is its init).

    Imports inside functions and `if TYPE_CHECKING` count too: they are arrows as well.
    """
    own = module.partition(".")[0]
    if own and own not in LAYERS:
        return [f"`{module}` has no layer; add `{own}` to LAYERS and to DESIGN.md"]
    wrong = []
    for node in ast.walk(ast.parse(source)):
        targets: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.level:
            wrong.append(f"`{module}` imports relatively in line {node.lineno}")
        elif isinstance(node, ast.ImportFrom) and node.module == "paretocosmos":
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            targets = _inside(node.module)
        elif isinstance(node, ast.Import):
            targets = [part for alias in node.names for part in _inside(alias.name)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            targets = [node.attr] if node.value.id == "paretocosmos" else []
        line = getattr(node, "lineno", 0)
        wrong += [f"{_complaint(own, t)} in line {line}" for t in targets if _bad(own, t)]
    return wrong


def _inside(dotted: str) -> list[str]:
    """["rays"] for "paretocosmos.pareto.rays"; nothing for other packages."""
    package, _, rest = dotted.partition(".")
    return [rest.partition(".")[0]] if package == "paretocosmos" and rest else []


def _bad(own: str, target: str) -> bool:
    if target.startswith("__") and target.endswith("__") and target not in LAYERS:
        return False  # __version__, __file__
    if target not in LAYERS:
        return True
    if not own:
        return LAYERS[target] > HIGHEST_OF_PACKAGE
    if own == target or (own, target) in SIDEWAYS:
        return False
    return LAYERS[target] > LAYERS[own] or LAYERS[target] == LAYERS[own] == ROOMS


def _complaint(own: str, target: str) -> str:
    return f"`{own or '__init__'}` must not import `{target}`"


def _modules() -> list[tuple[str, Path]]:
    files = sorted(SOURCE.rglob("*.py"))
    dotted = (".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in files)
    return [
        (name.removesuffix("__init__").removesuffix("."), path)
        for name, path in zip(dotted, files, strict=True)
    ]


def test_every_import_points_downwards() -> None:
    wrong = [
        complaint
        for module, path in _modules()
        for complaint in violations(module, path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_walk_sees_the_package() -> None:
    found = {module for module, _ in _modules()}
    assert {"", "rays", "objectives", "objectives.deo", "problems._base"} <= found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("rays", "from paretocosmos.training.fit import fit"),
        ("rays", "import paretocosmos.training.fit"),
        ("rays", "from paretocosmos import training"),
        ("rays", "from paretocosmos import fit"),
        ("rays", "import paretocosmos\nparetocosmos.fit()"),
        ("rays", "def f():\n    from paretocosmos.objectives.deo import Deo"),
        ("rays", "if TYPE_CHECKING:\n    from paretocosmos.cli import main"),
        ("rays", "from . import front"),
        ("rays", "from .front import Front"),
        ("rays", "from paretocosmos.nowhere import a"),
        ("nowhere", ""),
        ("methods.cosmos", "from paretocosmos.conditioning import Concat"),
        ("objectives.deo", "from paretocosmos.problems.adult import adult"),
        ("training", "from paretocosmos.plotting import draw"),
        ("kernels._ops", "from paretocosmos.backbones.lenet import LeNet"),
        ("engine.step", "from paretocosmos.cli.output import note"),
        ("backbones._conv_pool", "from paretocosmos.training.engine import Work"),
        ("seed run", "from paretocosmos.explorer import write_report"),
        ("plotting", "from paretocosmos.cli import main"),
        ("", "from paretocosmos.plotting import draw"),
        ("", "from paretocosmos import cli"),
        ("", "from .rays import even_rays"),
    ],
)
def test_the_checker_catches_a_bad_import(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("rays", "import torch\nfrom paretocosmos.errors import unknown"),
        ("metrics", "from paretocosmos.pareto.front import Front"),
        ("problems.adult", "from paretocosmos.objectives.deo import Deo"),
        ("problems.adult", "from paretocosmos.problems import Problem"),
        ("problems", "from paretocosmos.problems import Problem"),
        ("backbones._conv_pool", "from paretocosmos.layers.kernels import conv_pool"),
        ("loop", "from paretocosmos.training.seed_run import SeedRun"),
        (
            "training",
            "from paretocosmos import find, metrics\nfrom paretocosmos.runs.run import Run",
        ),
        ("provenance", "import paretocosmos\nparetocosmos.__version__"),
        ("", "from paretocosmos.training.fit import fit"),
        ("__main__", "from paretocosmos.cli import main"),
    ],
)
def test_the_checker_lets_a_good_import_pass(module: str, source: str) -> None:
    assert violations(module, source) == []


def _said(code: str) -> str:
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def test_importing_the_package_takes_no_time() -> None:
    """Nothing but the standard library; what takes seconds comes with the first name asked for."""
    heavy = (*HEAVY, "torch", "numpy", "moocore")
    assert (
        _said(f"import sys, paretocosmos; print([m for m in {heavy} if m in sys.modules])") == "[]"
    )


def test_its_names_draw_in_no_plotting_no_server_and_no_data_set() -> None:
    code = "import sys; from paretocosmos import *; from paretocosmos import __all__ as every; "
    code += "print(all(name in globals() for name in every), "
    assert _said(code + f"[m for m in {HEAVY} if m in sys.modules])") == "True []"


@pytest.mark.parametrize("command", ["--help", "train --help"])
def test_asking_for_help_draws_in_no_validation(command: str) -> None:
    """Which comes with the first file that is read; Typer has its own reasons to, for a command."""
    code = f"import sys; sys.argv = ['paretocosmos', *{command.split()}]\n"
    code += "from paretocosmos.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
    names = "paretocosmos.io.schema.", *(["pydantic"] if command == "--help" else [])
    code += f"print([name for name in sys.modules if name.startswith({tuple(names)})])"
    assert _said(code).endswith("[]")


def test_every_name_has_its_place() -> None:
    assert sorted(paretocosmos._PLACE) == sorted(paretocosmos.__all__)
    assert set(paretocosmos.__all__) <= set(dir(paretocosmos))
    with pytest.raises(AttributeError, match="has no attribute 'fitt'"):
        paretocosmos.fitt  # noqa: B018
