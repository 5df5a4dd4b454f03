"""The table of fault kinds: the keys of each, what it does, and which runtimes can do it.

This is the one place where a kind is registered. The scenario format takes its keys from here, the loader the patterns
to resolve, the runner the reason why a scenario cannot run on Ray, and ``scripts/gendocs`` the table in the documents.
What carries a kind out is registered by its name in ``kemu.runtime.sim.faults`` and in the Ray runtime.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any


class Form(enum.Enum):
    """How a parameter is written in a scenario, and what the runtimes get."""

    ACTORS = enum.auto()
    """Names or patterns of actors; resolved, a list of names."""
    SIDES = enum.auto()
    """Two of those; resolved, two lists of names."""
    NODES = enum.auto()
    """A node or a pattern; resolved, a list of the names of kubelets."""
    ZONE = enum.auto()
    """A zone; resolved, a list of the names of the kubelets of its nodes."""
    API_SERVERS = enum.auto()
    """As ACTORS, but of API servers only."""
    TIME = enum.auto()
    """A duration or a distribution of durations, in seconds."""
    SECONDS = enum.auto()
    """A duration, in seconds."""
    SIGNED_SECONDS = enum.auto()
    """The same; it may be negative."""
    NUMBER = enum.auto()
    SHARE = enum.auto()
    """More than 0 and at most 1, or a percentage."""
    SWITCH = enum.auto()
    BYTES = enum.auto()
    """A quantity of bytes; resolved, a float."""
    STEP = enum.auto()
    """A step of an actor's work: see STEPS."""
    PROCESSES = enum.auto()
    """Processes of a run on Ray or patterns of them, ``cell/store``; resolved, a list of names."""
    TEXT = enum.auto()
    TEXTS = enum.auto()
    """Texts or patterns of them; resolved, a list."""
    COUNT = enum.auto()
    """A whole number from 1."""
    CODE = enum.auto()
    """A status of HTTP: see CODES."""
    CHOICE = enum.auto()
    """One of the parameter's ``choices``."""
    RAYLETS = enum.auto()
    """As PROCESSES, but each stands for all processes of its node of the Ray cluster."""


CODES = (409, 410, 429, 500, 503, 504)
"""With which requests of clients can be refused."""

OF_PROCESSES = (Form.PROCESSES, Form.RAYLETS)
OF_ACTORS = (Form.ACTORS, Form.SIDES, Form.NODES, Form.ZONE, Form.API_SERVERS, *OF_PROCESSES)
"""Forms that hold patterns."""

CELL = "cell/"
"""Prefix of the processes that hold actors. Virtual time has a counterpart of them, but not of other processes: what
happens to a cell happens to its actors."""

STEPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "store": ("after-append", "after-fsync", "after-publish"),
        "scheduler": ("after-assume", "after-bind"),
        "kubelet": ("after-admission", "after-pull", "after-start"),
        "apiserver": ("after-commit",),
    }
)
"""Where a crash can be told to strike, by the first part of the actor's name."""


@dataclass(frozen=True)
class Parameter:
    """One key of a fault."""

    name: str
    form: Form
    doc: str
    required: bool = False
    alternative: bool = False
    """Exactly one of a kind's alternatives must stand."""
    default: bool | float | str | None = None
    """What the runtimes get where the scenario says nothing; None: nothing."""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effects:
    """What a fault does to what is under way. One phrase each; empty: nothing."""

    requests: str = ""
    """To unary requests whose answers are not there yet."""
    streams: str = ""
    """To streams that are open."""
    keepalives: str = ""
    timers: str = ""
    disks: str = ""


