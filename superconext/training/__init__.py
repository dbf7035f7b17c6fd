"""Training: the loop, callbacks, checkpoints, the optimiser, several processes, pre-training."""
