"""Images: pairs in one picture with a task each, and CelebA's faces."""
