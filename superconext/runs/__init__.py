"""The run folder: how it is asked for, made, filled, put in its place and read again."""
