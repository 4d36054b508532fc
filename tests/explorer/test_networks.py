"""The page of a run of several networks, or of one that gives one point, as a browser shows it."""

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paretocosmos.explorer import write_report
from paretocosmos.front import Front
from paretocosmos.rays import even_rays

BROWSER = shutil.which("chromium")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")


def shown(folder: Path, label: str, rays: Any, *, fixed: bool, **of_networks: list[Any]) -> str:
    """The page after its script ran; what is hidden is cut out."""
    points = np.asarray(rays, dtype=np.float64)
    values = 0.6 - 0.5 * np.sqrt(points)
    front = Front(points, values, ("loss", "gap"), np.array([2.0, 2.0]))
    count = len(points) if fixed else 1
    record = {
        "name": "adult",
        "method": {"name": label, "settings": {}},
        "label": label,
        "fixed_rays": points.tolist() if fixed else None,
        "networks": [{key: own[k] for key, own in of_networks.items()} for k in range(count)],
        "epoch_selected": max(of_networks["epoch_selected"]),
        "parameters": 100 * count,
        "seconds_training": 4.0,
        "evaluations": [{"epoch": epoch, "hypervolume_val": 3.0} for epoch in (5, 10)],
    }
    write_report(folder / "report.html", record, [front])
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={folder / 'browser'}", f"file://{folder / 'report.html'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    body = done.stdout.partition("<body>")[2]
    body = re.sub(r"<script.*?</script>|<noscript>.*?</noscript>", "", body, flags=re.DOTALL)
    hidden = r'<(section|div|p|label)\b[^>]*\bhidden="[^>]*>.*?</\1>'
    text = re.sub(r"<[^>]+>", " ", re.sub(hidden, "", body, flags=re.DOTALL))
    return " ".join(unescape(text).split())


def test_one_network_for_all_rays(tmp_path: Path) -> None:
    share: dict[str, list[Any]] = {"epoch_selected": [10], "infeasible_share": [0.031]}
    text = shown(tmp_path, "phn_epo", even_rays(9, 2), fixed=False, **share)
    for words in (
        *("Method phn_epo", "One network, one point per preference", "Every ray", "Ray 5"),
        *("Preference 5 of 9", "Weights in the one network", "Infeasible 3.1 %", "Rays 9"),
        "Epoch 10 was selected",
    ):
        assert words in text
    assert "etworks" not in text.partition("Configuration Everything")[0]


def test_several_networks(tmp_path: Path) -> None:
    epochs: list[Any] = [5, 10, 5, 10, 5]
    text = shown(tmp_path, "pareto_mtl", even_rays(5, 2), fixed=True, epoch_selected=epochs)
    for words in (
        *("5 networks, one point each", "Every network", "Network 3 of 5", "Selected epochs 5, 10"),
        *("5 networks of 100 weights", "All 5 networks together", "Networks 5"),
        *("answered by the network whose ray is the nearest", "selected epoch"),
        "Each network has its own selected epoch: 5, 10",
    ):
        assert words in text
    for words in ("One network", "Every ray", "Ray 1", "Preference 1", "was selected"):
        assert words not in text


def test_networks_for_one_objective_each(tmp_path: Path) -> None:
    text = shown(tmp_path, "single_task", np.eye(2), fixed=True, epoch_selected=[5, 10])
    for words in (
        *("2 networks, each trained on one objective alone", "Ideal point 3.610"),
        *("Trained on gap alone", "Network 2 of 2"),
    ):
        assert words in text
    for words in ("Span", "Monotonicity", "On the front", "validation hypervolume"):
        assert words not in text


def test_one_point(tmp_path: Path) -> None:
    text = shown(tmp_path, "mgda", [[0.5, 0.5]], fixed=True, epoch_selected=[10])
    for words in ("One network, one point.", "The one network", "takes no preference", "For one"):
        assert words in text
    for words in (
        "Span",
        "Dominated",
        "1 of 1",
        "weight on",
        "More weight",
        "Every network",
        "front beats",
    ):
        assert words not in text