@dataclass(frozen=True)
class Kind:
    """One kind of fault."""

    name: str
    """Its key in a scenario."""
    doc: str
    """What happens, in one sentence."""
    parameters: tuple[Parameter, ...]
    effects: Effects
    lasts: bool = True
    """False: it is over in an instant, and takes no ``for``."""
    carried_out_by: str = ""
    """Actors carry it out themselves (``Env.on_fault``): those of this parameter, or with ``*`` all that can do it."""
    not_on_ray: str = ""
    """Why Ray cannot do it; empty: it can."""
    begins: str = ""
    """What a story says when it begins; ``{from}`` and so on stand for its parameters. Stories tell crashes by
    themselves, and several of one instant in one line."""
    ends: str = ""
    """And when it ends."""

    def parameter(self, name: str) -> Parameter:
        return next(one for one in self.parameters if one.name == name)


_NODE_OF_DRIVERS = Parameter("node", Form.NODES, "The node of the drivers, or a pattern.", required=True)
_FROM = Parameter("from", Form.ACTORS, "Who sends.", required=True)
_TO = Parameter("to", Form.ACTORS, "Who receives.", required=True)
_BETWEEN = Parameter("between", Form.SIDES, "Two sides, each an actor, a pattern or a list.", required=True)
_BELOW = Parameter(
    "belowGrpc",
    Form.SWITCH,
    "On Ray: done to the bytes between the cells of these actors, so that gRPC itself has to deal with it.",
)
_OF_KINDS = Parameter(
    "resource", Form.TEXTS, "Only watches of these kinds, by plurals or patterns: resourceslices, persistentvolume*."
)
_ACTOR = Parameter("actor", Form.ACTORS, "Who; a pattern such as kubelet/* picks one by the seed.", required=True)

OF_REQUESTS = (
    Parameter("agent", Form.TEXTS, "Of which programs: User-Agent up to the first space, or patterns: kubectl/*."),
    Parameter("user", Form.TEXTS, "Of which users."),
    Parameter("verb", Form.TEXTS, "Which of get, list, watch, create, update, patch, delete, deletecollection."),
    Parameter("resource", Form.TEXTS, "Plurals, with the subresource: pods, deployments/status, pods*."),
    Parameter("namespace", Form.TEXTS, "In which namespaces."),
    Parameter("name", Form.TEXTS, "Of which objects."),
    Parameter("nth", Form.COUNT, "From which of them on, counted since the fault began; it strikes times of them."),
    Parameter("times", Form.COUNT, "How many it strikes; with nth 1 by default, otherwise all while it lasts."),
    Parameter("probability", Form.SHARE, "By which chance it strikes each."),
)
"""Which requests of clients of ``kemu up``."""
CLIENT_FAULTS = (
    "refuse",
    "loseAnswers",
    "slowAnswers",
    "staleAnswers",
    "cutStreams",
    "delayEvents",
    "wrongBookmarks",
)
"""Kinds that strike requests of clients of ``kemu up``. The gateway carries them out."""

