"""Push and pull, against a Hub of this test's own on loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

import superconext
from superconext.core.errors import ConfigError, MissingExtraError, RunError
from superconext.data.duplicates import SeenTexts
from superconext.export.hub import FETCHED, cached, parse_address, pull, push
from superconext.runs.folder import SEEN, load_model, save_run
from tests.cli.conftest import call_main, environment
from tests.export.hub_server import TOKEN, StandIn
from tests.runs.test_folder import make_model, with_tfidf

NAME = "zahra/dialect"
TEXTS = ["zwin bzaf", "khayb had film", "👍"]
FROZEN = Path(__file__).parents[1] / "frozen" / "runs"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder with a card, a figure and predictions."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    save_run(make_model(50), folder)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# A model\n", encoding="utf-8")
    (folder / "predictions.tsv").write_text("a\tof a user\n", encoding="utf-8")
    (folder / "figures").mkdir()
    (folder / "figures" / "map.png").write_bytes(b"\x89PNG")
    (folder / "notes.txt").write_text("of no use to others", encoding="utf-8")
    return folder


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """The stand-in, and a library that knows no other Hub, cache or token."""
    pytest.importorskip("huggingface_hub", reason="needs the hub extra")
    from huggingface_hub import constants

    server = StandIn()
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    template = server.address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    yield server
    server.stop()


def test_there_and_back(hub, run, tmp_path):
    address = push(run, NAME, message="First")
    repository = hub.repositories[NAME]
    commit = repository.branches["main"]
    assert address == f"{hub.address}/{NAME}/commit/{commit}"
    assert repository.messages == ["First"]
    listed = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["files"]
    kept = {"manifest.json", "README.md", "figures/map.png"}
    assert set(repository.commits[commit]) == {*listed, *kept}
    pull(NAME, tmp_path / "down")
    for name in (*listed, *kept):
        assert (tmp_path / "down" / name).read_bytes() == (run / name).read_bytes()
        assert not (tmp_path / "down" / name).is_symlink()
    expected = load_model(run).probabilities(TEXTS)
    assert np.array_equal(load_model(tmp_path / "down").probabilities(TEXTS), expected)
    assert np.array_equal(superconext.load(f"hf://{NAME}").predict_proba(TEXTS), expected)


def test_hashes_of_the_training_texts_stay_at_home(hub, tmp_path):
    seen = SeenTexts.of({"train": [["zwin", "bzaf"]]})
    save_run(replace(make_model(50), seen=seen), tmp_path / "run")
    assert (tmp_path / "run" / SEEN).exists()
    push(tmp_path / "run", NAME)
    repository = hub.repositories[NAME]
    assert SEEN not in repository.commits[repository.branches["main"]]
    pull(NAME, tmp_path / "down")
    assert load_model(tmp_path / "down").seen is None


def test_the_login_page_of_a_network_is_no_hostile_repository(hub, run, tmp_path):
    push(run, NAME)
    hub.page = b"<html><body>Log in to go on</body></html>"
    with pytest.raises(RunError, match="is not the Hub") as refused:
        pull(NAME, tmp_path / "down")
    assert "login page" in str(refused.value) and "trust" not in str(refused.value)


def test_files_of_runs_of_every_kind_are_fetched():
    found = [json.loads(path.read_text("utf-8"))["files"] for path in FROZEN.rglob("manifest.json")]
    names = {name for files in found for name in files} - {SEEN}
    assert len(found) > 5 and len(names) > 5
    assert [name for name in names if not any(fnmatch(name, one) for one in FETCHED)] == []


def test_the_estimator_pushes_itself(hub, run):
    model = superconext.load(run)
    model.push_to_hub(NAME, private=True)
    assert hub.repositories[NAME].visibility == "private"
    again = superconext.load(f"hf://{NAME}")
    assert (again.predict(TEXTS) == model.predict(TEXTS)).all()


def test_revisions(hub, run, tmp_path):
    push(run, NAME)
    repository = hub.repositories[NAME]
    first = repository.branches["main"]
    push(run, NAME, revision="try-2", message="Again")
    assert repository.branches["main"] == first
    assert repository.branches["try-2"] != first
    pull(f"{NAME}@try-2", tmp_path / "one")
    pull(NAME, tmp_path / "two", revision=first)
    superconext.load(f"hf://{NAME}@{first}")
    with pytest.raises(RunError, match="zahra/dialect: the Hub has no such revision"):
        pull(NAME, tmp_path / "three", revision="never")
    assert not (tmp_path / "three").exists()


def test_the_hashes_are_checked_as_in_a_local_folder(hub, run, tmp_path):
    push(run, NAME)
    repository = hub.repositories[NAME]
    files = repository.commits[repository.branches["main"]]
    files["config.toml"] += b"# changed\n"
    with pytest.raises(RunError, match=r"config.toml: its content is not what the manifest lists"):
        pull(NAME, tmp_path / "down")
    with pytest.raises(RunError, match=rf"^{NAME}/config.toml: "):
        pull(NAME, tmp_path / "down")
    assert not (tmp_path / "down").exists()
    with pytest.raises(RunError, match=rf"^hf://{NAME}/config.toml: .*not what the manifest lists"):
        superconext.load(f"hf://{NAME}")


def test_nothing_that_is_no_run_is_fetched(hub, run, tmp_path):
    push(run, NAME)
    repository = hub.repositories[NAME]
    files = repository.commits[repository.branches["main"]]
    files |= {"model.pkl": b"\x80\x04.", "hubconf.py": b"raise SystemExit", "x/y.bin": b""}
    files |= {"x/old.safetensors": b"", "figures/a/b.png": b""}
    pull(NAME, tmp_path / "down")
    found = {path.name for path in (tmp_path / "down").rglob("*")}
    assert not found & {"model.pkl", "hubconf.py", "y.bin", "x", "old.safetensors", "a", "b.png"}
    assert not [asked for asked in hub.asked if asked.endswith((".pkl", ".py", ".bin"))]


def test_files_are_fetched_where_ctrl_c_stops_them(hub, run, tmp_path, monkeypatch):
    """In the main thread: a pool of threads that download is waited for."""
    import huggingface_hub

    push(run, NAME)
    fetch, places = huggingface_hub.hf_hub_download, {}

    def followed(name, file, **asked):
        places[file] = threading.current_thread()
        return fetch(name, file, **asked)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", followed)
    pull(NAME, tmp_path / "down")
    found = [path for path in (tmp_path / "down").rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path / "down").as_posix() for path in found} == {*places}
    assert {*places.values()} == {threading.main_thread()}


def test_a_repository_that_holds_something_else(hub, run, tmp_path):
    push(run, NAME)
    repository = hub.repositories[NAME]
    repository.commits[repository.branches["main"]] = {"README.md": b"# Another model\n"}
    with pytest.raises(RunError, match=r"no manifest\.json"):
        pull(NAME, tmp_path / "down")


def test_once_loaded_the_cache_serves_without_a_connection(hub, run, tmp_path):
    push(run, NAME)
    superconext.load(f"hf://{NAME}")
    hub.stop()
    assert len(superconext.load(f"hf://{NAME}").predict(TEXTS)) == 3
    with pytest.raises(RunError, match=r"zahra/other: the Hub cannot be reached.*go online"):
        superconext.load("hf://zahra/other")


def test_offline_by_choice(hub, run, tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for action in (lambda: push(run, NAME), lambda: pull(NAME, tmp_path / "down")):
        with pytest.raises(RunError, match=r"zahra/dialect: .*go online"):
            action()
    assert not hub.asked


def test_not_logged_in(hub, run, tmp_path, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(RunError, match=r"found no login, .*run hf auth login, or set HF_TOKEN"):
        push(run, NAME)
    assert not hub.asked
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(RunError, match=r"the Hub refuses this login \(401\)|no such model"):
        push(run, NAME)
    with pytest.raises(RunError, match="no such model, or none that this login may see"):
        pull(NAME, tmp_path / "down")


@pytest.mark.parametrize("code, said", [(403, "refuses this login"), (500, "answered 500")])
def test_the_hub_refuses(hub, run, code, said):
    hub.refuse = code
    with pytest.raises(RunError, match=f"zahra/dialect: the Hub {said}"):
        push(run, NAME)


def test_a_damaged_run_is_not_pushed(hub, run, tmp_path):
    with pytest.raises(RunError, match="no such folder"):
        push(tmp_path / "nothing", NAME)
    save_run(load_model(run), tmp_path / "run")
    (tmp_path / "run" / "vocabulary.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match="not what the manifest lists"):
        push(tmp_path / "run", NAME)
    assert not hub.asked


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_nothing_from_outside_the_folder_is_pushed(hub, run, tmp_path):
    secret, folder = tmp_path / "secret.txt", tmp_path / "run"
    secret.write_text("of nobody else", encoding="utf-8")
    shutil.copytree(run, folder)
    # What the manifest lists beside a run's own files stays at home.
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    names = ("../secret.txt", str(secret), "extra.txt", "../x.safetensors")
    manifest["files"] |= dict.fromkeys(names, "0")
    (tmp_path / "x.safetensors").write_bytes(b"")
    (folder / "extra.txt").symlink_to(secret)
    path.write_text(json.dumps(manifest), encoding="utf-8")
    push(folder, NAME)
    repository = hub.repositories[NAME]
    kept = repository.commits[repository.branches["main"]]
    assert not {"extra.txt", "secret.txt", "x.safetensors"} & {Path(name).name for name in kept}
    (folder / "README.md").unlink()
    (folder / "README.md").symlink_to(secret)
    with pytest.raises(RunError, match=r"README\.md: a link that leads out of the folder"):
        push(folder, NAME)
    (folder / "README.md").unlink()
    shutil.move(folder / "figures", tmp_path / "pictures")
    (folder / "figures").symlink_to(tmp_path / "pictures", target_is_directory=True)
    with pytest.raises(RunError, match=r"map\.png: a link that leads out of the folder"):
        push(folder, NAME)


def test_the_place_is_taken(hub, run, tmp_path):
    push(run, NAME)
    asked = len(hub.asked)
    with pytest.raises(RunError, match="exists already"):
        pull(NAME, run)
    assert len(hub.asked) == asked


@pytest.mark.parametrize("name", ["", "dialect", "a/b/c", "/x", "a/", "../run", "a/b@", "hf://"])
def test_names_that_are_none(name):
    with pytest.raises(ConfigError, match="expected user/name"):
        parse_address(name)


def test_names():
    assert parse_address("hf://zahra/my-model.1_b") == ("zahra/my-model.1_b", None)
    assert parse_address("z/m@feature/x") == ("z/m", "feature/x")


def test_a_revision_is_named_once(hub, run, tmp_path):
    for call in (
        lambda: push(run, f"{NAME}@one", revision="other"),
        lambda: pull(f"{NAME}@one", tmp_path / "down", revision="other"),
    ):
        with pytest.raises(ConfigError, match="found the revisions 'one' and 'other'"):
            call()
    assert not hub.asked and not (tmp_path / "down").exists()
    said = call_main("push", run, NAME, "--revision", "draft")
    assert f"superconext pull {NAME} --revision draft --out RUN" in said.err


def test_from_the_command_line(hub, run, tmp_path):
    said = call_main("push", run, NAME, "--private", "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["commit"].startswith(f"{hub.address}/{NAME}/commit/")
    assert hub.repositories[NAME].visibility == "private"
    said = call_main("pull", NAME, "--out", tmp_path / "down")
    assert (said.code, said.out) == (0, ""), said.err
    assert call_main("predict", tmp_path / "down", stdin=b"zwin\n").code == 0
    again = call_main("pull", NAME, "--out", tmp_path / "down")
    assert again.code == 1 and "exists already" in again.err
    assert call_main("push", run, "dialect").code == 1


def test_without_the_library(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for action in (lambda: push(run, NAME), lambda: pull(NAME, tmp_path / "down")):
        with pytest.raises(MissingExtraError, match=r"superconext\[hub\]"):
            action()


def test_a_local_load_never_touches_it(run):
    program = (
        "import sys, superconext\n"
        "superconext.load(sys.argv[1]).predict(['zwin'])\n"
        "assert 'superconext.export.hub' not in sys.modules\n"
        "found = [name for name in sys.modules if name.startswith('huggingface_hub')]\n"
        "assert not found, found\n"
    )
    words = [sys.executable, "-c", program, str(run)]
    said = subprocess.run(words, capture_output=True, env=environment(), check=False)
    assert said.returncode == 0, said.stderr.decode()


def test_a_revision_is_answered_by_its_own_files(hub, run, tmp_path):
    """Also where it has a file that the main branch lacks."""
    push(run, NAME)
    first = hub.repositories[NAME].branches["main"]
    save_run(with_tfidf(make_model(50)), tmp_path / "other")
    push(tmp_path / "other", NAME, revision="try-2")
    ours, theirs = (load_model(folder).probabilities(TEXTS) for folder in (run, tmp_path / "other"))
    assert not np.array_equal(ours, theirs)
    pull(f"{NAME}@try-2", tmp_path / "down")
    assert np.array_equal(load_model(tmp_path / "down").probabilities(TEXTS), theirs)
    pull(NAME, tmp_path / "again", revision="try-2")
    assert np.array_equal(load_model(tmp_path / "again").probabilities(TEXTS), theirs)
    for address, expected in (("", ours), ("@try-2", theirs), (f"@{first}", ours)):
        found = superconext.load(f"hf://{NAME}{address}").predict_proba(TEXTS)
        assert np.array_equal(found, expected), address
    with cached(NAME, "try-2") as folder:
        assert np.array_equal(load_model(folder).probabilities(TEXTS), theirs)
    assert not folder.exists()


def test_a_branch_that_is_there_is_pushed_to_again(hub, run):
    for message in ("One", "Two"):
        push(run, NAME, revision="draft", message=message)
    repository = hub.repositories[NAME]
    assert repository.messages == ["One", "Two"] and {*repository.branches} == {"main", "draft"}


def test_scores_and_history_go_up_and_come_down(hub, run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    for name, content in (("metrics.json", "{}"), ("history.csv", "epoch,loss\n")):
        (folder / name).write_text(content, encoding="utf-8")
    push(folder, NAME)
    pull(NAME, tmp_path / "down")
    for name in ("metrics.json", "history.csv"):
        assert (tmp_path / "down" / name).read_bytes() == (folder / name).read_bytes()
    assert not (tmp_path / "down" / "predictions.tsv").exists()


@pytest.mark.parametrize(
    ("words", "visibility"), [((), None), (("--public",), "public"), (("--private",), "private")]
)
def test_the_account_decides_who_sees_a_new_repository_unless_it_is_said(
    hub, run, words, visibility
):
    said = call_main("push", run, NAME, *words)
    assert said.code == 0, said.err
    assert hub.repositories[NAME].visibility == visibility


def test_why_it_is_offline_is_told(hub, run, tmp_path, monkeypatch):
    from huggingface_hub import constants

    hub.stop()
    with pytest.raises(RunError, match=f"^{NAME}: the Hub cannot be reached, and it is not in the"):
        pull(NAME, tmp_path / "down")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(RunError, match=f"^{NAME}: HF_HUB_OFFLINE is set, and it is not in the cac"):
        pull(NAME, tmp_path / "down")
    with pytest.raises(RunError, match=f"^{NAME}: HF_HUB_OFFLINE is set; expected"):
        push(run, NAME)


def test_what_the_cache_has_beside_a_run_is_not_copied(hub, run, tmp_path):
    """As after `hf download` of a repository that holds more."""
    import huggingface_hub

    push(run, NAME)
    repository = hub.repositories[NAME]
    more = ("x/y.bin", "figures/a/b.png", "model.pkl", "hubconf.py")
    repository.commits[repository.branches["main"]] |= dict.fromkeys(more, b"")
    huggingface_hub.snapshot_download(NAME)
    pull(NAME, tmp_path / "down")
    down = {path.name for path in (tmp_path / "down").rglob("*")}
    assert "config.toml" in down and not down & {"x", "y.bin", "a", "model.pkl", "hubconf.py"}


@pytest.mark.parametrize("name", ["zahra/my--model", "zahra/a..b", "zahra/m.git"])
def test_a_name_that_the_hub_has_for_no_model_is_told_as_such(hub, run, tmp_path, name):
    for call in (lambda: push(run, name), lambda: pull(name, tmp_path / "down")):
        with pytest.raises(ConfigError, match="expected user/name"):
            call()


def test_a_card_that_the_hub_refuses_is_to_be_corrected(hub, run, monkeypatch):
    from huggingface_hub import HfApi

    def refuse(*given, **named):
        raise ValueError("Invalid metadata in README.md. license must be one of ...")

    monkeypatch.setattr(HfApi, "create_commit", refuse)
    with pytest.raises(RunError, match=r"refuses what is pushed .*correct the header"):
        push(run, NAME)
