"""Rays, fronts and what is computed from them."""
