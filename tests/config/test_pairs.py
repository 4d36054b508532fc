"""Which network goes with which method: what is built, and what is one sentence instead."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.small import plan_of
from torch import Tensor, nn

from paretocosmos import fit
from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import (
    Cosmos,
    Epo,
    Gram,
    Linear,
    Method,
    Mgda,
    ParetoMtl,
    SingleTask,
    State,
)
from paretocosmos.nn.conditioning import (
    Concat,
    Hypernet,
    PerRayEnsemble,
    Unconditioned,
    list_networks,
)
from paretocosmos.objectives import MeanSquaredError, Objective
from paretocosmos.problems import Problem, Split, load_problem
from paretocosmos.runs import Run
from paretocosmos.types import Batch, Outputs, Targets

# ---------------------------------------------------------------- what is built


@pytest.mark.parametrize(
    ("method", "networks"),
    [
        ("mgda", 1),
        ("uniform", 1),
        ("single_task", 2),
        ("pareto_mtl", 5),
        (ParetoMtl(networks=3), 3),
    ],
    ids=["mgda", "uniform", "single_task", "pareto_mtl", "an object"],
)
def test_a_method_with_rays_of_its_own_has_a_network_for_each(
    method: str | Method, networks: int
) -> None:
    plan = plan_of(method=method)
    assert isinstance(plan.model, PerRayEnsemble)
    found = list_networks(plan.model)
    assert len(found) == networks
    assert all(type(network) is Unconditioned for network in found)
    firsts = torch.stack([next(network.parameters()).detach().flatten() for network in found])
    assert len(torch.unique(firsts, dim=0)) == networks  # fresh weights each
    assert plan.configuration.conditioning.name == "none"
    assert plan.traceable
    assert plan.stackable
    same = plan_of(method=method, conditioning="none").model.state_dict()
    assert all(torch.equal(value, same[name]) for name, value in plan.model.state_dict().items())


@pytest.mark.parametrize(
    ("name", "kind"), [("phn_ls", Linear), ("phn_epo", Epo)], ids=["phn_ls", "phn_epo"]
)
def test_a_name_of_the_papers_is_a_method_and_a_conditioning(name: str, kind: type[Method]) -> None:
    for given in ({"method": name}, {"method": name, "conditioning": "hypernet"}):
        plan = plan_of(**given)
        assert type(plan.method) is kind
        assert type(plan.model) is Hypernet
        assert plan.configuration.label == name
    apart = plan_of(method=plan.configuration.method.name, conditioning="hypernet")
    assert apart.configuration == plan.configuration


def test_the_papers_names_have_settings_of_their_own_on_any_problem() -> None:
    for problem in ("toy_convex", load_problem("toy_convex"), _two_tasks()):
        role: dict[str, Any] = {"backbone": Plainly()} if isinstance(problem, TwoTasks) else {}
        for method in ("phn_ls", "phn_epo"):
            plan = plan_of(problem, method=method, **role)
            assert plan.training.learning_rate == 1e-4
            assert plan.training.milestones == ()
            assert plan.method in (Linear(alpha=0.2), Epo(alpha=0.2))
            mine = {"learning_rate": 0.01, "alpha": 0.7}
            own = plan_of(problem, method=method, settings=mine, **role)  # one's own go before
            assert own.training.learning_rate == 0.01
            assert own.method in (Linear(alpha=0.7), Epo(alpha=0.7))
    assert plan_of(method="linear").training.learning_rate == 1e-3


# ---------------------------------------------------------------- methods of one's own


class Corners(Method):
    """A network for each objective, by a class that derives from nothing but the contract."""

    def fixed_rays(self, objectives: int) -> Tensor:
        return torch.eye(objectives)

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        raise NotImplementedError

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return rays.expand_as(losses), state


def corners() -> Method:
    return Corners()


def some_networks(*, networks: int) -> Method:
    """Without a default."""
    return ParetoMtl(networks=networks)


def drawing(*, alpha: float = 0.5) -> Method:
    return Cosmos(alpha=alpha)


@pytest.mark.parametrize(
    ("method", "settings", "networks"),
    [
        (Corners(), {}, 2),
        (f"{__name__}:Corners", {}, 2),
        (f"{__name__}:corners", {}, 2),
        (f"{__name__}:some_networks", {"networks": "3"}, 3),
        (f"{__name__}:some_networks", {"method.networks": 4}, 4),
    ],
    ids=["object", "class", "function", "settings", "long name"],
)
def test_a_method_of_ones_own_with_rays_of_its_own_needs_no_conditioning(
    method: str | Method, settings: dict[str, Any], networks: int
) -> None:
    plan = plan_of(method=method, settings=settings)
    assert [type(network) for network in list_networks(plan.model)] == [Unconditioned] * networks
    assert plan.configuration.conditioning.name == "none"


# ---------------------------------------------------------------- what is refused


class Shifted(MeanSquaredError):  # noqa: N818
    """A loss that can be negative."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(outputs, targets) - 100


