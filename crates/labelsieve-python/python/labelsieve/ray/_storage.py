"""Files wherever they are: a local path, or a URL of any file system that fsspec knows (``s3://``, ``gs://``, ``file://``).

What is written appears under its name whole or not at all: object stores put a file in one piece; elsewhere it is written
under another name and renamed.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import IO, Any, Optional

from .._files import Path
from ._scratch import scratch

#: Object stores, in which a file that was not put to its end does not exist.
_PUT_WHOLE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "r2", "oss", "cos"}
#: Packages that some of them need.
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs"}
#: Where local copies of this process come from: messages name what the user gave.
FETCHED: dict[str, str] = {}


@dataclass(frozen=True)
class Storage:
    """Opens, lists, fetches and puts files. ``options`` go to fsspec: endpoint, keys and so on."""

    options: dict[str, Any] = field(default_factory=dict)

    def open(self, path: str) -> IO[bytes]:
        """A file to read, which can be read from any place."""
        if is_local(path):
            return open(path, "rb")
        opened: IO[bytes] = self._fs(path).open(path, "rb")
        return opened

    def exists(self, path: str) -> bool:
        return os.path.exists(path) if is_local(path) else bool(self._fs(path).exists(path))

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path) if is_local(path) else bool(self._fs(path).isdir(path))

    def size(self, path: str) -> int:
        return os.path.getsize(path) if is_local(path) else int(self._fs(path).size(path))

    def names(self, folder: str) -> list[str]:
        """Names of files right below a folder, in order; none if there is no such folder."""
        if is_local(folder):
            return sorted(entry.name for entry in os.scandir(folder) if entry.is_file()) if os.path.isdir(folder) else []
        try:
            found = self._fs(folder).ls(folder, detail=True)
        except FileNotFoundError:
            return []
        return sorted(posixpath.basename(entry["name"]) for entry in found if entry["type"] == "file")

    def files_below(self, folder: str) -> list[str]:
        """All files below a folder, as paths relative to it, in order."""
        if is_local(folder):
            found = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
            return sorted(os.path.relpath(path, folder) for path in found)
        fs = self._fs(folder)
        root = fs._strip_protocol(folder).rstrip("/") + "/"
        return sorted(path[len(root) :] for path in fs.find(folder))

    def expand(self, path: str) -> list[str]:
        """The files and folders that a pattern stands for, in order; the path itself if it is none or exists as it is."""
        if not any(sign in path for sign in "*?["):
            return [path]
        if is_local(path):
            import glob

            found = [path] if os.path.exists(path) else sorted(glob.glob(path))
        else:
            scheme = path.split("://", 1)[0]
            found = sorted(f"{scheme}://{name}" for name in self._fs(path).glob(path))
        if not found:
            raise FileNotFoundError(f"no file matches `{path}`")
        return found

    def identity(self, path: str) -> Any:
        """A value that changes when a file, or one below a folder, is replaced: its name, its size and its ETag or time of change."""
        if self.is_folder(path):
            return [[name, self._version(join(path, name))] for name in self.files_below(path)]
        return [basename(path), self._version(path)]

    def fetch(self, path: str, folder: str) -> str:
        """A local path of a file or folder: itself, or a copy below ``folder`` with the same name."""
        if is_local(path):
            return path
        target = os.path.join(folder, basename(path))
        FETCHED[target] = path
        if self.is_folder(path):
            for name in self.files_below(path):
                os.makedirs(os.path.dirname(os.path.join(target, name)), exist_ok=True)
                self._fs(path).get_file(join(path, name), os.path.join(target, name))
        else:
            os.makedirs(folder, exist_ok=True)
            self._fs(path).get_file(path, target)
        return target

    def put(self, local: str, path: str) -> None:
        """A local file under its final name, whole or not at all."""
        hidden = f"{path}.tmp-{uuid.uuid4().hex[:12]}"
        if is_local(path):
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            try:
                shutil.copyfile(local, hidden)
                with open(hidden, "rb") as file:
                    os.fsync(file.fileno())
                os.replace(hidden, path)
            finally:
                if os.path.exists(hidden):
                    os.remove(hidden)
            return
        fs = self._fs(path)
        if scheme_of(path) in _PUT_WHOLE:
            fs.put_file(local, path)
            return
        fs.makedirs(posixpath.dirname(path), exist_ok=True)
        try:
            fs.put_file(local, hidden)
            fs.mv(hidden, path)
        finally:
            if fs.exists(hidden):
                fs.rm(hidden)

    def put_text(self, text: str, path: str) -> None:
        """A short text under its final name, whole or not at all."""
        with scratch() as folder:
            local = os.path.join(folder, basename(path))
            with open(local, "w", encoding="utf-8") as file:
                file.write(text)
            self.put(local, path)

    def read_text(self, path: str) -> str:
        with self.open(path) as file:
            return file.read().decode("utf-8")

    def remove(self, path: str) -> None:
        """A file, if it is there."""
        if self.exists(path):
            os.remove(path) if is_local(path) else self._fs(path).rm_file(path)

    def remove_folder(self, folder: str) -> None:
        """A folder with all that is in it, if it is there."""
        if is_local(folder):
            shutil.rmtree(folder, ignore_errors=True)
        elif self.files_below(folder):
            self._fs(folder).rm(folder, recursive=True)

    def _version(self, path: str) -> list[Any]:
        if is_local(path):
            found = os.stat(path)
            return [found.st_size, found.st_mtime_ns]
        info = self._fs(path).info(path)
        changed = next((info[key] for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created") if info.get(key)), "")
        return [info.get("size"), str(changed)]

    def _fs(self, path: str) -> Any:
        try:
            import fsspec

            # What other machines have put there meanwhile counts, so listings are not kept.
            return _Named(fsspec.filesystem(scheme_of(path), use_listings_cache=False, **self.options), path)
        except ImportError as error:
            package = _PACKAGES.get(scheme_of(path), "fsspec")
            raise ImportError(f"`{path}`: {error}\nhint: pip install {package}, on every node") from error
        except ValueError as error:
            raise ValueError(f"`{path}`: {error}") from error


class _Named:
    """A file system whose errors are those of Python, and say what they are about."""

    def __init__(self, fs: Any, path: str) -> None:
        self.fs = fs
        self.path = path

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.fs, name)

        def called(*arguments: Any, **options: Any) -> Any:
            try:
                return method(*arguments, **options)
            except (OSError, ValueError):
                raise
            except Exception as error:
                raise OSError(f"cannot reach `{self.path}`: {error}") from None

        return called


def normalized(path: Path) -> str:
    """A URL as it is; a path, or a URL of one, as an absolute path, for processes that work in another folder."""
    text = os.fspath(path)
    if text == "-":
        raise ValueError("expected a file, found `-`\nhint: workers on other machines have no stdin or stdout of yours")
    if scheme_of(text) in ("file", "local"):
        text = text.split("://", 1)[1]
    return os.path.abspath(text) if is_local(text) else text


def in_words(message: str) -> str:
    """A message with local copies called what they are copies of."""
    for local in sorted(FETCHED, key=len, reverse=True):
        message = message.replace(local, FETCHED[local])
    return message


def scheme_of(path: str) -> str:
    """``s3`` of ``s3://bucket/key``; nothing of a path."""
    return path.split("://", 1)[0].lower() if "://" in path else ""


def is_local(path: str) -> bool:
    return not scheme_of(path)


def join(folder: str, *names: str) -> str:
    return os.path.join(folder, *names) if is_local(folder) else posixpath.join(folder.rstrip("/"), *names)


def basename(path: str) -> str:
    return posixpath.basename(path.rstrip("/")) if not is_local(path) else os.path.basename(os.path.normpath(path))


def without_ending(path: str) -> str:
    """``photos/00000`` of ``photos/00000.tar``."""
    return path[: -len(ending(path)) - 1] if ending(path) else path


def ending(path: str) -> str:
    """``tar`` of ``photos/00000.tar``."""
    name = basename(path)
    return name.rsplit(".", 1)[1].lower() if "." in name else ""


def all_identities(storage: Storage, paths: Iterable[Optional[str]]) -> list[Any]:
    """The identity of each input, or nothing where there is none."""
    return [None if path is None else storage.identity(path) for path in paths]
