"""The family of errors, and the refusal of an unknown name.

Every message names the thing in backticks, the rule, what was found, and the way out. It speaks of
arguments, as `out` or resume=True; the command line finds these and names its options.
"""

import difflib
import importlib.util
from collections.abc import Iterable
from typing import TypeVar

__all__ = [
    "BenchmarkWarning",
    "CallbackWarning",
    "CheckpointWarning",
    "ConditioningWarning",
    "ConfigurationError",
    "DataError",
    "DataWarning",
    "DivergedError",
    "EngineWarning",
    "FrontWarning",
    "InfeasibleError",
    "LostProcessError",
    "MissingExtraError",
    "ParetoCosmosError",
    "RunError",
    "UntrustedError",
    "WeightsWarning",
    "cannot_use",
    "check_choice",
    "require_extra",
    "unknown",
]


# The longest name that is printed whole, and the most names that are listed: they may come from a
# file, and a message must stay readable in a terminal.
LONGEST, MOST = 100, 100

Choice = TypeVar("Choice", bound=str)


class ParetoCosmosError(Exception):
    """The base of all errors of this library; the message says what to do.

    >>> from paretocosmos import load_problem
    >>> try:
    ...     load_problem("adut")
    ... except ParetoCosmosError as error:
    ...     print("adult" in str(error))
    True
    """

    shared = False
    """True if every process of a training raises it, so that only the first has to print it."""


class ConfigurationError(ParetoCosmosError, ValueError):
    """A setting, a name or a ray that cannot be used."""


class InfeasibleError(ParetoCosmosError, ValueError):
    """Bounds that no point of a front keeps; the message says how close one can get."""


class DataError(ParetoCosmosError, ValueError):
    """Data that is missing, damaged, or not fit for the problem asked."""


class RunError(ParetoCosmosError, OSError):
    """A run folder that cannot be read or written."""


class UntrustedError(RunError):
    """A file that names code of others, which the caller has not said to trust."""

    packages: tuple[str, ...] = ()
    """The packages that would have to be trusted."""


class LostProcessError(RunError):
    """Another process of a training is gone, or never came."""


class DivergedError(ParetoCosmosError, ArithmeticError):
    """A loss became NaN or infinite during training."""


class MissingExtraError(ParetoCosmosError, ImportError):
    """An optional package is not installed; the message holds the pip command."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs `{package}`, which is not installed; "
            f'run: pip install "paretocosmos[{extra}]"'
        )


def require_extra(module: str, extra: str, purpose: str) -> None:
    """Refuse to go on without an optional package.

    Args:
        module: how it is imported.
        extra: the extra of this package that installs it.
        purpose: what needs it.
    """
    # not imported, which may take seconds
    if importlib.util.find_spec(module) is None:
        # two packages are installed under another name than they are imported by
        called = {"sklearn": "scikit-learn", "PIL": "pillow"}.get(module, module)
        raise MissingExtraError(called, extra, purpose)


class BenchmarkWarning(UserWarning):
    """A known flaw of a data set as a benchmark of fairness."""


class CallbackWarning(UserWarning):
    """A callback that failed, so that training goes on without it."""


class CheckpointWarning(UserWarning):
    """A checkpoint that is damaged, so that training goes on from another."""


class ConditioningWarning(UserWarning):
    """A network that will do something else with rays than its owner may expect."""


class DataWarning(UserWarning):
    """An assumption about data, or an omission in it, so that its owner can say otherwise."""


class EngineWarning(UserWarning):
    """A faster engine that could not be used, so that training goes on with a slower one."""


class FrontWarning(UserWarning):
    """A front that is probably not what its owner meant (a reference point nobody dominates)."""


class FindingWarning(FrontWarning):
    """Something about a finished training that its owner should know: a ray without effect."""


class WeightsWarning(UserWarning):
    """A network that begins with other weights than its owner may expect."""


def cannot_use(path: object, error: OSError) -> RunError:
    """Make the error for a path that the system refuses."""
    return RunError(f"cannot use `{path}`: {error.strerror}; choose another `out`")


def unknown(kind: str, name: str, known: Iterable[str]) -> ConfigurationError:
    """Make the error for an unknown name, which suggests the closest known one and lists all.

    Names may come from a file, and there may be any number of them, of any length.
    """
    names = sorted(known)  # the same order wherever the names come from
    # shortened: the comparison takes the square of a name's length
    close = difflib.get_close_matches(name[:LONGEST], names, n=1, cutoff=0.5)
    hint = f"did you mean `{_short(close[0])}`? " if close else ""
    # all of them where that is possible: names cannot be guessed
    listed = ", ".join(_short(known_name) for known_name in names[:MOST])
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return ConfigurationError(f"unknown {kind} `{_short(name)}`; {hint}known: {listed}{more}")


def check_choice(kind: str, name: str, known: Iterable[Choice]) -> Choice:
    """Return the known name that equals a given one; raise if there is none."""
    known = tuple(known)
    if name not in known:
        raise unknown(kind, str(name), known)
    return known[known.index(name)]


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}..."
