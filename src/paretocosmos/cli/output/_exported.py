"""What `export` prints: what was written, how well it agrees, and how to call it."""

from rich.markup import escape

from paretocosmos.cli.output._console import wide
from paretocosmos.export import Exported

__all__ = ["print_exported"]

_LINES = {
    ".onnx": (
        "session = onnxruntime.InferenceSession({path!r})",
        'session.run(None, {{"x": x, "preference": preference}})',
    ),
    ".pt2": (
        "program = torch.export.load({path!r}).module()",
        "program(x, preference)",
    ),
}


def print_exported(exported: Exported) -> None:
    """A few lines, the last two of them Python."""
    console = wide()
    rows = {
        "file": f"{exported.path} ({exported.path.stat().st_size:,} bytes)",
        "card": str(exported.card),
        "preference": exported.preference,
        "difference": f"at most {exported.difference:.1e} to PyTorch, on random rows and rays",
    }
    for name, said in rows.items():
        console.print(f"  [bold]{name:<12}[/]{escape(said)}", soft_wrap=True)
    console.print()
    for line in _LINES[exported.path.suffix]:
        console.print(escape(line.format(path=str(exported.path))), soft_wrap=True)
