"""The HTTP application: routes, errors and the description in OpenAPI."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from prometheus_client import generate_latest
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)

from paretocosmos._version import __version__
from paretocosmos.errors import ParetoCosmosError
from paretocosmos.serving.middleware import BEARER, AuthMiddleware, FramingMiddleware
from paretocosmos.serving.request_body import shorten_json
from paretocosmos.serving.schemas import Chosen, Outputs, Probabilities, Refusal
from paretocosmos.serving.service import Service
from paretocosmos.serving.settings import Settings

# Without allow-same-origin, the script of a run's page cannot ask this server.
PAGE_POLICY = (
    "sandbox allow-scripts allow-downloads allow-popups allow-modals; frame-ancestors 'none'"
)
SCHEMA_PATH = "#/components/schemas/{model}"
ERROR_SCHEMA = {"$ref": SCHEMA_PATH.format(model="Refusal")}
# OpenAPI's names of statuses suffice: each answer explains itself.
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"content": {"application/json": {"schema": ERROR_SCHEMA}}}
    for status in (400, 401, 408, 413, 415, 421, 422, 429, 503)
}
WITHOUT_BODY: dict[int | str, dict[str, Any]] = {status: REFUSALS[status] for status in (401, 421)}


class DirectRoute(APIRoute):
    """A route to a function of the request.

    The middleware has checked the token, and `BodyReader` reads bodies within limits, so FastAPI
    only describes both: its own way to a function costs time for every single row.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function itself."""
        return self.endpoint


def make_app(settings: Settings) -> FastAPI:
    """Load a run and build the application that serves it."""
    service = Service(settings)
    app = FastAPI(
        title=f"{service.run.record['name']} by {service.run.record['label']}",
        description="One network that takes the trade-off as an input.",
        version=__version__,
        docs_url=None,  # these pages fetch scripts from elsewhere
        redoc_url=None,
        # A redirect would lose the body and the token of a POST request in some clients.
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        dependencies=[] if settings.token is None else [Depends(BEARER)],
        exception_handlers=dict.fromkeys(
            (HTTPException, ParetoCosmosError, Exception), _handle_error
        ),
    )
    app.router.route_class = DirectRoute
    _add_posts(app, service)
    _add_gets(app, service)
    models = (service.question_model, service.criteria_model, Refusal)
    schemas: Any = [(model, "validation") for model in models]
    _, definitions = models_json_schema(schemas, ref_template=SCHEMA_PATH)
    # FastAPI does not know these models, since `DirectRoute` reads the bodies itself.
    app.openapi()["components"]["schemas"] |= definitions["$defs"]
    paths = {getattr(route, "path", "") for route in app.routes}
    # Starlette calls the middleware that was added last first.
    app.add_middleware(AuthMiddleware, metrics=service.metrics, paths=paths, token=settings.token)
    if settings.origins:  # before authentication: a browser's preflight request has no token
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    app.add_middleware(FramingMiddleware)  # before all others
    return app


async def _handle_error(request: Request, error: Exception) -> Response:
    """Answer every error with one sentence in JSON."""
    status, why, headers = 422, str(error), None
    if isinstance(error, HTTPException):
        status, why, headers = error.status_code, error.detail, error.headers
        if status in (404, 405):
            path = shorten_json(request.url.path)
            why = f"{request.method} {path} is not answered here: see /openapi.json"
    elif not isinstance(error, ParetoCosmosError):
        status, why = 500, "this is a fault of the server; its log says more"
    return JSONResponse({"error": why}, status, headers)


def _describe_body(model: Any, example: object) -> dict[str, Any]:
    """Describe a body for OpenAPI, which `BodyReader` reads instead of FastAPI."""
    content = {"schema": {"$ref": SCHEMA_PATH.format(model=model.__name__)}, "example": example}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def _add_posts(app: FastAPI, service: Service) -> None:
    """Add the routes whose requests have a body."""
    answer = Outputs if service.run.table is None else Probabilities

    @app.post(
        "/predict",
        responses={200: {"model": answer}, **REFUSALS},
        openapi_extra=_describe_body(service.question_model, service.example),
    )
    async def predict(request: Request) -> Response:
        """Answer one or many rows, at one preference for all or one for each."""
        question = await service.body_reader.read(request, service.parse_question)
        return JSONResponse(await service.predict(*question))

    @app.post(
        "/choose",
        responses={200: {"model": Chosen}, **REFUSALS},
        openapi_extra=_describe_body(service.criteria_model, {"knee": True}),
    )
    async def choose(request: Request) -> Response:
        """Choose the point of the front that meets the criteria best; use its ray as preference."""
        criteria = await service.body_reader.read(request, service.parse_criteria)
        return JSONResponse(await service.chooser.choose(criteria))


def _add_gets(app: FastAPI, service: Service) -> None:
    """Add the routes whose requests have no body."""
    run = service.run
    fronts = JSONResponse({"test": run.front.to_dict(), "val": run.front_val.to_dict()})

    @app.get("/front", responses={200: {"model": dict[str, Any]}, **WITHOUT_BODY})
    async def front(_request: Request) -> Response:
        """Give the front on test and on val: rays, values and metrics."""
        return fronts

    @app.get("/health", responses={200: {"model": dict[str, str]}, 421: REFUSALS[421]})
    async def health(_request: Request) -> Response:
        """Say that the server is up; needs no token."""
        return JSONResponse({"status": "ok", "version": __version__})

    @app.get("/metrics", response_class=PlainTextResponse, responses=WITHOUT_BODY)
    async def metrics(_request: Request) -> Response:
        """Give counters in Prometheus's format; of this process alone, if there are several."""
        text = generate_latest(service.metrics.registry)
        return Response(text, media_type="text/plain; version=0.0.4")

    @app.get("/", include_in_schema=False)
    async def home(_request: Request) -> Response:
        if run.report is None:
            return RedirectResponse("openapi.json")
        return FileResponse(run.report, headers={"Content-Security-Policy": PAGE_POLICY})
