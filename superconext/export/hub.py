"""Runs on the Hugging Face Hub: pushed from a folder, pulled into one.

Needs the extra `hub`; nothing else imports huggingface_hub, and a local load never does.
What comes down is a run folder like any other: the same files, the same hashes checked,
nothing unpickled and no code taken from it. `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE`
mean what they mean to huggingface_hub.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from superconext.core.errors import ConfigError, MissingExtraError, RunError
from superconext.core.files import new_folder, shell_word
from superconext.runs.folder import SEEN, load_model
from superconext.runs.manifest import plain_file, read_manifest

#: What `superconext.load` takes for a model on the Hub: hf://user/name or hf://user/name@revision.
SCHEME = "hf://"

#: Beside the model's own files. `predictions.tsv`, which may hold texts, and the hashes of the
#: training texts are left at home.
REPORTS = ("manifest.json", "README.md", "metrics.json", "history.csv", "figures/*.png")

#: All that a run on the Hub may consist of; anything else there is not fetched.
FETCHED = (*REPORTS, "config.toml", "vocabulary.json", "tfidf.json", "*.safetensors")

_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,94}[\w])?/[A-Za-z0-9_](?:[\w.-]{0,94}[\w])?", re.ASCII)


def parse_address(address: str) -> tuple[str, str | None]:
    """(user/name, revision or None) of `[hf://]user/name[@revision]`.

    Raises ConfigError for anything else.
    """
    name, at, revision = address.removeprefix(SCHEME).partition("@")
    if not _NAME.fullmatch(name) or (at and not revision):
        raise ConfigError(
            f"found {address!r} as the name of a model on the Hub; expected user/name, as in its "
            "web address: correct it"
        )
    return name, revision or None


def _one_revision(address: str, revision: str | None) -> tuple[str, str | None]:
    """user/name and the revision, named in the address or beside it."""
    name, also = parse_address(address)
    if revision and also and revision != also:
        raise ConfigError(
            f"found the revisions {also!r} and {revision!r} of {name}; expected one: leave out "
            "--revision or what stands behind @"
        )
    return name, revision or also


def push(
    folder: str | Path,
    name: str,
    private: bool | None = None,
    revision: str | None = None,
    message: str = "Upload with superconext",
) -> str:
    """Upload a run folder; returns the web address of the commit.

    The repository (and branch) is made where there is none. name: user/name. private: of a
    repository that is made; None leaves it to the account's settings. revision: branch; None is
    the main one.

    Raises RunError when the folder is damaged, nobody is logged in or the Hub refuses,
    ConfigError for an impossible name, MissingExtraError without huggingface_hub.
    """
    name, revision = _one_revision(name, revision)
    folder = Path(folder)
    model = load_model(folder)  # what others cannot load is not pushed
    if any(one.standing_alone(model.config)[0] is not one for one in model.encoders):
        raise RunError(
            f"{folder}: found adapters of a model that others lack; expected a run with all its "
            f"weights: superconext export {shell_word(folder)} --out NEW, then push NEW"
        )
    hub = _library("Pushing to the Hub")
    if hub.get_token() is None:
        raise RunError(
            f"{name}: found no login, expected a token that may write: run hf auth login, or set "
            "HF_TOKEN"
        )
    api = hub.HfApi(library_name="superconext")
    operations = [
        hub.CommitOperationAdd(file, str(plain_file(folder, file))) for file in _files_of(folder)
    ]
    with _hub_errors(name, pushing=True):
        api.create_repo(name, private=private, exist_ok=True)
        if revision is not None:
            api.create_branch(name, branch=revision, exist_ok=True)
        done = api.create_commit(name, operations, commit_message=message, revision=revision)
    return str(done.commit_url)


def _files_of(folder: Path) -> list[str]:
    """Names of what a run's folder has for others: of what the manifest lists, no other paths."""
    names = {path.relative_to(folder).as_posix() for one in REPORTS for path in folder.glob(one)}
    for name in read_manifest(folder)["files"]:
        if name != SEEN and _is_of_runs(name):
            names.add(name)
    return sorted(name for name in names if (folder / name).is_file())


def pull(name: str, out: str | Path, revision: str | None = None) -> None:
    """Download a run into a new folder, and check it as any run folder is checked.

    revision: branch, tag or commit; None is the main branch.

    Raises RunError when `out` exists, the Hub has no such run, or its files are not what its
    manifest lists; ConfigError and MissingExtraError as `push`.
    """
    with new_folder(Path(out)) as fresh:
        _copy(_cached(name, revision), fresh)
        try:
            load_model(fresh)
        except RunError as error:  # which names a folder that is gone by then
            raise RunError(str(error).replace(str(fresh), name)) from error


