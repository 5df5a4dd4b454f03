"""The files that a simulated container sees: those of its own, and those of the volumes that it mounts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field

Store = MutableMapping[str, str | None]
"""Files by absolute path within it, ``/`` for its root; None: a folder."""

FOLDERS = ("/bin", "/dev", "/etc", "/home", "/opt", "/proc", "/root", "/run", "/tmp", "/usr", "/var")
"""Folders that every image has."""
MOST_BYTES = 1 << 20
"""Most bytes of all files of a container that are kept."""


class FilesError(Exception):
    """What the system says: ``No such file or directory``."""


class Unknown(Exception):
    """Nothing is known of what is there."""


@dataclass
class Mount:
    path: str
    store: Store | None
    """None: nobody knows what is in it."""
    read_only: bool = False
    unknown: frozenset[str] = frozenset()
    """Files in it whose contents are not known."""
    sub_path: str = ""
    """Which file or folder of the store is mounted; empty: all of it."""


@dataclass
class Files:
    own: Store = field(default_factory=dict)
    mounts: list[Mount] = field(default_factory=list)
    read_only: bool = False
    """Of its own files."""
    is_partial: bool = False
    """Its image has files of which nothing is known."""
    changed: Callable[[], None] = lambda: None
    """Told of each change."""

    def __post_init__(self) -> None:
        self.mounts.sort(key=lambda mount: -len(mount.path))
        for folder in FOLDERS:
            self.own.setdefault(folder, None)

    def _at(self, path: str) -> tuple[Mount, str]:
        for mount in self.mounts:
            if path == mount.path or path.startswith(mount.path.rstrip("/") + "/"):
                return mount, mount.sub_path + path[len(mount.path.rstrip("/")) :] or "/"
        return Mount("/", self.own, self.read_only), path

    def _store(self, path: str) -> tuple[Store, str]:
        mount, key = self._at(path)
        if mount.store is None or key in mount.unknown:
            raise Unknown(f"what is in {path if mount.store is not None else mount.path} is not known")
        return mount.store, key

    def _check_known(self, path: str) -> None:
        """Raises Unknown for what is not there, but may be in an image of which not all is known."""
        if self.is_partial and self._at(path)[0].store is self.own:
            raise Unknown(f"whether there is {path} in the image is not known")

    def is_folder(self, path: str) -> bool:
        store, key = self._store(path)
        if key == "/" or (key in store and store[key] is None):
            return True
        inside = key + "/"
        if any(one.startswith(inside) for one in store) or any(
            mount.path.startswith(path.rstrip("/") + "/") for mount in self.mounts
        ):
            return True
        if key not in store:
            self._check_known(path)
        return False

    def exists(self, path: str) -> bool:
        if path == "/dev/null":
            return True
        store, key = self._store(path)
        return key in store or self.is_folder(path)

    def read(self, path: str) -> str:
        """Raises FilesError, Unknown."""
        if path == "/dev/null":
            return ""
        store, key = self._store(path)
        found = store.get(key)
        if found is not None:
            return found
        raise FilesError("Is a directory" if self.exists(path) else "No such file or directory")

    def write(self, path: str, text: str, *, append: bool = False) -> None:
        if path in ("/dev/null", "/dev/termination-log"):
            return
        mount, key = self._at(path)
        if mount.read_only:
            raise FilesError("Read-only file system")
        store, key = self._store(path)
        if key == "/" or (key in store and store[key] is None):
            raise FilesError("Is a directory")
        parent = path.rpartition("/")[0] or "/"
        if not self.is_folder(parent):
            raise FilesError("No such file or directory")
        text = (store.get(key) or "") + text if append else text
        if sum(len(one or "") for one in store.values()) + len(text) > MOST_BYTES:
            raise FilesError("No space left on device")
        store[key] = text
        self.changed()

    def make_folder(self, path: str, *, parents: bool) -> None:
        if self.exists(path):
            if parents:
                return
            raise FilesError("File exists")
        if not parents and not self.is_folder(path.rpartition("/")[0] or "/"):
            raise FilesError("No such file or directory")
        if self._at(path)[0].read_only:
            raise FilesError("Read-only file system")
        store, key = self._store(path)
        store[key] = None
        self.changed()

    def remove(self, path: str) -> None:
        """With all that is in it."""
        if not self.exists(path):
            raise FilesError("No such file or directory")
        if self._at(path)[0].read_only:
            raise FilesError("Read-only file system")
        store, key = self._store(path)
        for one in [one for one in store if one == key or one.startswith(key.rstrip("/") + "/")]:
            del store[one]
        parent = key.rpartition("/")[0]
        if parent:
            store.setdefault(parent, None)
        self.changed()

    def names(self, path: str) -> list[str]:
        """What is in a folder. Raises FilesError."""
        if not self.is_folder(path):
            raise FilesError("No such file or directory")
        self._check_known(path)
        store, key = self._store(path)
        found = {name for name in _below(store, key) if name}
        if self._at(path)[0].path == "/":
            found.update(name for name in _below({mount.path: None for mount in self.mounts}, path) if name)
        return sorted(found)


def _below(store: Mapping[str, str | None], key: str) -> Iterator[str]:
    inside = key.rstrip("/") + "/"
    for one in store:
        if one.startswith(inside):
            yield one[len(inside) :].partition("/")[0]


def joined(folder: str, path: str) -> str:
    """The absolute path, without ``.`` and ``..``."""
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{folder}/{path}").split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)
