"""A short description of weights that do not fit a network: how many, and which."""

from collections.abc import Mapping

from torch import Tensor, nn

from paretocosmos.io.files import one_line

# Names that are given as examples, and letters of each: a file may hold any number of any length.
EXAMPLES, LETTERS = 3, 60


def describe_misfit(network: nn.Module, weights: Mapping[str, Tensor], error: Exception) -> str:
    """Describe why `load_state_dict` refused weights; its own message lists names by the hundred.

    Args:
        network: what they were to be loaded into.
        weights: by name.
        error: what it raised, told only where names and shapes are as they should be.

    >>> import torch
    >>> describe_misfit(nn.Linear(2, 1), {"weight": torch.ones(1, 3)}, RuntimeError())
    '1 missing (`bias`) and 1 of another shape (`weight`)'
    """
    state = network.state_dict()
    shared = [name for name in state if name in weights]
    groups = {
        "missing": [name for name in state if name not in weights],
        "that it does not have": [name for name in weights if name not in state],
        "of another shape": [name for name in shared if state[name].shape != weights[name].shape],
    }
    descriptions = [
        f"{len(names):,} {flaw} ({', '.join(f'`{name[:LETTERS]}`' for name in names[:EXAMPLES])}"
        f"{', ...' * (len(names) > EXAMPLES)})"
        for flaw, names in groups.items()
        if names
    ]
    return " and ".join(descriptions) or one_line(error)[:200]
