"""What is resolved, and what is refused, before any folder exists."""

import dataclasses
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.small import Joined, plan_of
from torch import Tensor, nn

from paretocosmos import fit
from paretocosmos.config.plan import Plan
from paretocosmos.config.settings import Training
from paretocosmos.errors import ConfigurationError, DataError, MissingExtraError
from paretocosmos.methods import Cosmos, Gram, Method, State
from paretocosmos.nn.backbones import LeNet
from paretocosmos.nn.conditioning import Concat
from paretocosmos.objectives import MeanSquaredError
from paretocosmos.pareto import sample_rays
from paretocosmos.problems import Problem, Split, load_problem
from paretocosmos.problems.functions import ToyProblem
from paretocosmos.registry import Spec
from paretocosmos.types import Batch


@dataclass(frozen=True, kw_only=True, eq=False)
class Points(Problem):
    """A problem of one's own: one point per objective."""

    samples: int = 60

    def split(self, name: Split) -> Batch:
        generator = torch.Generator().manual_seed(len(name))
        corners = torch.eye(len(self.objectives))[:, :2]
        targets = {
            name: corner.repeat(self.samples, 1)
            for name, corner in zip(self.names, corners, strict=True)
        }
        return Batch(torch.randn(self.samples, *self.input_shape, generator=generator), targets)


def points(*, objectives: int = 2, shape: tuple[int, ...] = (4,)) -> Points:
    """A problem by `package.module:function`."""
    names = [f"to_{at}" for at in range(objectives)]
    return Points(
        name="points",
        objectives=tuple(MeanSquaredError(name=name, target=name) for name in names),
        reference=(2.0,) * objectives,
        input_shape=shape,
        outputs=2,
    )


@dataclass(frozen=True, kw_only=True)
class Uniform(Method):
    """A method of one's own: the mean of the losses."""

    factor: float = 1.0

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        return sample_rays(count, objectives, generator=generator)

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return torch.full_like(losses, self.factor / losses.shape[-1]), state


class Heir(Concat):
    """A conditioning of one's own that inherits its constructor."""


class Needy(Uniform):
    """A method that no settings can build."""

    def __init__(self, must: int) -> None: ...


def _count(plan: Plan) -> int:
    return sum(p.numel() for p in plan.model.parameters())


@pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")
@pytest.mark.parametrize(
    ("how", "compared"),
    [
        ({"preset": "default"}, "demographic_parity"),
        ({"protocol": "paper"}, "deo"),
        ({"preset": "paper"}, "deo"),  # what it is set to in paper.toml
        ({"preset": "paper", "protocol": "clean"}, "deo"),
        ({"preset": "default", "protocol": "paper"}, "deo"),
        ({"preset": "paper", "settings": {"fairness": "tpr_gap"}}, "tpr_gap"),
        ({"preset": "default", "settings": {"fairness": "deo"}}, "deo"),
    ],
)
def test_counts_are_compared_as_in_the_paper_or_by_name_only(
    how: dict[str, Any], compared: str
) -> None:
    assert plan_of("compas", **how).problem.names[1] == compared


@pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")
@pytest.mark.parametrize(
    ("problem", "features", "alpha"),
    [("adult", 88, 0.5), ("compas", 20, 0.5), ("default_credit", 90, (0.1, 0.5))],
)
def test_the_papers_problems_begin_with_its_settings(
    problem: str, features: int, alpha: object
) -> None:
    plan = plan_of(problem, protocol="paper")
    assert plan.method == Cosmos(penalty=0.01, alpha=alpha)  # type: ignore[arg-type]
    assert plan.training == Training(
        epochs=50, batch_size=256, learning_rate=1e-3, evaluate_every=5, rays=25, reference=(2, 2)
    )
    assert plan.configuration.backbone == Spec("mlp", {"hidden": (60, 25)})
    # d-60-25-1 with biases and a ray of two beside the input; Adult: 7,011
    expected = (features + 2 + 1) * 60 + (60 + 1) * 25 + (25 + 1)
    assert _count(plan) == expected
    assert expected == 7011 or problem != "adult"
    mine = {"penalty": 2, "alpha": "0.3", "epochs": 7, "hidden": "8", "reference": "3,4"}
    other = plan_of(load_problem(problem, protocol="paper"), settings=mine)
    assert other.method == Cosmos(penalty=2.0, alpha=0.3)
    assert (other.training.epochs, other.training.rays) == (7, 25)  # the rest stays the paper's
    assert other.problem.reference == (3.0, 4.0)
    assert _count(other) == (features + 3) * 8 + 9


