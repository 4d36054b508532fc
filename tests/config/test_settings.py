import math
from collections.abc import Callable
from typing import Any

import pytest

from paretocosmos import registry
from paretocosmos.config.settings import (
    Training,
    get_label,
    get_pairs,
    get_paper_network,
    get_paper_settings,
    make_spec,
    split_settings,
)
from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Cosmos, Linear
from paretocosmos.nn.backbones import Mlp
from paretocosmos.nn.conditioning import Concat
from paretocosmos.problems.tables import table
from paretocosmos.registry import Spec

OWNERS: dict[str, Callable[..., Any]] = {
    "training": Training,
    "method": Cosmos,
    "problem": table,
    "conditioning": Concat,
    "backbone": Mlp,
}


class Heir(Cosmos):
    """A method of one's own that inherits its constructor."""


def unannotated(*, size=3): ...  # type: ignore[no-untyped-def]


def other(*, penalty: int = 1, layer: str = "") -> None: ...


@pytest.mark.parametrize(
    ("given", "role", "expected"),
    [
        ({"epochs": "3"}, "training", {"epochs": 3}),
        ({"learning_rate": "1e-4"}, "training", {"learning_rate": 1e-4}),
        ({"milestones": "20,40"}, "training", {"milestones": (20, 40)}),
        ({"reference": [2, 3]}, "training", {"reference": (2.0, 3.0)}),
        ({"reference": "none"}, "training", {"reference": None}),
        ({"penalty": "3"}, "method", {"penalty": 3.0}),
        ({"alpha": "0.1,0.5"}, "method", {"alpha": (0.1, 0.5)}),
        ({"alpha": "0.1"}, "method", {"alpha": 0.1}),
        ({"alignment": "inverse"}, "method", {"alignment": "inverse"}),
        ({"hidden": "60,25"}, "backbone", {"hidden": (60, 25)}),
        ({"hidden": ""}, "backbone", {"hidden": ()}),
        ({"layer": "layers.2"}, "conditioning", {"layer": "layers.2"}),
        ({"split_seed": "7"}, "problem", {"split_seed": 7}),
        ({"drop": "id,name"}, "problem", {"drop": ("id", "name")}),
        ({"method.penalty": 1, "training.rays_per_batch": "2"}, "method", {"penalty": 1.0}),
    ],
)
def test_a_setting_goes_to_its_owner_in_the_type_it_asks_for(
    given: dict[str, Any], role: str, expected: dict[str, Any]
) -> None:
    found = split_settings(given, OWNERS)
    assert found[role] == expected
    assert [type(v) for v in found[role].values()] == [type(v) for v in expected.values()]
    assert set(found) == set(OWNERS)
    assert sum(map(len, found.values())) == len(given)


def test_an_unknown_setting_suggests_the_closest_of_all_owners() -> None:
    for wrong, close in (("penality", "penalty"), ("epoch", "epochs"), ("hiden", "hidden")):
        with pytest.raises(ConfigurationError, match=f"`{wrong}`.*`{close}`"):
            split_settings({wrong: 1}, OWNERS)


def test_every_mistake_is_reported_at_once() -> None:
    wrong = {"epochs": "many", "penality": "1", "hidden": "60,x", "epochss": 1, "rays": "25"}
    with pytest.raises(ConfigurationError) as caught:
        split_settings(wrong, OWNERS)
    for part in ("`epochs` takes int, found 'many'", "`penality`", "`hidden`", "`epochss`"):
        assert part in str(caught.value)
    assert "rays`" not in str(caught.value).replace("known: ", "")  # which was right


@pytest.mark.parametrize("key", ["training.penalty", "nobody.penalty", "method.", ".penalty2"])
def test_a_prefix_must_be_an_owner_that_takes_the_setting(key: str) -> None:
    with pytest.raises(ConfigurationError, match="unknown setting"):
        split_settings({key: 1}, OWNERS)


def test_a_setting_of_two_owners_must_say_whose_it_is() -> None:
    owners: dict[str, Callable[..., Any]] = {"method": Cosmos, "backbone": other}
    with pytest.raises(ConfigurationError, match=r"`method\.penalty`.*`backbone\.penalty`"):
        split_settings({"penalty": 2}, owners)
    found = split_settings({"backbone.penalty": "2", "method.penalty": "0.5"}, owners)
    assert found == {"method": {"penalty": 0.5}, "backbone": {"penalty": 2}}


def test_lenient_leaves_out_what_nobody_takes() -> None:
    found = split_settings({"penalty": 1, "hidden": [3]}, {"method": Linear}, lenient=True)
    assert found == {"method": {}}


