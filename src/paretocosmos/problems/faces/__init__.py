"""CelebA: faces with attributes."""