def test_things_of_ones_own_as_objects() -> None:
    model = Joined()
    plan = plan_of(points(), method=Uniform(factor=2.0), model=model)
    assert plan.method == Uniform(factor=2.0)
    assert plan.configuration.problem is None
    assert plan.configuration.conditioning is plan.configuration.backbone is None
    assert plan.configuration.method == Spec(f"{__name__}:Uniform", {"factor": 2.0})
    assert not plan.rebuildable
    assert not plan.traceable
    assert isinstance(plan.model, Joined)
    with torch.no_grad():
        next(plan.model.parameters()).zero_()
    assert next(model.parameters()).any()  # a copy is trained


def test_things_of_ones_own_by_name() -> None:
    plan = plan_of(
        f"{__name__}:points",
        method=f"{__name__}:Uniform",
        conditioning=f"{__name__}:Heir",
        backbone="paretocosmos.nn.backbones.mlp:Mlp",
        settings={"objectives": "3", "factor": "4", "hidden": "5", "layer": "layers.2"},
    )
    assert plan.configuration.problem == Spec(
        f"{__name__}:points", {"objectives": 3, "shape": (4,)}
    )
    assert plan.method == Uniform(factor=4.0)
    assert isinstance(plan.model, Heir)
    assert _count(plan) == (4 + 1) * 5 + (5 + 3 + 1) * 2
    assert plan.rebuildable
    assert not plan.traceable


def test_a_backbone_of_ones_own_is_conditioned_and_left_alone() -> None:
    backbone = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    plan = plan_of(backbone=backbone)
    assert isinstance(plan.model, Concat)
    assert plan.configuration.conditioning == Spec(
        "concat", {"layer": None, "zero": False, "joined": False}
    )
    assert plan.configuration.backbone is None
    assert _count(plan) == sum(p.numel() for p in backbone.parameters()) + 8 * 2
    assert list(backbone.state_dict()) == list(before)
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())


def test_the_papers_scale_is_for_a_network_that_was_just_drawn() -> None:
    digits = dataclasses.replace(points(shape=(1, 20, 24)), spec=Spec("multi_mnist", {}))
    own = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    joined = {
        "images": plan_of(digits),
        "vectors": plan_of(),
        "own images": plan_of(digits, backbone=LeNet((1, 20, 24), 2)),
        "own vectors": plan_of(backbone=own),
        "kept": plan_of(settings={"zero": True}),
    }
    settings = {name: plan.configuration.conditioning for name, plan in joined.items()}
    assert [name for name, spec in settings.items() if spec and spec.settings["joined"]] == [
        "images",
        "vectors",
    ]


def test_the_paper_has_the_first_word_on_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    faces = dataclasses.replace(points(shape=(3, 32, 32)), spec=Spec("celeba_easy", {}))
    with pytest.raises(MissingExtraError, match="`efficientnet` needs `transformers`"):
        plan_of(faces)
    plan = plan_of(faces, backbone="lenet")
    assert plan.configuration.backbone == Spec("lenet", {"kernel": 5, "rectified": True})
    assert plan.configuration.conditioning == Spec(
        "transposed_conv", {"layer": None, "zero": True, "joined": False}
    )


