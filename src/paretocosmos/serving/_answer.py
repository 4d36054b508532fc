"""What is answered, as JSON."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from starlette.responses import Response

from paretocosmos.runs.run import Run
from paretocosmos.serving._network import Answers, activated
from paretocosmos.serving._preference import Rays
from paretocosmos.serving._refusal import refuse

__all__ = ["classified", "json_response", "prediction"]


def json_response(
    content: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """JSON in ASCII, so that half a letter of a client's text can be told back to it."""
    body = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    named = dict(headers or {})
    if status == 401:
        named["WWW-Authenticate"] = "Bearer"
    return Response(body, status, named, media_type="application/json")


def classified(run: Run) -> set[str]:
    """The heads whose outputs are logits of classes: those whose accuracy the front reports."""
    outputs = run.record["outputs"]
    heads = {head: f"accuracy_{head}" for head in outputs} if isinstance(outputs, dict) else {}
    known = heads or {"outputs": "accuracy"}
    return {head for head, metric in known.items() if metric in run.front.metrics}


def prediction(
    run: Run, answers: Answers, rays: Rays, warnings: list[str], classes: set[str]
) -> dict[str, Any]:
    """The answer to ``/predict``.

    Args:
        run: what answered.
        answers: of the network, for the rows of one request.
        rays: that were used: one, or one for each row.
        warnings: on its inputs.
        classes: the heads that hold logits of classes.
    """
    for out in answers.values():
        finite = np.isfinite(out).reshape(len(out), -1).all(axis=1)
        if not finite.all():
            refuse(
                f"row {int((~finite).argmax())} has numbers too large for the network, which "
                "gives nothing finite for it"
            )
    shared = {"preference": rays.tolist() if len(rays) > 1 else rays[0].tolist()}
    shared["warnings"] = warnings
    if run.table is not None:
        probabilities = answers["probability"]
        about = {key: run.record["about"].get(key) for key in ("target", "positive")}
        return {
            "probabilities": probabilities.tolist(),
            "decisions": (probabilities > 0.5).tolist(),
            **about,
            **shared,
        }
    plain = {head: out.tolist() for head, out in answers.items()}
    likely = {head: activated(answers[head]).tolist() for head in answers if head in classes}
    one = list(plain) == ["outputs"]
    said: dict[str, Any] = {"outputs": plain["outputs"] if one else plain}
    if likely:
        said["probabilities"] = likely["outputs"] if one else likely
    return said | shared
