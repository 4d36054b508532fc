"""Training: `fit`, `compare`, and the loop they run."""
