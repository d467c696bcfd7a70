"""What is watched while a kernel runs: races, traffic, counts, taps."""
