"""A Hugging Face Trainer that trains one network for the whole front."""

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.integrations.fronts import (
    FrontEvaluator,
    Rays,
    Tallies,
    extract_inputs,
    to_batch,
)
from paretocosmos.integrations.pretrained import write_description
from paretocosmos.integrations.weighting import LoopOptions, LossWeighting, import_base
from paretocosmos.nn.conditioning import Conditioning
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import as_rays
from paretocosmos.runs.checkpoint import unshare_tensors
from paretocosmos.training.engine.optimizer import find_undecayed
from paretocosmos.types import Batch, Metric, first

Trainer: Any = import_base("transformers", "Trainer", "`ParetoTrainer`")
CHECKPOINT_KEY = "paretocosmos"


class ParetoTrainer(Trainer):  # type: ignore[misc]
    """A Hugging Face Trainer that trains a network for all rays.

    Every batch has rays of its own, also within an accumulated step. `evaluate` reports
    ``eval_hypervolume``, which `metric_for_best_model` can name, and every objective at the centre
    of the simplex. Scores are computed in float32 over the whole set; the network runs in the
    Trainer's precision. `predict` gives outputs at one ray. Training logs each loss as
    ``loss_NAME``. ``loss`` has the gradient of the method, but its value means little.

    In the default preset every loss is divided by how strongly it pulls on the outputs of the
    first batch, so that a preference means the same for losses of any size. Optimiser, schedule and
    decay are those of `args`, but parameters that read the ray are not decayed. Averaged weights
    and calibration need a whole training, so only `fit` has them.

    Columns of a batch that are named after a target are targets; all others are the inputs of the
    network, as a mapping. ``labels``, the name that collators use, is ``label``. Example:
    ``examples/hf_trainer.py``.

    Args:
        model: ``forward(inputs, ray) -> outputs``, such as `condition` makes.
        args: the `TrainingArguments`; their seed is also that of the rays. A resumed training draws
            the rays it would have drawn.
        objectives: what is traded, at least two.
        reference: the point hypervolume is measured from, a number per objective.
        preset: where what you leave out comes from: ``"default"``, or ``"paper"`` as published.
        method: a method that draws rays, or its name; the preset's if `None`.
        settings: of a method given by name; the others are the preset's.
        metrics: further numbers that a front reports, by name.
        targets: those that your own objectives read beside their `target`.
        rays_per_batch: rays per batch, fewer if a batch cannot be shared equally; the preset's if
            `None`.
        rays: how many even rays a front has, or rays ``[N, J]``.
        ranks: whether the rays of several processes ``"differ"``, or ``"agree"``: then the mean of
            their losses is weighted, as one process with the whole batch would.
        train_dataset: as for any Trainer; so are those below.
        eval_dataset: one, or several by name.
        data_collator: what makes a batch of samples.
        processing_class: a tokenizer or the like.
        callbacks: further ones.
        compute_metrics: further numbers, of the outputs at the centre of the simplex, which are
            kept for it.
        optimizers: an optimiser and a scheduler.

    Attributes:
        weighting: draws the rays and weights the losses; its `state_dict` goes into checkpoints.
    """

    def __init__(
        self,
        model: nn.Module,
        args: Any,
        *,
        objectives: Sequence[Objective],
        reference: Sequence[float],
        metrics: Mapping[str, Metric] | None = None,
        rays: Rays = 25,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        data_collator: Any = None,
        processing_class: Any = None,
        callbacks: list[Any] | None = None,
        compute_metrics: Callable[[Any], dict[str, float]] | None = None,
        optimizers: tuple[Any, Any] = (None, None),
        **options: Unpack[LoopOptions],
    ) -> None:
        self.weighting = LossWeighting(model, objectives, seed=args.seed, **options)
        self._evaluator = FrontEvaluator(self.weighting.objectives, reference, metrics, rays)
        self._front: Front
        self._tallies: Tallies = []
        self._predict_ray: Tensor | None = None  # set while `predict` runs
        self._position = (-1, 0)  # the step, and the batch's number in it
        self._summed, self._batches = torch.zeros(()), 0  # losses since they were logged
        super().__init__(
            model=model,
            args=_adapt_arguments(model, args),
            data_collator=data_collator,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            compute_metrics=compute_metrics,
            callbacks=callbacks,
            optimizers=optimizers,
        )
        # True tells the Trainer that losses are sums over an accumulated step; ours are means
        self.model_accepts_loss_kwargs = False

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Mapping[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Return the scalar to back-propagate at the next rays."""
        # the Trainer reads its state after it is built, so a resumed one shows here first
        stored = self.state.stateful_callbacks.pop(CHECKPOINT_KEY, None)
        if stored is not None:
            self.weighting.load_state_dict(stored)
        # batches of an accumulated step share its number, so they are counted within it
        step = self.state.global_step
        self._position = (step, self._position[1] + 1 if self._position[0] == step else 0)
        weighted = self.weighting(
            model,
            inputs,
            epoch=int(self.state.epoch or 0),
            position=self._position,
            rank=self.args.process_index,
            network=self.model,
            mean=self._mean,
        )
        self._summed, self._batches = weighted.losses + self._summed, self._batches + 1
        return (weighted.total, weighted.outputs) if return_outputs else weighted.total

    def prediction_step(
        self,
        model: nn.Module,
        inputs: Mapping[str, Any],
        prediction_loss_only: bool,
        ignore_keys: list[str] | None = None,
    ) -> tuple[None, Any, Any]:
        """Add a batch to the front; for `predict`, return outputs at a ray, and targets.

        The outputs at the centre are returned only if `compute_metrics` is to see them: the Trainer
        keeps whatever it is given.
        """
        data = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            if self._predict_ray is not None:
                columns = extract_inputs(data, self.weighting.targets)
                targets = {name: v for name, v in data.items() if name not in columns}
                outputs = self._evaluator.compute_outputs(model, columns, self._predict_ray)
                return None, outputs, targets or None
            batch = to_batch(data, self.weighting.targets)
            count = self._count_new(batch)
            centre = self._evaluator.add(self._tallies, model, batch, exact=False, count=count)
        if self.compute_metrics is None:
            return None, None, None
        return None, centre, dict(batch.targets)

    def evaluation_loop(
        self,
        dataloader: Any,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> Any:
        """Run the Trainer's loop, and add the metrics of the front to its own."""
        self._tallies = []
        output = super().evaluation_loop(
            dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix
        )
        if self._predict_ray is None:
            gather = None if self.args.world_size == 1 else self.accelerator.gather
            self._front, numbers = self._evaluator.front(self._tallies, split="val", gather=gather)
            named = {f"{metric_key_prefix}_{name}": value for name, value in numbers.items()}
            output.metrics.update(named)
        self._tallies = []  # may hold outputs of all samples, for metrics that need them at once
        return output

    def predict(
        self,
        test_dataset: Any,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "test",
        *,
        ray: Sequence[float] | None = None,
    ) -> Any:
        """Compute outputs at one ray, for samples that may have no targets.

        Args:
            test_dataset: the samples.
            ignore_keys: as for any Trainer.
            metric_key_prefix: what the names of metrics begin with.
            ray: a number per objective; they sum to 1. Equal weights if `None`.
        """
        # set on the Trainer, since its own loop stands between here and `prediction_step`
        preference = self._evaluator.centre.tolist() if ray is None else list(ray)
        (self._predict_ray,) = as_rays([preference], len(self.weighting.objectives))
        try:
            return super().predict(test_dataset, ignore_keys, metric_key_prefix)
        finally:
            self._predict_ray = None

    def front(self, dataset: Any, *, rays: Rays | None = None, split: str = "test") -> Front:
        """Evaluate the network as it is.

        Args:
            dataset: samples, as for `evaluate`.
            rays: a number of even rays, or rays ``[N, J]``; those of the Trainer if `None`.
            split: what the front calls the data.
        """
        before, self._evaluator = self._evaluator, self._evaluator.with_rays(rays)
        try:
            self.evaluation_loop(
                self.get_test_dataloader(dataset), "Front", metric_key_prefix=split
            )
        finally:
            self._evaluator = before
        return dataclasses.replace(self._front, split=split)

    def get_decay_parameter_names(self, model: nn.Module) -> list[str]:
        """Return the parameters that are decayed: the Trainer's, except those that read the ray."""
        excluded = find_undecayed(model)
        return [name for name in super().get_decay_parameter_names(model) if name not in excluded]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log, beside the Trainer's loss, the mean of every objective's since the last time."""
        if "loss" in logs and self._batches:
            means = self._mean(self._summed / self._batches).tolist()
            self._summed, self._batches = torch.zeros(()), 0
            names = (f"loss_{name}" for name in self.weighting.names)
            logs = logs | dict(zip(names, means, strict=True))
        super().log(logs, start_time)

    def _save_checkpoint(self, *args: Any) -> None:
        # `stateful_callbacks` is the part of the Trainer's state that others may add to; it is
        # written as JSON and read again
        self.state.stateful_callbacks[CHECKPOINT_KEY] = self.weighting.state_dict()
        super()._save_checkpoint(*args)
        del self.state.stateful_callbacks[CHECKPOINT_KEY]

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        # safetensors refuses tensors that share memory, as tied weights do
        state = self.model.state_dict() if state_dict is None else state_dict
        super()._save(output_dir, unshare_tensors(state))
        model = self.accelerator.unwrap_model(self.model)
        # settings that JSON cannot hold: the weights alone, rather than an end of the training
        if isinstance(model, Conditioning) and self.args.should_save:
            with contextlib.suppress(ConfigurationError):
                write_description(model, Path(output_dir or self.args.output_dir))

    def _count_new(self, batch: Batch) -> int:
        """Count the samples of a batch, its first, that are new: loaders pad the last batch."""
        if self.args.world_size == 1:
            return len(batch)
        # `gather_for_metrics` drops the padding, so the ranks that it returns are of new samples
        rank, device = self.args.process_index, first(batch.targets).device
        ranks = self.accelerator.gather_for_metrics(torch.full((len(batch),), rank).to(device))
        return int((ranks == rank).sum())

    def _mean(self, losses: Tensor) -> Tensor:
        """Average over processes."""
        mean: Tensor = self.accelerator.reduce(losses, reduction="mean")
        return mean


def _adapt_arguments(model: nn.Module, args: Any) -> Any:
    """Return a copy of a Trainer's arguments with what training a front needs."""
    if args.n_gpu > 1:
        raise ConfigurationError(
            f"a process can use only one GPU, because the ray cannot be split, found {args.n_gpu}: "
            "start one process per GPU with `torchrun`, or show it one GPU with "
            "CUDA_VISIBLE_DEVICES"
        )
    if args.label_smoothing_factor:
        raise ConfigurationError(
            "`label_smoothing_factor` belongs to the Trainer's own loss, which the objectives "
            f"replace, found {args.label_smoothing_factor}: smooth in the objective, with "
            f"`CrossEntropy(label_smoothing={args.label_smoothing_factor})`"
        )
    adapted = copy.copy(args)
    # the Trainer compares columns with the signature of `forward`, here `inputs` and `ray`
    adapted.remove_unused_columns = False
    if args.gradient_checkpointing and not hasattr(model, "gradient_checkpointing_enable"):
        adapted.gradient_checkpointing = False  # the Trainer would ask the network around it
        backbone: Any = getattr(model, "backbone", model)
        if not hasattr(backbone, "gradient_checkpointing_enable"):
            raise ConfigurationError(
                "`gradient_checkpointing` needs support by the network, found none in "
                f"{type(backbone).__name__}: wrap its blocks in torch.utils.checkpoint.checkpoint "
                "instead"
            )
        settings = {"use_reentrant": False, **(args.gradient_checkpointing_kwargs or {})}
        backbone.gradient_checkpointing_enable(gradient_checkpointing_kwargs=settings)
    return adapted
