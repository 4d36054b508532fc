"""The parts of README and docs/ that a program writes, from the code and from results/."""
