"""Problems: data, objectives and a reference point, one file each."""

import dataclasses
import inspect
import typing
from collections.abc import Mapping
from pathlib import Path

from paretocosmos.errors import ConfigurationError, check_choice, unknown
from paretocosmos.io.files import user_path
from paretocosmos.io.progress import status
from paretocosmos.problems.base import (
    HELD,
    PROTOCOLS,
    SPLITS,
    InMemoryProblem,
    Problem,
    Protocol,
    Source,
    Split,
    Wording,
    check_split,
    hash_answers,
    hash_data,
    samples_in,
    scored_on,
    shares_of,
    split_of,
)
from paretocosmos.problems.tables.files import TABLE_ENDINGS, check_file
from paretocosmos.registry import Spec, convert, find, parameters

REGISTRY = {
    "adult": "paretocosmos.problems.tables.public:adult",
    "celeba": "paretocosmos.problems.images.celeba:celeba",
    "celeba_easy": "paretocosmos.problems.images.celeba:celeba_easy",
    "celeba_four": "paretocosmos.problems.images.celeba:celeba_four",
    "celeba_hard": "paretocosmos.problems.images.celeba:celeba_hard",
    "celeba_ten": "paretocosmos.problems.images.celeba:celeba_ten",
    "celeba_three": "paretocosmos.problems.images.celeba:celeba_three",
    "compas": "paretocosmos.problems.tables.public:compas",
    "default_credit": "paretocosmos.problems.tables.public:default_credit",
    "dtlz2": "paretocosmos.problems.analytic:dtlz2",
    "dtlz7": "paretocosmos.problems.analytic:dtlz7",
    "fashion_and_mnist": "paretocosmos.problems.images.problem:fashion_and_mnist",
    "multi_digits": "paretocosmos.problems.images.problem:multi_digits",
    "multi_fashion": "paretocosmos.problems.images.problem:multi_fashion",
    "multi_mnist": "paretocosmos.problems.images.problem:multi_mnist",
    "re21": "paretocosmos.problems.analytic:re21",
    "re37": "paretocosmos.problems.analytic:re37",
    "table": "paretocosmos.problems.tables.public:table",
    "toy_concave": "paretocosmos.problems.functions:toy_concave",
    "toy_convex": "paretocosmos.problems.functions:toy_convex",
    "vlmop2": "paretocosmos.problems.analytic:vlmop2",
    "zdt1": "paretocosmos.problems.analytic:zdt1",
    "zdt2": "paretocosmos.problems.analytic:zdt2",
    "zdt3": "paretocosmos.problems.analytic:zdt3",
}
"""Every problem by its name: the module and the function in it."""


def problem_name(name: str) -> str:
    """Return the registered name of a problem: the path of a table means `table`.

    >>> problem_name("loans.csv"), problem_name("adult")
    ('table', 'adult')
    """
    return "table" if name.lower().endswith(TABLE_ENDINGS) else name


def load_problem(
    name: str,
    *,
    protocol: str | None = None,
    data: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> Problem:
    """Load a problem by name.

    Args:
        name: a name of the registry, ``package.module:function``, or the path of a table (a CSV,
            TSV or Parquet file), which is the problem `table`.
        protocol: ``"clean"`` or ``"paper"``; the problem's own default if left out.
        data: where the problem's files are, for those that read any.
        settings: further arguments of the problem, as values or as text.

    Returns:
        The problem; its `spec` holds every setting and loads it again.

    >>> load_problem("toy_convex").names
    ('first', 'second')
    """
    options: dict[str, object] = dict(settings or {})
    if protocol is not None:
        # left out unless it is set, so that the problem's own default applies
        options["protocol"] = protocol
    if data is not None:
        options["data"] = data
    registered = problem_name(name)
    if registered != name:
        if "data" in options:
            raise ConfigurationError(
                f"`{name}` names the data, but `data` is `{options['data']}` too: give one of them"
            )
        options["data"] = name
    if registered == "table" and options.get("data") is not None:
        check_file(user_path(str(options["data"])))  # before its columns are asked for
    thing = find("problems", registered)
    takes = parameters(thing)
    # before loading, which may take minutes
    _check_settings(registered, takes, options)
    for key in ("data", "val", "test"):  # absolute, so that a run can be read from elsewhere
        if options.get(key) is not None and key in takes:
            options[key] = str(user_path(str(options[key])).absolute())
    # settings may be text from a command line; type hints say what they are to become
    hints = typing.get_type_hints(thing.__init__ if inspect.isclass(thing) else thing)
    # a problem of one's own that knows no protocols is clean
    values = {
        key: convert(key, value, hints.get(key, object))
        for key, value in options.items()
        if key in takes
    }
    with status(f"loading {Path(name).name}"):
        problem = thing(**values)
    if not isinstance(problem, Problem):
        raise ConfigurationError(
            f"`{registered}` must give a paretocosmos Problem, found {type(problem).__name__}"
        )
    # with all defaults, so that changing one later does not change what a run was trained on
    defaults = {key: p.default for key, p in takes.items() if p.default is not p.empty}
    return dataclasses.replace(problem, spec=Spec(registered, defaults | values))


def _check_settings(
    name: str, takes: Mapping[str, inspect.Parameter], options: Mapping[str, object]
) -> None:
    """Raise for settings the problem does not take or lacks, all at once."""
    if "protocol" in options:
        check_choice("protocol", str(options["protocol"]), PROTOCOLS)
    # collected, so that a command line can be repaired in one go
    mistakes = []
    for key in options:
        if key in takes or (key, options[key]) == ("protocol", "clean"):
            continue
        if key in ("data", "protocol"):
            mistakes.append(f"`{name}` has no `{key}`, found `{options[key]}`: leave it out")
        else:
            mistakes.append(str(unknown(f"setting of `{name}`", key, takes)))
    absent = [key for key, p in takes.items() if p.default is p.empty and key not in options]
    if absent:
        named = " and ".join(f"`{key}`" for key in absent)
        mistakes.append(f"`{name}` needs {named}: give {'it' if len(absent) == 1 else 'them'}")
    if mistakes:
        raise ConfigurationError("; ".join(mistakes))
