"""`python -m benchmarks.objectives`: what many objectives cost, and whether corners are right.

One network of the caller learns J tanh functions of ten inputs at once, each a mean squared error,
with nothing set but the batch, the epochs and the eager engine. For every J it reports the
processor's time of a step, of a plain step (the mean of the same losses, without rays), of a
validation on all rays, and of what follows the last one (calibration, diagnosis, test, files); and
for each objective its loss on all samples at its own corner and at equal weights. `--out FILE`
writes the numbers as JSON.
"""

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos import fit
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.training.callbacks import Callback
from paretocosmos.training.progress import Progress

SAMPLES, INPUTS, WIDTH, EPOCHS, BATCH = 4096, 10, 64, 20, 256


class Watch(Callback):
    """Takes the processor's time at the end of every epoch."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def epoch(self, progress: Progress) -> None:
        """Take the time after an epoch."""
        self.times.append(time.process_time())


def main() -> None:
    """Measure each number of objectives, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objectives", default="2,5,10,20,40")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for objectives in map(int, arguments.objectives.split(",")):
        rows.append({"objectives": objectives} | measure(objectives))
        print({name: value for name, value in rows[-1].items() if name != "corners"}, flush=True)
        if arguments.out is not None:
            content = {"objectives": rows} | get_provenance(torch.device("cpu"))
            arguments.out.write_text(json.dumps(content, indent=1) + "\n")


def make_network() -> nn.Module:
    """Make the same untrained network every time."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(INPUTS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))


def measure(objectives: int) -> dict[str, Any]:
    """Train one network for J objectives and measure its steps, its end and its corners."""
    torch.manual_seed(1)
    inputs = torch.randn(SAMPLES, INPUTS)
    targets = {f"task_{j}": (inputs @ torch.randn(INPUTS, 1)).tanh() for j in range(objectives)}
    data, losses = (inputs, *targets.values()), dict.fromkeys(targets, F.mse_loss)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # findings stand in the row
        watch = Watch()
        run = fit(
            make_network(),
            data,
            losses,
            epochs=EPOCHS,
            settings={"batch_size": BATCH, "evaluate_every": EPOCHS},
            callbacks=[watch],
            engine="eager",
            out=Path(folder) / "run",
            report=False,
            progress=False,
        )
        ended = time.process_time()
    model: Any = run.model
    # all epochs but the last, at the end of which is the only validation
    epochs = [after - before for before, after in zip(watch.times, watch.times[1:], strict=False)]
    epoch = median(epochs[:-1])
    steps = -(-round(0.8 * SAMPLES) // BATCH)
    with torch.no_grad():
        corners = model.each_ray(inputs, torch.eye(objectives))
        equal = model(inputs, torch.full((objectives,), 1 / objectives))
    pairs = [
        [round(float(F.mse_loss(output, target)), 4) for output in (corner, equal)]
        for corner, target in zip(corners, targets.values(), strict=True)
    ]
    return {
        "step_ms": 1e3 * epoch / steps,
        "plain_step_ms": time_plain_step(inputs[:BATCH], [t[:BATCH] for t in targets.values()]),
        "seconds_validating": epochs[-1] - epoch,
        "seconds_finishing": ended - watch.times[-1],
        "findings": [finding["kind"] for finding in run.record["findings"]],
        "corners_better": sum(corner < equal for corner, equal in pairs),
        "corners": {"own, equal weights": pairs},
    }


def time_plain_step(inputs: Tensor, targets: list[Tensor], steps: int = 200) -> float:
    """Return the milliseconds of a step on the mean of all losses, without rays."""
    network = make_network()
    optimizer = torch.optim.AdamW(network.parameters())
    started = time.process_time()
    for _ in range(steps):
        outputs = network(inputs)
        loss = torch.stack([F.mse_loss(outputs, target) for target in targets]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return 1e3 * (time.process_time() - started) / steps


if __name__ == "__main__":
    main()
