"""What a folder says of itself: the manifest of a run, or what the folder is if it has none.

Nothing is read with torch before that, so that a wrong path is told where torch is not installed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superconext.core.errors import RunError, listed, needs_training
from superconext.core.files import file_sha256, shell_word
from superconext.core.process import gc_paused

if TYPE_CHECKING:
    from superconext.fitting.model import Model

#: The folder of a run that is not finished.
CHECKPOINT = "checkpoint"

#: The newest format that is read. 7: n-gram models read normalised text. 6: the probe reads
#: features at unit length. 5: probabilities are corrected for each script. 4: TF-IDF and more
#: n-grams stand beside the probe, 3: TF-IDF alone. 2: rows of zeros are left out of the n-gram
#: buckets, and `bucket_rows` says which are there. 1: all rows are.
FORMAT = 7

#: Bytes of a JSON document; two million words have a quarter of it.
MOST_JSON = 1 << 28


#: What a reader of run folders expects to find.
MADE_BY_TRAIN = "a run made by superconext train"


def read_manifest(folder: Path, expected: str = MADE_BY_TRAIN) -> dict[str, Any]:
    """The manifest of a run folder; `expected`: what to call it where there is none.

    Raises RunError when the folder is missing, is no run, or is of a newer format.
    """
    path = folder / "manifest.json"
    if not path.is_file():
        raise RunError(f"{folder}: {_found_in(folder, expected)}")
    manifest = read_json(plain_file(folder, path.name))
    if not isinstance(manifest.get("format"), int):
        raise RunError(f"{path}: no format number found; expected a run folder's manifest")
    if manifest["format"] > FORMAT:
        raise RunError(
            f"{path}: run format {manifest['format']} found, this version reads up to {FORMAT}; "
            "install a newer superconext"
        )
    return manifest


def _found_in(folder: Path, expected: str) -> str:
    """What a folder without a manifest is, and what to do with it."""
    expected = f"expected {expected}"
    whole = os.path.abspath(folder)  # . and / have no name
    if any(Path(place, CHECKPOINT).is_dir() for place in (whole, f"{whole}.partial")):
        out = shell_word(whole.removesuffix(".partial"))
        return f"found a run that was stopped; {expected}: superconext train --resume {out}"
    if not folder.is_dir():
        return (
            f"{'found a file' if folder.exists() else 'no such folder'}; {expected}: check the path"
        )
    inside = sorted(found.parent.relative_to(folder) for found in folder.glob("*/manifest.json"))
    if inside:
        named = listed([str(folder / name) for name in inside], 3)
        return f"found a folder with {named} in it; {expected}: name one of these"
    if (folder / "classify.py").is_file():
        return (
            f"found an export, which predict, evaluate, embed and serve read; {expected} for this: "
            "name the run that it was made of"
        )
    if (folder / "modules.json").is_file():
        return f"found a sentence-transformers model; {expected}: name the run it was made of"
    if (folder / "results.jsonl").is_file():
        return f"found the results of a comparison, which keeps no model; {expected}: train one"
    if (folder / "encoder.json").is_file():
        return (
            f"found a pretrained encoder; {expected}: superconext train FILE --init "
            f"{shell_word(folder)} --out RUN"
        )
    return f"found no manifest.json; {expected}: check the path"


def cut_short(manifest: Mapping[str, Any]) -> str:
    """After how much of it the training of this run was interrupted, "" where it was not."""
    if manifest.get("status") != "interrupted":
        return ""
    epochs = [manifest.get(name) for name in ("epochs", "planned_epochs")]
    known = all(isinstance(number, int) for number in epochs)
    return "training was interrupted" + f" after {epochs[0]} of {epochs[1]} epochs" * known


def unfinished(run: Path, manifest: Mapping[str, Any]) -> str:
    """What whoever uses a run must know of a training that was interrupted, "" where it was not."""
    told = cut_short(manifest)
    if not told:
        return ""
    mend = "expect less of it than of a whole training"
    if (run / CHECKPOINT).is_dir():
        mend = f"superconext train --resume {shell_word(run)} goes on"
    return f"{run}: {told}: {mend}"


def plain_file(folder: Path, name: str) -> Path:
    """The file of that name. Raises RunError if it is not there, or a link out of the folder."""
    path = folder / name
    if not path.is_file():
        raise RunError(f"{path}: missing; expected a whole run folder: copy it again")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise RunError(
            f"{path}: a link that leads out of the folder; expected a file: copy the run with its "
            "files (cp -rL) if you trust where it leads"
        )
    return path


def listed_file(folder: Path, name: str, hashes: Mapping[str, Any]) -> Path:
    """`plain_file` of what has the hash, SHA-256, that the manifest lists. Raises RunError for
    another content."""
    path = plain_file(folder, name)
    if hashes.get(name) != file_sha256(path):
        raise RunError(
            f"{path}: its content is not what the manifest lists; expected the file as it was "
            "written: copy the run again"
        )
    return path


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises RunError for anything else, PermissionError for one that
    may not be read."""
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > MOST_JSON:
                raise ValueError(f"longer than {MOST_JSON >> 20} MiB")
            value = json.loads(stream.read(size).decode("utf-8"))
    except PermissionError:
        raise
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: not a JSON document ({error}); copy the run again") from None
    except RecursionError:
        raise RunError(
            f"{path}: not a JSON document (nested too deep); copy the run again"
        ) from None
    if not isinstance(value, dict):
        raise RunError(f"{path}: found a JSON {type(value).__name__}, expected an object")
    return value


def code_told(model: Model, manifest: Mapping[str, Any]) -> str:
    """`runs.folder.changed_code` of a run that was loaded."""
    from superconext.runs.folder import changed_code

    return changed_code(model.config, manifest.get("own_code_sha256"))


def load_run(
    folder: Path, threads: int | None = None, expected: str = MADE_BY_TRAIN
) -> tuple[Model, dict[str, Any]]:
    """The model of a run folder and its manifest. threads: torch's; None leaves them alone.
    expected: as `read_manifest` takes it."""
    manifest = read_manifest(folder, expected)
    with gc_paused(), needs_training(f"{folder}, which is a run and not an export of one,"):
        import torch

        from superconext.runs.folder import load_model

        if threads is not None:
            torch.set_num_threads(threads)
        with torch.random.fork_rng(devices=[]):  # a module draws its first weights
            return load_model(folder), manifest
