"""Runs: one training and its folder."""
