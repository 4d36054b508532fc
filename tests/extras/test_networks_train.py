"""The sixty networks train towards two targets at once and heed the ray, as the table says."""

import statistics

import pytest
from tests.networks.foreign import TRANSFORMERS
from tests.networks.listed import NETWORKS
from tests.networks.table import COMMITTED, page, results
from tests.networks.test_ray_by_ray import REFUSED, check_ray_by_ray
from tests.networks.tried import train

TAKEN = [name for name in NETWORKS if name not in REFUSED]


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_several_rays_are_one_ray_at_a_time(name: str) -> None:
    check_ray_by_ray(name)


@pytest.mark.parametrize("name", TAKEN)
def test_it_trains_and_heeds_the_ray(name: str) -> None:
    tried = train(name)
    before, after = tried.losses
    assert after < before
    assert tried.sensitivity > 0.05


def test_most_are_conditioned_and_outputs_change_with_the_ray() -> None:
    assert len(TAKEN) >= 57
    assert statistics.median(train(name).sensitivity for name in TAKEN) >= 0.3


def test_the_table_is_of_these_networks() -> None:
    committed = results()["networks"]
    assert list(committed) == list(NETWORKS)
    assert COMMITTED.read_text(encoding="utf-8") == page()
    for name in ("time-first LSTM", "BERT"):
        assert committed[name]["places"] == list(train(name).places)
