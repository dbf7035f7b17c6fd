"""The table of parameters, the presets, and TOML in and out."""

import inspect

import pytest
from click.testing import CliRunner

from superconext.cli import cli
from superconext.config.files import read_config, write_config
from superconext.config.parameters import BY_NAME, PARAMETERS, Config, resolve
from superconext.config.presets import PRESETS
from superconext.core.errors import ConfigError
from superconext.estimator.classifier import SuperConTextClassifier, SuperConTextEncoder
from superconext.text.bridge import DIALECTS
from superconext.text.rules import PROFILES
from superconext.training.callbacks import KEEPERS
from superconext.training.length import epochs_of


def test_presets_hold_the_values_the_paper_states():
    dialect, paper = resolve({}), resolve({"preset": "paper"})
    assert (dialect.layers, dialect.hidden_size) == (1, 128)
    assert epochs_of(1_998) == 15  # MSAC's rows
    assert (dialect.batch_size, dialect.dropout) == (200, 0.2)
    assert (paper.layers, 2 * paper.hidden_size, paper.epochs) == (3, 512, 60)
    assert (paper.batch_size, paper.learning_rate, paper.dropout) == (800, 0.001, 0.3)
    assert paper.vector_dimension == 300 and paper.projection_size == 512


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS.keys())
def test_presets_say_where_each_value_comes_from(preset):
    assert set(preset.values) <= set(BY_NAME)
    origins = [set(preset.stated), set(preset.left_open), set(preset.departs)]
    assert set(preset.values) <= set.union(*origins) <= set(BY_NAME)
    assert sum(map(len, origins)) == len(set.union(*origins)), "one origin for each"


def test_defaults_are_the_dialect_presets():
    for name, value in PRESETS["dialect"].values.items():
        assert BY_NAME[name].default == value, name
    assert set(PRESETS["dialect"].values) == set(PRESETS["paper"].values)


def test_given_values_win_over_the_preset():
    config = resolve({"preset": "paper", "epochs": 3, "layers": None})
    assert config.epochs == 3 and config.layers == 3


def test_the_estimators_have_the_table_as_their_signature():
    for estimator in (SuperConTextClassifier, SuperConTextEncoder):
        signature = inspect.signature(estimator.__init__).parameters
        # Hooks are Python and have no place in a TOML file or on a command line.
        assert list(signature)[1:] == [*BY_NAME, "callbacks"]
        for name, parameter in BY_NAME.items():
            default = None if parameter.governed else parameter.default
            assert signature[name].default == default, name


def test_the_command_line_has_an_option_for_every_parameter():
    options = {parameter.name: parameter for parameter in cli.commands["train"].params}
    for parameter in PARAMETERS:
        option = options[parameter.name]
        assert "--" + parameter.name.replace("_", "-") in option.opts
        assert option.default is None, "a default here would hide the preset's"
        assert parameter.help in option.help
    text = CliRunner().invoke(cli, ["train", "--help"]).output
    assert "[default: unset; paper: 60]" in " ".join(text.split())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epochs", 0, "of at least 1"),
        ("temperature", 0.0, "above 0"),
        ("temperature", float("nan"), "finite"),
        ("dropout", 1.0, "at most 0.95"),
        ("batch_size", "200", "a whole number, got str"),
        ("batch_size", True, "a whole number, got bool"),
        ("epochs", 1.5, "a whole number"),
        ("mining", "treshold", "did you mean 'threshold'"),
        ("preset", "papre", "did you mean 'paper'"),
    ],
)
def test_impossible_values_are_refused(name, value, message):
    with pytest.raises(ConfigError, match=message):
        resolve({name: value})


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="unknown parameter 'temprature'; did you mean"):
        resolve({"temprature": 0.1})


def test_whole_numbers_serve_as_fractions():
    assert resolve({"learning_rate": 1}).learning_rate == 1.0


def test_toml_gives_back_what_was_written(tmp_path):
    config = resolve(
        {
            "preset": "paper",
            "vectors": 'a "path"\\with\tanything/عين.txt',
            "mining": "topk",
            "mining_threshold": 5,
            "keep": "best",
        }
    )
    write_config(tmp_path / "config.toml", config)
    assert resolve(read_config(tmp_path / "config.toml")) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs = ", "not valid TOML"),
        ("epoch = 3", "did you mean 'epochs'"),
        ("epochs = 'many'", "config.toml: epochs"),
        ("[train]\nepochs = 3", "found a table under 'train'"),
        ("\xff", "not valid TOML"),
    ],
)
def test_bad_toml_names_the_file_and_the_key(tmp_path, text, message):
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=message):
        read_config(path)
    with pytest.raises(ConfigError, match=r"missing\.toml: cannot be read"):
        read_config(tmp_path / "missing.toml")


def test_normalisation_profiles_are_those_of_the_normaliser():
    assert BY_NAME["normalize"].choices == ("auto", *PROFILES)
    assert BY_NAME["bridge"].choices == tuple(DIALECTS)


def test_kept_weights_are_those_there_are_keepers_for():
    assert set(BY_NAME["keep"].choices) == set(KEEPERS)


def test_config_is_complete():
    assert isinstance(resolve({}), Config)
    assert all(parameter.help.endswith(".") for parameter in PARAMETERS)
