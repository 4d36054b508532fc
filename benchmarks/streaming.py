"""`python -m benchmarks.streaming`: peak memory of a front of a language model, by its samples.

A small GPT-2 (two blocks of 64, 1,000 words, random weights) takes sequences of 32 tokens; two
objectives compare its logits with the next token and with the one after. A front of 25 rays over
1,000 and over 10,000 sequences is taken by `evaluate`, by Lightning's module and by the Trainer,
each in a process of its own, whose peak resident memory is read at its end. Prints a table and,
with `--out FILE`, writes the numbers as JSON. `--tiny` does a little of it.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from paretocosmos import Problem, condition, evaluate
from paretocosmos.objectives import CrossEntropy
from paretocosmos.problems import Split
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.types import Batch

WORDS, LENGTH, WIDTH, BLOCKS, RAYS, SIZE = 1000, 32, 64, 2, 25, 16
COUNTS, TINY = (1_000, 10_000), (20, 60)
WAYS = ("evaluate", "lightning", "transformers")
OBJECTIVES = tuple(
    CrossEntropy(name=name, output="logits", target=name) for name in ("next", "after")
)
REFERENCE = (10.0, 10.0)
GB = 1e9


@dataclass(frozen=True, kw_only=True, eq=False)
class Texts(Problem):
    """Random tokens."""

    batch: Batch

    def split(self, name: Split) -> Batch:
        return self.batch


def texts(count: int) -> Texts:
    """So many sequences, their next tokens and those after."""
    tokens = torch.randint(
        0, WORDS, (count, LENGTH + 2), generator=torch.Generator().manual_seed(0)
    )
    targets = {"next": tokens[:, 1:-1].contiguous(), "after": tokens[:, 2:].contiguous()}
    return Texts(
        name="texts",
        objectives=OBJECTIVES,
        reference=REFERENCE,
        input_shape=(LENGTH,),
        outputs={"logits": WORDS},
        batch=Batch({"input_ids": tokens[:, :-2].contiguous()}, targets),
    )


def decoder() -> nn.Module:
    """A small GPT-2 that takes a ray."""
    import transformers

    torch.manual_seed(0)
    sizes: Any = {"n_layer": BLOCKS, "n_embd": WIDTH, "n_head": 2, "vocab_size": WORDS}
    ends: Any = {"bos_token_id": None, "eos_token_id": None}
    config = transformers.GPT2Config(n_positions=LENGTH, use_cache=False, **sizes, **ends)
    network: Any = transformers.GPT2LMHeadModel
    return condition(network(config), 2, how="film")


def measured(way: str, count: int) -> dict[str, float]:
    """The front in this process: its seconds, and the memory before and at its peak."""
    problem, model = texts(count), decoder()
    take = {"evaluate": _evaluated, "lightning": _by_lightning, "transformers": _by_trainer}[way]
    taken = take(problem, model)
    before, started = _peak(), time.perf_counter()
    front = taken()
    seconds = time.perf_counter() - started
    found = {"seconds": seconds, "gb_before": before, "gb_peak": _peak()}
    return found | {"next_at_first_ray": float(front.values[0, 0])}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GB


def _rows(problem: Texts) -> Any:
    inputs: Any = problem.batch.inputs
    columns = {**inputs, **problem.batch.targets}
    every = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in every]


def _evaluated(problem: Texts, model: nn.Module) -> Any:
    return lambda: evaluate(model, problem, rays=RAYS)


def _by_lightning(problem: Texts, model: nn.Module) -> Any:
    from paretocosmos.integrations.lightning import ParetoModule

    module = ParetoModule(model, OBJECTIVES, reference=REFERENCE, rays=RAYS)
    loader: Any = torch.utils.data.DataLoader(_rows(problem), SIZE)
    return lambda: module.front(loader)


def _by_trainer(problem: Texts, model: nn.Module) -> Any:
    import transformers

    from paretocosmos.integrations.transformers import ParetoTrainer

    args = transformers.TrainingArguments(
        tempfile.mkdtemp(),
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        per_device_eval_batch_size=SIZE,
    )
    given: Any = {"objectives": OBJECTIVES, "reference": REFERENCE, "rays": RAYS}
    trainer, rows = ParetoTrainer(model, args, **given), _rows(problem)
    return lambda: trainer.front(rows)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--tiny", action="store_true", help="a little of it")
    parser.add_argument("--one", nargs=2, metavar=("WAY", "COUNT"), help="one front, as JSON")
    arguments = parser.parse_args()
    if arguments.one:
        warnings.simplefilter("ignore")
        print(json.dumps(measured(arguments.one[0], int(arguments.one[1]))))
        return
    counts = TINY if arguments.tiny else COUNTS
    results: dict[str, Any] = {
        "sequences": list(counts),
        "tokens": LENGTH,
        "words": WORDS,
        "rays": RAYS,
        "gb_of_all_outputs": {str(n): n * RAYS * LENGTH * WORDS * 4 / GB for n in counts},
        "ways": {way: {str(count): _alone(way, count) for count in counts} for way in WAYS},
    }
    results |= get_provenance(torch.device("cpu"))
    for way, by_count in results["ways"].items():
        for count, one in by_count.items():
            print(
                f"{way:>12} {count:>6} sequences: peak {one['gb_peak']:.2f} GB, "
                f"{one['gb_before']:.2f} before, {one['seconds']:.0f} s"
            )
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def _alone(way: str, count: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.streaming", "--one", way, str(count)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
