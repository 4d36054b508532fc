"""What is left of a training, against sums by hand."""

import pytest

from paretocosmos.training.progress import (
    CHECKPOINT_FRACTION,
    FREE_SECONDS,
    CheckpointBudget,
    RemainingTime,
)


@pytest.mark.parametrize(
    ("epochs", "every", "epoch", "epochs_left", "validations_left"),
    [(10, 5, 0, 10, 2), (10, 5, 5, 5, 1), (10, 5, 9, 1, 1), (10, 5, 10, 0, 0), (7, 3, 3, 4, 2)],
)
def test_what_is_left_is_epochs_validations_and_the_test(
    epochs: int, every: int, epoch: int, epochs_left: int, validations_left: int
) -> None:
    remaining = RemainingTime(epochs, every)
    assert remaining.estimate(epoch) == 0  # nothing is known yet
    remaining.add(2.0, 0.0)
    assert remaining.estimate(epoch) == 2.0 * epochs_left
    remaining.add(2.0, 0.25)
    assert remaining.estimate(epoch) == 2.0 * epochs_left + 0.25 * (validations_left + 1)


def test_one_slow_epoch_hardly_counts() -> None:
    remaining = RemainingTime(100, 1)
    for seconds in (60.0, 1.0, 1.0):  # the first one warms up
        remaining.add(seconds, 0.0)
    assert remaining.estimate(3) == 97.0


def test_checkpoints_that_cost_little_are_never_put_off() -> None:
    thrift = CheckpointBudget()
    for _ in range(10_000):
        assert thrift.due
        thrift.add(training=1.0, saving=CHECKPOINT_FRACTION)


def test_checkpoints_take_their_share_and_no_more() -> None:
    thrift, epochs, cost = CheckpointBudget(), 1000, 3.0
    written = 0
    for _ in range(epochs):
        due = thrift.due
        written += due
        thrift.add(training=1.0, saving=cost * due)
    assert (
        FREE_SECONDS + CHECKPOINT_FRACTION * epochs - cost
        <= written * cost
        <= FREE_SECONDS + CHECKPOINT_FRACTION * epochs + cost
    )
