"""Who promises that a step can be recorded."""

import pytest
from torch import Tensor, nn

from paretocosmos.config.traceability import (
    find_third_party,
    find_untraceable,
    get_declaration,
    keeps_promise,
)
from paretocosmos.methods import Cosmos
from paretocosmos.nn.conditioning import Concat


class Silent(nn.Module):
    def __init__(self, inner: nn.Module | None = None) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2) if inner is None else inner

    def forward(self, inputs: Tensor) -> Tensor:
        out: Tensor = self.inner(inputs)
        return out


class Promising(Silent):
    traceable = True


class Heir(Promising):
    pass


class Refusing(Cosmos):
    traceable = False


@pytest.mark.parametrize(
    ("thing", "said", "kept"),
    [
        (Cosmos(), None, True),
        (Refusing(), False, False),
        (nn.Linear(1, 1), None, True),
        (Silent(), None, False),
        (Promising(), True, True),
        (Heir(), None, False),
        (lambda outputs, targets: outputs, None, False),
    ],
    ids=["ours", "taken back", "torch", "silent", "promising", "heir", "function"],
)
def test_a_class_speaks_for_itself(thing: object, said: bool | None, kept: bool) -> None:
    assert get_declaration(thing) is said
    assert keeps_promise(thing) is kept


def test_a_thing_may_speak_where_its_class_does_not() -> None:
    network = Silent()
    network.traceable = True  # type: ignore[assignment]
    assert keeps_promise(network)

    def loss(outputs: Tensor, _targets: object) -> Tensor:
        return outputs.mean()

    loss.traceable = True  # type: ignore[attr-defined]
    assert keeps_promise(loss)


def test_a_network_speaks_for_all_inside_or_each_module_for_itself() -> None:
    whole, inner = Promising(Silent()), Silent(Promising())
    assert list(find_untraceable(whole)) == []
    assert list(find_untraceable(inner)) == [inner]
    assert list(find_untraceable(nn.Sequential(nn.ReLU(), Promising(), nn.ReLU()))) == []
    mixed = nn.Sequential(Promising(), Silent(), Heir())
    assert list(find_untraceable(mixed)) == [mixed[1], mixed[2]]


def test_a_conditioned_network_is_what_its_backbone_is() -> None:
    for backbone, known in ((Promising(), True), (Silent(), False)):
        assert (not list(find_untraceable(Concat(backbone, 2)))) is known


def test_what_is_from_outside_is_found_at_every_depth() -> None:
    network = nn.Sequential(Promising(Silent()), nn.ReLU())
    assert list(find_third_party(network)) == [network[0], network[0].inner]
    assert list(find_third_party(Cosmos())) == []
    (found,) = find_third_party(Heir())
    assert isinstance(found, Heir)
