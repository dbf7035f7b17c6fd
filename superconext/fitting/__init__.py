"""Labelled rows to a fitted model: preprocessing, training of each member, the probe."""
