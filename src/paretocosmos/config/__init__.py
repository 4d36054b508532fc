"""From what a caller asks to a plan of a training."""
