"""What every other folder may use: errors, files, locks, progress, threads, memory."""
