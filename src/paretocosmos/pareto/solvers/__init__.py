"""Small convex programmes as pure tensor functions: any leading axes, any device, no round trip."""

from paretocosmos.pareto.solvers.epo import EpoWeights, epo
from paretocosmos.pareto.solvers.min_norm import MinNorm, min_norm