class Nothing(Objective):
    """A loss that is zero."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return outputs.square().sum() * 0


def _with(objective: Objective) -> Problem:
    problem = load_problem("toy_convex")
    return dataclasses.replace(problem, objectives=(problem.objectives[0], objective))


def _own() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


NEGATIVE, ZERO = _with(Shifted(name="b", target="second")), _with(Nothing(name="b"))
TOLD = "`{}` trains a network .*`concat`.*leave"
DEAF = "`{}` draws rays, .*leave `conditioning` out"
LIKE = r"`normalisation` .*`loss\+`, found 'l3'"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "mgda concat": ({"method": "mgda", "conditioning": "concat"}, TOLD.format("mgda")),
    "mgda object": ({"method": Mgda(), "conditioning": "concat"}, TOLD.format("mgda")),
    "single backbone": (
        {"method": SingleTask(), "conditioning": "concat", "backbone": _own()},
        TOLD.format("single_task"),
    ),
    "cosmos none": ({"method": "cosmos", "conditioning": "none"}, DEAF.format("cosmos")),
    "cosmos object": ({"method": Cosmos(), "conditioning": "none"}, DEAF.format("cosmos")),
    "epo none": ({"method": "epo", "conditioning": "none"}, DEAF.format("epo")),
    "own function": (
        {"method": f"{__name__}:some_networks"},
        "some_networks` cannot be built .*networks",
    ),
    "own function's value": (
        {"method": f"{__name__}:some_networks", "settings": {"networks": "few"}},
        "`networks`.*int, found 'few'",
    ),
    "mgda model": ({"method": "mgda", "model": Concat(_own(), 2)}, TOLD.format("mgda")),
    "single model": (
        {"method": SingleTask(), "model": Concat(_own(), 2)},
        TOLD.format("single_task"),
    ),
    "cosmos model": (
        {"method": "cosmos", "model": Unconditioned(_own(), 2)},
        DEAF.format("cosmos"),
    ),
    "phn model": (
        {"method": "phn_ls", "model": _own()},
        "`phn_ls` .*`linear` .*`hypernet`: leave `model` out",
    ),
    "phn conditioning": (
        {"method": "phn_epo", "conditioning": "concat"},
        "`phn_epo` .*`epo` .*: leave `conditioning` out",
    ),
    "unknown method": ({"method": "phn-ls"}, "`phn-ls`.*`phn_ls`"),
    "all methods": ({"method": "xyz"}, "known: cosmos, epo, linear, .*phn_epo, phn_ls"),
    "normalisation": ({"method": "mgda", "settings": {"normalisation": "l3"}}, LIKE),
    "networks": ({"method": "pareto_mtl", "settings": {"networks": 0}}, "`networks`.*found 0"),
    "another's setting": (
        {"method": "mgda", "settings": {"penalty": 1}},
        "unknown setting `penalty`",
    ),
    "alpha": ({"method": "uniform", "settings": {"alpha": 1}}, "unknown setting `alpha`"),
    "epo negative": (
        {"method": "epo", "problem": NEGATIVE},
        "`epo` .*found -.* for `b` .*add a constant",
    ),
    "epo zero": ({"method": "phn_epo", "problem": ZERO}, "found 0 for `b`"),
    "pareto_mtl negative": ({"method": "pareto_mtl", "problem": NEGATIVE}, "losses of at least 0"),
    "mgda negative": ({"method": "mgda", "problem": NEGATIVE}, "set `normalisation` to `l2`"),
}


@pytest.mark.parametrize(("given", "says"), REFUSED.values(), ids=list(REFUSED))
def test_it_is_one_sentence_before_any_folder_exists(
    given: dict[str, Any], says: str, tmp_path: Path
) -> None:
    arguments: dict[str, Any] = {"problem": "toy_convex", "epochs": 1, "out": tmp_path / "run"}
    with pytest.raises(ConfigurationError, match=says) as told:
        fit(**arguments | given)
    assert "\n" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- heads that nobody declared


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoTasks(Problem):
    """Two heads, an objective each."""

    def split(self, name: Split) -> Batch:
        draw = torch.Generator().manual_seed(len(name))
        inputs = torch.randn(40, 4, generator=draw)
        return Batch(inputs, {"left": inputs[:, :2], "right": inputs[:, 2:]})


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.left, self.right = nn.Linear(4, 5), nn.Linear(5, 2), nn.Linear(5, 2)

    def forward(self, inputs: Tensor, ray: Tensor | None = None) -> dict[str, Tensor]:
        features = torch.tanh(self.trunk(inputs))
        return {"left": self.left(features), "right": self.right(features)}


class Declared(TwoHeads):
    heads = ("left", "right")


class Misspelt(TwoHeads):
    heads = ("left", "rihgt")


class Plainly(nn.Module):
    """As a conditioning wants its backbone."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.head = nn.Linear(4, 5), nn.Linear(5, 4)

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        left, right = self.head(torch.tanh(self.trunk(inputs))).chunk(2, dim=1)
        return {"left": left, "right": right}


class Apart(nn.Module):
    """Nothing is shared."""

    heads = ("left", "right")

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, inputs: Tensor, ray: Tensor | None = None) -> dict[str, Tensor]:
        return {"left": self.left(inputs), "right": self.right(inputs)}


def _two_tasks() -> TwoTasks:
    return TwoTasks(
        name="two tasks",
        objectives=tuple(MeanSquaredError(name=n, output=n, target=n) for n in ("left", "right")),
        reference=(9.0, 9.0),
        input_shape=(4,),
        outputs={"left": 2, "right": 2},
    )


@pytest.mark.parametrize("role", ["model", "backbone"])
@pytest.mark.parametrize("method", ["mgda", "pareto_mtl"])
def test_a_parameter_that_an_objective_does_not_reach_is_refused(
    method: str, role: str, tmp_path: Path
) -> None:
    def go(network: nn.Module) -> Run:
        given: dict[str, Any] = {role: network, "method": method, "epochs": 1}
        return fit(_two_tasks(), preset="paper", out=tmp_path / "run", **given)

    says = r"`left\.weight` .*`right`.*`heads`"
    with pytest.raises(ConfigurationError, match=says):
        go(TwoHeads())
    with pytest.raises(ConfigurationError, match="share, found none"):
        go(Apart())
    with pytest.raises(ConfigurationError, match=r"`rihgt`.*`right`"):
        go(Misspelt())
    assert list(tmp_path.iterdir()) == []
    assert go(Declared()).record["status"] == "finished"  # naming them helps
