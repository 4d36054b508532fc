"""Other people's training loops: `lightning.ParetoModule` and `transformers.ParetoTrainer`.

Each needs the extra of its name, and is imported from its own file.
"""
