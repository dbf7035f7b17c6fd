"""Run the tutorials and put what they print into their pages.

    python scripts/tutorials.py            # rewrites the pages
    python scripts/tutorials.py --check    # exit code 1 where a page shows something else

A page's `bash` and `python` blocks run in order, each page in one empty folder. A `text` block
right after one of them is what it wrote to standard output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "docs" / name for name in ("first-model.md", "labelling-loop.md")]
BLOCK = re.compile(r"```(bash|python)\n(.*?)```\n(?:(\n```text\n)(.*?)```\n)?", re.DOTALL)


def with_outputs(text: str, run: Callable[[str, str], str]) -> str:
    """The page with new outputs. run: a block's language and source to what it prints."""

    def ran(block: re.Match[str]) -> str:
        printed = run(block[1], block[2])
        if block[3] is None:
            return block[0]
        kept = block[0][: block.start(4) - block.start()]
        lines = "\n".join(line.rstrip() for line in printed.strip().splitlines())
        return f"{kept}{lines}\n```\n"

    return BLOCK.sub(ran, text)


def masked(text: str) -> str:
    """The text without its numbers, which differ between machines, and the spaces beside them."""
    return re.sub(r"[\d.]+", "0", re.sub(r"[ \t-]+", " ", text))


def run_in(folder: str) -> Callable[[str, str], str]:
    """Runs blocks in this folder, each in a process of its own."""
    shell = f"superconext() {{ '{sys.executable}' -m superconext \"$@\"; }}\nset -e\n"
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    more = {"PYTHONPATH": os.pathsep.join(paths), "SUPERCONEXT_CACHE": f"{folder}/cache"}

    def run(language: str, source: str) -> str:
        bash = language == "bash"
        done = subprocess.run(
            ["bash", "-c", shell + source] if bash else [sys.executable, "-c", source],
            cwd=folder,
            env={**os.environ, **more, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
        )
        if done.returncode:
            raise SystemExit(f"{source}exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    return run


def main() -> int:
    wrong = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            found = with_outputs(text, run_in(folder))
        if "--check" not in sys.argv[1:]:
            page.write_text(found, encoding="utf-8")
        elif masked(found) != masked(text):
            print(f"{page.name} shows another output; run scripts/tutorials.py", file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
