"""Integrations with other libraries.

Training loops: `lightning.ParetoModule` and `transformers.ParetoTrainer`. They share the classes
here: `LossWeighting` draws the rays and weights the losses of a batch, `FrontEvaluator` computes
fronts. Loggers of a training: `loggers.TensorBoard`, `loggers.WandB` and `loggers.MLflow`.
Conditioned networks in folders: `pretrained`. Each needs the extra of its name, and everything is
imported when it is first asked for, so that importing this package costs nothing.
"""
