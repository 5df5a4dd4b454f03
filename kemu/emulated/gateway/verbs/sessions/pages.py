"""What the web servers in simulated containers answer: nginx and httpd the files below their root, agnhost as the test
image does."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping

from kemu.emulated.kubelet.programs import courses, environments, images
from kemu.emulated.kubelet.programs.files import Files, FilesError, Unknown
from kemu.messages.k8s import core_v1_pb2


def exists(container: core_v1_pb2.Container, tree: Files, path: str) -> bool | None:
    """Whether a web server has that page; None: it is none that is known."""
    root = _root(container)
    if root is None:
        return None
    try:
        tree.read(_file(root, path))
    except FilesError:
        return False
    except Unknown:
        return None
    return True


def _root(container: core_v1_pb2.Container) -> str | None:
    """Where a web server has its pages; None: it is none that serves files."""
    name = images.name_of(container.image)
    words = [*container.command, *container.args]
    if name == images.AGNHOST and "test-webserver" in words[:2]:
        return ""
    return images.WEB_ROOTS.get(name)


def _file(root: str, path: str) -> str:
    path = urllib.parse.unquote(path.partition("?")[0])
    return root + ("/index.html" if path in ("", "/") else "/" + path.strip("/"))


def answer(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    tree: Files,
    path: str,
    values: Mapping[str, str],
    now_s: float,
    board: dict[str, str],
) -> tuple[int, str, bytes] | None:
    """Code, media type and body; None: it is no web server that is known. ``values``: of the query. ``board``: what the
    guestbooks of this namespace hold."""
    name = images.name_of(container.image)
    root = _root(container)
    if root is not None and (root or path.strip("/")):
        try:
            return 200, "text/html", tree.read(_file(root, path)).encode(errors="surrogateescape")
        except (FilesError, Unknown):
            return 404, "text/html", b"<html><body><h1>404 Not Found</h1></body></html>\n"
    if name in ("nautilus", "kitten") and path.strip("/") == "data.json":
        return 200, "application/json", b'{"image": "%s.jpg"}' % name.encode()
    command = courses.command_of(pod, container)
    if command is None or command[0].rpartition("/")[2] != images.AGNHOST:
        return None
    return _agnhost(command[1] if command[1:] else "pause", pod, path.strip("/"), values, now_s, board)


def _agnhost(
    what: str, pod: core_v1_pb2.Pod, page: str, values: Mapping[str, str], now_s: float, board: dict[str, str]
) -> tuple[int, str, bytes] | None:
    text = "text/plain; charset=utf-8"
    name = environments.hostname(pod)
    if what == "serve-hostname":
        return 200, text, name.encode()
    if what == "test-webserver":
        return 200, "text/html", b"<pre>\n</pre>\n"
    if what == "guestbook" and page == "guestbook":
        key, value = values.get("key", ""), values.get("value", "")
        if values.get("cmd") == "set":
            if len(board) < _MOST_NOTES or key in board:
                board[key] = value[:_LONGEST_NOTE]
            return 200, text, b'{"message":"Updated"}'
        return 200, text, json.dumps({"data": board.get(key, "")}, separators=(",", ":")).encode()
    if what != "netexec":
        return None
    if page == "":
        return 200, text, f"NOW: {now_s:.0f}".encode()
    if page.lower() == "hostname":
        return 200, text, name.encode()
    if page == "echo":
        code = values.get("code", "200")
        return int(code) if code in _CODES else 200, text, values.get("msg", "").encode()
    if page in ("healthz", "readyz"):
        return 200, text, b""
    return 404, text, b"404 page not found\n"


_MOST_NOTES, _LONGEST_NOTE = 100, 10_000
_CODES = frozenset(str(code) for code in range(200, 600))
