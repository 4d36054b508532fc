"""Your own problem in one file, as fast as a built-in one: how much stock to order.

What is left over costs, and what is missing costs; how much each, nobody has decided yet.
"""

from dataclasses import dataclass, field

import torch

from paretocosmos import Problem, fit
from paretocosmos.objectives import OneSidedError
from paretocosmos.types import Batch, Inputs


@dataclass(frozen=True, kw_only=True, eq=False)
class Stock(Problem):
    """Demand that depends on eight signals, which are kept as bytes."""

    traceable = True  # `prepare` is tensor operations only: engines may record it

    splits: dict[str, Batch] = field(repr=False)

    def split(self, name: str) -> Batch:
        return self.splits[name]

    def prepare(self, inputs: Inputs, dtype: torch.dtype) -> Inputs:
        assert isinstance(inputs, torch.Tensor)
        return (inputs.to(dtype) - 128) / 32  # a quarter of the memory until here


def stock(samples: int = 4096) -> Stock:
    """Three splits, drawn anew from the same demand."""
    generator = torch.Generator().manual_seed(1)

    def draw() -> Batch:
        signals = torch.randn(samples, 8, generator=generator).mul(32).add(128).clamp(0, 255)
        noise = torch.randn(samples, generator=generator)
        exact = (signals.byte().float() - 128) / 32
        demand = exact.sum(dim=1) + noise * (1 + exact[:, 0].abs())
        return Batch(signals.byte(), {"label": demand})

    return Stock(
        name="stock",
        objectives=(
            OneSidedError(name="missing", side="under", power=1),
            OneSidedError(name="left_over", side="over", power=1),
        ),
        reference=(3.0, 3.0),
        input_shape=(8,),
        outputs=1,
        splits={name: draw() for name in ("train", "val", "test")},
    )


if __name__ == "__main__":
    torch.set_num_threads(1)  # a small network: more would wait for each other
    problem = stock()
    run = fit(problem, epochs=60, settings={"learning_rate": 3e-3, "rays_per_batch": 4})
    print(f"engine {run.record['engine']}")
    test = problem.split("test")
    inputs = problem.prepare(test.inputs, torch.float32)
    for weight in (0.1, 0.5, 0.9):
        with torch.no_grad():
            ordered = run.model(inputs, torch.tensor([weight, 1 - weight])).squeeze(1)
        enough = (ordered > test.targets["label"]).float().mean()
        print(f"missing matters {weight:.1f}: enough in {enough:.0%} of cases")
