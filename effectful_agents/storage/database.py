"""SQLite files that several threads, tasks and processes use at once.

Nothing here knows what is kept. A part of the package describes its tables by a `Schema`; several parts may share one
file. What a `Database` promises them: a block of `reading` or `writing` is one transaction; nobody ever sees that the
file was locked by somebody else; what goes wrong with the file is a `StorageError` that names it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator, Sequence

from effectful_agents.errors import OptionError, StorageError
from effectful_agents.runtime import can_wait, pause, wait
from effectful_agents.storage.stored import Damaged

__all__ = ["Database", "Schema"]


@dataclasses.dataclass(frozen=True)
class Schema:
    """The tables of one part of the package, and how the files of earlier versions get them.

    Attributes:
        part: The name of the part, unlike that of any other.
        steps: What was done to the tables since the first version, oldest first, each step as SQL statements. A file
            has as its version the number of steps that were done in it. A step that was released stays as it is.
    """

    part: str
    steps: Sequence[Sequence[str]]

    @property
    def version(self) -> int:
        """The version of a file in which every step was done."""
        return len(self.steps)


class Database:
    """An SQLite file.

    Threads, tasks and processes may use it at the same time, also those that were forked off a process which had it
    open. Whoever finds it taken waits, and in a call that is awaited other tasks go on meanwhile. A file that somebody
    removes is made anew.

    Args:
        path: The file; it is made, with the folders above it, where there is none.
        schemas: The tables that it has, or gets now.
        durable: Whether a transaction that has ended survives a loss of power as well as a crash of the process. It
            costs a flush of the disk for each.
        patience: Seconds to wait for others that use the file.

    Raises:
        OptionError: `path` names no file.
        StorageError: It cannot be written, is damaged, no SQLite database, or was written by a later version of the
            package. `reading` and `writing` raise it too.

    >>> import tempfile
    >>> notes = Schema("notes", [["CREATE TABLE notes (text TEXT NOT NULL)"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = Database(f"{folder}/notes.db", notes)
    ...     with database.writing() as connection:
    ...         _ = connection.execute("INSERT INTO notes VALUES (?)", ("Milk",))
    ...     with database.reading() as connection:
    ...         print(connection.execute("SELECT text FROM notes").fetchall())
    ...     database.close()
    [('Milk',)]
    """

    path: str
    """The file, with all folders."""

    def __init__(
        self, path: str | os.PathLike[str], *schemas: Schema, durable: bool = False, patience: float = 60.0
    ) -> None:
        self.path = _whole_path(path)
        self._schemas = schemas
        self._patience = patience
        self._pool = _Pool(self.path, lambda: _open(self.path, schemas, durable))
        weakref.finalize(self, self._pool.close)
        _make_folder(self.path)
        with self.writing():  # so that a file that cannot be written says so now, and not after the first call
            pass

    def reading(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """A transaction that sees the file as it is now, whatever others write meanwhile.

        The block runs statements and nothing else: it neither waits nor performs operations.
        """
        return self._transaction("BEGIN")

    def writing(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """A transaction that nobody else writes beside. It is undone if the block raises.

        As in `reading`, the block does nothing else. It may end the transaction before its own end, with
        `connection.commit()`, to do something that has to follow at once.
        """
        return self._transaction("BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close the connections that nobody uses; the next transaction opens another one."""
        self._pool.close()

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Generator[sqlite3.Connection]:
        with self._reported():
            connection = self._begun(begin)
            try:
                yield connection
                connection.commit()  # nothing where the block has done so
            finally:
                self._give_back(connection)

    def _begun(self, begin: str) -> sqlite3.Connection:
        waited, delay = 0.0, 0.001
        while True:
            connection = None
            try:
                connection = self._pool.take()
                connection.execute(begin)
                # It is this that fixes what a reader sees. Another process may have changed the tables meanwhile.
                _check_versions(connection, self._schemas, self.path)
                return connection
            except BaseException as error:
                self._give_back(connection)
                if not _is_busy(error) or waited >= self._patience:
                    raise
            # Without a connection: who waits here holds nothing that others, or a fork, would wait for.
            _wait(delay)
            waited, delay = waited + delay, min(2 * delay, _LONGEST_DELAY)

    def _give_back(self, connection: sqlite3.Connection | None) -> None:
        if connection is None:
            return
        try:
            if connection.in_transaction:
                connection.rollback()
        finally:
            self._pool.give_back(connection)

    @contextlib.contextmanager
    def _reported(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            told = _what_happened(error, self.path)
            if told is None:
                raise
            raise told from error


_LONGEST_DELAY = 0.05  # seconds
_BUSY_TIMEOUT = 10  # milliseconds
_IDLE = 4  # connections that are kept open though nobody uses them


class _Pool:
    """The open connections to a file. Each is used by one thread at a time."""

    def __init__(self, path: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self.path = path
        self.free = threading.Condition()
        self._connect = connect
        self._idle: list[tuple[sqlite3.Connection, tuple[int, int] | None]] = []
        self._used: dict[sqlite3.Connection, tuple[int, int] | None] = {}
        self._opening = 0
        with _forking:
            _pools.add(self)

    def take(self) -> sqlite3.Connection:
        """A connection to the file that has this path now."""
        here = _identity(self.path)
        with self.free:
            while self._idle:
                connection, file = self._idle.pop()
                if file is not None and file == here:
                    self._used[connection] = file
                    return connection
                connection.close()  # of a file that was removed or replaced
            self._opening += 1
        connection = None
        try:
            connection = self._connect()
            return connection
        finally:
            with self.free:
                self._opening -= 1
                if connection is not None:
                    self._used[connection] = _identity(self.path)
                self.free.notify_all()

    def give_back(self, connection: sqlite3.Connection) -> None:
        with self.free:
            file = self._used.pop(connection)
            if len(self._idle) < _IDLE:
                self._idle.append((connection, file))
            else:
                connection.close()
            self.free.notify_all()

    def close(self) -> None:
        with self.free:
            self.close_idle()

    def close_idle(self) -> None:
        """Close those that nobody uses; `free` is held."""
        while self._idle:
            self._idle.pop()[0].close()

    def is_unused(self) -> bool:
        return not (self._used or self._opening)


# A child that is forked off must not have, nor ever close, a connection of its parent: SQLite would mistake the locks
# of the one for those of the other. So there is none open at that moment; transactions are short, and waited for.
_forking = threading.Lock()
_pools: weakref.WeakSet[_Pool] = weakref.WeakSet()
_stopped: list[_Pool] = []


def _before_fork() -> None:
    _forking.acquire()
    for pool in list(_pools):
        pool.free.acquire()
        _stopped.append(pool)
        pool.free.wait_for(pool.is_unused, timeout=10)
        pool.close_idle()


def _after_fork() -> None:
    while _stopped:
        _stopped.pop().free.release()
    _forking.release()


if hasattr(os, "register_at_fork"):  # pragma: no branch - not on Windows
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _whole_path(path: str | os.PathLike[str]) -> str:
    name = os.fsdecode(path)
    if not name or name == ":memory:" or "\0" in name:
        raise OptionError(f"{name!r} names no file for a database; what is kept outlives the process, so it needs one.")
    return os.path.abspath(name)


def _make_folder(path: str) -> None:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as error:
        raise StorageError(f"the folder of the database `{path}` cannot be made: {error}.", path=path) from error


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _open(path: str, schemas: Sequence[Schema], durable: bool) -> sqlite3.Connection:
    # Transactions are begun and ended here, not by the module (`isolation_level`). SQLite itself waits only a moment:
    # in an event loop nothing else would go on.
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT / 1000, isolation_level=None, check_same_thread=False)
    try:
        # Readers and a writer do not wait for each other.
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":  # pragma: no cover - on file systems that cannot have it: a commit waits for readers there
            connection.execute("PRAGMA busy_timeout = 10000")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("PRAGMA foreign_keys = ON")
        # What is deleted, or written anew elsewhere in the file, is overwritten, and not only given free.
        connection.execute("PRAGMA secure_delete = ON")
        _bring_up_to_date(connection, schemas, path)
    except BaseException:
        connection.close()
        raise
    return connection


# Of every part that has tables in the file, how many steps were done.
_VERSIONS = (
    "CREATE TABLE IF NOT EXISTS effectful_agents (part TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID"
)


def _bring_up_to_date(connection: sqlite3.Connection, schemas: Sequence[Schema], path: str) -> None:
    has_versions = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'effectful_agents'").fetchone()
    if has_versions and not any(_steps_missing(connection, schema, path) for schema in schemas):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_VERSIONS)
        for schema in schemas:
            missing = _steps_missing(connection, schema, path)
            for step in schema.steps[schema.version - missing :]:
                for statement in step:
                    connection.execute(statement)
            connection.execute("REPLACE INTO effectful_agents VALUES (?, ?)", (schema.part, schema.version))
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _check_versions(connection: sqlite3.Connection, schemas: Sequence[Schema], path: str) -> None:
    for schema in schemas:
        if _steps_missing(connection, schema, path):
            raise StorageError(
                f"the tables `{schema.part}` of the database `{path}` became older while it was in use: an older file "
                "was copied over it. Stop the program first.",
                path=path,
            )


def _steps_missing(connection: sqlite3.Connection, schema: Schema, path: str) -> int:
    found = connection.execute("SELECT version FROM effectful_agents WHERE part = ?", (schema.part,)).fetchone()
    version = found[0] if found else 0
    if not isinstance(version, int):
        raise Damaged(f"the tables `{schema.part}` have {version!r} as their version")
    if version > schema.version:
        raise StorageError(
            f"the tables `{schema.part}` of the database `{path}` have version {version}, and this effectful-agents "
            f"knows up to version {schema.version}: a newer one has written them. Install that one, or use another "
            "file.",
            path=path,
        )
    return schema.version - version


def _wait(seconds: float) -> None:
    if can_wait():
        import anyio  # noqa: PLC0415 - loads asyncio

        wait(anyio.sleep(seconds))
    else:
        pause(seconds)


def _primary(error: BaseException) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and isinstance(error, sqlite3.OperationalError | UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT  # a text or a table that is no UTF-8, which the module finds and not SQLite
    return None if code is None else code & 0xFF


def _is_busy(error: BaseException) -> bool:
    return _primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _what_happened(error: Exception, path: str) -> StorageError | None:
    """The error in our words; None for one that says something about the code and not about the file."""
    code = _primary(error)
    if code is None:
        return None
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        told = (
            f"the database `{path}` is damaged, or no SQLite database ({error}). Put a copy of it in its place, or "
            f"move it away to begin a new one; `sqlite3 {path} .recover` writes out what can still be read."
        )
    elif code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        told = (
            f"the database `{path}` cannot be written ({error}). It has to be a file in a folder that may be written."
        )
    elif _is_busy(error):
        told = f"the database `{path}` was in use for too long: another program keeps a transaction in it open."
    else:
        told = f"the database `{path}` could not be used: {error}."
    return StorageError(told, path=path, retryable=_is_busy(error))
