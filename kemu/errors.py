"""The exceptions of kemu, all in one tree.

KemuError
├── ApiError             a request that the API server refused, with the Kubernetes reason
│   ├── BadRequest  Unauthorized  Invalid  Forbidden  NotFound  AlreadyExists  Conflict  Gone
│   ├── NotAcceptable  UnsupportedMediaType  RequestEntityTooLarge
│   ├── ServiceUnavailable (ConnectionLost, OutcomeUnknown)
│   ├── Denied           by admission from outside
│   └── TooManyRequests  ServerTimeout  InternalError  MethodNotAllowed  NoSpace
├── StoreError           Compacted, FutureRevision, JournalCorrupt
├── UsageError           a command line with a mistake
├── ScenarioError        a scenario with mistakes, all of them, each with its place
├── FieldError           one wrong field of a configuration, with its path and a suggestion
├── RunLogError          a run folder or run log that cannot be read
└── SimulationError      Deadlock, Livelock, Nondeterminism, Divergence, InfrastructureError,
                         ActorFailed (UserCodeFailed, ActorCrashed)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


class KemuError(Exception):
    """Base of all errors that kemu raises on purpose."""


@dataclass(frozen=True)
class Cause:
    """Why one field was refused: as ``Status.details.causes`` in Kubernetes."""

    field: str
    """Path of the field, e.g. ``spec.containers[0].resources.requests[cpu]``."""
    reason: str
    """``FieldValueInvalid``, ``FieldValueRequired``, ``FieldValueNotSupported``, ``FieldValueDuplicate``, …"""
    message: str


class ApiError(KemuError):
    """A request was refused. ``reason`` and ``code`` are those of ``metav1.Status``."""

    reason: ClassVar[str] = "Unknown"
    code: ClassVar[int] = 500
    """HTTP status code."""
    grpc_code: ClassVar[str] = "UNKNOWN"
    """Name of the ``grpc.StatusCode`` member."""

    def __init__(
        self, message: str, *, kind: str = "", name: str = "", causes: Sequence[Cause] = (), retry_after_s: int = 0
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.name = name
        self.causes = tuple(causes)
        self.retry_after_s = retry_after_s
        """Not 0: nothing was done, and the same request may be sent again after so many seconds (Retry-After)."""
        self.warnings: Sequence[str] = ()
        """For people, as in the Warning headers of Kubernetes."""


class NoSpace(ApiError):
    """The store has no room left and refuses every write, until there is room. The API server passes that on in
    etcd's words, with no reason of its own."""

    MESSAGE = "etcdserver: mvcc: database space exceeded"


class BadRequest(ApiError):
    reason, code, grpc_code = "BadRequest", 400, "INVALID_ARGUMENT"


class Unauthorized(ApiError):
    reason, code, grpc_code = "Unauthorized", 401, "UNAUTHENTICATED"


class Forbidden(ApiError):
    reason, code, grpc_code = "Forbidden", 403, "PERMISSION_DENIED"


class NotFound(ApiError):
    reason, code, grpc_code = "NotFound", 404, "NOT_FOUND"


class MethodNotAllowed(ApiError):
    reason, code, grpc_code = "MethodNotAllowed", 405, "UNIMPLEMENTED"


class NotAcceptable(ApiError):
    reason, code, grpc_code = "NotAcceptable", 406, "INVALID_ARGUMENT"


class AlreadyExists(ApiError):
    reason, code, grpc_code = "AlreadyExists", 409, "ALREADY_EXISTS"


class Conflict(ApiError):
    reason, code, grpc_code = "Conflict", 409, "ABORTED"


class Gone(ApiError):
    """The requested revision is too old (reason ``Expired``): list again."""

    reason, code, grpc_code = "Expired", 410, "OUT_OF_RANGE"

    continue_token = ""
    """Continue token of a list in pages: gives the rest of it as it is now, which does not fit to the pages before."""


class RequestEntityTooLarge(ApiError):
    reason, code, grpc_code = "RequestEntityTooLarge", 413, "RESOURCE_EXHAUSTED"


class UnsupportedMediaType(ApiError):
    reason, code, grpc_code = "UnsupportedMediaType", 415, "INVALID_ARGUMENT"


class Invalid(ApiError):
    reason, code, grpc_code = "Invalid", 422, "INVALID_ARGUMENT"


class TooManyRequests(ApiError):
    reason, code, grpc_code = "TooManyRequests", 429, "RESOURCE_EXHAUSTED"


class InternalError(ApiError):
    reason, code, grpc_code = "InternalError", 500, "INTERNAL"


class ServiceUnavailable(ApiError):
    """The server or its store cannot be reached: the outcome of the request is unknown."""

    reason, code, grpc_code = "ServiceUnavailable", 503, "UNAVAILABLE"


class OutcomeUnknown(ServiceUnavailable):
    """The store did not answer a write, or not in time: it may have been carried out. As in kube-apiserver the status
    has code 500 and no reason of its own, and only its message tells it."""

    reason, code, grpc_code = ApiError.reason, ApiError.code, ApiError.grpc_code

    TIMED_OUT = "etcdserver: request timed out"
    _BEGINNINGS = ("rpc error: code = ", TIMED_OUT)

    @classmethod
    def is_told_by(cls, reason: str, message: str) -> bool:
        """Whether a refusal with this reason and message is one."""
        return reason == cls.reason and message.startswith(cls._BEGINNINGS)