def test_constructors_of_ones_own_need_no_init_and_no_annotations() -> None:
    assert split_settings({"penalty": "3"}, {"method": Heir}) == {"method": {"penalty": 3.0}}
    assert split_settings({"size": "3"}, {"problem": unannotated}) == {"problem": {"size": "3"}}


# FACTS.md, section 2: Adam 1e-3, batch 256, 50 epochs, no schedule, the MLP d-60-25-1, 25 rays,
# validation every 5 epochs, HV at (2, 2); λ and alpha of COSMOS .01 and .5, Default alpha (.1, .5).
PAPER = {
    "epochs": 50,
    "batch_size": 256,
    "learning_rate": 1e-3,
    "hidden": [60, 25],
    "evaluate_every": 5,
    "rays": 25,
    "reference": [2.0, 2.0],
}


@pytest.mark.parametrize(
    ("problem", "alpha"), [("adult", 0.5), ("compas", 0.5), ("default_credit", [0.1, 0.5])]
)
def test_the_papers_settings(problem: str, alpha: object) -> None:
    fair = PAPER | {"fairness": "deo"}
    assert get_paper_settings(problem, "cosmos") == fair | {"penalty": 0.01, "alpha": alpha}
    assert get_paper_settings(problem, "linear") == fair


# FACTS.md, section 2: 100 epochs, lr x0.1 after 20, 40, 80, 90, alpha 1.2; λ as its table has it.
@pytest.mark.parametrize(
    ("problem", "penalty"), [("multi_mnist", 2.0), ("multi_fashion", 2.0), ("fashion_and_mnist", 8)]
)
def test_the_papers_settings_for_images(problem: str, penalty: float) -> None:
    images = {key: value for key, value in PAPER.items() if key != "hidden"} | {
        "epochs": 100,
        "milestones": [20, 40, 80, 90],
        "decay": 0.1,
    }
    cosmos = {"penalty": penalty, "alpha": 1.2, "joined": True}
    assert get_paper_settings(problem, "cosmos") == images | cosmos
    assert get_paper_settings(problem, "linear") == images


def test_the_paper_names_networks_where_they_are_not_those_for_the_shape() -> None:
    for problem in ("celeba", "celeba_easy", "celeba_ten"):  # by name, and by the one it is like
        assert get_paper_network(problem) == {"backbone": "efficientnet"}
        assert "backbone" not in get_paper_settings(problem, "cosmos")
    for problem in registry.names("problems"):
        named = get_paper_network(problem)
        assert named == {} or problem.startswith("celeba")
        kinds = {"backbone": "backbones", "conditioning": "conditioning"}
        assert all(name in registry.names(kinds[part]) for part, name in named.items())


# FACTS.md, section 4: PHN alpha .2, lr 1e-4, images 150 epochs, no schedule, a 9x9 first kernel, no
# activation after fc; MGDA lr 1e-4, no schedule, loss+; ParetoMTL five networks, images lr x0.5 at
# 15, 30, ..., 90; single task and uniform as COSMOS.
PHN = {"learning_rate": 1e-4, "milestones": [], "alpha": 0.2}
IMAGE_PHN = {"epochs": 150, "kernel": 9, "rectified": False}
BASELINES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "phn_ls": (PHN, IMAGE_PHN),
    "phn_epo": (PHN, IMAGE_PHN),
    "mgda": ({"learning_rate": 1e-4, "normalisation": "loss+"}, {"milestones": []}),
    "pareto_mtl": ({"networks": 5}, {"milestones": [15, 30, 45, 60, 75, 90], "decay": 0.5}),
    "single_task": ({}, {}),
    "uniform": ({}, {}),
}


@pytest.mark.parametrize("label", BASELINES)
def test_the_papers_settings_for_its_baselines(label: str) -> None:
    own, images = BASELINES[label]
    for problem in ("adult", "compas", "default_credit"):
        assert get_paper_settings(problem, label) == PAPER | {"fairness": "deo"} | own
    general = {key: value for key, value in PAPER.items() if key != "hidden"}
    general |= {"epochs": 100, "milestones": [20, 40, 80, 90], "decay": 0.1}
    for problem in ("multi_mnist", "multi_fashion", "fashion_and_mnist"):
        assert get_paper_settings(problem, label) == general | own | images


