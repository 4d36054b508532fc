"""Fronts of models, and points chosen from them."""
