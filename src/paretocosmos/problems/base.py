"""The contracts of a problem and of a source of samples, and the description of a problem."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args
from typing import Protocol as TypingProtocol

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, check_choice
from paretocosmos.objectives import Objective
from paretocosmos.registry import Spec
from paretocosmos.types import Batch, Inputs, Measure, Metric, list_tensors, map_tensors

Split = Literal["train", "val", "test"]
Protocol = Literal["clean", "paper"]
SPLITS: tuple[Split, ...] = get_args(Split)
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)

# Section 2 of the published code's evaluation: scores are means over batches of this size.
PAPER_SCORE_BATCH = 256
# Samples of a source that are read for a look at them.
FEW = 256
# Samples of a source that are compared when a training is resumed, and how often each is read:
# eight pictures that are flipped or not look the same three times by a chance of 1 in 65,536.
SPOTS, READINGS = 8, 3


HELD = 2**30
"""Limit in bytes of a split that is read once and kept, since it is evaluated again and again."""


class Source(TypingProtocol):
    """Samples of a split that are read while they are used.

    Attributes:
        where: the name for messages: "`train` of `pictures`".
        samples: in an epoch.
        batch_size: samples in a batch, where the source decides; `None` where the training does.
        shuffled: whether it is read in the order the training draws, or in that of its samples.
        replicas: how many processes share its samples; `None` where any number may.
        inexact: why a training that is resumed does not read what it would have read; `None` where
            it reads just that.
        random_access: whether `some` reads any rows that are asked for, not just the first ones.
        parts: the sources of the objectives by their names, where each has its own; empty where
            all share this one. If there are any, the inputs and the targets of a batch to train on
            are mappings by these names, and what is evaluated is read from each of them.
    """

    where: str
    samples: int
    batch_size: int | None
    shuffled: bool
    replicas: int | None
    inexact: str | None
    random_access: bool
    parts: Mapping[str, "Source"]

    def begin(self, seed: int, epoch: int) -> None:
        """Seed the random choices of the epoch that follows."""

    def read(self, pieces: Sequence[Tensor], *, pin: bool = False) -> Generator[Batch]:
        """Yield a batch for each piece ``[B]`` of the sample indices of an epoch.

        A source without random access goes by the number of pieces alone.

        Args:
            pieces: the indices of the samples of each batch.
            pin: whether batches are to lie in pinned memory.
        """

    def once(self) -> Iterator[Batch]:
        """Yield all samples once, in order, with the same random numbers every time."""

    def held(self, most: int) -> Batch | str:
        """Return all samples as one batch, which is kept; or the reason why not.

        Args:
            most: bytes that they may take.
        """

    def some(self, count: int, rows: Tensor | None = None) -> Batch:
        """Return these rows, or the first `count` samples."""

    def end(self) -> None:
        """Stop worker processes and drop an epoch that is under way."""


# In plain words, for pages whose readers do not know the loss.
CROSS_ENTROPY = (
    "How far the predicted probabilities are from the truth: a confident mistake costs most."
)


@dataclass(frozen=True)
class Wording:
    """A problem in plain words; names of columns and classes replace what is left out.

    Attributes:
        title: the question: "Who earns more than 50,000 dollars a year?".
        rows: the samples, in the plural: "people".
        data: their source: "the US census of 1994".
        groups: the sensitive groups in their order, several of each: "men", "women".
        positive: a statement about the positive class: "earn more than 50,000".
        told: a statement about those predicted positive: "predicted to earn over 50,000".
        tasks: by the target of a head, the things that are classified: "left images".
        wrong: a statement about those that are misclassified: "are read wrong".
        measures: objectives and metrics by name, in the problem's own words.
        instead: by the name of an objective, the metric that says the same in plainer numbers.

    >>> Wording(rows="people").groups
    ()
    """

    title: str = ""
    rows: str = "rows"
    data: str = ""
    groups: tuple[str, ...] = ()
    positive: str = ""
    told: str = ""
    tasks: Mapping[str, str] = field(default_factory=dict)
    wrong: str = "are wrong"
    measures: Mapping[str, Measure] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_tasks(
        cls, title: str, rows: str, tasks: Mapping[str, str], *, wrong: str = "are wrong"
    ) -> "Wording":
        """Return the wording of a problem with a head for each task, whose accuracy is a metric.

        >>> words = Wording.of_tasks("Which digits?", "pairs", {"left": "left digits"})
        >>> words.measures["accuracy_left"].label, words.instead
        ('right answers on left digits', {'left': 'accuracy_left'})
        """
        measures = {}
        for head, things in tasks.items():
            goal = f"fewer mistakes on {things}"
            measures[head] = Measure(f"loss on {things} (cross-entropy)", goal, CROSS_ENTROPY)
            measures[f"accuracy_{head}"] = Measure(
                f"right answers on {things}",
                goal,
                f"The share of {things} that are answered rightly.",
                "of 100",
                larger=True,
            )
        instead = {head: f"accuracy_{head}" for head in tasks}
        return cls(
            title=title, rows=rows, tasks=tasks, wrong=wrong, measures=measures, instead=instead
        )


# Compared by identity: `==` between tensors gives tensors, not a truth value.
@dataclass(frozen=True, kw_only=True, eq=False)
class Problem(ABC):
    """Data, objectives and a reference point, independent of model, method and device.

    Attributes:
        name: the name of the problem in runs.
        objectives: the J objectives.
        reference: ``[J]``, the point hypervolume is measured from.
        input_shape: the shape of one sample.
        outputs: how many numbers a network gives per sample, or how many per head.
        metrics: further numbers a front reports.
        protocol: ``"clean"``, or ``"paper"`` with the published evaluation's quirks.
        caveats: its known limitations, a sentence each.
        spec: the name and settings that load it again; `None` for one built by hand.
        wording: its description for those who decide.

    >>> from paretocosmos import load_problem
    >>> problem = load_problem("toy_convex")
    >>> problem.names, problem.reference, problem.split("val").inputs.shape
    (('first', 'second'), (2.0, 2.0), torch.Size([128, 4]))
    """

    traceable: ClassVar[bool] = False
    """`True` promises that a `prepare` of its own decides nothing in Python from values of tensors
    and keeps no Python state between steps, so that fast engines and stacks of seeds may run it; a
    subclass declares it anew."""

    tabular: ClassVar[bool] = False
    """`True` if inputs are rows of a table: a column for each number and each category."""

    name: str
    objectives: tuple[Objective, ...]
    reference: tuple[float, ...]
    input_shape: tuple[int, ...]
    outputs: int | Mapping[str, int]
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    protocol: Protocol = "clean"
    caveats: tuple[str, ...] = ()
    spec: Spec | None = None
    wording: Wording = field(default_factory=Wording, repr=False)

    def __post_init__(self) -> None:
        check_choice("protocol", self.protocol, PROTOCOLS)

    @abstractmethod
    def split(self, name: Split) -> Batch:
        """Return a split on the CPU in its stored form; `prepare` makes inputs of it."""

    def source(self, name: Split) -> Source | None:
        """Return the source that a split is read from; `None` if it is in memory."""
        return None

    def prepare(self, inputs: Inputs, dtype: torch.dtype) -> Inputs:
        """Convert stored inputs to those of a network: floats of a type, on the same device.

        Called batch by batch, inside the step: images are kept as bytes, a quarter of the memory.
        Tensor operations only, so that a step can be captured.
        """
        # whole numbers stay as they are: they are indices, such as tokens
        prepared: Inputs = map_tensors(
            lambda t: t.to(dtype) if t.is_floating_point() else t, inputs
        )
        return prepared

    @property
    def about(self) -> Mapping[str, object]:
        """The meaning of a prediction, for readers of a run; empty if the names say it."""
        return {}

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives' names."""
        return tuple(objective.name for objective in self.objectives)

    @property
    def batch_size(self) -> int | None:
        """Training samples of a step, where the data decides; `None` where the settings do."""
        return None

    @property
    def score_batch(self) -> int | None:
        """Samples per score: a whole split (`None`), or the paper's mean over batches of 256."""
        return PAPER_SCORE_BATCH if self.protocol == "paper" else None


