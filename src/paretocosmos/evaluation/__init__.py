"""Fronts of models, and points chosen from them; `evaluate` itself is `paretocosmos.evaluate`."""

from paretocosmos.evaluation.bounds import BoundRows, choose_with_confidence
from paretocosmos.evaluation.check import (
    BoundCheck,
    Check,
    check_bound,
    check_point,
    warn_of_constant,
)
from paretocosmos.evaluation.choose import Choice, ChosenPoint, choose_point, evaluate_choice
from paretocosmos.evaluation.diagnostics import (
    Diagnosis,
    Finding,
    diagnose,
    find_missing_ends,
    find_missing_middle,
    find_one_end,
    find_problems,
    find_weak_order,
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
from paretocosmos.evaluation.postprocessing import compute_quality, fit_postprocessing
from paretocosmos.evaluation.rates import (
    Pairs,
    compute_critical_value,
    compute_gap_interval,
    compute_gap_limit,
    compute_share_interval,
)
from paretocosmos.evaluation.samples import (
    NO_CACHE,
    OutputCache,
    Samples,
    Share,
    Shares,
    load_samples,
    load_samples_for,
    move_batch,
    move_to_evaluate,
)
from paretocosmos.evaluation.scoring import StreamingScores, compute_score
from paretocosmos.evaluation.search import refine_choice
from paretocosmos.evaluation.sensitivity import compute_sensitivity
from paretocosmos.evaluation.threshold import MIDDLE, at_threshold, check_threshold, takes_threshold
