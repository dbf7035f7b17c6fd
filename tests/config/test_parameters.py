"""The table of parameters, the presets, and TOML in and out."""

import inspect
import json
import pydoc

import pytest
from click.testing import CliRunner

from superconext.cli import cli
from superconext.config.files import read_config, write_config
from superconext.config.parameters import (
    BY_NAME,
    GROUPS,
    PARAMETERS,
    REMOVED,
    Config,
    resolve,
    upgrade,
)
from superconext.config.presets import PRESETS
from superconext.core.errors import ConfigError
from superconext.estimator.classifier import SuperConTextClassifier, SuperConTextEncoder
from superconext.text.bridge import DIALECTS
from superconext.text.normalize import PROFILES
from superconext.training.callbacks import KEEPERS
from superconext.training.trainer import epochs_of


def test_presets_hold_the_values_the_paper_states():
    fast, paper = resolve({}), resolve({"preset": "paper"})
    assert (fast.layers, fast.hidden_size) == (1, 128)
    assert epochs_of(1_998) == 15  # MSAC's rows
    assert (fast.batch_size, fast.dropout) == (200, 0.2)
    assert (paper.layers, 2 * paper.hidden_size, paper.epochs) == (3, 512, 60)
    assert (paper.batch_size, paper.learning_rate, paper.dropout) == (800, 0.001, 0.3)
    assert paper.vector_dimension == 300 and paper.projection == "mlp"


def test_presets_hold_parameters_alone_and_defaults_are_those_of_fast():
    assert set().union(*PRESETS.values()) <= set(BY_NAME)
    for name, value in PRESETS["fast"].items():
        assert BY_NAME[name].default == value, name
    assert set(PRESETS["fast"]) == set(PRESETS["paper"])


def test_given_values_win_over_the_preset():
    config = resolve({"preset": "paper", "epochs": 3, "layers": None})
    assert config.epochs == 3 and config.layers == 3


def test_the_estimators_have_the_table_as_their_signature():
    for estimator in (SuperConTextClassifier, SuperConTextEncoder):
        signature = inspect.signature(estimator.__init__).parameters
        # Hooks are Python and have no place in a TOML file or on a command line.
        assert list(signature)[1:] == [*BY_NAME, "callbacks", "verbose"]
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
    text = CliRunner().invoke(cli, ["train", "--help-all"]).output
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
        ("pooling", "men", "did you mean 'mean'"),
        ("normalize", "arabik+lower", "did you mean 'arabic'"),
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
            "options": "mining=topk,mining_threshold=5",
            "normalize": "auto+skin_tones-lower",
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


def test_there_are_few_parameters_each_in_a_group():
    assert len(PARAMETERS) <= 48
    assert {parameter.group for parameter in PARAMETERS} == set(GROUPS)
    help = CliRunner().invoke(cli, ["train", "--help-all"]).output
    places = [help.index(f"\n{group.capitalize()}:\n") for group in GROUPS]
    assert places == sorted(places)


@pytest.mark.parametrize("estimator", [SuperConTextClassifier, SuperConTextEncoder])
def test_help_of_an_estimator_lists_every_parameter(estimator):
    text = pydoc.render_doc(estimator, renderer=pydoc.plaintext)
    for name in (*BY_NAME, "callbacks", "verbose"):
        assert f"\n |  {name} : " in text, name
    assert [*inspect.signature(estimator).parameters] == [*BY_NAME, "callbacks", "verbose"]


#: What to use instead of each parameter that has left, on the command line and elsewhere.
INSTEAD = {
    "reduction": ("--options reduction=2", 'options = "reduction=VALUE"'),
    "include_self": ("--options include_self=2", 'options = "include_self=VALUE"'),
    "mining": ("--options mining=2", 'options = "mining=VALUE"'),
    "mining_threshold": ("--options mining_threshold=2", 'options = "mining_threshold=VALUE"'),
    "mining_warmup": ("--options mining_warmup=2", 'options = "mining_warmup=VALUE"'),
    "mining_max_similarity": (
        "--options mining_max_similarity=2",
        'options = "mining_max_similarity=VALUE"',
    ),
    "mining_fallback": ("--options mining_fallback=2", 'options = "mining_fallback=VALUE"'),
    "second_objective": ("--members 2", "members = 2"),
    "second_batch_size": ("--batch-size", "batch_size"),
    "mini_batch_size": ("--batch-size", "batch_size"),
    "gradient_clip": ("--learning-rate", "learning_rate"),
    "finetune": ("--finetune-epochs 15", "finetune_epochs = 15"),
    "finetune_frozen": ("--finetune-epochs 15", "finetune_epochs = 15"),
    "finetune_learning_rate": ("--finetune-epochs", "finetune_epochs"),
    "keep_best": ("--keep best", 'keep = "best"'),
    "read_limit": ("--epochs", "epochs"),
    "unfreeze_epoch": ("--tune-vectors", "tune_vectors"),
    "vector_scale": ("--vectors", "vectors"),
    "probe_rows": ("--members 4", "members = 4"),
    "projection_size": ("--hidden-size", "hidden_size"),
    "prior_groups": ("--logit-adjustment", "logit_adjustment"),
    "enable_rules": ("--normalize auto+2", 'normalize = "auto+RULE"'),
    "disable_rules": ("--normalize auto-2", 'normalize = "auto-RULE"'),
}


