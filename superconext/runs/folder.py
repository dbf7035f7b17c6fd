"""The run folder: a trained model as plain files anyone can open.

| file | what it holds |
|---|---|
| `manifest.json` | command, data hashes and class counts, vectors, seed, versions, times |
| `config.toml` | every parameter |
| `vocabulary.json` | classes, training words, out-of-vocabulary words that have vectors |
| `encoder.safetensors` | encoders and objectives of all members |
| `vectors.safetensors` | vectors of out-of-vocabulary words, subword buckets, half precision |
| `probe.safetensors` | the logistic regression |
| `tfidf.json`, `tfidf.safetensors` | with `encoder+tfidf`: the n-grams and their weights |
| `ngrams.safetensors` | beside these two with `encoder+ngrams` |
| `report.html` | the page of the run, with its sentences; for nobody else until you have looked |
| `seen.safetensors` | keyed hashes of the texts it was made from (`data.duplicates`); optional |
| `history.csv`, `metrics.json`, `predictions.tsv`, `figures/`, `README.md` | what came out |

Nothing is pickled and nothing is ever unpickled. A folder may come from a stranger: nothing in
it is code, and a file that is another one, a link that leads out of the folder, JSON that is too
deep, and sizes that the arrays do not have are refused before anything is made of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from superconext._version import __version__
from superconext.config.files import read_toml, write_config
from superconext.config.parameters import Config, removal, resolve, upgrade, with_files
from superconext.core import locks
from superconext.core.arrays import write_arrays
from superconext.core.errors import RunError, StoppedEarly, SuperConTextError, UnregisteredError
from superconext.core.files import (
    atomic_write,
    clear_staging,
    file_sha256,
    free_folder,
    remove_folder,
    replace_folder,
    shell_word,
    staging_folder,
    sync,
    write_json,
)
from superconext.core.registry import is_name, own_code, own_code_sha256
from superconext.core.state_file import apart
from superconext.data.duplicates import SeenTexts
from superconext.encoders import encoder_class
from superconext.encoders.base import check_affordable
from superconext.fitting.model import Model
from superconext.fitting.stages import member_config, second_stage
from superconext.objectives.base import Objective, Shape
from superconext.objectives.catalogue import objective_class
from superconext.probe import probe_class
from superconext.probe.ensemble import ENSEMBLES
from superconext.probe.logistic_regression import check_weights
from superconext.runs.manifest import CHECKPOINT, listed_file, read_json, read_manifest

#: In the checkpoint of a finished run that is about to take its place: once that is in RUN,
#: what RUN.partial holds is the run that was replaced.
_IN_PLACE = "in-place"


def check_out(out: Path, force: bool, reads: Iterable[str | None] = ()) -> Path:
    """The folder to write. Raises RunError unless it is new, or a run without one of the files that
    are read and `force` is given."""
    return free_folder(out, force, "manifest.json", "run folder", RunError, reads)


def partial_of(out: Path) -> Path:
    """Where the run is made, beside its place. Raises RunError if that is something else."""
    partial = _partial(out)
    if os.path.lexists(partial) and not (partial / CHECKPOINT).is_dir():
        raise RunError(
            f"{partial} exists and is not an unfinished run; expected the name to be free: "
            "rename or remove it"
        )
    return partial


def _partial(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


def run_of(folder: Path) -> Path:
    """RUN where `folder` is RUN.partial, in which RUN is made; else `folder` itself, or what it
    links to. Raises RunError for a folder without a name."""
    folder = folder.resolve() if folder.is_symlink() else folder
    if folder.name in ("", ".."):
        folder = Path(os.path.abspath(folder))
        if not folder.name:
            raise RunError(f"{folder}: found no run there; expected the folder of one: name it")
    name = folder.name.removesuffix(".partial")
    if name in ("", folder.name) or not (folder / CHECKPOINT).is_dir():
        return folder
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        request = json.loads((folder / CHECKPOINT / "request.json").read_text(encoding="utf-8"))
        if Path(request["out"]).name == folder.name:  # asked for under this very name
            return folder
    return folder.with_name(name)


@contextlib.contextmanager
def only_run(out: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Let no other process make this run inside the block, and end what a kill cut short.

    Folders above `out` are made, and taken away again if the block leaves them empty. Raises
    RunError while another process makes the run.
    """
    made = [folder for folder in out.parents if not folder.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        lock = out.with_name(f".{out.name}.lock")
        kept = "train --resume continues from its finished epochs"
        with locks.only_writer(lock, out, say, kept, remove=True):
            _settle(out)
            clear_staging(out, alone=True)
            yield
    finally:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def put_in_place(partial: Path, out: Path, new: bool = False) -> None:
    """Let the finished folder take the place of the run that `--force` or `--resume` replaces.

    Its checkpoint goes last of all, unless it says that it was interrupted. new: whether there is
    no run to replace; RunError is raised where one has appeared, and `partial` stays.
    """
    (partial / CHECKPOINT / _IN_PLACE).touch()
    with staging_folder(out) as hidden:
        replace_folder(partial, out, hidden / "old", new=new)
    _settle(out)


def _settle(out: Path) -> None:
    """Do what is left to do once a finished run stands in its place, or was about to."""
    partial = _partial(out)
    if not os.path.lexists(out) and (partial / CHECKPOINT / _IN_PLACE).exists():
        # A stop between the two renames of a system that cannot exchange folders.
        partial.rename(out)
        sync(out.parent)
    if not (out / CHECKPOINT / _IN_PLACE).exists():
        return
    if os.path.lexists(partial):
        remove_folder(partial, out)
    if is_complete(out):
        shutil.rmtree(out / CHECKPOINT)
    else:
        (out / CHECKPOINT / _IN_PLACE).unlink()


def is_complete(run: Path) -> bool:
    """Whether this is a finished run that nothing is left to do for."""
    try:
        manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
        return bool(manifest["status"] == "complete")
    except (OSError, ValueError, KeyError, TypeError):
        return False


@contextlib.contextmanager
def epochs_kept(partial: Path, out: Path, say: Callable[[str], None]) -> Iterator[None]:
    """When the block raises, keep what is worth going on from: the finished epochs, if any.

    Raises StoppedEarly, which tells how to resume, in place of KeyboardInterrupt and OSError;
    with other errors `say` is told. A folder without an epoch is left to the caller.
    """
    try:
        yield
    except StoppedEarly:
        raise
    except BaseException as error:
        if not has_epochs(partial):
            raise
        only_checkpoint(partial)
        here = f"the finished epochs are kept in {partial}"
        command = f"superconext train --resume {shell_word(out)}"
        if isinstance(error, KeyboardInterrupt):
            raise StoppedEarly(f"interrupted; {here}: resume with {command}") from None
        if isinstance(error, OSError) and not isinstance(error, SuperConTextError):
            found = f"{error.filename or partial}: {error.strerror or error}"
            raise StoppedEarly(
                f"{found}; expected the disk to take it; {here}: make room, or correct what it "
                f"says, and resume with {command}"
            ) from error
        say(f"note: {here}: once the cause is gone, resume with {command}")
        raise


def has_epochs(partial: Path) -> bool:
    """Whether an unfinished run has come past its first epoch."""
    return any((partial / CHECKPOINT).glob("member-*"))


def only_checkpoint(partial: Path) -> None:
    """Remove the results from an unfinished run: they are written again, and room is scarce."""
    for rest in partial.iterdir():
        if rest.name == CHECKPOINT:
            continue
        if rest.is_dir() and not rest.is_symlink():
            shutil.rmtree(rest)
        else:
            rest.unlink()


_MODEL_FILES = (
    "config.toml",
    "vocabulary.json",
    "encoder.safetensors",
    "vectors.safetensors",
    "probe.safetensors",
)

#: Stays at home: what is pushed or exported lacks it, and a run loads without it.
SEEN = "seen.safetensors"


def save_model(model: Model, folder: Path) -> dict[str, str]:
    """Write the model's files into an existing folder; returns their SHA-256 by name."""
    from safetensors.torch import save_file as save_tensors

    earlier = {"second_objective": model.second_objective}
    config = model.config
    if any(encoder.has_adapters for encoder in model.encoders):  # wherever the run is opened
        config = replace(config, model=with_files("model", config.model, os.path.abspath))
    write_config(folder / "config.toml", config, earlier)
    document, arrays = model.indexer.to_saved()
    write_json(folder / "vocabulary.json", {"classes": model.classes, **document})

    tensors = {}
    for kind, modules in (("encoder", model.encoders), ("objective", model.objectives)):
        for member, module in enumerate(modules):
            for name, value in module.state_dict().items():
                tensors[f"{kind}.{member}.{name}"] = value
    tensors = apart(tensors)
    with atomic_write(folder / "encoder.safetensors") as temporary:
        save_tensors(tensors, temporary)

    write_arrays(folder / "vectors.safetensors", arrays)
    write_arrays(folder / "probe.safetensors", model.probe.arrays())
    names: tuple[str, ...] = _MODEL_FILES
    if model.ensemble is not None:
        model.ensemble.save(folder)
        names += ENSEMBLES[model.config.probe_features].files
    if model.seen is not None:
        write_arrays(folder / SEEN, model.seen.arrays())
        names += (SEEN,)
    return {name: file_sha256(folder / name) for name in names}


def save_run(
    model: Model, folder: Path, facts: Mapping[str, Any] | None = None, force: bool = False
) -> None:
    """Write a model alone, without figures of merit, as a new run folder.

    facts: more entries of the manifest. force: whether to replace a run. Raises RunError if the
    folder exists otherwise or cannot be made.
    """
    try:
        if folder.exists() and not (force and (folder / "manifest.json").is_file()):
            raise RunError(f"{folder} exists already; expected a new folder: choose another")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with staging_folder(folder) as hidden:
            fresh = hidden / "run"
            fresh.mkdir()
            hashes = save_model(model, fresh)
            about = {"version": __version__, "status": "complete", **(facts or {})}
            about["objective"] = model.config.objective
            if model.columns is not None:
                about["data"] = {"train": {"columns": model.columns}}
            if model.second_objective is not None:
                about["second_objective"] = model.second_objective
            write_manifest(fresh, about, hashes)
            replace_folder(fresh, folder, hidden / "old", new=not force)
    except SuperConTextError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"{folder}: {reason}; expected a new folder: choose another") from None


