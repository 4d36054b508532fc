"""Experiments: the paper's settings, its recipes, and what they give."""
