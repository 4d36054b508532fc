"""From what a caller asks to a plan of a training."""

from paretocosmos.config.plan import Plan, find_third_party, keeps_promise
from paretocosmos.config.presets import (
    choose_network,
    choose_preset,
    find_rate_gap,
)
from paretocosmos.config.resolve import make_plan
from paretocosmos.config.settings import (
    Training,
    describe_pair,
    get_label,
    get_pairs,
    get_paper_network,
    get_paper_settings,
    make_spec,
    read_optimizer,
    split_settings,
)
