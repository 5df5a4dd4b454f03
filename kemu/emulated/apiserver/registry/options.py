"""What a request asks beside its object: the options of lists, watches and writes, checked as Kubernetes checks them.

``ValidateListOptions`` of ``apimachinery/pkg/apis/meta/internalversion/validation``, and ``ValidateCreateOptions`` and
its like of ``meta/v1/validation``.
"""

from __future__ import annotations

from collections.abc import Sequence

from kemu import errors as kemu_errors
from kemu.emulated.objects.validation import causes
from kemu.errors import Cause
from kemu.messages.v1 import api_pb2

EXACT, NOT_OLDER_THAN = "Exact", "NotOlderThan"
STRICT, WARN, IGNORE = "Strict", "Warn", "Ignore"
LARGEST_VERSION = 2**64 - 1
LONGEST_MANAGER = 128
_MATCH = "resourceVersionMatch"


def check_list(request: api_pb2.ListRequest) -> None:
    """Raises :class:`kemu.errors.Invalid`."""
    match = request.resource_version_match
    found: list[Cause] = []
    if match:
        if not request.resource_version:
            found.append(causes.forbidden(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"))
        if getattr(request, "continue"):
            found.append(causes.forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER_THAN):
            found.append(causes.not_supported(_MATCH, match, (EXACT, NOT_OLDER_THAN, "")))
        if match == EXACT and request.resource_version == "0":
            found.append(causes.forbidden(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"'))
    if request.HasField("send_initial_events"):
        found.append(causes.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if found:
        raise causes.error_of_options("ListOptions", found)


def check_watch(request: api_pb2.WatchCreate, continues: bool = False) -> None:
    """``continues``: it has a token that only lists may have. Raises :class:`kemu.errors.Invalid`."""
    match, is_said = request.resource_version_match, request.HasField("send_initial_events")
    if not match and not is_said and continues and request.resource_version in ("", "0"):
        # Such a watch begins with the state, as if it had asked for that (``SetListOptionsDefaults``).
        match, is_said = NOT_OLDER_THAN, True
    if not match and not is_said:
        return
    found: list[Cause] = []
    if is_said and match != NOT_OLDER_THAN:
        why = f"sendInitialEvents requires setting {_MATCH} to {NOT_OLDER_THAN}"
        found.append(causes.forbidden(_MATCH, why))
    if match and not is_said:
        why = f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
        found.append(causes.forbidden(_MATCH, why))
    if match and match != NOT_OLDER_THAN:
        found.append(causes.not_supported(_MATCH, match, (NOT_OLDER_THAN,)))
    if match and continues:
        found.append(causes.forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
    if found:
        raise causes.error_of_options("ListOptions", found)


def check_patch(request: api_pb2.PatchRequest) -> None:
    """Raises :class:`kemu.errors.Invalid`."""
    found: list[Cause] = []
    if request.type == api_pb2.PatchRequest.APPLY:
        if not request.options.field_manager:
            found.append(causes.required("fieldManager", "is required for apply patch"))
    elif request.HasField("force"):
        found.append(causes.forbidden("force", "may not be specified for non-apply patch"))
    _check_write("PatchOptions", request.options, found)


def check_write(kind: str, request: api_pb2.WriteOptions) -> None:
    """``kind``: ``CreateOptions`` or ``UpdateOptions``. Raises :class:`kemu.errors.Invalid`."""
    _check_write(kind, request, [])


def _check_write(kind: str, request: api_pb2.WriteOptions, found: list[Cause]) -> None:
    found += _check_manager(request.field_manager)
    found += causes.check_dry_run(request.dry_run)
    if request.field_validation not in ("", IGNORE, STRICT, WARN):
        known = ("", IGNORE, STRICT, WARN)
        found.append(causes.not_supported("fieldValidation", request.field_validation, known))
    if found:
        raise causes.error_of_options(kind, found)


def check_dry_run(kind: str, values: Sequence[str]) -> bool:
    """Whether nothing is to be written. Raises :class:`kemu.errors.Invalid`."""
    if not values:
        return False
    found = causes.check_dry_run(values)
    if found:
        raise causes.error_of_options(kind, found)
    return True


def _check_manager(name: str) -> list[Cause]:
    found = []
    if len(name.encode()) > LONGEST_MANAGER:
        found.append(causes.too_long("fieldManager", LONGEST_MANAGER))
    position = 0
    for letter in name:
        if not letter.isprintable():
            why = f"invalid character U+{ord(letter):04X} (at position {position})"
            found.append(causes.invalid("fieldManager", name, why))
        position += len(letter.encode(errors="surrogatepass"))
    return found


def version(text: str) -> int | None:
    """A resource version: None for "". Raises ValueError with the text of Go's ``strconv.ParseUint``."""
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        why = "invalid syntax"
    elif int(text[:21]) > LARGEST_VERSION:
        why = "value out of range"
    else:
        return int(text)
    raise ValueError(f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}')


def version_of_list(text: str) -> int | None:
    """Raises :class:`kemu.errors.BadRequest`."""
    try:
        return version(text)
    except ValueError as error:
        raise kemu_errors.BadRequest(f"invalid resource version: {error}") from None


def version_of_object(text: str) -> int | None:
    """What the metadata of an update state. Raises :class:`kemu.errors.ApiError`."""
    try:
        return version(text)
    except ValueError as error:
        raise kemu_errors.ApiError(str(error).partition(f'"{text}": ')[2]) from None


def version_of_watch(text: str) -> int | None:
    """Raises :class:`kemu.errors.ApiError`: code 500 and no reason, as kube-apiserver does."""
    try:
        return version(text)
    except ValueError as error:
        raise kemu_errors.ApiError(str(error)) from None
