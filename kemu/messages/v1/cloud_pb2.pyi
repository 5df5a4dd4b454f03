from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[NodeGroup]
    def __init__(self, groups: _Optional[_Iterable[_Union[NodeGroup, _Mapping]]] = ...) -> None: ...

class NodeGroup(_message.Message):
    __slots__ = ("name", "target_size", "instances")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TARGET_SIZE_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    name: str
    target_size: int
    instances: _containers.RepeatedCompositeFieldContainer[Instance]
    def __init__(self, name: _Optional[str] = ..., target_size: _Optional[int] = ..., instances: _Optional[_Iterable[_Union[Instance, _Mapping]]] = ...) -> None: ...

class Instance(_message.Message):
    __slots__ = ("node", "state", "error_class", "error_code", "error_message")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CREATING: _ClassVar[Instance.State]
        RUNNING: _ClassVar[Instance.State]
        DELETING: _ClassVar[Instance.State]
    CREATING: Instance.State
    RUNNING: Instance.State
    DELETING: Instance.State
    NODE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ERROR_CLASS_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    node: str
    state: Instance.State
    error_class: str
    error_code: str
    error_message: str
    def __init__(self, node: _Optional[str] = ..., state: _Optional[_Union[Instance.State, str]] = ..., error_class: _Optional[str] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ...) -> None: ...

class ResizeRequest(_message.Message):
    __slots__ = ("group", "by")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    group: str
    by: int
    def __init__(self, group: _Optional[str] = ..., by: _Optional[int] = ...) -> None: ...

class DeleteNodesRequest(_message.Message):
    __slots__ = ("group", "nodes")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    group: str
    nodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, group: _Optional[str] = ..., nodes: _Optional[_Iterable[str]] = ...) -> None: ...

class ResizeResponse(_message.Message):
    __slots__ = ("refused",)
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    refused: str
    def __init__(self, refused: _Optional[str] = ...) -> None: ...

class OrdersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Order(_message.Message):
    __slots__ = ("what", "group", "node")
    class What(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        START: _ClassVar[Order.What]
        REMOVE: _ClassVar[Order.What]
        INITIALIZED: _ClassVar[Order.What]
    START: Order.What
    REMOVE: Order.What
    INITIALIZED: Order.What
    WHAT_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    what: Order.What
    group: str
    node: str
    def __init__(self, what: _Optional[_Union[Order.What, str]] = ..., group: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...