@pytest.mark.parametrize("problem", ["adult", "multi_mnist", "multi_digits"])
@pytest.mark.parametrize("label", BASELINES)
def test_and_they_are_settings_that_exist(label: str, problem: str) -> None:
    method, conditioning = get_pairs().get(label) or (label, "none")
    owners: dict[str, Callable[..., Any]] = {
        "training": Training,
        "method": registry.find("methods", method),
        "conditioning": registry.find("conditioning", conditioning),
        "backbone": registry.find("backbones", "mlp" if problem == "adult" else "lenet"),
        "problem": registry.find("problems", problem),
    }
    known = get_paper_settings(problem, label)
    found = split_settings(known, owners)
    assert sum(map(len, found.values())) == len(known)
    registry.build("methods", Spec(method, found["method"]))
    Training(**found["training"])


def test_a_pair_has_a_name_of_its_own() -> None:
    assert get_pairs() == {"phn_ls": ("linear", "hypernet"), "phn_epo": ("epo", "hypernet")}
    for name, pair in get_pairs().items():
        assert get_label(*pair) == name
        assert name not in registry.names("methods")
        assert pair[0] in registry.names("methods")
        assert pair[1] in registry.names("conditioning")
    for name in registry.names("methods"):
        assert get_label(name, "concat") == get_label(name, None) == name


def test_what_the_paper_has_not_is_empty() -> None:
    assert get_paper_settings("toy_convex", "cosmos") == {}
    assert get_paper_settings("tests.mine:problem", "cosmos") == {}
    for problem in ("toy_convex", "tests.mine:problem", ""):
        for label in get_pairs():  # whose own settings go with them everywhere
            assert get_paper_settings(problem, label) == PHN


def test_a_problem_has_the_last_word_on_a_pair() -> None:
    own = get_paper_settings("multi_digits", "phn_ls")
    assert (own["learning_rate"], own["milestones"], own["alpha"]) == (1e-3, [], 0.2)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"epochs": 0}, "`epochs`.*found 0"),
        ({"batch_size": 0}, "`batch_size`"),
        ({"rays_per_batch": 0}, "`rays_per_batch`.*at least 1"),
        ({"rays_per_batch": 3}, "`rays_per_batch`.*divide.*3 and 256"),
        ({"accumulate": 0}, "`accumulate`.*at least 1"),
        ({"accumulate": 4}, "`accumulate`.*4 and 1: .*rays_per_batch=4"),
        ({"evaluate_every": -1}, "`evaluate_every`"),
        ({"rays": 0}, "`rays`"),
        ({"learning_rate": 0.0}, "`learning_rate` must be"),
        ({"learning_rate": math.nan}, "`learning_rate`"),
        ({"learning_rate": math.inf}, "`learning_rate`"),
        ({"weight_decay": -1.0}, "`weight_decay`"),
        ({"decay": math.nan}, "`decay` must be finite"),
        ({"decay": 0.0}, "`decay`"),
        ({"reference": (math.inf, 2.0)}, "`reference` must be finite"),
        ({"reference": (2.0, math.nan)}, "`reference` must be finite"),
    ],
)
def test_training_refuses(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Training(**wrong)


def test_training_names_every_mistake() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Training(epochs=0, learning_rate=-1.0, rays=-3)
    assert all(f"`{key}`" in str(caught.value) for key in ("epochs", "learning_rate", "rays"))


def test_the_learning_rate_falls_after_each_milestone() -> None:
    training = Training(learning_rate=1.0, milestones=(2, 5), decay=0.5)
    found = [rate for epoch in range(7) for rate in training.compute_learning_rates(epoch, 1000)]
    assert found == [1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25]  # epochs 1 and 2 are before the first


def test_a_cosine_rises_first_and_ends_at_nothing() -> None:
    training = Training(epochs=5, batch_size=10, learning_rate=2.0, schedule="cosine", warmup=0.2)
    rates = [rate for epoch in range(5) for rate in training.compute_learning_rates(epoch, 95)]
    assert len(rates) == 50  # the last short batch of an epoch is a step
    assert rates[:10] == sorted(rates[:10])
    assert rates[10] == 2.0 == max(rates)
    assert rates[30] == pytest.approx(1.0)  # half way down
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0 < rates[-1] < 0.01


def test_a_spec_names_what_was_built_and_builds_it_again() -> None:
    method = Cosmos(penalty=2.0, alpha=(0.1, 0.5))
    settings = {"penalty": 2.0, "alpha": (0.1, 0.5), "stratified": False, "alignment": "ray"}
    settings |= {"normalise": False, "floor": 0.0, "least": None, "least_epochs": 0}
    assert make_spec("methods", method) == Spec("cosmos", settings)
    assert registry.build("methods", make_spec("methods", method)) == method
    heir = make_spec("methods", Heir(penalty=3.0))
    assert heir.name == f"{__name__}:Heir"
    assert registry.build("methods", heir) == Heir(penalty=3.0)
    assert make_spec("methods", object()).settings == {}
