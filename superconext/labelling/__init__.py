"""Tools for labelling: label errors, what to label next, what each word contributes."""
