"""`python -m superconext`."""

from superconext.cli import main

main()
