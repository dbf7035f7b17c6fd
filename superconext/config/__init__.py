"""The parameters of a run: one table, the presets, TOML files."""

from superconext.config.parameters import PARAMETERS, Config, resolve

__all__ = ["PARAMETERS", "Config", "resolve"]
