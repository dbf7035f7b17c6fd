"""Pre-training of an encoder on unlabelled text."""
