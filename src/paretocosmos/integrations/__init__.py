"""Other people's tools.

Training loops: `lightning.ParetoModule` and `transformers.ParetoTrainer`. Loggers of a training:
`tensorboard.TensorBoard`, `wandb.WandB` and `mlflow.MLflow`. Each needs the extra of its name, and
is imported from its own file.
"""