@dataclass(frozen=True, kw_only=True, eq=False)
class InMemoryProblem(Problem):
    """A problem whose splits are in memory.

    Attributes:
        splits: train, val and test.
    """

    # no repr: it would print the samples
    splits: Mapping[Split, Batch] = field(repr=False)

    def split(self, name: Split) -> Batch:
        check_split(name)
        return self.splits[name]


def check_split(split: str) -> Split:
    """Return the name of a split; raise for an unknown one."""
    return check_choice("split", split, SPLITS)


def split_of(problem: Problem, name: Split) -> Batch:
    """Return a split; raise a clear error if the problem lacks it."""
    try:
        return problem.split(name)
    # a problem of one's own may keep its splits in a mapping or in a list
    except (KeyError, IndexError) as error:
        raise ConfigurationError(
            f"`{problem.name}` has no split `{name}`; a problem has train, val and test"
        ) from error


def samples_in(problem: Problem, name: Split) -> int:
    """Return the number of samples of a split; nothing is read of one that is not in memory."""
    source = problem.source(name)
    return len(split_of(problem, name)) if source is None else source.samples


def scored_on(problem: Problem, name: Split) -> list[tuple[tuple[Objective, ...], Batch | Source]]:
    """Return the objectives and the samples to score them on: a split, its source, or one each.

    >>> from paretocosmos import load_problem
    >>> ((objectives, samples),) = scored_on(load_problem("toy_convex"), "val")
    >>> len(objectives), len(samples)
    (2, 128)
    """
    source = problem.source(name)
    if source is None:
        return [(problem.objectives, split_of(problem, name))]
    if not source.parts:
        return [(problem.objectives, source)]
    if problem.metrics:
        raise refuse_metrics(source.where)
    return [((goal,), source.parts[goal.name]) for goal in problem.objectives]


