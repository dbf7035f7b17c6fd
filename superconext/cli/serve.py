"""`superconext serve`: a run as an HTTP service."""

from __future__ import annotations

from typing import Any

import click

from superconext.cli.options import THREADS


def _limit(name: str, default: int, text: str) -> Any:
    return click.option(name, type=click.IntRange(1), default=default, show_default=True, help=text)


@click.command()
@click.argument("run")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: a free one."
)
@_limit("--max-bytes", 1 << 20, "Bytes of a request's body.")
@_limit("--max-texts", 1000, "Texts in a request.")
@_limit("--max-characters", 10_000, "Characters of a text.")
@_limit("--max-waiting", 64, "Requests that wait for an answer at once.")
@THREADS
def serve(
    run: str,
    host: str,
    port: int,
    max_bytes: int,
    max_texts: int,
    max_characters: int,
    max_waiting: int,
    threads: int,
) -> None:
    """Serve RUN over HTTP: a run or a folder of export --format onnx or static.

    POST /predict takes {"texts": ["...", ...]}; GET /health and /metrics (Prometheus) are for
    monitoring. Requests over a limit are refused (413, 429). No text is logged. SIGTERM lets
    running requests finish. Needs the extra serve.
    """
    from superconext.cli.use import load_any
    from superconext.export.server import Limits, run_server

    limits = Limits(max_bytes, max_texts, max_characters, waiting=max_waiting)
    run_server(load_any(run, threads), host, port, limits)