def test_a_conditionings_defaults_are_written_down() -> None:
    """So that a default of another day makes no other run of it."""
    plan = plan_of(conditioning="hypernet", settings={"width": "7"})
    assert plan.configuration.conditioning == Spec("hypernet", {"width": 7, "chunk": 50_000})
    assert plan.configuration.to_dict()["conditioning"]["settings"]["chunk"] == 50_000
    assert plan_of(method="uniform").configuration.conditioning == Spec("none", {})


@dataclass(frozen=True, kw_only=True)
class Odd(Uniform):
    """A method whose settings have no JSON form."""

    dtype: torch.dtype = torch.float64
    limit: float = math.inf


def test_a_configuration_is_plain_json_whatever_it_holds() -> None:
    plain = plan_of(method=Odd(), settings={"milestones": "3"}).configuration.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain  # what a resume compares
    assert plain["backbone"] == {"name": "mlp", "settings": {"hidden": [60, 25]}}
    assert plain["training"]["milestones"] == [3]


def test_another_seed_is_the_same_plan_with_other_weights() -> None:
    plan = plan_of(settings={"hidden": "5"})
    for seed in (1, 2, 7):
        other, alone = (plan.for_seed(seed), plan_of(settings={"hidden": "5"}, seed=seed))
        assert other.configuration == alone.configuration
        assert other.problem is plan.problem
        assert other.model is not plan.model
        found, expected = other.model.state_dict(), alone.model.state_dict()
        assert all(torch.equal(found[name], value) for name, value in expected.items())
    with pytest.raises(ConfigurationError, match=r"`seed`.*at least 0"):
        plan.for_seed(-1)


def test_a_network_handed_over_is_the_same_for_every_seed() -> None:
    model = Joined()
    plan = plan_of(model=model)
    other = plan.for_seed(2)
    assert other.model is not plan.model
    assert other.model is not model
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), other.model.parameters(), strict=True)
    )
    backbone = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    plans = (plan_of(backbone=backbone), plan_of(backbone=backbone, seed=2))
    found, expected = plans[0].for_seed(2).model.state_dict(), plans[1].model.state_dict()
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def _around(*between: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), *between, nn.Linear(8, 2))


def _half_frozen() -> nn.Module:
    last = nn.Linear(8, 2).requires_grad_(False)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), last)


@pytest.mark.parametrize(
    ("given", "stackable"),
    [
        ({}, True),
        ({"backbone": _around(nn.Tanh(), nn.LayerNorm(8))}, True),
        ({"backbone": _around(nn.Dropout(0.1))}, False),
        ({"backbone": _around(nn.AlphaDropout(0.1))}, False),
        ({"backbone": _around(nn.RReLU())}, False),
        ({"backbone": _around(nn.BatchNorm1d(8))}, False),
        ({"backbone": _half_frozen()}, False),
        ({"backbone": _half_frozen(), "method": "pareto_mtl"}, False),
        ({"backbone": _half_frozen(), "conditioning": "hypernet"}, False),
        ({"backbone": Joined()}, False),
        ({"method": Uniform()}, False),
        ({"conditioning": f"{__name__}:Heir"}, False),
    ],
    ids=[
        *("mlp", "torch", "dropout", "alpha", "rrelu", "norm", "frozen", "several frozen"),
        *("frozen hypernet", "own network", "own method", "own"),
    ],
)
def test_seeds_are_stacked_where_each_stays_what_it_would_be_alone(
    given: dict[str, Any], stackable: bool
) -> None:
    assert plan_of(**given).stackable == stackable