_ALL = (
    Kind(
        "crash",
        "An actor or a machine dies without a word; what it has fsynced survives.",
        (
            replace(_ACTOR, required=False, alternative=True),
            Parameter(
                "node",
                Form.NODES,
                "The machine of a node, with its kubelet and all its containers; or a pattern.",
                alternative=True,
            ),
            Parameter("zone", Form.ZONE, "All machines whose nodes are labelled with this zone.", alternative=True),
            Parameter("restart", Form.SWITCH, "Whether it comes back; true by default.", default=True),
            Parameter(
                "powerOff",
                Form.SWITCH,
                "Of machines: no connection is reset, and nobody refuses new ones; only keepalive tells.",
                default=False,
            ),
            Parameter(
                "step", Form.STEP, "Of an actor: it dies when it comes to this step next; for counts from then on."
            ),
        ),
        Effects(
            requests="end with UNAVAILABLE behind what the dead actor had sent; whether they were carried out is open",
            streams="break at the peers; the actor's own are gone",
            keepalives="none needed: the connections are reset",
            timers="of the actor never fire again",
            disks="keep what was fsynced; of what was written since, a beginning chosen by the seed",
        ),
    ),
    Kind(
        "terminate",
        "A scheduler or controller is told to end, as by SIGTERM: a leader gives its lease up. It is started again.",
        (_ACTOR,),
        Effects(
            requests="end with UNAVAILABLE when it has ended; whether they were carried out is open",
            streams="break when it has ended",
            keepalives="none needed: the connections are reset",
            timers="of the actor never fire again",
        ),
        lasts=False,
        carried_out_by="actor",
        begins="{actor} is told to end",
    ),
    Kind(
        "partition",
        "Messages between two sides are held back; connections that stay cut for too long break.",
        (
            replace(_BETWEEN, required=False, alternative=True),
            Parameter("zone", Form.ZONE, "Between the machines of this zone and everybody else.", alternative=True),
            Parameter(
                "oneWay", Form.SWITCH, "Only messages from the first side to the second are held back.", default=False
            ),
            _BELOW,
        ),
        Effects(
            requests="wait; they go on when it heals, or end with UNAVAILABLE when the connection breaks",
            streams="wait, likewise; nothing is lost in the middle of one",
            keepalives="get no answer: both ends break the connection after timing.keepaliveTimeout",
        ),
        begins="{between[0]} cannot reach {between[1]}",
        ends="{between[0]} and {between[1]} can talk again",
    ),
    Kind(
        "pause",
        "An actor stands still, as by SIGSTOP.",
        (_ACTOR,),
        Effects(
            requests="to it wait, and end with UNAVAILABLE when the connection breaks; its own answers pile up",
            streams="take messages until the flow-control window is full; they go on, or break by keepalive",
            keepalives="get no answer, though its kernel acknowledges what arrives: peers break the connection after "
            "timing.keepaliveTimeout, and it learns of that when it goes on",
            timers="that came due fire when it goes on",
        ),
        begins="{actor} stands still",
        ends="{actor} goes on",
    ),
    Kind(
        "kill",
        "A process of the run dies by SIGKILL; its supervisor starts it again.",
        (
            Parameter(
                "process",
                Form.PROCESSES,
                "A cell by its name (cell/store), raylet/0, gcs or etcd; or a pattern. In virtual time only cells.",
                alternative=True,
            ),
            Parameter(
                "clusterNode",
                Form.RAYLETS,
                "A node of the Ray cluster by its raylet (raylet/0), with all of its processes. Not in virtual time.",
                alternative=True,
            ),
        ),
        Effects(
            requests="end with UNAVAILABLE; whether they were carried out is open",
            streams="break",
            keepalives="none needed: the connections are reset",
            timers="of the actors in a cell never fire again",
            disks="keep what was written, as the machine goes on; in virtual time, what was fsynced",
        ),
        lasts=False,
        begins="{process}{clusterNode} is killed",
    ),
    Kind(
        "stop",
        "A process of the run stands still by SIGSTOP, and goes on by SIGCONT.",
        (
            Parameter(
                "process",
                Form.PROCESSES,
                "A cell by its name (cell/store), raylet/0, gcs or etcd; or a pattern. In virtual time only cells.",
                required=True,
            ),
        ),
        Effects(
            requests="to the actors in it wait; its own answers pile up in the kernel",
            streams="take messages until the flow-control window is full; they go on, or break by keepalive",
            keepalives="get no answer",
            timers="that came due fire when it goes on",
        ),
        begins="{process} is stopped",
        ends="{process} goes on",
    ),
    Kind(
        "delay",
        "Messages take longer, each by a time of its own; those of one stream stay in order.",
        (_FROM, _TO, Parameter("by", Form.TIME, "How much longer.", required=True), _OF_KINDS, _BELOW),
        Effects(
            requests="arrive later, or their answers do",
            streams="stay in order: a message waits for the one before it; with resource, events of other kinds do not",
            keepalives="are answered in time",
        ),
        begins="what {from} sends to {to} comes late",
        ends="what {from} sends to {to} comes in time again",
    ),
    Kind(
        "bandwidth",
        "A connection carries no more than so many bytes a second.",
        (_FROM, _TO, Parameter("bytesPerSecond", Form.BYTES, "Of each connection.", required=True), _BELOW),
        Effects(
            requests="queue behind what the connection has to carry before them",
            streams="queue, too; writers stop when the flow-control window is full",
            keepalives="are answered in time",
        ),
        begins="{from} can send {bytesPerSecond} bytes a second to {to}",
        ends="{from} can send as fast as it likes to {to} again",
    ),
    Kind(
        "drop",
        "Packets are lost: their connection stalls until they are sent again, and is reset if that takes too long.",
        (_FROM, _TO, Parameter("probability", Form.SHARE, "Of each packet.", required=True)),
        Effects(
            requests="wait for the retransmission, or end with UNAVAILABLE when the connection is reset",
            streams="stall as a whole; nothing is lost in the middle of one",
            keepalives="share the fate of the messages: too long a stall resets the connection",
        ),
        begins="packets from {from} to {to} are lost",
        ends="packets from {from} to {to} come through again",
    ),
    Kind(
        "duplicate",
        "A request whose outcome the client does not know yet is sent again; its first answer counts.",
        (
            _FROM,
            _TO,
            Parameter("probability", Form.SHARE, "Of each request.", required=True),
            Parameter("after", Form.TIME, "How much later it is sent again; 0s by default.", default=0.0),
        ),
        Effects(
            requests="reach the server twice, and it carries out both",
            streams="of requests in batches: a batch comes twice; other streams are not concerned",
        ),
        begins="requests of {from} to {to} come twice",
        ends="requests of {from} to {to} come once again",
    ),
    Kind(
        "reset",
        "The connections between two sides are reset; nobody crashes.",
        (_BETWEEN, _BELOW),
        Effects(
            requests="end with UNAVAILABLE; whether they were carried out is open",
            streams="break at both ends",
            keepalives="none needed",
        ),
        lasts=False,
        begins="the connections between {between[0]} and {between[1]} are reset",
    ),
    Kind(
        "halfOpen",
        "The connections between two sides go silent for good, without a reset; new ones work.",
        (_BETWEEN, _BELOW),
        Effects(
            requests="wait, and end with UNAVAILABLE when keepalive gives up",
            streams="take messages that nobody receives, until the window is full or keepalive gives up",
            keepalives="get no answer: each end finds out by itself",
        ),
        lasts=False,
        begins="the connections between {between[0]} and {between[1]} go silent",
    ),
    Kind(
        "clockSkew",
        "An actor's clock is wrong.",
        (
            _ACTOR,
            Parameter(
                "by", Form.SIGNED_SECONDS, "How far its wall clock is ahead at once; negative: behind.", default=0.0
            ),
            Parameter(
                "drift", Form.NUMBER, "By how much it runs too fast: 0.01 is 1 %; negative: too slow.", default=0.0
            ),
        ),
        Effects(
            timers="run by the monotonic clock: a drift makes them early or late, `by` does not; "
            "timestamps that it writes, or compares with those of others, are wrong"
        ),
        begins="the clock of {actor} is {by} s ahead, with a drift of {drift}",
        ends="the clock of {actor} is right again",
    ),
    Kind(
        "clockJump",
        "An actor's wall clock is set to another time, for good.",
        (
            _ACTOR,
            Parameter("by", Form.SIGNED_SECONDS, "How far it jumps ahead; negative: back.", required=True),
        ),
        Effects(timers="are not concerned; timestamps are wrong from then on"),
        lasts=False,
        begins="the clock of {actor} jumps by {by} s",
    ),
    Kind(
        "diskFull",
        "An actor's disk has no room for another byte.",
        (_ACTOR,),
        Effects(
            requests="that the store would have to journal are refused; they have not been carried out",
            streams="stay open",
            disks="refuse what is appended or written (ENOSPC), after what fits into the last block of a file; all "
            "that stands there can be read",
        ),
        carried_out_by="actor",
        begins="the disk of {actor} is full",
        ends="the disk of {actor} has room again",
    ),
    Kind(
        "slowDisk",
        "Each fsync of an actor's disk takes longer.",
        (_ACTOR, Parameter("fsync", Form.TIME, "How long each fsync takes.", required=True)),
        Effects(
            requests="that change something, and reads of what is not durable yet, wait for the fsync",
            streams="of watches get events after the fsync",
            disks="keep what was fsynced; an fsync that has begun counts when it ends",
        ),
        carried_out_by="actor",
        begins="the disk of {actor} is slow",
        ends="the disk of {actor} is fast again",
    ),
    Kind(
        "failingFsync",
        "An fsync fails, and what it should have written is dropped: the next one succeeds and writes nothing of it.",
        (_ACTOR,),
        Effects(
            requests="that wait for the fsync end as in a crash: the store ends itself, and is started again after 1 s",
            streams="break as in a crash",
            timers="of the store never fire again",
            disks="lose what was appended since the last fsync that succeeded, at the next crash",
        ),
        carried_out_by="actor",
        begins="fsyncs of {actor} fail",
        ends="fsyncs of {actor} succeed again",
    ),
    Kind(
        "tornWrite",
        "An actor crashes in the middle of its next write.",
        (_ACTOR,),
        Effects(
            requests="end as in a crash",
            streams="break as in a crash",
            timers="of the actor never fire again",
            disks="keep what was fsynced and a part of what is written",
        ),
        carried_out_by="actor",
        begins="{actor} crashes in the middle of its next write",
        ends="{actor} is started again",
    ),
    Kind(
        "bitRot",
        "One bit of what an actor's disk has fsynced flips, in a file and at a place chosen by the seed.",
        (_ACTOR,),
        Effects(disks="have a wrong byte; the store finds it when it reads its journal, at its next start"),
        lasts=False,
        carried_out_by="actor",
        begins="a bit on the disk of {actor} flips",
    ),
    Kind(
        "lostSectors",
        "Sectors of 512 bytes that an actor's disk has fsynced read as zeros, in a file and at a place chosen by the "
        "seed.",
        (_ACTOR, Parameter("sectors", Form.NUMBER, "How many, one after the other.", default=1.0)),
        Effects(disks="have zeros there; the store finds them when it reads its journal, at its next start"),
        lasts=False,
        carried_out_by="actor",
        begins="sectors of the disk of {actor} are lost",
    ),
    Kind(
        "lostRenames",
        "Files that an actor writes aside and renames into place are not in the directory after a crash.",
        (_ACTOR,),
        Effects(
            disks="at a crash have the former file, or none, for the last of those that were renamed or removed since "
            "the fault began; how many, the seed decides"
        ),
        not_on_ray="what a process has renamed stays renamed when it dies; only a loss of power takes it back",
        begins="renames by {actor} are not durable",
        ends="renames by {actor} are durable again",
    ),
    Kind(
        "restore",
        "An actor is stopped, its disk replaced by a backup, and started again.",
        (_ACTOR, Parameter("age", Form.SECONDS, "How old the backup is.", required=True)),
        Effects(
            requests="end as in a crash",
            streams="break as in a crash; watches that resume from a revision which does not exist yet hear nothing",
            timers="of the actor never fire again",
            disks="have what they had that long ago: what was acknowledged since is gone",
        ),
        begins="{actor} stops, and gets the disk back that it had {age} s ago",
        ends="{actor} starts with its old disk",
    ),
    Kind(
        "staleReads",
        "An API server answers from the past: its watch cache is behind.",
        (
            Parameter("apiServer", Form.API_SERVERS, "Which.", required=True),
            Parameter("by", Form.SECONDS, "How far its watch cache is behind.", required=True),
        ),
        Effects(
            requests="at resourceVersion 0 see old objects; at a newer one they wait, and end with Timeout after 3 s; "
            "consistent reads and writes are as ever",
            streams="of watches get their events late; they catch up at once when it ends",
        ),
        carried_out_by="apiServer",
        begins="{apiServer} answers from the past",
        ends="{apiServer} is up to date again",
    ),
    Kind(
        "cutWatches",
        "API servers end watches, and the clients have to resume them.",
        (
            Parameter("of", Form.ACTORS, "Whose watches.", required=True),
            _OF_KINDS,
            Parameter(
                "compacted", Form.SWITCH, "What they would resume from is gone: they have to list anew.", default=False
            ),
        ),
        Effects(streams="of watches end at all API servers; with compacted, the store is compacted first"),
        lasts=False,
        carried_out_by="*",
        begins="the watches of {of} end",
    ),
    Kind(
        "slowApi",
        "An API server takes longer for each request, and refuses what it cannot serve in time.",
        (
            Parameter("apiServer", Form.API_SERVERS, "Which.", required=True),
            Parameter(
                "by",
                Form.TIME,
                "How long each request keeps its seat, in addition to timing.apiService.",
                required=True,
            ),
        ),
        Effects(
            requests="take longer and wait for seats; when too many wait, or too long, they end with TooManyRequests",
            streams="of watches are exempt",
            keepalives="are answered in time",
        ),
        carried_out_by="apiServer",
        begins="{apiServer} is slow",
        ends="{apiServer} is fast again",
    ),
    Kind(
        "refuse",
        "Requests of clients of kemu up are refused, and not carried out.",
        (
            Parameter(
                "code",
                Form.CODE,
                "One of 409 Conflict, 410 Expired, 429 TooManyRequests, 500, 503, 504 Timeout.",
                required=True,
            ),
            Parameter("retryAfter", Form.SECONDS, "The header Retry-After; 1s by default with 429, else none."),
            *OF_REQUESTS,
        ),
        Effects(requests="end with that status; nothing has happened"),
        carried_out_by="*",
        begins="clients are refused",
        ends="clients are served again",
    ),
    Kind(
        "loseAnswers",
        "Requests of clients of kemu up are carried out, but the clients do not get to know.",
        (
            Parameter(
                "how",
                Form.CHOICE,
                "What the client gets; reset: its connection, with HTTP/2 its stream, is reset (the default); "
                "timeout: 504 Timeout.",
                default="reset",
                choices=("reset", "timeout"),
            ),
            *OF_REQUESTS,
        ),
        Effects(requests="have happened; the client cannot know"),
        carried_out_by="*",
        begins="answers to clients are lost",
        ends="answers reach clients again",
    ),
    Kind(
        "slowAnswers",
        "Requests of clients of kemu up take longer.",
        (
            Parameter("by", Form.TIME, "How much longer.", required=True),
            Parameter(
                "before",
                Form.SWITCH,
                "They reach the cluster late, rather than their answers the client.",
                default=False,
            ),
            *OF_REQUESTS,
        ),
        Effects(requests="are carried out at once, or late with before; the answer comes late"),
        carried_out_by="*",
        begins="clients are answered late",
        ends="clients are answered in time again",
    ),
    Kind(
        "staleAnswers",
        "Gets and lists of clients of kemu up show the past, as of an API server that lags behind.",
        (Parameter("by", Form.TIME, "How old.", required=True), *OF_REQUESTS),
        Effects(requests="to get and to list show the state of that time, with its resourceVersion"),
        carried_out_by="*",
        begins="clients see the past",
        ends="clients see the present again",
    ),
    Kind(
        "cutStreams",
        "Watches of clients of kemu up end: those that are open, with fresh new ones, too.",
        (
            Parameter(
                "how",
                Form.CHOICE,
                "In which way; clean: as after timeoutSeconds (the default); midLine: within an event; reset: of the "
                "connection, with HTTP/2 of the stream; expired: by 410 Expired.",
                default="clean",
                choices=("clean", "midLine", "reset", "expired"),
            ),
            Parameter("fresh", Form.SWITCH, "Watches that begin while it lasts, too.", default=False),
            Parameter("events", Form.COUNT, "After so many events; at once by default."),
            Parameter("revision", Form.COUNT, "With the first event of a resourceVersion above this."),
            *OF_REQUESTS,
        ),
        Effects(streams="of watches end; clients resume them, or with expired have to list anew"),
        carried_out_by="*",
        begins="watches of clients are cut",
        ends="watches of clients last again",
    ),
    Kind(
        "delayEvents",
        "Events of watches come late to clients of kemu up; they stay in order.",
        (
            Parameter("by", Form.TIME, "How much later than the one before it, or than it happened.", required=True),
            *OF_REQUESTS,
        ),
        Effects(streams="of watches: each event waits so long"),
        carried_out_by="*",
        begins="events come late to clients",
        ends="events come in time to clients",
    ),
    Kind(
        "wrongBookmarks",
        "Bookmarks of watches come twice to clients of kemu up, or not at all.",
        (
            Parameter(
                "how", Form.CHOICE, "In which way: missing or twice.", required=True, choices=("missing", "twice")
            ),
            Parameter(
                "initial",
                Form.SWITCH,
                "Also the one that ends the initial events, without which informers never begin.",
                default=False,
            ),
            *OF_REQUESTS,
        ),
        Effects(streams="of watches: bookmarks are missing, or come twice"),
        carried_out_by="*",
        begins="bookmarks of clients' watches go wrong",
        ends="bookmarks of clients' watches are right again",
    ),
    Kind(
        "lateSlices",
        "The drivers of devices on a node publish their first ResourceSlices late.",
        (
            _NODE_OF_DRIVERS,
            Parameter("by", Form.TIME, "How much later.", required=True),
        ),
        Effects(timers="of the drivers: the first slices after a start of the kubelet wait so long"),
        carried_out_by="node",
        begins="drivers of {node} publish late",
        ends="drivers of {node} publish in time again",
    ),
    Kind(
        "devicesVanish",
        "Devices of a node are not in its ResourceSlices any more, whoever uses them; afterwards they are back.",
        (
            _NODE_OF_DRIVERS,
            Parameter("devices", Form.TEXTS, "Their names, or patterns of them; all by default."),
        ),
        Effects(requests="of the drivers: they publish the slices that are left under a new generation"),
        carried_out_by="node",
        begins="devices of {node} vanish",
        ends="devices of {node} are back",
    ),
    Kind(
        "devicesUnhealthy",
        "Drivers that report health (`health: true`) say that devices of a node are Unhealthy.",
        (
            _NODE_OF_DRIVERS,
            Parameter("devices", Form.TEXTS, "Their names, or patterns of them; all by default."),
            Parameter("message", Form.TEXT, "What they say of it."),
        ),
        Effects(requests="of the kubelet: the status of the containers that have them says so"),
        carried_out_by="node",
        begins="devices of {node} are unhealthy",
        ends="devices of {node} are healthy again",
    ),
    Kind(
        "prepareFails",
        "Drivers of devices on a node fail to prepare claims; the kubelet tries again every 10 s.",
        (
            _NODE_OF_DRIVERS,
            Parameter("failures", Form.SHARE, "The share of calls that fail; all by default.", default=1.0),
        ),
        Effects(requests="of the kubelet to the drivers fail"),
        carried_out_by="node",
        begins="drivers of {node} cannot prepare devices",
        ends="drivers of {node} prepare devices again",
    ),
)

DEVICE_FAULTS = ("lateSlices", "devicesVanish", "devicesUnhealthy", "prepareFails")
"""Faults of drivers, which need devices."""
PROCESS_FAULTS = ("kill", "stop")
"""Kinds that concern processes."""

KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""By name."""


def carriers(what: str, parameters: Mapping[str, Any]) -> str:
    """The parameter whose actors carry a fault out themselves; ``*``: all that can do it; empty: the runtime does."""
    kind = KINDS.get(what)
    found = kind.carried_out_by if kind is not None else ""
    # To the network, messages are all the same.
    return found or ("from" if what == "delay" and parameters.get(_OF_KINDS.name) else "")
