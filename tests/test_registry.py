import enum
from typing import Any, Literal

import pytest

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Cosmos
from paretocosmos.registry import Spec, build, convert, parameters, summary

KINDS = ("objectives", "backbones", "conditioning", "methods", "problems")


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_is_defined_in_this_package(kind: str) -> None:
    assert registry.names(kind)
    for name in registry.names(kind):
        assert registry.find(kind, name).__module__.startswith("paretocosmos.")


def test_find_gives_the_thing_itself_by_name_and_by_path() -> None:
    assert registry.find("methods", "cosmos") is Cosmos
    assert registry.find("methods", "paretocosmos.methods.cosmos:Cosmos") is Cosmos
    assert registry.find("objectives", "enum:Enum") is enum.Enum  # any package


def test_an_unknown_name_suggests_the_closest() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown method `cosmo`; .*`cosmos`"):
        registry.find("methods", "cosmo")


@pytest.mark.parametrize("name", ["_base", "", "cosmos.Cosmos", "__init__"])
def test_private_and_odd_names_are_unknown(name: str) -> None:
    with pytest.raises(ConfigurationError, match="unknown method"):
        registry.find("methods", name)


@pytest.mark.parametrize("name", ["no_such_package:A", "enum:NoSuch", "enum:", ":Enum", ".enum:A"])
def test_what_cannot_be_imported_is_one_sentence(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"`package\.module:Name`"):
        registry.find("methods", name)


def test_build_joins_fixed_arguments_and_settings() -> None:
    assert build("methods", Spec("cosmos", {"penalty": 3.0})) == Cosmos(penalty=3.0)
    network = build("backbones", Spec("mlp", {"hidden": (4,)}), input_shape=(3,), outputs=2)
    assert sum(p.numel() for p in network.parameters()) == (3 + 1) * 4 + (4 + 1) * 2


def test_a_spec_without_settings_builds_the_defaults() -> None:
    assert build("methods", Spec("cosmos")) == Cosmos()


def test_summary_is_the_first_line_of_the_docstring() -> None:
    assert summary("methods", "cosmos") == Cosmos.__doc__.splitlines()[0]


def test_parameters_are_the_keyword_only_ones() -> None:
    def thing(data: int, /, other: int, *, penalty: float = 1.0, name: str) -> None: ...

    found = parameters(thing)
    assert list(found) == ["penalty", "name"]
    assert found["penalty"].default == 1.0
    own = {"penalty", "alignment", "normalise", "floor", "least", "least_epochs"}
    assert set(parameters(Cosmos)) == {"alpha", "stratified"} | own


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        ("3", int, 3),
        (3.0, int, 3),
        ("3", float, 3.0),
        (3, float, 3.0),
        ("1e-3", float, 0.001),
        ("true", bool, True),
        (False, bool, False),
        ("a", str, "a"),
        ("a", Literal["a", "b"], "a"),
        (None, str | None, None),
        ("none", int | None, None),
        ("5", int | None, 5),
        ("60, 25", tuple[int, ...], (60, 25)),
        ("", tuple[int, ...], ()),
        ([60, 25], tuple[int, ...], (60, 25)),
        ("0.5", float | tuple[float, ...], 0.5),
        ("0.1,0.5", float | tuple[float, ...], (0.1, 0.5)),
        ([0.1, 1], float | tuple[float, ...], (0.1, 1.0)),
        ({"a": 1}, object, {"a": 1}),
        (("a", 1), Any, ("a", 1)),
    ],
)
def test_convert_brings_values_to_the_annotated_type(
    value: object, annotation: object, expected: object
) -> None:
    found = convert("key", value, annotation)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        ("x", int),
        ("1.5", int),
        (1.5, int),
        (True, int),
        (float("inf"), int),
        (float("nan"), int),
        (True, float),
        ("x", float),
        (None, float),
        ("yes", bool),
        (1, bool),
        (3, str),
        ("c", Literal["a", "b"]),
        ("60,x", tuple[int, ...]),
        (60, tuple[int, ...]),
        ([[1]], tuple[int, ...]),
        ("x", int | None),
        ({}, float | tuple[float, ...]),
    ],
)
def test_convert_refuses_the_rest_and_names_the_key(value: object, annotation: object) -> None:
    with pytest.raises(ConfigurationError, match="`key` takes") as caught:
        convert("key", value, annotation)
    assert repr(value) in str(caught.value)
