"""The rank that a launcher such as torchrun gave this process, read without torch."""

import os

# As torchrun and other launchers name them in the environment.
RANK, COUNT, LOCAL_RANK = "RANK", "WORLD_SIZE", "LOCAL_RANK"


def launched_rank() -> int:
    """Return this process's number among those that torchrun started; 0 where it did not."""
    # a rank without a count is of some other program, such as a scheduler
    return int(os.environ.get(RANK, "0")) if is_launched() else 0


def is_launched() -> bool:
    """Return whether torchrun, or a launcher like it, started several processes."""
    numbers = (os.environ.get(name, "") for name in (RANK, COUNT))
    return all(number.isdigit() for number in numbers) and int(os.environ[COUNT]) > 1
