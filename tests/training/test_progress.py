"""The time that checkpoints may take."""

from paretocosmos.training.progress import CHECKPOINT_FRACTION, FREE_SECONDS, CheckpointBudget


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