def test_weights_come_from_the_seed_and_not_from_the_callers_generator() -> None:
    before = torch.get_rng_state()
    one, same, other = (plan_of(seed=seed).model.state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "problem": ({"problem": "toy_convx"}, "`toy_convx`.*`toy_convex`"),
    "no problem": ({"problem": None}, "`problem`.*found None"),
    "problem's kind": ({"problem": f"{__name__}:Uniform"}, "must give .*Problem"),
    "method": ({"method": "cosmo"}, "`cosmo`.*`cosmos`"),
    "method's class": ({"method": Cosmos}, "`method`.*class Cosmos"),
    "method's kind": ({"method": f"{__name__}:points"}, "must give a Method, found Points"),
    "no thing": ({"method": "os:sep"}, "name a class or a function"),
    "builtin": ({"method": "builtins:int"}, "name a class or a function"),
    "needy": ({"method": f"{__name__}:Needy"}, r"Needy` cannot be built \(.*must"),
    "conditioning": ({"conditioning": "concatt"}, "did you mean `concat`"),
    "conditioning's kind": ({"conditioning": f"{__name__}:Uniform"}, "cannot be built|must give"),
    "backbone": ({"backbone": "mpl"}, "unknown backbone `mpl`"),
    "engine": ({"engine": "eagre"}, "did you mean `eager`"),
    "protocol": ({"protocol": "papr"}, "did you mean `paper`"),
    "protocol twice": (
        {"problem": load_problem("toy_convex"), "protocol": "paper"},
        "loaded under protocol `clean`",
    ),
    "setting": ({"method": "cosmos", "settings": {"penalti": 1}}, "`penalti`.*`penalty`"),
    "own method's setting": (
        {"method": Cosmos(), "settings": {"penalty": 1}},
        "unknown setting `penalty`",
    ),
    "alpha": ({"settings": {"alpha": "0"}}, "`alpha` must be positive"),
    "alpha's length": ({"settings": {"alpha": "1,2,3"}}, "here 2; found 3"),
    "penalty": ({"method": "cosmos", "settings": {"penalty": "-1"}}, "`penalty`.*at least 0"),
    "penalty nan": (
        {"method": "cosmos", "settings": {"penalty": "nan"}},
        "`penalty`.*at least 0.*nan",
    ),
    "penalty of another method": (
        {"method": "linear", "settings": {"penalty": 1}},
        "unknown setting `penalty`",
    ),
    "preset": ({"preset": "papre"}, "unknown preset `papre`; did you mean `paper`"),
    "reference's length": ({"settings": {"reference": "1,2,3"}}, "here 2; found 3"),
    "reference nan": ({"settings": {"reference": "nan,1"}}, "`reference` must be finite"),
    "hidden": ({"settings": {"hidden": "0"}}, "`hidden` must be at least 1"),
    "layer": ({"settings": {"layer": "nowhere"}}, "no layer `nowhere`"),
    **{
        f"rays_per_batch of {method}": (
            {"method": method, "settings": {"rays_per_batch": 2}},
            f"`rays_per_batch`.*found 2.*`{method}`.*leave it out",
        )
        for method in ("mgda", "single_task", "uniform", "pareto_mtl")
    },
    "rays_per_batch": (
        {"problem": points(), "preset": "paper", "settings": {"rays_per_batch": 64}},
        "at most the 60 training",
    ),
    "rays_per_batch and batch": (
        {"problem": points(), "settings": {"rays_per_batch": 64}},
        "`rays_per_batch` must divide `batch_size`, found 64 and 32",
    ),
    "seed": ({"seed": -1}, "`seed`.*at least 0"),
    "large seed": ({"seed": 2**63}, "`seed`"),
    "seed's kind": ({"seed": 1.0}, "`seed`.*found 1.0"),
    "device": ({"device": "cpux"}, "unknown device `cpux`"),
    "device's kind": ({"device": "meta"}, "`device` must be cpu or cuda"),
    "absent device": ({"device": "cuda:99"}, 'use device="cpu"'),
    "two networks": ({"model": Joined(), "backbone": "mlp"}, "`model` is a complete network"),
    "frozen": ({"model": Joined().requires_grad_(False)}, "no trainable parameters"),
    "shape": ({"problem": points(shape=(3, 2))}, "no default network: pass `model`"),
    "small image": ({"problem": points(shape=(3, 2, 2))}, "`lenet` takes images"),
    "precision": ({"precision": "fp8"}, "`fp8`.*`fp.."),
    "precision's kind": ({"precision": "half"}, "known: bf16, fp32, fp64, tf32"),
    "captured": ({"engine": "captured", "device": "cpu"}, "`engine` captured .*CUDA"),
    "batch": (
        {"problem": points(), "settings": {"batch_size": 61}},
        r"`batch_size`.* 60 .*found 61: lower it",
    ),
    "batch by its long name": (
        {"problem": points(), "settings": {"training.batch_size": "61"}},
        "at most the 60 training",
    ),
    "seeds twice": ({"seeds": (1, 2, 1)}, r"`seeds` must be different .* found \(1, 2, 1\)"),
    "seed and seeds": ({"seed": 2, "seeds": (1, 2)}, "`seeds`.*`seed`, found 2"),
    "negative seeds": ({"seeds": (1, -2)}, "`seed`.*at least 0.*found -2"),
    "no columns": ({"problem": "table"}, "needs `data` and `target`"),
    "no file, no columns": ({"problem": "my.csv"}, "`my.csv` does not exist"),
    "no file": (
        {"problem": "absent.csv", "settings": {"target": "a", "sensitive": "b"}},
        "does not exist",
    ),
    "resume": ({"resume": True, "out": None}, "`resume` needs `out`"),
}


