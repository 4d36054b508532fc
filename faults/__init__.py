"""What may go wrong, done on purpose: kills, damaged files, bad command lines, hostile requests.

`python -m faults` (`make faults`) does it in full and writes what it counted; `make test` does a
little of each part. A part is a file with `inflict(count, seed=..., folder=...)`, which does so
many things wrong, chosen by the seed, and returns what came of them.
"""
