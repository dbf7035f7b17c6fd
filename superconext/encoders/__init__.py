"""Token ids to token states and sentence vectors."""
