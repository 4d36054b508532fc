"""Speed, measured as ratios in one run against the textbook loop."""
