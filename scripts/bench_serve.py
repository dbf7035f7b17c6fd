"""`superconext serve` under load, beside the same model called in this process.

    python scripts/bench_serve.py RUN TEXTS [--clients 1,16,64] [--per-request 1] [--json]

RUN is a run folder or an ONNX export, TEXTS a file of texts. Each client sends one request after
the other on a connection of its own; service and clients share the machine. Rates are sentences per
second, times milliseconds of a request; ratios are to the same model called in process with as many
texts at once. Needs the extra serve.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np


def figures(seconds: Sequence[float], texts: int, passed: float) -> dict[str, float]:
    """Sentences per second, and the median and 99th percentile of a request in milliseconds."""
    p50, p99 = 1000 * np.percentile(seconds, [50, 99])
    return {"sentences_per_second": texts / passed, "p50_ms": float(p50), "p99_ms": float(p99)}


def timed(
    call: Callable[[Sequence[str]], object], parts: Sequence[list[str]], seconds: float
) -> tuple[list[float], int]:
    """Call with one part after the other for so long: (seconds of each call, texts)."""
    taken, texts, until = [], 0, time.perf_counter() + seconds
    while (started := time.perf_counter()) < until:
        part = parts[len(taken) % len(parts)]
        call(part)
        taken.append(time.perf_counter() - started)
        texts += len(part)
    return taken, texts


def load(port: int, clients: int, parts: Sequence[list[str]], seconds: float) -> dict[str, float]:
    """Figures of so many clients at once."""
    results: list[tuple[list[float], int]] = []

    def client(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def ask(texts: Sequence[str]) -> None:
            connection.request("POST", "/predict", json.dumps({"texts": texts}))
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 200:
                raise RuntimeError(said.decode())

        own = number * len(parts) // clients
        results.append(timed(ask, [*parts[own:], *parts[:own]], seconds))
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = time.perf_counter() - started
    if len(results) < clients:
        raise RuntimeError(f"{clients - len(results)} of {clients} clients were refused")
    taken = [one for seconds, _ in results for one in seconds]
    return figures(taken, sum(texts for _, texts in results), passed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", help="run folder, or a folder of export --format onnx")
    parser.add_argument("texts", help="file of texts")
    parser.add_argument("--clients", default="1,16,64")
    parser.add_argument("--per-request", type=int, default=1, help="texts in a request")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each number of clients")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    from superconext.cli.use import load_any
    from superconext.data.reading import read_texts

    texts = [text for text in read_texts(options.texts).texts if text.strip()]
    size = options.per_request
    parts = [texts[i : i + size] for i in range(0, len(texts) - size + 1, size)]
    model = load_any(options.run, 1)
    model.probabilities(texts[:64])
    started = time.perf_counter()
    taken, number = timed(model.probabilities, parts, options.seconds)
    found = {"in process": figures(taken, number, time.perf_counter() - started)}
    words = [sys.executable, "-m", "superconext", "serve", options.run, "--port", "0"]
    with subprocess.Popen([*words, "--threads", "1"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        if "serving at" not in line:
            print(line + process.stderr.read(), file=sys.stderr, end="")
            return 1
        port = int(line.rsplit(":", 1)[1].split("/")[0])
        try:
            for clients in map(int, options.clients.split(",")):
                name = f"{clients} client{'s' * (clients > 1)}"
                found[name] = load(port, clients, parts, options.seconds)
        finally:  # else leaving the block waits for the server
            process.send_signal(signal.SIGTERM)
    base = found["in process"]
    for one in found.values():
        one["rate_over_in_process"] = one["sentences_per_second"] / base["sentences_per_second"]
        one["p50_over_in_process"] = one["p50_ms"] / base["p50_ms"]
    if options.json:
        print(json.dumps({"texts_per_request": size, "figures": found}))
        return 0
    print(f"{size} text{'s' * (size > 1)} a request")
    print(f"  {'':12} {'sentences/s':>11} {'over':>6} {'p50 ms':>8} {'over':>6} {'p99 ms':>8}")
    for name, one in found.items():
        rate, p50, p99, over, slower = one.values()
        print(f"  {name:12} {rate:11.0f} {over:6.2f} {p50:8.2f} {slower:6.2f} {p99:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
