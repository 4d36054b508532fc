"""Serving: a run that answers any preference over HTTP."""

from collections.abc import Callable

from paretocosmos.errors import MissingExtraError
from paretocosmos.serving.settings import Settings


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
            if error.name != package:  # one of its dependencies is missing
                raise
            raise MissingExtraError(package, "serve", "`paretocosmos serve`") from error
    import uvicorn

    from paretocosmos.serving.app import make_app
    from paretocosmos.serving.server import handle_signals, make_config, open_socket, run_server

    server = uvicorn.Server(make_config(settings, make_app(settings)))
    with handle_signals(server), open_socket(settings) as sock:
        host, port = sock.getsockname()[:2]
        if started is not None:
            started(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        run_server(server, sock)
