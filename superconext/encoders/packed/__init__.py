"""BiLSTM kernels for ragged input on a CPU."""
