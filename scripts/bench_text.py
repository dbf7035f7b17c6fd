"""How fast text becomes tokens: ours against scikit-learn's CountVectorizer analyzer.

    python scripts/bench_text.py TEXT_FILE [--repeats N] [--profile NAME] [--json]

One text a line, UTF-8. The two take turns in the same process on one core; the medians are
reported. The rival only lower-cases and splits: the ratio is the price of normalisation.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from sklearn.feature_extraction.text import CountVectorizer

from superconext.text.normalize import PROFILES, Normalizer
from superconext.text.tokenize import Tokenizer, tokenize


def seconds(function: Callable[[str], object], lines: list[str]) -> float:
    """Wall seconds for one pass over the lines."""
    start = time.perf_counter()
    for line in lines:
        function(line)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path, help="text file, one text a line")
    parser.add_argument("--repeats", type=int, default=5, help="passes of each (default 5)")
    parser.add_argument("--profile", choices=PROFILES, default="arabic")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    try:
        lines = options.file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        print(f"error: cannot read {options.file}: {error}; give a UTF-8 text", file=sys.stderr)
        return 1
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    if not megabytes or options.repeats < 1:
        print("error: nothing to time; give a text and --repeats 1 or more", file=sys.stderr)
        return 1

    normalizer = Normalizer(options.profile)
    contestants: dict[str, Callable[[str], object]] = {
        "rival": CountVectorizer().build_analyzer(),
        "ours": Tokenizer(normalizer),
        "normalize": normalizer,
        "tokenize": tokenize,
    }
    for function in contestants.values():
        function(lines[0])  # compiles the expressions
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(options.repeats):
        for name, function in contestants.items():
            times[name].append(seconds(function, lines))

    speed = {name: megabytes / median(taken) for name, taken in times.items()}
    result = {
        "lines": len(lines),
        "megabytes": round(megabytes, 3),
        "profile": options.profile,
        "repeats": options.repeats,
        "megabytes_per_second": {name: round(value, 3) for name, value in speed.items()},
        "ours_over_rival": round(speed["ours"] / speed["rival"], 3),
    }
    if options.json:
        print(json.dumps(result))
        return 0
    print(f"{len(lines)} lines, {megabytes:.2f} MB, profile {options.profile}")
    for name, value in speed.items():
        print(f"{name:>10}  {value:6.2f} MB/s")
    print(f"ours / rival: {result['ours_over_rival']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
