"""What a user would pick instead: majority class, TF-IDF, NB-SVM, n-grams, fastText."""
