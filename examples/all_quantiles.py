"""All quantiles in one network: how long to allow for a drive, for any risk of being late.

Leaving too late costs, max(y - f, 0), and so does leaving too early, max(f - y, 0). Their sum
weighted by (t, 1 - t) is smallest at the t-quantile, so a preference is the share of days on which
one is in time. Drives are simulated, so that the true quantiles are known.
"""

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from paretocosmos.estimators import ParetoRegressor

Array = npt.NDArray[np.float64]

LEVELS = tuple(tenth / 10 for tenth in range(1, 10))


def rush(hour: Array) -> Array:
    """How full the streets are, from 0 to 1: most at 8, again at half past five."""
    return np.exp(-(((hour - 8) / 1.5) ** 2)) + 0.8 * np.exp(-(((hour - 17.5) / 2) ** 2))


def true_quantile(hour: Array, level: float) -> Array:
    """Minutes that are enough on a share `level` of days: log-normal, wider when streets are full.

    Args:
        hour: when one leaves.
        level: the share of days, between 0 and 1.
    """
    z = NormalDist().inv_cdf(level)
    return (14 + 12 * rush(hour)) * np.exp((0.08 + 0.3 * rush(hour)) * z)


def drives(count: int, seed: int) -> tuple[Array, Array]:
    """When drives began, between 5 and 22 o'clock, and how many minutes they took.

    Args:
        count: of drives.
        seed: of what is drawn.
    """
    draw = np.random.default_rng(seed)
    hour = draw.uniform(5, 22, count)
    minutes = (14 + 12 * rush(hour)) * np.exp((0.08 + 0.3 * rush(hour)) * draw.normal(size=count))
    return hour, minutes


def estimator(seed: int) -> ParetoRegressor:
    """Absolute errors give quantiles, and alpha=1 draws every level alike while it learns."""
    return ParetoRegressor(loss="absolute", alpha=1.0, learning_rate=5e-3, random_state=seed)


def preference(level: float) -> dict[str, float]:
    """The preference for being in time on that share of days."""
    return {"under_prediction": level, "over_prediction": 1 - level}


def fan(model: ParetoRegressor, hour: Array, levels: tuple[float, ...] = LEVELS) -> Array:
    """Predicted minutes ``[levels, hours]``."""
    return np.stack([model.predict(hour[:, None], preference=preference(t)) for t in levels])


if __name__ == "__main__":
    hour, minutes = drives(20_000, seed=1)
    model = estimator(seed=1).fit(hour[:, None], minutes)

    new_hour, new_minutes = drives(100_000, seed=2)
    for level, allowed in zip(LEVELS, fan(model, new_hour), strict=True):
        in_time = (new_minutes <= allowed).mean()
        error = (level * (1 - level) / len(new_hour)) ** 0.5
        print(f"asked to be in time {level:.0%}: in time {in_time:.1%} ± {error:.1%} of new drives")
    eight = np.array([8.0])
    for level in (0.5, 0.9):
        allowed, true = fan(model, eight, (level,)).item(), true_quantile(eight, level).item()
        print(f"at 8 o'clock, {level:.0%}: allow {allowed:.1f} minutes; the truth is {true:.1f}")
    all_levels = fan(model, np.linspace(5, 22, 1000), tuple(np.linspace(0.01, 0.99, 99)))
    steps = np.diff(all_levels, axis=0)
    print(f"of {steps.size:,} pairs of neighbouring quantiles, {(steps < 0).sum()} cross")
