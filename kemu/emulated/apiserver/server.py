"""The API server actor: wires the parts, fills the cache, creates what every cluster has, keeps house.

spec = ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer", {"store": "store"})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated import variants
from kemu.emulated.apiserver import admission, flows
from kemu.emulated.apiserver.admission.base import Host
from kemu.emulated.apiserver.admission.external import External
from kemu.emulated.apiserver.authorization import authorizers
from kemu.emulated.apiserver.custom.collections import ConvertedCollection
from kemu.emulated.apiserver.custom.conversions import Conversions
from kemu.emulated.apiserver.custom.served import Served
from kemu.emulated.apiserver.faults import Faults
from kemu.emulated.apiserver.housekeeping.definitions import Definitions
from kemu.emulated.apiserver.housekeeping.expiry import Bound, Expiry
from kemu.emulated.apiserver.housekeeping.measured import MeasuredRequests
from kemu.emulated.apiserver.housekeeping.service_ranges import ServiceRanges
from kemu.emulated.apiserver.lives import Lives
from kemu.emulated.apiserver.registry import bind_checks
from kemu.emulated.apiserver.registry.bindings import Binder
from kemu.emulated.apiserver.registry.evictions import Evictor
from kemu.emulated.apiserver.registry.kinds import Kinds
from kemu.emulated.apiserver.registry.reads import Reader
from kemu.emulated.apiserver.registry.registry import Registry
from kemu.emulated.apiserver.service import Service
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.verbs import Requests
from kemu.emulated.apiserver.watch import buffers
from kemu.emulated.apiserver.watch.cache import Collection, WatchCache
from kemu.emulated.apiserver.watch.fanout import Fanout, Stream
from kemu.emulated.apiserver.watch.feed import Feed
from kemu.emulated.apiserver.webhooks.clients import WebhookClient
from kemu.emulated.objects.validation import small_groups
from kemu.messages.k8s import core_v1_pb2, scheduling_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2_grpc
from kemu.runtime import distributions
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import ObjectCorrupt, WatchCut

DEFAULTS: dict[str, Any] = {
    "store": "store",  # name of the actor that serves the etcd API
    "store_is_etcd": False,  # a real one, of whatever version
    "record_store": False,  # log what the store does, in place of one that cannot: a real etcd
    "cache_lag_s": 0.0,  # hold news from the store back for so long: stale reads
    "admission": list(admission.DEFAULT_ON),
    "checks_statuses": True,  # False: as the clientsets that controllers are recorded with, which take any
    "stores_unsimulated": False,  # store the fields that kemu does not simulate, instead of refusing them
    "gates": [],  # feature gates that are on, of fields that are refused without them
    "lives": [],  # how pods live that do not say
    "authorization": list(authorizers.DEFAULT_MODES),  # modes: who may do what
    "users": {},  # by name their groups and roles, of those whom the scenario acts as
    "limited_resources": [],  # what ResourceQuota admits only under a quota that covers it: LimitedResources of its API
    variants.ABLATE_KEY: [],  # safeguards that this server lacks
    "hooks": [],  # functions in Python that admission asks: see admission.external.hooks
    "conversion_hooks": [],  # functions in Python that convert custom objects: see custom.conversions
    "services": {},  # by NAMESPACE/NAME the ports of loopback where processes listen for webhooks' Services
    "service_ranges": [],  # CIDRs of Services' addresses, at first; none: they follow from names, and have no objects
    "managed_fields": False,  # keep them also for objects whose creators state no field manager
    "bind_check": bind_checks.NONE,  # what a binding is held against beside its pod: one of bind_checks.KINDS
    "compaction_interval_s": 300.0,  # forget what is older than this, as often; 0: never
    "bookmark_interval_s": 60.0,
    "event_ttl_s": 3600.0,  # how long Event objects are kept; 0: for ever
    "most_events": 0,  # how many of them; 0: any number
    "window_events": 10_000,  # past changes of each kind that a watch can resume from
    "window_bytes": 64 * buffers.MIB,  # of the objects, of all kinds, that these changes replaced or deleted
    "backlog_events": 10_000,  # events that may wait for a watcher that does not read
    "watch_bytes": {},  # other bounds than those of ``watch.buffers.Bounds``
    "seats": flows.SEATS,  # requests that are served at the same time
    "queue_limit": flows.QUEUE_LIMIT,  # requests of one client that may wait for a seat
    "measured": False,  # log each request that is answered, for metrics
    "service_time": None,  # how long a request keeps its seat: seconds or a distribution of them; None: no time
}
"""The configuration, and what holds where it says nothing."""

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
SYSTEM_CLASSES = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
}


class ApiServer:
    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        """Raises ValueError for a configuration with unknown keys or values."""
        settings = _settings(config)
        self._env = env
        self._settings = settings
        varied = variants.active(settings)
        channel = env.dial(settings["store"])
        self.storage = variants.choose(Storage, varied)(env, channel)
        self.cache = WatchCache(settings["window_events"], settings["window_bytes"])
        self.cache.on_corrupt = lambda key: env.log(ObjectCorrupt(key=key.decode("utf-8", "backslashreplace")))
        self.feed = variants.choose(Feed, varied)(
            env,
            channel,
            self.storage,
            self.cache,
            settings["cache_lag_s"],
            records=settings["record_store"],
            is_etcd=settings["store_is_etcd"],
        )
        bounds = buffers.Bounds(**settings["watch_bytes"])
        self.kinds = Kinds(self.cache, env.clock)
        self.fanout = Fanout(self.cache, settings["backlog_events"], self._log_cut, bounds, env.clock)
        chain = admission.Chain(settings["admission"], self.storage, self.cache)
        self.registry = variants.choose(Registry, varied)(env, self.storage, self.cache, chain, self.kinds)
        if settings["lives"]:
            self.registry.lives = Lives(env, settings["lives"])
        self.registry.checks_statuses = settings["checks_statuses"]
        self.registry.refuses_unsimulated = not settings["stores_unsimulated"]
        self.registry.gates = settings["gates"]
        if settings["service_ranges"]:
            self.registry.services.keep(settings["service_ranges"])
        chain.attach(Host(env, self.registry.write_status, settings["limited_resources"]))
        self.kinds.on_end = self.fanout.end_kind
        self.kinds.collect = self._collect
        self.cache.on_reload = self._forget
        definitions = Definitions(env, self.kinds, self.registry)
        self.kinds.on_change = definitions.look
        reader = Reader(self.storage, self.cache, self.feed, self.kinds, self.registry.unix_now_ns)
        evictor = variants.choose(Evictor, varied)(self.registry)
        checks = bind_checks.make(settings["bind_check"], self.cache)
        binder = variants.choose(Binder, varied)(self.registry, self.feed, checks)
        authorizer = authorizers.Authorizer(self.cache, settings["authorization"], settings["users"])
        client = WebhookClient(env, self.cache, settings["services"])
        self.kinds.converters = Conversions(env, client, self.registry.new_uid, settings["conversion_hooks"]).of
        chain.external = External(
            env,
            self.storage,
            self.cache,
            authorizer,
            client,
            settings["hooks"],
            self.registry.new_uid,
            self.kinds.of_kind,
        )
        tracks_all = bool(settings["managed_fields"])
        make = MeasuredRequests if settings["measured"] else Requests
        requests = make(env, authorizer, chain, self.registry, reader, binder, evictor, tracks_all=tracks_all)
        self._service = Service(
            env,
            requests,
            self.storage,
            self.cache,
            self.feed,
            self.fanout,
            self.kinds,
            seats=settings["seats"],
            queue_limit=settings["queue_limit"],
        )
        if settings["service_time"] is not None:
            time = distributions.parse(settings["service_time"])
            if time.constant != 0:
                env.spawn(self._take_time(time), "service time")
        Faults(env, self._service, self.storage, self.cache, self.feed, self.fanout)
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self._service)

    def _collect(self, source: Collection, row: Served) -> ConvertedCollection:
        window, window_bytes = self._settings["window_events"], self._settings["window_bytes"]
        return ConvertedCollection(source, row, window, window_bytes, self.fanout, self._env.spawn)

    def _forget(self) -> None:
        """The history of the cache is lost."""
        self.fanout.end_all()
        self.kinds.reset()

    async def run(self) -> None:
        await self.feed.load()
        following = self._env.spawn(self.feed.run(), "feed")
        await self.feed.caught_up()
        await self._create_what_every_cluster_has()
        self._service.open()
        if self._settings["service_ranges"]:
            await ServiceRanges(self._env, self._settings["service_ranges"]).begin()
        self._env.ready()
        if self._settings["bookmark_interval_s"]:
            self._env.spawn(self._send_bookmarks(), "bookmarks")
        if self._settings["event_ttl_s"]:
            expiry = Expiry(self._env.clock, self.storage, self.cache, self._settings["event_ttl_s"])
            self._env.spawn(expiry.run(), "expiry of events")
        if self._settings["most_events"]:
            bound = Bound(self._env.clock, self.storage, self.cache, self._settings["most_events"])
            self._env.spawn(bound.run(), "bound of events")
        if self._settings["compaction_interval_s"]:
            self._env.spawn(self._compact(), "compaction")
        await following

    async def _take_time(self, time: distributions.Distribution) -> None:
        """Requests of the set-up take none: its clock stands."""
        await self._env.clock.started()
        self._service.works = lambda: time.draw(self._env.random)

    async def _create_what_every_cluster_has(self) -> None:
        """Namespaces and the system's priority classes, unless another API server was first."""
        for name in NAMESPACES:
            namespace = core_v1_pb2.Namespace()
            namespace.metadata.name = name
            await self._ensure("namespaces", namespace)
        for name, value in small_groups.SYSTEM_PRIORITY_CLASSES.items():
            found = scheduling_v1_pb2.PriorityClass(value=value, description=SYSTEM_CLASSES[name])
            found.metadata.name = name
            await self._ensure("priorityclasses", found)

    async def _ensure(self, plural: str, obj: KubernetesObject) -> None:
        while True:
            try:
                sent = type(obj)()
                sent.CopyFrom(obj)
                await self.registry.create(plural, "", sent)
                return
            except errors.AlreadyExists:
                return
            except errors.ServiceUnavailable:
                await self._env.clock.sleep(1)

    async def _send_bookmarks(self) -> None:
        while True:
            await self._env.clock.sleep(self._settings["bookmark_interval_s"], background=True)
            self.fanout.bookmark_all()

    async def _compact(self) -> None:
        """Each time forget what was the past the time before (``etcd3/compact.go``). Several servers do no harm."""
        seen = 0
        while True:
            await self._env.clock.sleep(self._settings["compaction_interval_s"], background=True)
            try:
                if seen:
                    await self.storage.compact(seen)
                seen = await self.storage.revision()
            except errors.ServiceUnavailable:
                continue

    def _log_cut(self, stream: Stream) -> None:
        self._env.log(WatchCut(by=stream.by, reason="slow"))


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(config) - set(DEFAULTS))
    if unknown:
        raise ValueError(f"unknown setting {unknown[0]!r} of an API server; there are {', '.join(DEFAULTS)}")
    settings = {**DEFAULTS, **config}
    if settings["bind_check"] not in bind_checks.KINDS:
        there_are = ", ".join(bind_checks.KINDS)
        raise ValueError(f"unknown bind_check {settings['bind_check']!r}; there are {there_are}")
    return settings
