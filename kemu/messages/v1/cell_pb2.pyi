from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ActorSpec(_message.Message):
    __slots__ = ("name", "factory", "config", "token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FACTORY_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    factory: str
    config: bytes
    token: str
    def __init__(self, name: _Optional[str] = ..., factory: _Optional[str] = ..., config: _Optional[bytes] = ..., token: _Optional[str] = ...) -> None: ...

class Address(_message.Message):
    __slots__ = ("name", "target", "incarnation")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    target: str
    incarnation: int
    def __init__(self, name: _Optional[str] = ..., target: _Optional[str] = ..., incarnation: _Optional[int] = ...) -> None: ...

class ClockSetting(_message.Message):
    __slots__ = ("epoch_unix_ns", "speed", "epoch_unix_s")
    EPOCH_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    SPEED_FIELD_NUMBER: _ClassVar[int]
    EPOCH_UNIX_S_FIELD_NUMBER: _ClassVar[int]
    epoch_unix_ns: int
    speed: float
    epoch_unix_s: int
    def __init__(self, epoch_unix_ns: _Optional[int] = ..., speed: _Optional[float] = ..., epoch_unix_s: _Optional[int] = ...) -> None: ...

class ConfigureRequest(_message.Message):
    __slots__ = ("clock", "addresses", "directory", "seed", "keepalive_time_s", "keepalive_timeout_s", "certificates")
    class CertificatesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_TIME_S_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATES_FIELD_NUMBER: _ClassVar[int]
    clock: ClockSetting
    addresses: _containers.RepeatedCompositeFieldContainer[Address]
    directory: str
    seed: int
    keepalive_time_s: float
    keepalive_timeout_s: float
    certificates: _containers.ScalarMap[str, bytes]
    def __init__(self, clock: _Optional[_Union[ClockSetting, _Mapping]] = ..., addresses: _Optional[_Iterable[_Union[Address, _Mapping]]] = ..., directory: _Optional[str] = ..., seed: _Optional[int] = ..., keepalive_time_s: _Optional[float] = ..., keepalive_timeout_s: _Optional[float] = ..., certificates: _Optional[_Mapping[str, bytes]] = ...) -> None: ...

class StartRequest(_message.Message):
    __slots__ = ("actors",)
    ACTORS_FIELD_NUMBER: _ClassVar[int]
    actors: _containers.RepeatedCompositeFieldContainer[ActorSpec]
    def __init__(self, actors: _Optional[_Iterable[_Union[ActorSpec, _Mapping]]] = ...) -> None: ...

class StopRequest(_message.Message):
    __slots__ = ("actors", "crash")
    ACTORS_FIELD_NUMBER: _ClassVar[int]
    CRASH_FIELD_NUMBER: _ClassVar[int]
    actors: _containers.RepeatedScalarFieldContainer[str]
    crash: bool
    def __init__(self, actors: _Optional[_Iterable[str]] = ..., crash: _Optional[bool] = ...) -> None: ...

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Fault(_message.Message):
    __slots__ = ("id", "kind", "step")
    class Kind(_message.Message):
        __slots__ = ("what", "parameters")
        WHAT_FIELD_NUMBER: _ClassVar[int]
        PARAMETERS_FIELD_NUMBER: _ClassVar[int]
        what: str
        parameters: bytes
        def __init__(self, what: _Optional[str] = ..., parameters: _Optional[bytes] = ...) -> None: ...
    class Step(_message.Message):
        __slots__ = ("actor", "step")
        ACTOR_FIELD_NUMBER: _ClassVar[int]
        STEP_FIELD_NUMBER: _ClassVar[int]
        actor: str
        step: str
        def __init__(self, actor: _Optional[str] = ..., step: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: Fault.Kind
    step: Fault.Step
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[_Union[Fault.Kind, _Mapping]] = ..., step: _Optional[_Union[Fault.Step, _Mapping]] = ...) -> None: ...

class HealRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class HealResponse(_message.Message):
    __slots__ = ("hits",)
    HITS_FIELD_NUMBER: _ClassVar[int]
    hits: int
    def __init__(self, hits: _Optional[int] = ...) -> None: ...

class ActorState(_message.Message):
    __slots__ = ("name", "running", "error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    running: bool
    error: str
    def __init__(self, name: _Optional[str] = ..., running: _Optional[bool] = ..., error: _Optional[str] = ...) -> None: ...

class StatisticsResponse(_message.Message):
    __slots__ = ("actors", "max_rss_bytes", "log_events", "wall_ns")
    ACTORS_FIELD_NUMBER: _ClassVar[int]
    MAX_RSS_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOG_EVENTS_FIELD_NUMBER: _ClassVar[int]
    WALL_NS_FIELD_NUMBER: _ClassVar[int]
    actors: _containers.RepeatedCompositeFieldContainer[ActorState]
    max_rss_bytes: int
    log_events: int
    wall_ns: int
    def __init__(self, actors: _Optional[_Iterable[_Union[ActorState, _Mapping]]] = ..., max_rss_bytes: _Optional[int] = ..., log_events: _Optional[int] = ..., wall_ns: _Optional[int] = ...) -> None: ...

class LogRequest(_message.Message):
    __slots__ = ("offset", "follow")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    offset: int
    follow: bool
    def __init__(self, offset: _Optional[int] = ..., follow: _Optional[bool] = ...) -> None: ...

class Load(_message.Message):
    __slots__ = ("real_ns", "cpu_ns", "loop_cpu_ns", "loop_queued_ns", "loop_late_ns", "memory_bytes", "calls", "open_calls", "unsent_events")
    REAL_NS_FIELD_NUMBER: _ClassVar[int]
    CPU_NS_FIELD_NUMBER: _ClassVar[int]
    LOOP_CPU_NS_FIELD_NUMBER: _ClassVar[int]
    LOOP_QUEUED_NS_FIELD_NUMBER: _ClassVar[int]
    LOOP_LATE_NS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    OPEN_CALLS_FIELD_NUMBER: _ClassVar[int]
    UNSENT_EVENTS_FIELD_NUMBER: _ClassVar[int]
    real_ns: int
    cpu_ns: int
    loop_cpu_ns: int
    loop_queued_ns: int
    loop_late_ns: int
    memory_bytes: int
    calls: int
    open_calls: int
    unsent_events: int
    def __init__(self, real_ns: _Optional[int] = ..., cpu_ns: _Optional[int] = ..., loop_cpu_ns: _Optional[int] = ..., loop_queued_ns: _Optional[int] = ..., loop_late_ns: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., calls: _Optional[int] = ..., open_calls: _Optional[int] = ..., unsent_events: _Optional[int] = ...) -> None: ...

class LogSegment(_message.Message):
    __slots__ = ("events", "time_ns", "pending", "load")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    TIME_NS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedScalarFieldContainer[bytes]
    time_ns: int
    pending: int
    load: Load
    def __init__(self, events: _Optional[_Iterable[bytes]] = ..., time_ns: _Optional[int] = ..., pending: _Optional[int] = ..., load: _Optional[_Union[Load, _Mapping]] = ...) -> None: ...
