"""A trained model in the forms that others read."""
