"""Systems by the words of the command line and by file."""

import pytest

from superconext.core.errors import ConfigError
from superconext.experiments.systems import (
    System,
    check_reference,
    fit_config,
    parse_systems,
    plain,
    read_systems,
)


def test_names_alone_are_objectives_without_parameters():
    assert parse_systems("superloss, ce_ce") == (plain("superloss"), plain("ce_ce"))


def test_parameters_after_a_colon_are_the_system_s_own():
    (plainly, mined) = parse_systems(
        "superloss,superloss:options.mining=topk + options.mining_threshold=20"
    )
    assert plainly.parameters == ()
    assert mined.name == "superloss:options.mining=topk+options.mining_threshold=20"
    assert mined.objective == "superloss"
    own = {"options.mining": "topk", "options.mining_threshold": 20}
    assert dict(mined.parameters) == own
    assert fit_config({"options": "reduction=micro,mining=none"}, mined, 0).options == (
        "reduction=micro,mining=topk,mining_threshold=20"
    )
    (tuned,) = parse_systems("ce_ce:tune_vectors=yes+layers=2")
    assert dict(tuned.parameters) == {"tune_vectors": True, "layers": 2}


def test_equal_values_make_equal_names():
    assert parse_systems("supcon:temperature=0.10") == parse_systems("supcon:temperature=.1")


def test_the_system_s_own_parameters_win_over_the_common_ones():
    (system,) = parse_systems("supcon:temperature=0.3")
    config = fit_config({"temperature": 0.7, "epochs": 4}, system, 9)
    assert (config.objective, config.temperature, config.epochs) == ("supcon", 0.3, 4)
    assert config.seed == 9 and not config.baselines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "one or more names"),
        ("superlos", "did you mean 'superloss'"),
        ("supcon,supcon", "named twice"),
        ("supcon:temperature=.1,supcon:temperature=0.1", "named twice"),
        ("supcon:", "expected supcon:PARAMETER=VALUE"),
        ("supcon:temperature", "found 'temperature' after supcon"),
        ("supcon:temprature=1", "did you mean 'temperature'"),
        ("supcon:temperature=warm", "expected a number"),
        ("supcon:temperature=-1", "above 0"),
        ("supcon:layers=1.5", "expected a whole number"),
        ("supcon:tune_vectors=perhaps", "expected yes or no"),
        ("supcon:layers=1+layers=2", "given twice"),
        ("supcon:seed=1", "seed, which the experiment decides"),
        ("supcon:objective=ce_ce", "objective, which the experiment decides"),
        ("auto:budget=0.2", "found budget; .* does not depend on the machine's speed: leave it"),
        ("supcon:pooling=men", "did you mean 'mean'"),
        ("superloss,tfidf", "of those fitted in every comparison .*tfidf_logreg"),
    ],
)
def test_what_is_wrong_with_words(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_systems(text)


def write(folder, text):
    path = folder / "systems.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_gives_systems_names_of_their_own(tmp_path):
    path = write(
        tmp_path,
        '[[system]]\nname = "mined"\nobjective = "superloss"\n'
        'options = {mining = "topk", mining_threshold = 20}\n\n[[system]]\nobjective = "triplet"\n'
        'options = "margin=1,form=soft"\n'
        'vectors = "words.txt"\n',
    )
    mined, triplet = read_systems(path)
    mining = ("options.mining", "topk"), ("options.mining_threshold", 20)
    assert mined == System("mined", "superloss", mining)
    own = dict(triplet.parameters)
    assert own == {"options": "margin=1,form=soft", "vectors": str(tmp_path / "words.txt")}
    assert str(mined) == "superloss, options.mining = topk, options.mining_threshold = 20"


@pytest.mark.parametrize("name", ["vectors", "init", "unlabelled"])
def test_what_a_file_names_is_looked_for_beside_it(tmp_path, name):
    (system,) = read_systems(write(tmp_path, f'[[system]]\nobjective = "triplet"\n{name} = "x"\n'))
    assert system.parameters == ((name, str(tmp_path / "x")),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no \\[\\[system\\]\\] table"),
        ("system = 3", "no \\[\\[system\\]\\] table"),
        ("x = 1\n[[system]]", "found 'x'"),
        ("[[system]", "not valid TOML"),
        ('[[system]]\nname = "a"', "no objective"),
        ('[[system]]\nobjective = "superlos"', "did you mean 'superloss'"),
        ('[[system]]\nobjective = "supcon"\nnam = "a"', "did you mean 'name'"),
        ('[[system]]\nname = 3\nobjective = "supcon"', "name = 3; expected text"),
        ('[[system]]\nobjective = "supcon"\nepochs = "3"', "expected a whole number"),
        ('[[system]]\nobjective = "supcon"\nseed = 3', "the experiment decides"),
        ('[[system]]\nname = "majority"\nobjective = "supcon"', "a baseline has this name"),
        ('[[system]]\nname = "a (own rule)"\nobjective = "ce_ce"', "own rule"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as caught:
        read_systems(path)
    assert "a baseline has" in message or str(path) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_systems(tmp_path / "none.toml")


def test_a_reference_must_have_a_row():
    systems = parse_systems("ce_ce,supcon:layers=2")
    for name in ("majority", "tfidf_svm", "ce_ce", "ce_ce (own rule)", "supcon:layers=2"):
        check_reference(name, systems)
    for name in ("supcon", "majority (own rule)", "tfidf"):
        with pytest.raises(ConfigError, match="reference = "):
            check_reference(name, systems)