@pytest.mark.parametrize(("given", "says"), REFUSED.values(), ids=list(REFUSED))
def test_it_is_refused_before_any_folder_exists(
    given: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments: dict[str, Any] = {"problem": "toy_convex", "epochs": 1, "out": tmp_path / "run"}
    with pytest.raises((ConfigurationError, DataError), match=says):
        fit(**arguments | given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given",
    [{"method": Uniform()}, {"backbone": Joined()}, {"conditioning": f"{__name__}:Heir"}],
    ids=lambda given: next(iter(given)),
)
def test_code_of_ones_own_is_not_traced_unasked(given: dict[str, Any]) -> None:
    # a trace freezes what Python decides; a check on one batch cannot see what changes later
    assert not plan_of(**given).traceable


class Silent(nn.Module):
    """A backbone that promises nothing."""

    def __init__(self, inner: nn.Module | None = None) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 2) if inner is None else inner

    def forward(self, inputs: Tensor) -> Tensor:
        return self.inner(inputs)


class Promising(Silent):
    traceable = True


class HeirOfPromising(Promising):
    """A class with code of its own, for which nobody has promised anything."""


@pytest.mark.parametrize(
    ("backbone", "traceable"),
    [
        (Silent(), False),
        (Promising(), True),
        (HeirOfPromising(), False),
        (Promising(Silent()), True),  # a declaration speaks for all inside
        (nn.Sequential(nn.ReLU(), Promising()), True),
        (nn.Sequential(Promising(), Silent()), False),
    ],
)
def test_a_class_speaks_for_itself(backbone: nn.Module, traceable: bool) -> None:
    assert plan_of(backbone=backbone, conditioning="hypernet").traceable is traceable


def test_neither_is_what_hangs_on_torchs_modules_or_prepares_the_inputs() -> None:
    backbone = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    assert plan_of(backbone=backbone, conditioning="concat").traceable
    handle = backbone[1].register_forward_hook(lambda _module, _given, out: out * 2)
    assert not plan_of(backbone=backbone, conditioning="concat").traceable
    handle.remove()
    backbone[0].register_forward_pre_hook(lambda _module, given: given)
    assert not plan_of(backbone=backbone, conditioning="concat").traceable

    class Prepared(ToyProblem):
        def prepare(self, inputs: Any, dtype: torch.dtype) -> Any:
            return inputs.to(dtype) * 2

    toy = load_problem("toy_convex")
    fields = {field.name: getattr(toy, field.name) for field in dataclasses.fields(toy)}
    assert plan_of(toy).traceable
    assert not plan_of(Prepared(**fields)).traceable
