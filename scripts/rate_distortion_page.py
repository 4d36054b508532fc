"""The gallery's picture and slider of `examples/rate_distortion.py`, from what its benchmark kept."""

import io
import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from paretocosmos.io.palette import DARK, LIGHT, RUNS
from paretocosmos.plotting.style import use_style

__all__ = ["draw_rate_distortion", "slider"]

ROOT = Path(__file__).resolve().parents[1]
SPRITE = ROOT / "docs" / "_static" / "rate_distortion.webp"
DPI = 125  # enough for crops of 128 pixels
SHOWN = (0, 3, 5, 7, 10)  # of the crops, in the picture

PAGE = """\
<style>
.quality { max-width: 34rem; margin: 1rem 0; }
.quality .crops { position: relative; overflow: hidden; aspect-ratio: WIDTH / HEIGHT; border-radius: 4px; }
.quality .crops img { position: absolute; top: 0; left: 0; width: 100%; max-width: none; height: auto; }
.quality label { display: block; margin-top: 0.6rem; color: var(--color-foreground-secondary); font-size: 0.9rem; }
.quality input { width: 100%; accent-color: var(--color-brand-primary); margin: 0.3rem 0; }
.quality figcaption { color: var(--color-foreground-muted); font-size: 0.8rem; margin-top: 0.4rem; }
.quality output { font-variant-numeric: tabular-nums; }
</style>
<figure class="quality">
  <div class="crops"><img src="_static/rate_distortion.webp" alt="Two crops as they are decoded: a pagoda and a flower"></div>
  <label for="quality">Fewer bits, or a more faithful picture: drag</label>
  <input id="quality" type="range" min="0" max="LAST" value="3" step="1">
  <output for="quality"></output>
  <figcaption>Parts of <a href="https://www.flickr.com/photos/danielbuechele/6061409035/">a photograph by danielbuechele</a> and
  <a href="https://www.flickr.com/photos/vultilion/6056698931/">one by vultilion</a>, <a href="https://creativecommons.org/licenses/by/2.0/">CC BY 2.0</a>, as the network decodes them.</figcaption>
</figure>
<p>FINDING</p>
<script>
{
  const points = POINTS;
  const figure = document.querySelector(".quality");
  const input = figure.querySelector("input");
  const show = () => {
    const { weight, bits, psnr } = points[input.value];
    const told = `weight ${weight.toFixed(2)} on the picture: ${bits.toFixed(2)} bits per pixel, ${psnr.toFixed(1)} dB`;
    figure.querySelector("img").style.transform = `translateY(${(-100 * input.value) / (points.length + 1)}%)`;
    figure.querySelector("output").value = told;
    input.setAttribute("aria-valuetext", told);
  };
  input.addEventListener("input", show);
  show();
}
</script>
"""


def kept() -> Any:
    """What the benchmark wrote."""
    return json.loads((ROOT / "results" / "rate_distortion.json").read_text(encoding="utf-8"))


def spread(found: Any) -> tuple[str, str]:
    """The least and the most bits at equal PSNR among the seeds, against nine networks."""
    shares = [100 * run["bd_rate"] for run in found["runs"]]
    least, most = (f"{share:+.1f} %".replace("-", "−") for share in (min(shares), max(shares)))
    return least, most


def finding(found: Any) -> str:
    """In words: the bits, the weighted losses at the preferences, and the time of training."""
    rays = np.asarray(found["rays"])
    losses = {}
    for name in ("one", "separate"):
        bits, psnr = np.moveaxis(np.array([run[name] for run in found["runs"]]), -1, 0)
        losses[name] = (rays[:, 0] * bits + rays[:, 1] * 10 ** (-psnr / 10) / found["unit"]).mean(0)
    ratio = losses["one"] / losses["separate"] - 1
    least, most = spread(found)
    seconds = (sum(run["cpu_seconds"][name] for run in found["runs"]) for name in losses)
    one, nine = seconds
    return (
        f"At equal PSNR the bits of the one network differ by {least} to {most}, depending on the seed "
        f"({len(found['runs'])} seeds), from those of nine networks with {found['steps']} steps each. By the weighted loss it is ahead at "
        f"{(ratio < 0).sum()} of {len(rays)} preferences and at most {100 * ratio.max():.1f} % behind at "
        f"the others. Training all nine takes {nine / one:.1f} times as long. Measured by "
        "<code>python -m benchmarks.rate_distortion</code>."
    )


