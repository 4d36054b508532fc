"""Integrations with other libraries.

Training loops: `lightning.ParetoModule` and `transformers.ParetoTrainer`, which share `weighting`
and `fronts`. Loggers of a training: `loggers.TensorBoard`, `loggers.WandB` and `loggers.MLflow`.
Conditioned networks in folders: `pretrained`. Each needs the extra of its name, and is imported
from its own module, so that importing this package costs nothing.
"""
