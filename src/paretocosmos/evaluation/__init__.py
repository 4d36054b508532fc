"""Fronts of models, and points chosen from them; `evaluate` itself is `paretocosmos.evaluate`."""

from paretocosmos.evaluation.choose import Choice, ChosenPoint, choose_point, evaluate_choice
from paretocosmos.evaluation.diagnostics import (
    Diagnosis,
    Finding,
    compute_sensitivity,
    diagnose,
    find_problems,
)
from paretocosmos.evaluation.evaluate import (
    collect_outputs,
    evaluate_parts,
    evaluate_shares,
    evaluation_mode,
    predict_at_rays,
    predict_blocks,
)
from paretocosmos.evaluation.intervals import (
    bootstrap_intervals,
    compute_intervals,
    draw_paired_scores,
)
from paretocosmos.evaluation.output_cache import NO_CACHE, OutputCache
from paretocosmos.evaluation.samples import (
    Samples,
    Share,
    Shares,
    load_samples,
    load_samples_for,
    move_batch,
    move_to_evaluate,
)
from paretocosmos.evaluation.scoring import StreamingScores, compute_score

__all__ = [
    "NO_CACHE",
    "Choice",
    "ChosenPoint",
    "Diagnosis",
    "Finding",
    "OutputCache",
    "Samples",
    "Share",
    "Shares",
    "StreamingScores",
    "bootstrap_intervals",
    "choose_point",
    "collect_outputs",
    "compute_intervals",
    "compute_score",
    "compute_sensitivity",
    "diagnose",
    "draw_paired_scores",
    "evaluate_choice",
    "evaluate_parts",
    "evaluate_shares",
    "evaluation_mode",
    "find_problems",
    "load_samples",
    "load_samples_for",
    "move_batch",
    "move_to_evaluate",
    "predict_at_rays",
    "predict_blocks",
]
