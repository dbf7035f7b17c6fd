"""Runs: their request, training, output folder, artifacts, and reading them again."""