def write_manifest(folder: Path, manifest: dict[str, Any], hashes: dict[str, str]) -> None:
    """Write `manifest.json` last: a folder that has one is whole."""
    from safetensors import safe_open

    def has(file: str, array: str) -> bool:
        with safe_open(folder / file, framework="np") as saved:
            return array in saved.keys()  # noqa: SIM118

    # The oldest format that says it all, so that earlier versions read what they can.
    beside_it = [kind.run_format for kind in ENSEMBLES.values() if kind.files[-1] in hashes]
    sparse = 2 if has("vectors.safetensors", "bucket_rows") else 1
    of_probe = 6 if has("probe.safetensors", "unit_length") else 1
    oldest = max([sparse, *beside_it, of_probe])
    own: dict[str, Any] = {"own_code": code} if (code := own_code()) else {}
    own |= {"own_code_sha256": prints} if (prints := own_code_sha256()) else {}
    about = {"format": oldest, **own, **manifest, "files": hashes}
    write_json(folder / "manifest.json", about)


def changed_code(config: Config, saved: Any) -> str:
    """What to warn of where code of a user's own is not what a run was trained with; "" else.

    saved: hashes as `own_code_sha256` gives them.
    """
    names = f"objective {config.objective}", f"encoder {config.encoder}"
    now = own_code_sha256() if isinstance(saved, dict) else {}
    for name in (*names, f"probe {config.probe_features}"):
        if name in now and saved.get(name, now[name]) != now[name]:
            kind, _, own = name.partition(" ")
            return (
                f"found another file of the {kind} {own!r} than it was trained with; expected the "
                "same, else it may answer otherwise: put the file back, or train again"
            )
    return ""