def refuse_metrics(where: str) -> ConfigurationError:
    """Return the error about metrics where no sample has all targets."""
    return ConfigurationError(
        f"`metrics` need samples with all targets, but {where} has a source for each objective: "
        "leave them out, or give one source for all"
    )


def shares_of(
    problem: Problem, count: int, generator: torch.Generator | None = None
) -> list[tuple[tuple[Objective, ...], Batch]]:
    """Return some training samples with the objectives they train: all together, or one each.

    They are the first ones, or random ones if a generator is given. Of a source they are few, since
    each is read, and the first ones if it has no random access.
    """
    source, drawn = problem.source("train"), None
    count = count if source is None else min(count, FEW)
    if generator is not None:
        rows = torch.randperm(samples_in(problem, "train"), generator=generator)
        # ascending, since mapped files and archives are read from front to back
        drawn = rows[:count].sort().values
    if source is None:
        split, chosen = split_of(problem, "train"), slice(count) if drawn is None else drawn
        inputs, targets = map_tensors(lambda t: t[chosen], (split.inputs, split.targets))
        return [(problem.objectives, Batch(inputs, targets))]
    few = source.some(count, drawn)
    if not source.parts:
        return [(problem.objectives, few)]
    # mappings by objective, which the type of a batch does not tell
    by_name: Any = few.inputs, few.targets
    return [((goal,), Batch(*(part[goal.name] for part in by_name))) for goal in problem.objectives]


def hash_data(problem: Problem) -> str:
    """Return a hash of a problem's inputs and answers, order included.

    A checksum that the problem has of its own is taken as it is. Of samples that are read during
    the training, the number and the shape count, and a few of them if they can be read by index.
    """
    checksum = problem.about.get("sha256")
    # hashing gigabytes of images again would take long
    if checksum is not None:
        return str(checksum)
    # against mistakes, not against forgery: 16 bytes will do
    digest = hashlib.blake2b(digest_size=16)
    for name in SPLITS:
        source = problem.source(name)
        if source is None:
            digest.update(_hash_tensors(vars(split_of(problem, name)).values()).encode())
            continue
        digest.update(f"{samples_in(problem, name)} {problem.input_shape}".encode())
        for member in source.parts.values() or (source,):
            if member.random_access:
                digest.update(_hash_spots(member).encode())
    return digest.hexdigest()


def _hash_spots(source: Source) -> str:
    """Return a hash of a few samples, from the first to the last.

    Inputs or targets that a transform draws anew at every reading are left out: a transform with
    random numbers of its own, which no seed of ours reaches, must not look like other data.
    """
    # spread over all samples, so that exchanged ones are likely to be noticed
    spots = torch.linspace(0, source.samples - 1, min(SPOTS, source.samples)).round().long()
    hashes: dict[str, set[str]] = {"inputs": set(), "targets": set()}
    for _ in range(READINGS):
        digests = {key: hashlib.blake2b(digest_size=16) for key in hashes}
        for row in spots.split(1):  # one at a time: other shapes may not fit into one batch
            batch = source.some(1, row)
            for key, digest in digests.items():
                digest.update(_hash_tensors([getattr(batch, key)]).encode())
        for key, digest in digests.items():
            hashes[key].add(digest.hexdigest())
    return " ".join(digests.pop() if len(digests) == 1 else "random" for digests in hashes.values())


def hash_answers(problem: Problem) -> str:
    """Return a hash of the targets of a problem, order included.

    It leaves out the inputs, which another machine may standardise to other last digits.
    """
    return _hash_tensors(problem.split(name).targets for name in SPLITS)


def _hash_tensors(values: Iterable[Tensor | Mapping[str, Tensor]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for tensor in list_tensors(*values):
        # with shape and type: the same bytes may be other numbers
        digest.update(f"{tuple(tensor.shape)} {tensor.dtype} ".encode())
        # as bytes, since NumPy has no bfloat16
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
