"""Do the pins of constraints.txt resolve on every Python that setup.cfg promises?

    python scripts/resolve_pins.py [VERSION ...]

pip resolves what setup.cfg requires, under the pins, from wheels alone and without installing
anything. Where the index has no torch of that Python, the rest is resolved without it, and that is
said. Exit code 1 where a promised Python does not resolve; others are shown for information.
"""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HOME = Path(__file__).parents[1]


def promised() -> list[str]:
    """The versions of Python among the classifiers, as 3.11."""
    text = (HOME / "setup.cfg").read_text(encoding="utf-8")
    return re.findall(r"Programming Language :: Python :: (3\.\d+)", text)


def requirements(*extras: str) -> list[str]:
    """What setup.cfg requires with these extras, those that they include too."""
    config = configparser.ConfigParser()
    config.read(HOME / "setup.cfg", encoding="utf-8")
    found = config["options"]["install_requires"].split("\n")
    for extra in extras:
        for line in config["options.extras_require"][extra].split("\n"):
            inner = re.fullmatch(r"superconext\[(.+)\]", line)
            found += requirements(inner[1]) if inner else [line]
    return [line for line in dict.fromkeys(found) if line]


def resolve(version: str, wanted: list[str], *more: str, pinned: bool = True) -> str:
    """Why pip cannot resolve them for a version of Python, "" where it can.

    pinned: with the versions of constraints.txt.
    """
    with tempfile.TemporaryDirectory() as nowhere:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet"]
        command += ["--ignore-installed", "--target", nowhere, "--only-binary=:all:"]
        command += ["--python-version", version]
        command += ["--constraint", str(HOME / "constraints.txt")] if pinned else []
        done = subprocess.run([*command, *more, *wanted], capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return "" if done.returncode == 0 else (lines or ["pip failed"])[0]


def main() -> int:
    failed = False
    floor = promised()
    following = f"3.{int(floor[-1].partition('.')[2]) + 1}"
    for version in sys.argv[1:] or [*floor, following]:
        wanted, without = requirements("train", "serve", "plots", "test"), ""
        torch = [name for name in wanted if name.startswith("torch>")]
        if resolve(version, torch, "--no-deps", pinned=False):
            wanted = [name for name in wanted if name not in torch]
            without = " (without torch: the index has none for it)"
        problem = resolve(version, wanted)
        failed |= bool(problem) and version in floor
        promise = "" if version in floor else " (not promised)"
        print(f"{version}{promise}: {problem or 'resolves'}{without}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
