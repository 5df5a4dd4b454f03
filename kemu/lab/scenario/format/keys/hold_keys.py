"""The keys of holds. :mod:`kemu.lab.scenario.loading.holds` makes holds of what they hold, and writes them."""

from __future__ import annotations

from kemu.emulated.settings.shapes import NAME, POD_REFERENCE, POSITIVE_DURATION, Key, Record, Text, Whole
from kemu.runtime.holds import HAPPENINGS

_ACTOR = Text(
    r"(store|user|apiserver|scheduler|extender|kubelet|controller)[^\s]*",
    "an actor: store, user, apiserver/0, scheduler/<name>/<replica>, kubelet/<node>, controller/<name>",
)
_COUNT = Key(Whole(1), "Which of them, from 1.")

HOLD = Record(
    {
        "message": Key(
            Record(
                {
                    "from": Key(_ACTOR, "Who sends it.", required=True),
                    "to": Key(_ACTOR, "Who receives it.", required=True),
                    "event": Key(
                        Record(
                            {
                                "kind": Key(Text(), "The kind of object that it is about, such as Pod."),
                                "name": Key(Text(), "The object: name, or namespace/name."),
                                "what": Key(
                                    Text(), "Its verb, <verb>-answered, or of a watch what became of the object: bound."
                                ),
                                "count": _COUNT,
                            }
                        ),
                        "What the message is about.",
                        required=True,
                    ),
                }
            ),
            "The message that is kept back.",
            required=True,
        ),
        "until": Key(
            Record(
                {
                    "actor": Key(_ACTOR, "Whose event."),
                    "event": Key(
                        Record(
                            {
                                "what": Key(
                                    Text(),
                                    f"{', '.join(HAPPENINGS)}, or a kind of event of the run log.",
                                    required=True,
                                ),
                                "pod": Key(POD_REFERENCE, "Of which pod: name, or namespace/name."),
                                "node": Key(NAME, "Of which node."),
                                "count": _COUNT,
                            }
                        ),
                        "What has to happen first, after the message was sent.",
                        required=True,
                    ),
                }
            ),
            "The message is let go when this has happened.",
        ),
        "for": Key(POSITIVE_DURATION, "How long it is kept; beside until: at most so long, 10s by default."),
    }
)
