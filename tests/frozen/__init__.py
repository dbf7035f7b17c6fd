"""What the project answered before it was restructured; see `make.py` for how this was written."""
