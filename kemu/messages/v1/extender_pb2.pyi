from kemu.messages.k8s import core_v1_pb2 as _core_v1_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeList(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[_core_v1_pb2.Node]
    def __init__(self, items: _Optional[_Iterable[_Union[_core_v1_pb2.Node, _Mapping]]] = ...) -> None: ...

class NodeNames(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class ExtenderArgs(_message.Message):
    __slots__ = ("pod", "nodes", "node_names")
    POD_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NODE_NAMES_FIELD_NUMBER: _ClassVar[int]
    pod: _core_v1_pb2.Pod
    nodes: NodeList
    node_names: NodeNames
    def __init__(self, pod: _Optional[_Union[_core_v1_pb2.Pod, _Mapping]] = ..., nodes: _Optional[_Union[NodeList, _Mapping]] = ..., node_names: _Optional[_Union[NodeNames, _Mapping]] = ...) -> None: ...

class ExtenderFilterResult(_message.Message):
    __slots__ = ("nodes", "node_names", "failed_nodes", "failed_and_unresolvable_nodes", "error")
    class FailedNodesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class FailedAndUnresolvableNodesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NODES_FIELD_NUMBER: _ClassVar[int]
    NODE_NAMES_FIELD_NUMBER: _ClassVar[int]
    FAILED_NODES_FIELD_NUMBER: _ClassVar[int]
    FAILED_AND_UNRESOLVABLE_NODES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    nodes: NodeList
    node_names: NodeNames
    failed_nodes: _containers.ScalarMap[str, str]
    failed_and_unresolvable_nodes: _containers.ScalarMap[str, str]
    error: str
    def __init__(self, nodes: _Optional[_Union[NodeList, _Mapping]] = ..., node_names: _Optional[_Union[NodeNames, _Mapping]] = ..., failed_nodes: _Optional[_Mapping[str, str]] = ..., failed_and_unresolvable_nodes: _Optional[_Mapping[str, str]] = ..., error: _Optional[str] = ...) -> None: ...

class HostPriority(_message.Message):
    __slots__ = ("host", "score")
    HOST_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    host: str
    score: int
    def __init__(self, host: _Optional[str] = ..., score: _Optional[int] = ...) -> None: ...

class HostPriorityList(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[HostPriority]
    def __init__(self, items: _Optional[_Iterable[_Union[HostPriority, _Mapping]]] = ...) -> None: ...

class Victims(_message.Message):
    __slots__ = ("pods", "num_pdb_violations")
    PODS_FIELD_NUMBER: _ClassVar[int]
    NUM_PDB_VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    pods: _containers.RepeatedCompositeFieldContainer[_core_v1_pb2.Pod]
    num_pdb_violations: int
    def __init__(self, pods: _Optional[_Iterable[_Union[_core_v1_pb2.Pod, _Mapping]]] = ..., num_pdb_violations: _Optional[int] = ...) -> None: ...

class MetaPod(_message.Message):
    __slots__ = ("uid",)
    UID_FIELD_NUMBER: _ClassVar[int]
    uid: str
    def __init__(self, uid: _Optional[str] = ...) -> None: ...

class MetaVictims(_message.Message):
    __slots__ = ("pods", "num_pdb_violations")
    PODS_FIELD_NUMBER: _ClassVar[int]
    NUM_PDB_VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    pods: _containers.RepeatedCompositeFieldContainer[MetaPod]
    num_pdb_violations: int
    def __init__(self, pods: _Optional[_Iterable[_Union[MetaPod, _Mapping]]] = ..., num_pdb_violations: _Optional[int] = ...) -> None: ...

class ExtenderPreemptionArgs(_message.Message):
    __slots__ = ("pod", "node_name_to_victims", "node_name_to_meta_victims")
    class NodeNameToVictimsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Victims
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Victims, _Mapping]] = ...) -> None: ...
    class NodeNameToMetaVictimsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: MetaVictims
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[MetaVictims, _Mapping]] = ...) -> None: ...
    POD_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_TO_VICTIMS_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_TO_META_VICTIMS_FIELD_NUMBER: _ClassVar[int]
    pod: _core_v1_pb2.Pod
    node_name_to_victims: _containers.MessageMap[str, Victims]
    node_name_to_meta_victims: _containers.MessageMap[str, MetaVictims]
    def __init__(self, pod: _Optional[_Union[_core_v1_pb2.Pod, _Mapping]] = ..., node_name_to_victims: _Optional[_Mapping[str, Victims]] = ..., node_name_to_meta_victims: _Optional[_Mapping[str, MetaVictims]] = ...) -> None: ...

class ExtenderPreemptionResult(_message.Message):
    __slots__ = ("node_name_to_meta_victims",)
    class NodeNameToMetaVictimsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: MetaVictims
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[MetaVictims, _Mapping]] = ...) -> None: ...
    NODE_NAME_TO_META_VICTIMS_FIELD_NUMBER: _ClassVar[int]
    node_name_to_meta_victims: _containers.MessageMap[str, MetaVictims]
    def __init__(self, node_name_to_meta_victims: _Optional[_Mapping[str, MetaVictims]] = ...) -> None: ...

class ExtenderBindingArgs(_message.Message):
    __slots__ = ("pod_name", "pod_namespace", "pod_uid", "node")
    POD_NAME_FIELD_NUMBER: _ClassVar[int]
    POD_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    pod_name: str
    pod_namespace: str
    pod_uid: str
    node: str
    def __init__(self, pod_name: _Optional[str] = ..., pod_namespace: _Optional[str] = ..., pod_uid: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class ExtenderBindingResult(_message.Message):
    __slots__ = ("error",)
    ERROR_FIELD_NUMBER: _ClassVar[int]
    error: str
    def __init__(self, error: _Optional[str] = ...) -> None: ...
