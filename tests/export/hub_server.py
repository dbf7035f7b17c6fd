"""A stand-in for the Hub on loopback: what huggingface_hub asks to make, push and pull a model."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_standin"


def _sha(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


class Repository:
    """Branches by name to commits, commits to files."""

    def __init__(self, visibility: str | None) -> None:
        self.visibility = visibility
        self.branches = {"main": _sha(b"")}
        self.commits: dict[str, dict[str, bytes]] = {_sha(b""): {}}
        self.messages: list[str] = []

    def files(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        commit = self.branches.get(revision, revision)
        return (commit, self.commits[commit]) if commit in self.commits else None


class StandIn:
    """The server; `repositories` by user/name, `refuse` answers a POST with that code, `broken` a
    GET; `page` stands for the login page of a network, which answers every GET."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.refuse: int | None = None
        self.broken: int | None = None
        self.page = b""
        self.asked: list[str] = []
        outer = self

        class Handler(_Handler):
            state = outer

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    state: StandIn
    protocol_version = "HTTP/1.0"  # no connection outlives its answer

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._read()

    def do_HEAD(self) -> None:
        self._read()

    def _send(self, code: int, body: Any = None, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _known(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _read(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.state.asked.append(f"{self.command} {path}")
        if self.state.broken:
            self._send(self.state.broken)
            return
        if self.state.page:
            self._send(200, self.state.page, Content_Type="text/html")
            return
        words = path.strip("/").split("/")
        api = words[:2] == ["api", "models"]
        name = "/".join(words[2:4] if api else words[:2])
        repository = self.state.repositories.get(name)
        hidden = repository and repository.visibility == "private" and not self._known()
        if repository is None or hidden:
            self._send(404, X_Error_Code="RepoNotFound")
            return
        rest = words[4:] if api else words[2:]
        kind, revision = (rest[0], rest[1]) if rest else ("revision", "main")
        found = repository.files(revision)
        if found is None:
            self._send(404, X_Error_Code="RevisionNotFound")
            return
        commit, files = found
        if kind == "revision":
            siblings = [{"rfilename": file} for file in files]
            about = {"id": name, "modelId": name, "sha": commit, "siblings": siblings}
            self._send(200, {**about, "private": False, "tags": [], "downloads": 0, "likes": 0})
        elif kind == "tree":
            self._send(
                200,
                [
                    {"type": "file", "path": file, "size": len(content), "oid": _sha(content)}
                    for file, content in files.items()
                ],
            )
        elif kind == "resolve" and "/".join(rest[2:]) in files:
            content = files["/".join(rest[2:])]
            self._send(200, content, ETag=f'"{_sha(content)}"', X_Repo_Commit=commit)
        else:
            self._send(404, X_Error_Code="EntryNotFound")

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size) if size else b"{}"
        path = unquote(urlsplit(self.path).path)
        self.state.asked.append(f"POST {path}")
        if self.state.refuse or not self._known():
            self._send(self.state.refuse or 401)
            return
        words = path.strip("/").split("/")
        if path == "/api/validate-yaml":
            self._send(200, {"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            seen = asked.get("visibility")
            if asked.get("private"):
                seen = "private"
            taken = name in self.state.repositories
            self.state.repositories.setdefault(name, Repository(seen))
            self._send(409 if taken else 200, {"url": f"{self.state.address}/{name}", "name": name})
        else:
            self._change("/".join(words[2:4]), words[4], "/".join(words[5:]), body)

    def _change(self, name: str, kind: str, revision: str, body: bytes) -> None:
        repository = self.state.repositories.get(name)
        if repository is None:
            self._send(404, X_Error_Code="RepoNotFound")
        elif kind == "branch":
            taken = revision in repository.branches
            repository.branches.setdefault(revision, repository.branches["main"])
            self._send(409 if taken else 201)
        elif kind == "preupload":
            paths = [file["path"] for file in json.loads(body)["files"]]
            told = [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in paths]
            self._send(200, {"files": told})
        else:
            lines = [json.loads(line) for line in body.splitlines()]
            files = dict(repository.commits[repository.branches[revision]])
            for line in lines:
                if line["key"] == "header":
                    repository.messages.append(line["value"]["summary"])
                elif line["key"] == "file":
                    files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            commit = _sha(body)
            repository.commits[commit] = files
            repository.branches[revision] = commit
            address = f"{self.state.address}/{name}/commit/{commit}"
            self._send(200, {"commitUrl": address, "commitOid": commit, "success": True})
