"""Adam's update through torch's functional form.

`Optimizer.step` looks up groups, states and hooks anew each time, which a small
network feels in every step. The optimiser object still owns the state, so checkpoints see nothing
of this.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor
from torch.optim.adam import Adam, adam

__all__ = ["make_adam", "make_update"]


def make_adam(parameters: Iterable[Tensor], *, learning_rate: float, weight_decay: float) -> Adam:
    """Adam with the fused kernel and its state laid out before the first step."""
    optimiser = Adam(parameters, lr=learning_rate, weight_decay=weight_decay, fused=True)
    for parameter in optimiser.param_groups[0]["params"]:
        optimiser.state[parameter] = {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    return optimiser


def make_update(optimiser: Adam) -> Callable[[Sequence[Tensor]], None]:
    """A function of the gradients, one per parameter, that makes the optimiser's next step.

    Good until the optimiser's state is loaded or its learning rate is set.
    """
    (group,) = optimiser.param_groups
    parameters = group["params"]
    states = [optimiser.state[parameter] for parameter in parameters]
    first, second, steps = (
        [state[name] for state in states] for name in ("exp_avg", "exp_avg_sq", "step")
    )
    beta1, beta2 = group["betas"]

    @torch.no_grad()
    def update(gradients: Sequence[Tensor]) -> None:
        adam(
            parameters,
            list(gradients),
            first,
            second,
            [],
            steps,
            foreach=False,
            fused=True,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )

    return update