@pytest.mark.parametrize("name", REMOVED)
def test_what_has_left_names_what_to_use_instead(name, tmp_path):
    flag, other = INSTEAD[name]
    for words in (["train", "x.tsv"], ["compare", "x.tsv"], ["sweep", "x"], ["fewshot", "x"]):
        for given in ([f"--{name.replace('_', '-')}", "2"], [f"--{name.replace('_', '-')}=2"]):
            said = CliRunner().invoke(cli, [*words, *given])
            text = " ".join(said.output.split())
            assert said.exit_code == 2 and "which was removed" in text and flag in text, text
    path = tmp_path / "config.toml"
    path.write_text(f"{name} = 2\n", encoding="utf-8")
    for refused in (
        lambda: read_config(path),
        lambda: resolve({name: 2}),
        lambda: SuperConTextClassifier(**{name: 2}),
    ):
        with pytest.raises(ConfigError, match=f"found {name}, which was removed") as error:
            refused()
        assert other in str(error.value)


def test_a_switch_that_has_left_is_told_of_too():
    for flag in ("--finetune", "--no-finetune", "--include-self"):
        said = CliRunner().invoke(cli, ["train", "x.tsv", "--out", "y", flag])
        assert said.exit_code == 2 and "which was removed" in said.output


def test_words_of_systems_tell_it_too():
    words = ["compare", "x.tsv", "--seeds", "1", "--out", "y", "--objectives"]
    said = CliRunner().invoke(cli, [*words, "superloss:mining=topk"])
    assert said.exit_code == 2 and "options" in said.output and "was removed" in said.output


@pytest.mark.parametrize(
    "given",
    [
        {"options": "mining=topk,mining_threshold=5"},
        {"options": {"mining": "topk", "mining_threshold": 5}},
        {"options.mining": "topk", "options.mining_threshold": 5},
        {"options": {"mining": "none"}, "options.mining": "topk", "options.mining_threshold": 5},
    ],
)
def test_options_are_text_a_mapping_or_single_ones(given):
    assert resolve(given).options == "mining=topk,mining_threshold=5"


def test_options_are_a_table_of_a_toml_file(tmp_path):
    path = tmp_path / "config.toml"
    for text in (
        'options = {mining = "topk", include_self = true}',
        'options.mining = "topk"\noptions.include_self = true',
        '[options]\nmining = "topk"\ninclude_self = true',
    ):
        path.write_text(text, encoding="utf-8")
        assert read_config(path) == {"options": "mining=topk,include_self=true"}
    for text in ("options = {a = {b = 1}}", "options = [1]", "[[options]]\na = 1"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"config\.toml.*options"):
            read_config(path)


@pytest.mark.parametrize("value", [[1], {"a": 1}, "a,b"])
def test_an_option_is_a_single_value(value):
    with pytest.raises(ConfigError, match="options: mining = "):
        resolve({"options": {"mining": value}})


@pytest.mark.parametrize(
    ("objective", "saved", "expected"),
    [
        ("supcon", "warmup=0.3,layer=1", "layer=1,warmup_ratio=0.3"),
        ("css_lm", "warmup=0.3,retrieved=2", "retrieved=2,warmup_ratio=0.3"),
        ("css_lm", "warmup=2,warmup_ratio=0.2", "warmup=2,warmup_ratio=0.2"),
    ],
)
def test_a_transformer_s_warm_up_has_another_name_since(objective, saved, expected):
    given = {"encoder": "transformer", "objective": objective, "options": saved}
    assert upgrade(given) == {**given, "options": expected}
    others = {**given, "encoder": "bilstm"}
    assert upgrade(others) == others


def test_what_an_earlier_version_saved_is_upgraded():
    saved = {
        "objective": "superloss", "options": "n_positives=3", "mining": "topk",
        "mining_threshold": 5.0, "mining_warmup": 1 / 3, "include_self": True,
        "finetune": False, "finetune_frozen": True, "finetune_epochs": 7,
        "second_objective": "lacon", "vector_scale": 2.0, "gradient_clip": 5.0,
        "normalize": "arabic", "enable_rules": "skin_tones", "disable_rules": "lower, alef",
        "epochs": 4,
    }  # fmt: skip
    config = resolve(upgrade(saved))
    assert config.options == "n_positives=3,include_self=true,mining=topk,mining_threshold=5.0"
    assert config.finetune_epochs == 7 and config.epochs == 4
    assert config.normalize == "arabic+skin_tones-lower-alef"
    plain = {**saved, "finetune_frozen": False, "objective": "triplet", "options": None}
    assert resolve(upgrade(plain)).finetune_epochs == 0
    assert resolve(upgrade(plain)).options is None
    today = resolve({"finetune_epochs": 3, "options": "mining=topk"}).to_dict()
    assert upgrade(json.loads(json.dumps(today))) == today


@pytest.mark.parametrize("name", ["encoder", "objective", "probe_features", "preset"])
def test_a_list_in_place_of_a_name_is_refused(name):
    with pytest.raises(ConfigError, match=rf"^{name} = \['x'\]: expected "):
        resolve({name: ["x"]})


def test_a_file_of_an_earlier_version_is_read_where_what_has_left_changed_nothing(tmp_path):
    from superconext.config.files import read_config

    path = tmp_path / "config.toml"
    path.write_text('epochs = 3\nprior_groups = "none"\nprobe_rows = "seen"\n', encoding="utf-8")
    assert read_config(path) == {"epochs": 3}
    path.write_text('prior_groups = "script"\nprobe_rows = "unseen"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"found prior_groups, .* Also found probe_rows, "):
        read_config(path)
