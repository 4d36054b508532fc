"""Experiments: the paper's settings (`paper.toml`) and, in time, its tables and figures."""
