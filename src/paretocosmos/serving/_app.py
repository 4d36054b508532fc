"""The application: what is asked where."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from paretocosmos._version import __version__
from paretocosmos.errors import ParetoCosmosError
from paretocosmos.serving._answer import json_response
from paretocosmos.serving._body import parsed
from paretocosmos.serving._criteria import KEYS, read_criteria
from paretocosmos.serving._gate import Gate
from paretocosmos.serving._openapi import answered, choose_schemas, posted, predict_schemas
from paretocosmos.serving._page import page
from paretocosmos.serving._refusal import RefusedError, shown
from paretocosmos.serving._service import Service
from paretocosmos.serving._settings import Settings

__all__ = ["make_app"]

# The page needs its own style and nothing else.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def make_app(settings: Settings) -> ASGIApp:
    """Load a run and build what answers for it."""
    service = Service(settings)

    @asynccontextmanager
    async def living(_app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title=f"{service.run.record['name']} by {service.run.record['label']}",
        description="One network that takes the trade-off as an input.",
        version=__version__,
        docs_url=None,  # its pages fetch scripts from elsewhere
        redoc_url=None,
        lifespan=living,
        redirect_slashes=False,
    )
    _refusals(app)
    described_by_hand = _post_routes(app, service)
    _get_routes(app, service)
    described = app.openapi()
    described["paths"] = described_by_hand | described["paths"]
    if settings.token is not None:
        described.setdefault("components", {})["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"}
        }
        described["security"] = [{"token": []}]
    return Gate(app, service.measures, token=settings.token)


def _refusals(app: FastAPI) -> None:
    """Whatever goes wrong is one sentence in JSON."""

    async def refused(_request: Request, error: Exception) -> Response:
        status = error.status if isinstance(error, RefusedError) else 422
        return json_response({"error": str(error)}, status=status)

    async def elsewhere(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        asked = f"{request.method} {shown(request.url.path)}"
        status, headers = error.status_code, error.headers
        return json_response(
            {"error": f"{asked} is not answered here; see /docs"}, status=status, headers=headers
        )

    async def broken(_request: Request, _error: Exception) -> Response:
        return json_response(
            {"error": "this is a fault of the server; its log says more"}, status=500
        )

    app.add_exception_handler(RefusedError, refused)
    app.add_exception_handler(ParetoCosmosError, refused)
    app.add_exception_handler(HTTPException, elsewhere)
    app.add_exception_handler(Exception, broken)


def _post_routes(app: FastAPI, service: Service) -> dict[str, Any]:
    """What has a body, and its part of the description.

    Plain routes, bodies read by hand: FastAPI's way to a handler costs every single row.
    """

    async def predict(request: Request) -> Response:
        """Answer one or many rows, at one preference for all or one for each."""
        question = await service.bodies.read(request, service.question)
        return json_response(await service.predict(question))

    async def choose(request: Request) -> Response:
        """Choose the point of the front that meets the criteria best: its ray is a preference."""
        criteria = await service.bodies.read(
            request, lambda body: read_criteria(parsed(body, KEYS))
        )
        return json_response(await service.chooser.choose(criteria))

    app.add_route("/predict", predict, methods=["POST"])
    app.add_route("/choose", choose, methods=["POST"])
    return {
        "/predict": posted(predict, *predict_schemas(service.run, service.settings)),
        "/choose": posted(choose, *choose_schemas(service.run)),
    }


def _get_routes(app: FastAPI, service: Service) -> None:
    """What has no body."""
    run = service.run
    fronts = {"test": run.front.to_dict(), "val": run.front_val.to_dict()}
    front = json_response(fronts).body
    anything = {"type": "object"}

    @app.get("/front", responses=answered(anything))
    async def get_front() -> Response:
        """Tell the front on test and on val: rays, values and metrics."""
        return Response(front, media_type="application/json")

    @app.get("/health", responses=answered(anything, refusals=(421,)))
    async def health() -> Response:
        """Tell that the server lives; needs no token."""
        return json_response({"status": "ok", "version": __version__})

    text: dict[int | str, Any] = {
        200: {"description": "Text.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    }

    @app.get("/metrics", responses={**answered(anything), **text})
    async def metrics() -> Response:
        """Tell what was counted, as Prometheus reads it; of this process, if there are several."""
        return Response(service.measures.text(), media_type="text/plain; version=0.0.4")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        """Show the description as a page."""
        return HTMLResponse(page(app.openapi()), headers={"Content-Security-Policy": POLICY})