@contextmanager
def cached(name: str, revision: str | None = None) -> Iterator[Path]:
    """A run folder of huggingface_hub's cache, there as long as the block runs.

    The cache is brought up to date where the Hub can be reached. Raises as `pull` does.
    """
    with tempfile.TemporaryDirectory(prefix="superconext-") as place:
        _copy(_cached(name, revision), Path(place))
        yield Path(place)


def _copy(snapshot: Path, place: Path) -> None:
    """Files of the cache, which holds links that a run folder must not have; no other folders."""
    for path in sorted([*snapshot.glob("*"), *snapshot.glob("figures/*")]):
        if path.is_file() and _is_of_runs(path.relative_to(snapshot).as_posix()):
            copy = place / path.relative_to(snapshot)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)


def _cached(name: str, revision: str | None) -> Path:
    name, revision = _one_revision(name, revision)
    hub = _library("Loading from the Hub")
    asked = {"revision": revision, "library_name": "superconext"}
    with _hub_errors(name):
        try:
            info = hub.HfApi(library_name="superconext").repo_info(name, revision=revision)
        except Exception:  # the cache may have it; else the same is raised below
            wanted = list(FETCHED)
        else:
            wanted = [one.rfilename for one in info.siblings if _is_of_runs(one.rfilename)]
            # One by one in this thread: Ctrl-C would wait for threads that download.
            for file in wanted:
                hub.hf_hub_download(name, file, **asked)
        return Path(hub.snapshot_download(name, allow_patterns=wanted, **asked))


def _is_of_runs(name: str) -> bool:
    """Whether a run may have a file of that name."""
    place = f"{Path(name).parent}/"
    return place in ("./", "figures/") and any(fnmatch(name, one) for one in FETCHED)


def _library(feature: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError(feature, "hub") from None
    return huggingface_hub


@contextmanager
def _hub_errors(name: str, pushing: bool = False) -> Iterator[None]:
    """Turn what huggingface_hub raises into one line that says what to do."""
    from huggingface_hub import errors

    try:
        yield
    except errors.RevisionNotFoundError:
        problem, advice = "the Hub has no such revision of it", "check the revision"
    except errors.RepositoryNotFoundError:
        problem = "the Hub has no such model, or none that this login may see"
        advice = "check the name, or run hf auth login"
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        offline = isinstance(error, errors.OfflineModeIsEnabled) or "HF_HUB_OFFLINE" in str(error)
        problem = "HF_HUB_OFFLINE is set" if offline else "the Hub cannot be reached"
        problem += ", and it is not in the cache" * (
            not isinstance(error, errors.OfflineModeIsEnabled)
        )
        advice = "go online and run it again"
    except errors.HfHubHTTPError as error:
        code = getattr(error.response, "status_code", None)
        problem = f"the Hub answered {code} ({_reason(error)})"
        advice = "run it again later"
        if code in (401, 403):
            problem = f"the Hub refuses this login ({code})"
            advice = "run hf auth login with a token that may write there"
    except errors.HFValidationError as error:
        raise ConfigError(
            f"found {name!r} as the name of a model on the Hub ({_reason(error)}); expected "
            "user/name, as in its web address: correct it"
        ) from None
    except json.JSONDecodeError:  # such as the login page of a network
        problem = "what answers is not the Hub, or damaged (no JSON)"
        advice = "check the connection (a login page of the network?) and HF_ENDPOINT"
    except ValueError as error:
        if pushing:
            raise RunError(
                f"{name}: the Hub refuses what is pushed ({_reason(error)}); expected a card that "
                "it takes: correct the header of README.md and push again"
            ) from None
        # A name that leads out of the folder.
        raise RunError(
            f"{name}: found what no run has ({_reason(error)}), expected the files of a run: do "
            "not trust the repository"
        ) from None
    # The HTTP library underneath differs from version to version.
    except Exception as error:
        problem, advice = f"the Hub cannot be reached ({_reason(error)})", "go online, run it again"
    else:
        return
    raise RunError(f"{name}: {problem}; expected a model there and a connection to it: {advice}")


def _reason(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return said[:200] or type(error).__name__