def load_model(folder: Path | str) -> Model:
    """The model of a run folder, on the CPU.

    Raises RunError when a file is missing, changed since it was written, or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file as load_arrays
    from safetensors.torch import load_file as load_tensors

    folder = Path(folder)
    manifest = read_manifest(folder)
    hashes = manifest.get("files")
    if not isinstance(hashes, dict):
        raise RunError(
            f"{folder / 'manifest.json'}: no list of files with their hashes found; expected the "
            "manifest as it was written: copy the run again"
        )
    known = dict.fromkeys(name for kind in ENSEMBLES.values() for name in kind.files)
    seen = SEEN in hashes and os.path.lexists(folder / SEEN)
    beside = [name for name in known if name in hashes] + [SEEN] * seen
    for name in (*_MODEL_FILES, *beside):
        listed_file(folder, name, hashes)
    try:
        saved = read_toml(folder / "config.toml", "name = value")
        if saved.get("prior_groups", "none") != "none":
            raise RunError(
                f"found prior_groups = {saved['prior_groups']!r}, which corrects what the model "
                f"predicts; expected none: {removal('prior_groups')}; train again"
            )
        config = resolve({**upgrade(saved), "device": "cpu"})
        words = read_json(folder / "vocabulary.json")
        arrays = load_arrays(folder / "vectors.safetensors")
        tensors = load_tensors(folder / "encoder.safetensors")
        probe = load_arrays(folder / "probe.safetensors")
        if nan := [name for name, value in tensors.items() if bool(value.isnan().any())]:
            raise ValueError(f"encoder.safetensors: {nan[0]} has values that are no numbers")
        second = saved.get("second_objective")
        model = _assemble(config, words, arrays, tensors, probe, second)
        kind = ENSEMBLES.get(config.probe_features)
        if kind is not None:
            if not hashes.keys() >= set(kind.files):
                raise ValueError(f"the manifest lists no {' and no '.join(kind.files)}")
            model.ensemble = ensemble = kind.load(folder)
            tfidf = ensemble.tfidf
            check_weights(tfidf.coef, tfidf.intercept, len(model.classes), len(tfidf.idf), "TF-IDF")
        model.columns = _columns(manifest)
        if seen:
            model.seen = SeenTexts.from_arrays(load_arrays(folder / SEEN))
    except (
        AttributeError,
        LookupError,
        RuntimeError,
        SafetensorError,
        TypeError,
        ValueError,
    ) as error:
        reason = " ".join(str(error).split())[:300]
        if isinstance(error, UnregisteredError):
            raise RunError(f"{folder}: {_unknown(error, manifest) or reason}") from None
        if isinstance(error, RunError):  # of the model that adapters belong to
            raise RunError(f"{folder}: {reason}") from None
        raise RunError(
            f"{folder}: the files do not fit together ({reason}); copy the run again"
        ) from None
    return model


def _unknown(error: UnregisteredError, manifest: Mapping[str, Any]) -> str:
    """What a run was trained with that this process does not know, and how to make it known."""
    if not error.kind or not is_name(error.name):
        return ""
    known = manifest.get("own_code")
    code = str(known.get(f"{error.kind} {error.name}", "")) if isinstance(known, dict) else ""
    if not re.fullmatch(r"[\w.-]+:[\w.]+", code):  # it may be pasted into a shell
        code = ""
    module, _, name = (code or "file.py:Class").partition(":")
    mend = f"set {error.variable}={error.name}=path/to/{module}:{name}"
    if not module.endswith(".py"):
        mend = f"install the package with the module {module}"
    return (
        f"trained with the {error.kind} {error.name!r}"
        + f" ({name} in {module})" * bool(code)
        + ", which is not part of superconext; expected the code of whoever trained the run: "
        + f"{mend}, or register it in Python"
    )


def _columns(manifest: Any) -> Any:
    for key in ("data", "train", "columns"):
        manifest = manifest.get(key) if isinstance(manifest, dict) else None
    return manifest


def _assemble(
    config: Config,
    words: dict[str, Any],
    arrays: dict[str, np.ndarray],
    tensors: dict[str, Tensor],
    probe: dict[str, np.ndarray],
    second_objective: str | None = None,
) -> Model:
    """The model of `config.toml`, `vocabulary.json` and the three safetensors files.

    second_objective: of every second member, in a run that an earlier version wrote.

    Raises an error of Python's (ValueError, LookupError, ...) where they do not fit together.
    """
    classes = _texts(words["classes"], "classes")
    if len(set(classes)) != len(classes) or len(classes) < 2:
        raise ValueError(f"{len(classes)} classes, expected two or more, each once")
    kind = encoder_class(config.encoder)
    indexer = kind.indexer_class.from_saved(words, arrays, config)
    trained = not config.freeze and _knows_objective(config)
    saved_without = not any(name.startswith("objective.") for name in tensors)
    encoders, objectives = [], []
    for member in range(_members_of(tensors)):
        weights = dict(_under(f"encoder.{member}.", tensors))
        encoder = kind.from_tensors(config, indexer, weights)
        encoders.append(encoder.eval())
        if not trained:
            continue
        own = dict(_under(f"objective.{member}.", tensors))
        trained_by = member_config(config, member)
        if second_objective is not None and member % 2:
            trained_by = replace(trained_by, objective=second_objective, options=None)
        with torch.device("meta"):
            bare = _objective(trained_by, len(classes), encoder.sentence_size)
        own_kind = not type(bare).__module__.startswith("superconext.")
        if saved_without and own_kind and bare.state_dict():
            continue  # saved where its code was not known
        check_affordable(bare, own)
        objective = _objective(trained_by, len(classes), encoder.sentence_size)
        objective.load_state_dict(own)
        objectives.append(objective.eval())
    width = sum(encoder.sentence_size for encoder in encoders)
    return Model(
        config,
        classes,
        indexer,
        encoders,
        objectives,
        probe_class(config.probe_features).from_arrays(probe, len(classes), width),
        second_objective=second_objective,
    )


def _under(prefix: str, tensors: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """The tensors whose name begins so, by the rest of it."""
    return ((n[len(prefix) :], t) for n, t in tensors.items() if n.startswith(prefix))


def _objective(config: Config, classes: int, sentence: int) -> Objective:
    """The objective a member was trained by last, which it predicts by, without its weights."""
    last = second_stage(config) or config
    kind = objective_class(last.objective)
    return kind.build(last, Shape(classes, sentence, sentence))


def _knows_objective(config: Config) -> bool:
    """Whether this process has the code of the objective: predictions need none, so that one of
    somebody's own may be left at home."""
    name = (second_stage(config) or config).objective
    try:
        objective_class(name)
    except UnregisteredError:
        if is_name(name):
            return False
        raise
    return True


def _texts(value: Any, what: str) -> list[str]:
    """A list of texts. Raises ValueError for anything else."""
    if not isinstance(value, list) or not set(map(type, value)) <= {str}:
        raise ValueError(f"{what} is no list of texts")
    return value


def _members_of(tensors: Mapping[str, Tensor]) -> int:
    """How many members the names `encoder.0.x`, `objective.0.y` tell of. Raises ValueError."""
    numbers = {int(name.split(".")[1]) for name in tensors}
    if not numbers or numbers != set(range(len(numbers))):
        raise ValueError("the members of encoder.safetensors are not numbered 0, 1, ...")
    return len(numbers)