class ConnectionLost(ServiceUnavailable):
    """The connection to the API server broke; what became of the request is not known. The next one dials at once."""


class ConnectionRefused(ConnectionLost):
    """Nothing listens where the API server should: the request was not sent."""


class ServerTimeout(ApiError):
    reason, code, grpc_code = "Timeout", 504, "DEADLINE_EXCEEDED"


API_ERRORS: dict[str, type[ApiError]] = {
    cls.reason: cls
    for cls in (
        BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable, AlreadyExists, Conflict, Gone,
        RequestEntityTooLarge, UnsupportedMediaType, Invalid, TooManyRequests, InternalError, ServiceUnavailable,
        ServerTimeout,
    )
}  # fmt: skip
"""By Kubernetes reason."""


class Denied(ApiError):
    """Admission from outside has refused the request, with a ``metav1.Status`` of its own."""

    def __init__(self, message: str, code: int, reason: str, details: Mapping[str, Any]) -> None:
        after = details.get("retryAfterSeconds")
        super().__init__(message, retry_after_s=after if isinstance(after, int) else 0)
        self.details = details
        """``StatusDetails`` as JSON."""
        names = {"reason": reason or ApiError.reason, "code": code, "grpc_code": _GRPC_CODES.get(code, "UNKNOWN")}
        self.__dict__.update(names)


_GRPC_CODES = {error.code: error.grpc_code for error in reversed(API_ERRORS.values())}


class StoreError(KemuError):
    """The store refused."""


class Compacted(StoreError):
    """The required revision has been compacted."""

    def __init__(self, compact_revision: int) -> None:
        super().__init__("etcdserver: mvcc: required revision has been compacted")
        self.compact_revision = compact_revision


class FutureRevision(StoreError):
    """The required revision is a future revision."""

    def __init__(self) -> None:
        super().__init__("etcdserver: mvcc: required revision is a future revision")


class JournalCorrupt(StoreError):
    """A journal holds bytes that no crash can explain."""

    def __init__(self, file: str, offset: int, what: str) -> None:
        super().__init__(f"{file}: offset {offset}: {what}")
        self.file = file
        self.offset = offset
        self.what = what


@dataclass(frozen=True)
class Problem:
    """One mistake in an input file."""

    file: str
    line: int
    """From 1."""
    column: int
    """From 1."""
    path: str
    """Where in the document, e.g. ``spec.nodes[0].taints``."""
    message: str
    suggestion: str = ""

    def __str__(self) -> str:
        return self._told("")

    def as_warning(self) -> str:
        return self._told("warning: ")

    def _told(self, what: str) -> str:
        hint = f" ({self.suggestion})" if self.suggestion else ""
        where = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}:{self.column}: {what}{where}{self.message}{hint}"


class UsageError(KemuError):
    """A command line with a mistake."""

    def __init__(self, message: str, command: str, usage: str) -> None:
        super().__init__(f"{command}: {message}")
        self.usage = usage
        """How the command is called."""


class ScenarioError(KemuError):
    """A scenario with mistakes; ``problems`` holds all of them in the order of the file."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class FieldError(KemuError, ValueError):
    """One field of a configuration is wrong. ``path`` leads to it, ``suggestion`` may name what was meant."""

    def __init__(self, path: str, message: str, suggestion: str = "") -> None:
        hint = f" ({suggestion})" if suggestion else ""
        super().__init__(f"{path}: {message}{hint}")
        self.path = path
        self.message = message
        self.suggestion = suggestion


class LogCutWarning(UserWarning):
    """A run log is cut off, as when its process was killed or its disk was full. The text says where, and how
    many bytes are left out; what is whole can be read."""


class RunLogError(KemuError):
    """A run folder or run log cannot be read; the text says which file and where."""


class SimulationError(KemuError):
    """The run itself went wrong, not the cluster in it."""


class Deadlock(SimulationError):
    """Nothing is ready, no timer is set, and the run is not over; the text lists who waits where."""


class Livelock(SimulationError):
    """Too many steps within one instant of virtual time."""


class Nondeterminism(SimulationError):
    """Something tried to reach outside the simulated world: a thread, a socket, the wall clock."""


class Divergence(SimulationError):
    """A replay differs from its record."""


class ActorFailed(SimulationError):
    """An actor ended with an exception that was not handled."""


class ActorCrashed(ActorFailed):
    """An actor of kemu's own ended with an exception that was not raised on purpose: a bug of kemu's."""


class InfrastructureError(SimulationError):
    """What a run on Ray needs cannot be had, or is gone: Ray itself, a machine, a place for a cell."""

    lost_at_ns: int | None = None
    """Virtual time at which a run that was under way could not go on."""


class UserCodeFailed(ActorFailed):
    """Code that the user brought along (a plugin, an extender, a scheduler) raised, when it was loaded or when it ran.

    The text says where.
    """

    def __init__(
        self,
        message: str,
        file: str,
        line: int,
        function: str,
        plugin: str = "",
        extension_point: str = "",
        pod: str = "",
        node: str = "",
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        """From 1."""
        self.function = function
        """As Python qualifies it: ``FirstFit.run``."""
        self.plugin = plugin
        """A scheduler plugin's name, and what it was called for."""
        self.extension_point = extension_point
        self.pod = pod
        """namespace/name."""
        self.node = node
