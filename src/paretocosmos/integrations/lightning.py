"""A LightningModule that trains one network for the whole front."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.evaluation.evaluate import evaluation_mode
from paretocosmos.evaluation.samples import move_batch
from paretocosmos.integrations.fronts import (
    FrontEvaluator,
    Rays,
    Tallies,
    extract_inputs,
    to_batch,
)
from paretocosmos.integrations.weighting import LoopOptions, LossWeighting, import_base
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import as_rays
from paretocosmos.problems import check_split
from paretocosmos.training.engine.optimizer import find_undecayed
from paretocosmos.types import Batch, Inputs, Metric, Outputs

LightningModule: Any = import_base("lightning", "LightningModule", "`ParetoModule`")
CHECKPOINT_KEY = "paretocosmos"
STAGES = {"train": "fit", "val": "validate", "test": "test"}


class ParetoModule(LightningModule):  # type: ignore[misc]
    """A LightningModule that trains a network for all rays.

    Every batch has rays of its own, also within an accumulated step. Validation logs
    ``val_hypervolume``, which `ModelCheckpoint` and `EarlyStopping` can monitor, and every
    objective at the centre of the simplex, in float32 and over the whole validation set. Training
    logs each loss as ``train_NAME``. ``train_loss`` has the gradient of the method, but its value
    means little.

    In the default preset every loss is divided by how strongly it pulls on the outputs of the
    first batch, so that a preference means the same for losses of any size. AdamW follows a cosine
    over the Trainer's steps; override `configure_optimizers` for another optimiser or schedule.
    Averaged weights and calibration need a whole training, so only `fit` has them.

    A batch is one of these: inputs and a mapping of targets; inputs and one tensor per target, in
    the order of the objectives; a mapping, whose columns named after a target are targets and whose
    others are the inputs of the network; a `Batch`. The Trainer's `predict` gives outputs at
    `preference`.

    Example: ``examples/lightning_loop.py``.

    Args:
        model: ``forward(inputs, ray) -> outputs``, such as `condition` makes.
        objectives: what is traded, at least two.
        reference: the point hypervolume is measured from, a number per objective.
        preset: where what you leave out comes from: ``"default"``, or ``"paper"`` as published.
        method: a method that draws rays, or its name; the preset's if `None`.
        settings: of a method given by name; the others are the preset's.
        metrics: further numbers that a front reports, by name.
        targets: those that your own objectives read beside their `target`.
        learning_rate: the largest one of the schedule; the preset's if `None`.
        rays_per_batch: rays per batch, each for an equal share of it; fewer where a batch cannot be
            shared equally; the preset's if `None`.
        rays: how many even rays a front has, or rays ``[N, J]``.
        ranks: whether the rays of several processes ``"differ"``, or ``"agree"``: then the mean of
            their losses is weighted, as one process with the whole batch would.
        seed: of the rays. They depend on it, on the epoch and on the number of the batch, so a
            resumed training draws the rays it would have drawn.

    Attributes:
        weighting: draws the rays and weights the losses; its `state_dict` goes into checkpoints.
    """

    def __init__(
        self,
        model: nn.Module,
        objectives: Sequence[Objective],
        *,
        reference: Sequence[float],
        metrics: Mapping[str, Metric] | None = None,
        learning_rate: float | None = None,
        rays: Rays = 25,
        seed: int = 1,
        **options: Unpack[LoopOptions],
    ) -> None:
        super().__init__()
        self.weighting = LossWeighting(model, objectives, seed=seed, **options)
        self._evaluator = FrontEvaluator(self.weighting.objectives, reference, metrics, rays)
        self._tallies: Tallies = []
        self._preference = self._evaluator.centre
        if learning_rate is None:
            learning_rate = self.weighting.training.learning_rate
        self.model, self.learning_rate = model, learning_rate

    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        """Call the network."""
        outputs: Outputs = self.model(inputs, ray)
        return outputs

    def configure_optimizers(self) -> Any:
        training = self.weighting.training
        if training.optimizer == "adam":  # the paper's, with a constant learning rate
            return torch.optim.Adam(self.parameters(), lr=self.learning_rate)
        # decay would make parameters that read the ray forget it
        excluded = find_undecayed(self.model)
        named = [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]
        groups = [
            {"params": [p for n, p in named if (n in excluded) is skip], "weight_decay": decay}
            for skip, decay in ((False, training.weight_decay), (True, 0.0))
        ]
        optimizer = torch.optim.AdamW(groups, lr=self.learning_rate)

        def cosine(step: int) -> float:
            if step == 0:  # to ask for the end now would load data before a checkpoint is read
                return 0.0
            steps = self.trainer.estimated_stepping_batches
            # infinite if the Trainer has no limit
            return 1.0 if math.isinf(steps) else training.compute_cosine(min(step, steps), steps)

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, cosine)
        per_step = {"scheduler": schedule, "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": per_step}

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        # Lightning moves fields of a dataclass in place, which a frozen one refuses
        if isinstance(batch, Mapping):
            return {name: self.on_before_batch_transfer(value, 0) for name, value in batch.items()}
        return (batch.inputs, batch.targets) if isinstance(batch, Batch) else batch

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        step = self.weighting(
            self.model,
            batch,
            epoch=self.current_epoch,
            position=(self.current_epoch, batch_idx),
            rank=self.global_rank,
            mean=self._mean,
        )
        losses = zip(self.weighting.names, step.losses, strict=True)
        named = {f"train_{name}": loss for name, loss in losses}
        self.log_dict(named, prog_bar=True, batch_size=step.samples)
        self.log("train_loss", step.total.detach(), batch_size=step.samples)
        return step.total

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._evaluate(batch, dataloader_idx)

    def test_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._evaluate(batch, dataloader_idx)

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> Outputs:
        """Compute the outputs at `preference` for a batch, which may have no targets."""
        inputs = extract_inputs(batch, self.weighting.targets)
        return self._evaluator.compute_outputs(self.model, inputs, self._preference)  # type: ignore[no-any-return]

    @property
    def preference(self) -> tuple[float, ...]:
        """The ray at which a Trainer's `predict` asks the network: equal weights until it is set.

        A number per objective; they sum to 1.
        """
        return tuple(self._preference.tolist())

    @preference.setter
    def preference(self, ray: Sequence[float]) -> None:
        (self._preference,) = as_rays([list(ray)], len(self.weighting.objectives))

    def on_validation_epoch_start(self) -> None:
        self._tallies = []

    def on_test_epoch_start(self) -> None:
        self._tallies = []

    def on_validation_epoch_end(self) -> None:
        self._report("val")

    def on_test_epoch_end(self) -> None:
        self._report("test")

    def front(self, data: Any, *, rays: Rays | None = None, split: str = "val") -> Front:
        """Evaluate the network as it is, in this process.

        Args:
            data: a loader, or a `LightningDataModule`, whose loader of the split is taken.
            rays: a number of even rays, or rays ``[N, J]``; those of the module if `None`.
            split: ``"train"``, ``"val"`` or ``"test"``.
        """
        evaluator = self._evaluator.with_rays(rays)
        tallies: Tallies = []  # its own, so that it may be called during a validation
        with evaluation_mode(self):
            for batch in _find_loader(data, check_split(split)):
                converted = to_batch(batch, self.weighting.targets)
                evaluator.add(tallies, self.model, self._transfer(converted))
            return evaluator.front(tallies, split=split)[0]

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint[CHECKPOINT_KEY] = self.weighting.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.weighting.load_state_dict(checkpoint[CHECKPOINT_KEY])

    def _evaluate(self, batch: Any, loader: int) -> None:
        if loader:
            raise ConfigurationError(
                "a front needs one loader, found several: pass one to the Trainer and the "
                "others to `front`"
            )
        self._evaluator.add(self._tallies, self.model, to_batch(batch, self.weighting.targets))

    def _transfer(self, batch: Batch) -> Batch:
        """Move a batch to the network's device and type, as the Trainer does."""
        dtype = next(p.dtype for p in self.model.parameters() if p.is_floating_point())
        inputs = move_batch(Batch(batch.inputs, {}), self.device, dtype).inputs
        return Batch(inputs, move_batch(batch, self.device).targets)

    def _report(self, split: str) -> None:
        gather = None if self.trainer.world_size == 1 else self._gather
        numbers = self._evaluator.front(self._tallies, split=split, gather=gather)[1]
        self._tallies = []
        named = {f"{split}_{name}": value for name, value in numbers.items()}
        self.log_dict(named, sync_dist=True)  # the same everywhere, but Lightning would warn

    def _gather(self, samples: Tensor) -> Tensor:
        """Concatenate the samples of all processes along the first axis."""
        gathered: Tensor = self.all_gather(samples)
        return gathered.flatten(0, 1)

    def _mean(self, losses: Tensor) -> Tensor:
        """Average over processes."""
        # `self.trainer` raises without one, as in a test of a single step
        single = self._trainer is None or self.trainer.world_size == 1
        return losses if single else self.all_gather(losses).mean(dim=0)


def _find_loader(data: Any, split: str) -> Iterable[Any]:
    """Return the loader of a split: the data itself, or what a data module has for it."""
    method = getattr(data, f"{split}_dataloader", None)
    if method is None:
        return data  # type: ignore[no-any-return]
    data.prepare_data()
    data.setup(STAGES[split])
    return _find_loader(method(), split)
