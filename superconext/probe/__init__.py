"""Features to classes: logistic regression, TF-IDF, n-grams, their pool, calibration, metrics."""
