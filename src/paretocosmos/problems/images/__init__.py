"""Pairs of images in one picture, a task each."""
