"""docs/cli.md: every command, with what `--help` says of its options."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from paretocosmos.cli import app

__all__ = ["write_commands"]

Option = tuple[str, str]  # how it is written, and what it means


def write_commands() -> str:
    """Return the page: each command with its own options, then those of several commands."""
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    users: dict[Option, list[str]] = {}
    for name, command in commands.items():
        for option in _list_options(command):
            users.setdefault(option, []).append(name)
    parts = [
        "# Command line",
        "",
        "`paretocosmos COMMAND --help` says the same. [Options of several commands](#options-of-several-commands) are at the end.",
    ]
    for name, command in commands.items():
        summary = " ".join((command.help or "").partition("\n\n")[0].split())
        own = [option for option, names in users.items() if names == [name]]
        parts += ["", f"## {name}", "", summary, "", *_write_options(own)]
    parts += ["", "## Options of several commands"]
    for names in dict.fromkeys(tuple(names) for names in users.values() if len(names) > 1):
        shared = [option for option, users_of_it in users.items() if tuple(users_of_it) == names]
        *others, last = (f"`{name}`" for name in names)
        parts += ["", f"{', '.join(others)} and {last}:", "", *_write_options(shared)]
    return "\n".join(parts) + "\n"


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