def slider() -> str:
    """docs/gallery/rate_distortion.html: crops at the preference that one drags to."""
    found = kept()
    points = found["crops"]
    with Image.open(SPRITE) as sprite:
        width, height = sprite.size
    rounded = [{name: round(value, 3) for name, value in point.items()} for point in points]
    return (
        PAGE.replace("WIDTH", str(width))
        .replace("HEIGHT", str(height // (len(points) + 1)))
        .replace("LAST", str(len(points) - 1))
        .replace("POINTS", json.dumps(rounded))
        .replace("FINDING", finding(found))
    )


def draw_rate_distortion(folder: Path, *, dark: bool = False) -> None:
    """One network's curve among nine networks, and crops as it decodes them.

    Args:
        folder: where the PNG goes.
        dark: in the colours of dark pages; the photographs stay as they are.
    """
    found, names = kept(), DARK if dark else LIGHT
    ours, theirs = RUNS["dark" if dark else "light"][:2]
    one, separate, curve = (
        np.mean([run[name] for run in found["runs"]], axis=0)
        for name in ("one", "separate", "curve")
    )
    ink = dict.fromkeys(("text.color", "axes.labelcolor"), names["ink"])
    quiet = dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), names["quiet"])
    paper = dict.fromkeys(
        ("figure.facecolor", "axes.facecolor"), names["paper"] if dark else "white"
    )
    look: Any = ink | quiet | paper
    with use_style(), matplotlib.rc_context(look):
        figure = Figure(figsize=(9.6, 8.0), dpi=DPI, layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=(1, 1.2))
        top, below = parts
        axes: Any = top.subplots()
        axes.plot(*curve.T, color=ours, linewidth=2.2, label="one network, any preference")
        axes.scatter(*one.T, color=ours, s=22, zorder=3)
        axes.scatter(
            *separate.T,
            s=46,
            marker="D",
            facecolors="none",
            edgecolors=theirs,
            linewidths=1.4,
            zorder=4,
            label="nine networks, trained one by one",
        )
        axes.set(xlabel="bits per pixel", ylabel="PSNR in dB")
        axes.grid(color=names["line"], linewidth=0.4, alpha=0.7)
        axes.tick_params(length=0, pad=5)
        axes.legend(loc="lower right", fontsize=9.5)
        least, most = spread(found)
        title = f"Held-out parts of two photographs, mean of {len(found['runs'])} seeds. "
        title += f"Bits at equal PSNR, one network against nine: {least} to {most}"
        axes.set_title(title, loc="left", color=names["ink"], fontsize=9.5)
        _strip(below, found["crops"], names["ink"])
        stream = io.BytesIO()
        figure.savefig(stream, dpi=DPI)
    picture = Image.open(stream).convert("RGB").quantize(256)  # a quarter of the size
    picture.save(folder / f"rate_distortion{'-dark' if dark else ''}.png", optimize=True)


def _strip(figure: Any, points: Any, ink: str) -> None:
    """Both crops from the fewest bits to the most, and the original."""
    with Image.open(SPRITE) as sprite:
        rows = np.split(np.asarray(sprite.convert("RGB")), len(points) + 1)
    titles = [
        f"{points[at]['bits']:.2f} bits per pixel\n{points[at]['psnr']:.1f} dB" for at in SHOWN
    ]
    grid = figure.subplots(2, len(SHOWN) + 1)
    for column, (at, title) in enumerate(
        zip((*SHOWN, -1), [*titles, "original\n24 bits per pixel"], strict=True)
    ):
        for axes, crop in zip(grid[:, column], np.split(rows[at], 2, axis=1), strict=True):
            axes.imshow(crop)
            axes.axis("off")
        grid[0, column].set_title(title, color=ink, fontsize=8.5)
