"""Serving: a run that answers any preference over HTTP."""

from collections.abc import Callable

from paretocosmos.errors import MissingExtraError
from paretocosmos.serving._settings import Settings

__all__ = ["Settings", "serve"]


def serve(settings: Settings, *, started: Callable[[str], None] | None = None) -> None:
    """Serve predictions of a run over HTTP, until SIGTERM or SIGINT.

    ``docs/howto/serve.md`` lists the routes. Call it in the main thread.

    Example: ``examples/serve_and_ask.py``.

    Args:
        settings: the run folder, the address, the limits.
        started: called with the address when the run is loaded and the server listens.
    """
    for package in ("fastapi", "prometheus_client", "uvicorn"):
        try:
            __import__(package)
        except ModuleNotFoundError as error:
            if error.name != package:  # it is there, and something else is missing
                raise
            raise MissingExtraError(package, "serve", "`paretocosmos serve`") from error
    import uvicorn

    from paretocosmos.serving._app import make_app
    from paretocosmos.serving._server import configured, hearing, listen, run_server

    server = uvicorn.Server(configured(settings, make_app(settings)))
    with hearing(server), listen(settings) as sock:
        host, port = sock.getsockname()[:2]
        if started is not None:
            started(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        run_server(server, sock)
