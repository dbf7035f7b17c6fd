"""Does every reader answer or refuse, whatever it is given? Inputs by the hundred thousand.

    python scripts/fuzz.py --reader NAME|all --inputs 100000 --seed 0 [--seconds S]

Inputs are made of the small files in tests/reliability/corpus by changing them, also inside
gzip, zip, JSON and safetensors; those that reach new lines of the package are changed further.
Prints a table of counts and what was found, and writes the inputs found under --out. With
`--engine atheris` (Python package atheris, one reader at a time) libFuzzer makes the inputs.
Exit 1 where there are findings.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.reliability.fuzzing import Counts, fuzz, judge
from tests.reliability.readers import Case, Reader, readers

_SHOWN = 8


def row(name: str, counts: Counts) -> str:
    """One line of the table."""
    return (
        f"| {name} | {counts.inputs:,} | {counts.accepted:,} | {counts.refused:,} "
        f"| {len(counts.findings)} | {counts.slowest * 1000:.0f} ms "
        f"| {counts.memory / (1 << 20):.1f} MiB | {counts.lines} |"
    )


def tell(name: str, counts: Counts, out: Path) -> None:
    """What was found, one of a kind, and the inputs as files."""
    kinds: dict[str, int] = {}
    for number, finding in enumerate(counts.findings):
        where = finding.trace.strip().splitlines()[-3:] if finding.trace else []
        kind = " ".join([finding.what[:60], *where])
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] > 1 or len(kinds) > _SHOWN:
            continue
        path = out / name / f"found-{number}--{finding.case.name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(finding.case.data)
        print(f"FOUND {name}: {finding.what}\n  input: {path}\n{finding.trace}", file=sys.stderr)


def with_atheris(reader: Reader, folder: Path, inputs: int, seed: int, out: Path) -> None:
    """libFuzzer instead of our own changes; it ends the process."""
    try:
        import atheris
    except ImportError:
        sys.exit("error: found no package atheris; expected it for --engine atheris: install it")
    with atheris.instrument_imports(include=["superconext"]):
        for case in reader.seeds(folder):
            judge(reader, folder, case, Counts())
    names = sorted({case.name for case in reader.seeds(folder)})

    def one(data: bytes) -> None:
        counts = Counts()
        at = data[0] % len(names) if data else 0
        judge(reader, folder, Case(names[at], data[1:]), counts)
        if counts.findings:
            tell(reader.name, counts, out)
            raise RuntimeError(counts.findings[0].what)

    corpus = folder / "libfuzzer"
    corpus.mkdir()
    for number, case in enumerate(reader.seeds(folder)):
        (corpus / str(number)).write_bytes(bytes([names.index(case.name)]) + case.data)
    words = [sys.argv[0], f"-runs={inputs}", f"-seed={seed + 1}", "-max_len=4096", str(corpus)]
    atheris.Setup(words, one)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = {reader.name: reader for reader in readers()}
    parser.add_argument("--reader", required=True, choices=["all", *known])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="for each reader, at most")
    parser.add_argument("--engine", choices=["own", "atheris"], default="own")
    parser.add_argument("--out", type=Path, default=Path("findings"))
    arguments = parser.parse_args()
    # Imported while they are read, these would count as time and memory of the first input.
    import gensim  # noqa: F401
    import torch  # noqa: F401

    chosen = known.values() if arguments.reader == "all" else [known[arguments.reader]]
    # In memory where the system has such a folder: each input is written as a file.
    fast = Path("/dev/shm")
    place = str(fast) if fast.is_dir() and os.access(fast, os.W_OK) else None
    print("| reader | inputs | accepted | refused | findings | slowest | memory | lines |")
    print("|---|---|---|---|---|---|---|---|")
    found = 0
    for reader in chosen:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            reader.prepare(Path(folder))
            if arguments.engine == "atheris":
                with_atheris(reader, Path(folder), arguments.inputs, arguments.seed, arguments.out)
            counts = fuzz(reader, Path(folder), arguments.inputs, arguments.seed, arguments.seconds)
            print(row(reader.name, counts), flush=True)
            tell(reader.name, counts, arguments.out)
            found += len(counts.findings)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
