import sys

import pytest

from paretocosmos import errors


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.ConfigurationError, ValueError),
        (errors.DataError, ValueError),
        (errors.RunError, OSError),
        (errors.DivergedError, ArithmeticError),
        (errors.MissingExtraError, ImportError),
    ],
)
def test_errors_are_one_family_and_the_builtin_they_stand_for(
    error: type[Exception], builtin: type[Exception]
) -> None:
    assert issubclass(error, errors.ParetoCosmosError)
    assert issubclass(error, builtin)


def test_every_public_name_is_an_error_a_warning_or_a_helper() -> None:
    for name in errors.__all__:
        thing = getattr(errors, name)
        if name.islower():
            assert callable(thing)
        elif name.endswith("Warning"):
            assert issubclass(thing, UserWarning)
        else:
            assert issubclass(thing, errors.ParetoCosmosError)
        assert thing.__doc__


def test_missing_extra_holds_the_pip_command() -> None:
    message = str(errors.MissingExtraError("matplotlib", "plot", "drawing a front"))
    assert 'pip install "paretocosmos[plot]"' in message
    assert "`matplotlib`" in message
    assert message.startswith("drawing a front")


def test_what_is_needed_is_asked_for_by_its_name_on_the_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors.require_extra("sys", "plot", "nothing")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(errors.MissingExtraError, match=r"^decoding needs `pillow`.*\[images\]"):
        errors.require_extra("PIL", "images", "decoding")


def test_unknown_suggests_the_closest_name() -> None:
    error = errors.unknown("method", "cosmo", ["linear", "cosmos"])
    assert isinstance(error, errors.ConfigurationError)
    assert (
        str(error) == "unknown method `cosmo`; did you mean `cosmos`? known: cosmos, linear"
    )  # sorted


def test_unknown_suggests_nothing_where_nothing_is_close() -> None:
    message = str(errors.unknown("method", "zzz", ["linear", "cosmos"]))
    assert message == "unknown method `zzz`; known: cosmos, linear"


def test_unknown_among_many_or_endless_names_is_still_a_sentence() -> None:
    said = str(errors.unknown("column", "paid", [f"{n:05}" for n in range(20_000)]))
    assert said.endswith("00099 and 19,900 more")
    said = str(errors.unknown("protocol", "clean" * 1000, ["clean", "paper", "x" * 5000]))
    assert len(said) < 400
