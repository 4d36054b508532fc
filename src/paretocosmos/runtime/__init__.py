"""The machine a training runs on: its devices, and its processes."""
