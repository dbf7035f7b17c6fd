"""Losses: sentence vectors and labels in, a scalar out. See `catalogue` for the names."""
