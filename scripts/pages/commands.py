"""docs/cli.md: every command, with what `--help` says of its options."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from paretocosmos.cli import app

__all__ = ["write_commands"]

SHARED = 2  # commands that have an option in common, from which on it is listed once
Option = tuple[str, str]  # how it is written, and what it means


def write_commands() -> str:
    """Return the page."""
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    counts = Counter(option for one in commands.values() for option in _list_options(one))
    shared = [option for option, count in counts.items() if count >= SHARED]
    parts = [
        "# Command line",
        "",
        "`paretocosmos COMMAND --help` says the same, with groups of options. These are shared by several commands:",
        "",
        *_write_options(shared),
        "",
    ]
    for name, command in commands.items():
        parts += [f"## {name}", "", *_write_command(command, shared), ""]
    return "\n".join(parts)


def _write_command(command: Any, shared: list[Option]) -> Iterator[str]:
    yield from (" ".join((command.help or "").partition("\n\n")[0].split()), "")
    options = _list_options(command)
    yield from _write_options([option for option in options if option not in shared])
    if common := [name.split()[0].strip("`") for name, _ in options if (name, _) in shared]:
        yield f"- Shared: {', '.join(f'`{name}`' for name in common)}."


def _list_options(command: Any) -> list[Option]:
    options = []
    for parameter in command.params:
        text = " ".join((getattr(parameter, "help", None) or "").split())
        if parameter.param_type_name == "argument":
            name = f"`{parameter.name.upper()}`"
        else:
            name = f"`{', '.join(parameter.opts)}`"
        if "--help" not in parameter.opts and text:
            options.append((name, text))
    return options


def _write_options(options: list[Option]) -> Iterator[str]:
    for name, text in options:
        yield f"- {name}: {text}"
