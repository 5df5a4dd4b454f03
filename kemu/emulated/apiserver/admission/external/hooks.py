"""Admission hooks: functions in Python in the place of webhooks, for scenarios.

    def no_latest(review):
        for container in review.object["spec"]["containers"]:
            if container["image"].endswith(":latest"):
                review.deny(f"container {container['name']} has no fixed version")

The function is given a :class:`Review`. It refuses by :meth:`Review.deny`, and changes the object where its hook may.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from google.protobuf.message import Message

from kemu.emulated.apiserver.admission.external import reviews
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import admission_registration
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.validation.extensions import admission_registration as admission_registration_checks
from kemu.errors import Cause, SimulationError
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1
from kemu.runtime import user_code
from kemu.runtime.env import Random

_DENIED = 403


class Review:
    """What a hook is asked. Its mappings are copies of its own."""

    def __init__(self, asked: Mapping[str, Any], random: Random) -> None:
        self.operation: str = asked["operation"]
        """``CREATE``, ``UPDATE`` or ``DELETE``."""
        self.kind: Mapping[str, str] = asked["kind"]
        """``group``, ``version`` and ``kind`` of the object."""
        self.resource: Mapping[str, str] = asked["resource"]
        """``group``, ``version`` and ``resource``, the plural."""
        self.subresource: str = asked.get("subResource", "")
        self.namespace: str = asked.get("namespace", "")
        self.name: str = asked.get("name", "")
        """Empty while a generated name is not chosen yet."""
        self.user: Mapping[str, Any] = asked["userInfo"]
        """``username`` and ``groups``."""
        self.object: Any = copy.deepcopy(asked["object"])
        """As it is to be stored, as JSON; None for a DELETE. A hook with ``mutates`` changes it in place."""
        self.old_object: Any = copy.deepcopy(asked["oldObject"])
        """As it is; None for a CREATE."""
        self.dry_run: bool = asked["dryRun"]
        self.options: Mapping[str, Any] = copy.deepcopy(asked["options"] or {})
        """``CreateOptions``, ``UpdateOptions``, ``PatchOptions`` or ``DeleteOptions``."""
        self.random = random
        """For draws that every run with the same seed repeats."""
        self._answer = reviews.Answer(allowed=True)

    def deny(self, message: str = "", *, code: int = _DENIED, reason: str = "") -> None:
        """Refuse the request. ``code``: the HTTP status, from 400 on."""
        status: dict[str, Any] = {"message": str(message), "code": int(code)}
        if reason:
            status["reason"] = str(reason)
        self._answer.allowed, self._answer.status = False, status

    def warn(self, text: str) -> None:
        """Say something to the client, whatever is decided."""
        self._answer.warnings.append(str(text))


class Hooks:
    """The functions, by the names of their hooks."""

    def __init__(self, settings: Sequence[Mapping[str, Any]], random: Callable[[str], Random]) -> None:
        """``settings``: of each its ``name``, ``hook`` (``module:function``), and, unless it stands in for a webhook of
        that name, the fields of a webhook. ``random``: a stream by name. Raises ImportError and AttributeError."""
        self._functions: dict[str, Callable[[Review], object]] = {}
        self._random = {str(one["name"]): random(str(one["name"])) for one in settings}
        self.standalone: list[v1.MutatingWebhook | v1.ValidatingWebhook] = []
        """Those that stand in for no webhook, as webhooks."""
        for one in settings:
            name = str(one["name"])
            self._functions[name] = user_code.load(str(one["hook"]))
            if one.get("rules"):
                self.standalone.append(webhook_of(one))

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def answer(self, name: str, asked: Mapping[str, Any], *, mutating: bool) -> reviews.Answer:
        """Raises what the function raises, which ends the run, and SimulationError for what a hook may not do."""
        review = Review(asked, self._random[name])
        returned = self._functions[name](review)
        if returned is not None:
            raise SimulationError(
                f"admission hook {name} returned {returned!r}: it says review.deny(…), or changes review.object"
            )
        answer = review._answer
        if review.object != asked["object"] and answer.allowed:
            if not mutating:
                raise SimulationError(f"admission hook {name} has changed the object: that takes mutates: true")
            if asked["object"] is None or not isinstance(review.object, dict):
                raise SimulationError(f"admission hook {name} made {review.object!r} of the object")
            answer.changed = cast(dict[str, Any], _plain(name, review.object))
        return answer


def webhook_of(settings: Mapping[str, Any]) -> v1.MutatingWebhook | v1.ValidatingWebhook:
    """The webhook that a hook of its own is; its client is never asked. Raises ConversionError."""
    kind: type[Message] = v1.MutatingWebhook if settings.get("mutates") else v1.ValidatingWebhook
    fields = {key: value for key, value in settings.items() if key not in ("hook", "mutates")}
    webhook: Any = convert.from_json(kind, {"sideEffects": "None", "admissionReviewVersions": ["v1"], **fields})
    admission_registration.default_webhook(webhook)
    return webhook  # type: ignore[no-any-return]


def problems(settings: Mapping[str, Any]) -> list[str]:
    """What is wrong with the hook, but for its function."""
    if not settings.get("rules"):
        more = [key for key in settings if key not in ("name", "hook", "mutates", "rules")]
        return [f"{key} takes rules: without them the hook stands for a webhook, which has its own" for key in more]
    try:
        webhook = webhook_of(settings)
    except convert.ConversionError as error:
        return [str(problem) for problem in error.problems]
    found: list[Cause] = []
    admission_registration_checks.check_hook(webhook, found)
    return [f"{cause.field}: {cause.message}" for cause in found]


def _plain(name: str, value: Json) -> Json:
    """The same, of JSON alone."""
    if isinstance(value, dict):
        return {str(key): _plain(name, one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(name, one) for one in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise SimulationError(f"admission hook {name} put {value!r} into the object, which is no JSON")
