"""The loop through the real Label Studio: import, answer, export, merge, train.

Label Studio needs a thousand packages' room of its own: install it in another virtual environment
(`pip install label-studio`) and name its program in SUPERCONEXT_LABEL_STUDIO, or have it on the
path. It is started on loopback, with a database in a temporary folder.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

from superconext.data.reading import read_labelled
from tests.cli.conftest import call_main, rows

PROGRAM = os.environ.get("SUPERCONEXT_LABEL_STUDIO") or shutil.which("label-studio")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        PROGRAM is None, reason="no label-studio on the path or in SUPERCONEXT_LABEL_STUDIO"
    ),
]
TOKEN = "0123456789abcdef0123456789abcdef01234567"
#: The first start makes the database.
STARTS_WITHIN = 400


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Asks the API of a running Label Studio: a path, and what to post; gives the bytes."""
    folder = tmp_path_factory.mktemp("label_studio")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "data"),
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
    }
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    given = ["--username", "a@example.org", "--password", "Secret12345", "--user-token", TOKEN]
    at = ["--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    log = folder / "log"

    def asked(path, body=None):
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", content, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    with log.open("wb") as said:
        server = subprocess.Popen(
            [PROGRAM, "start", *at, *given], env=inherited | settings, cwd=folder, stdout=said,
            stderr=said, start_new_session=True,
        )  # fmt: skip
    try:
        until = time.monotonic() + STARTS_WITHIN
        while True:
            assert server.poll() is None and time.monotonic() < until, log.read_text()[-2000:]
            try:
                asked("/health")
                break
            except OSError:
                time.sleep(1)
        yield asked
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def test_suggest_import_answer_export_merge_train(ask, finished, tmp_path):
    truth = {text: label for label, text in rows(40, seed=9)}
    pool = tmp_path / "pool.txt"
    pool.write_text("\n".join(truth) + "\n", encoding="utf-8")
    words = ("suggest", finished.folder, pool, "-n", 12, "--for", "label-studio")
    said = call_main(*words, "--out", tmp_path / "tasks.json")
    assert said.code == 0, said.err
    tasks = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
    # The interface is pasted from what the command says.
    interface = next(line for line in said.err.splitlines() if "<View>" in line).split(": ", 2)[-1]
    project = json.loads(ask("/api/projects/", {"title": "loop", "label_config": interface}))["id"]
    counted = json.loads(ask(f"/api/projects/{project}/import", tasks))
    assert (counted["task_count"], counted["prediction_count"]) == (12, 12)

    listed = json.loads(ask(f"/api/tasks?project={project}&fields=all"))["tasks"]
    given = {task["data"]["text"]: task["predictions"][0] for task in tasks}
    for task in listed:
        (shown,) = task["predictions"]
        asked_for = given[task["data"]["text"]]
        assert (shown["score"], shown["result"]) == (asked_for["score"], asked_for["result"])
    skipped, *answered = listed
    ask(f"/api/tasks/{skipped['id']}/annotations/", {"result": [], "was_cancelled": True})
    for task in answered:
        answer = task["predictions"][0]["result"]
        answer[0]["value"]["choices"] = [truth[task["data"]["text"]]]
        ask(f"/api/tasks/{task['id']}/annotations/", {"result": answer})

    expected = {task["data"]["text"]: truth[task["data"]["text"]] for task in answered}
    names = {"JSON": "x.json", "JSON_MIN": "y.json", "CSV": "x.csv", "TSV": "x.tsv"}
    for kind, name in names.items():
        export = tmp_path / name
        export.write_bytes(ask(f"/api/projects/{project}/export?exportType={kind}"))
        found = read_labelled(export, drop_unlabelled=True)
        assert dict(zip(found.texts, found.labels, strict=True)) == expected, kind

    merged, drop = tmp_path / "merged.tsv", "--drop-unlabelled"
    sets = finished.data.train, tmp_path / "x.json"
    said = call_main("data", "merge", *sets, drop, "--out", merged)
    assert said.code == 0 and "1 row without a label left out" in said.err, said.err
    assert set(expected) < set(read_labelled(merged).texts)
    for trained_on in (merged, tmp_path / "x.json"):
        out = tmp_path / f"run-{trained_on.stem}"
        said = call_main("train", trained_on, "--dev", finished.data.dev, "--no-baselines", drop,
                         *finished.data.small, "--out", out)  # fmt: skip
        assert said.code == 0, said.err
        assert (out / "report.html").exists()
