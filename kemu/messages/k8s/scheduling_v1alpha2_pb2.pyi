from kemu.messages.k8s import objects as _objects
from kemu.messages.k8s import meta_v1_pb2 as _meta_v1_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Workload(_objects.KubernetesObject):
    __slots__ = ("metadata", "spec")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    metadata: _meta_v1_pb2.ObjectMeta
    spec: WorkloadSpec
    def __init__(self, metadata: _Optional[_Union[_meta_v1_pb2.ObjectMeta, _Mapping]] = ..., spec: _Optional[_Union[WorkloadSpec, _Mapping]] = ...) -> None: ...

class WorkloadSpec(_message.Message):
    __slots__ = ("controllerRef", "podGroupTemplates")
    CONTROLLERREF_FIELD_NUMBER: _ClassVar[int]
    PODGROUPTEMPLATES_FIELD_NUMBER: _ClassVar[int]
    controllerRef: TypedLocalObjectReference
    podGroupTemplates: _containers.RepeatedCompositeFieldContainer[PodGroupTemplate]
    def __init__(self, controllerRef: _Optional[_Union[TypedLocalObjectReference, _Mapping]] = ..., podGroupTemplates: _Optional[_Iterable[_Union[PodGroupTemplate, _Mapping]]] = ...) -> None: ...

class TypedLocalObjectReference(_message.Message):
    __slots__ = ("apiGroup", "kind", "name")
    APIGROUP_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    apiGroup: str
    kind: str
    name: str
    def __init__(self, apiGroup: _Optional[str] = ..., kind: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class PodGroupTemplate(_message.Message):
    __slots__ = ("name", "schedulingPolicy", "schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "priority")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCHEDULINGPOLICY_FIELD_NUMBER: _ClassVar[int]
    SCHEDULINGCONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    RESOURCECLAIMS_FIELD_NUMBER: _ClassVar[int]
    DISRUPTIONMODE_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSNAME_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    name: str
    schedulingPolicy: PodGroupSchedulingPolicy
    schedulingConstraints: PodGroupSchedulingConstraints
    resourceClaims: _containers.RepeatedCompositeFieldContainer[PodGroupResourceClaim]
    disruptionMode: str
    priorityClassName: str
    priority: int
    def __init__(self, name: _Optional[str] = ..., schedulingPolicy: _Optional[_Union[PodGroupSchedulingPolicy, _Mapping]] = ..., schedulingConstraints: _Optional[_Union[PodGroupSchedulingConstraints, _Mapping]] = ..., resourceClaims: _Optional[_Iterable[_Union[PodGroupResourceClaim, _Mapping]]] = ..., disruptionMode: _Optional[str] = ..., priorityClassName: _Optional[str] = ..., priority: _Optional[int] = ...) -> None: ...

class PodGroupSchedulingPolicy(_message.Message):
    __slots__ = ("basic", "gang")
    BASIC_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    basic: BasicSchedulingPolicy
    gang: GangSchedulingPolicy
    def __init__(self, basic: _Optional[_Union[BasicSchedulingPolicy, _Mapping]] = ..., gang: _Optional[_Union[GangSchedulingPolicy, _Mapping]] = ...) -> None: ...

class BasicSchedulingPolicy(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GangSchedulingPolicy(_message.Message):
    __slots__ = ("minCount",)
    MINCOUNT_FIELD_NUMBER: _ClassVar[int]
    minCount: int
    def __init__(self, minCount: _Optional[int] = ...) -> None: ...

class PodGroupResourceClaim(_message.Message):
    __slots__ = ("name", "resourceClaimName", "resourceClaimTemplateName")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RESOURCECLAIMNAME_FIELD_NUMBER: _ClassVar[int]
    RESOURCECLAIMTEMPLATENAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    resourceClaimName: str
    resourceClaimTemplateName: str
    def __init__(self, name: _Optional[str] = ..., resourceClaimName: _Optional[str] = ..., resourceClaimTemplateName: _Optional[str] = ...) -> None: ...

class PodGroup(_objects.KubernetesObject):
    __slots__ = ("metadata", "spec", "status")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    metadata: _meta_v1_pb2.ObjectMeta
    spec: PodGroupSpec
    status: PodGroupStatus
    def __init__(self, metadata: _Optional[_Union[_meta_v1_pb2.ObjectMeta, _Mapping]] = ..., spec: _Optional[_Union[PodGroupSpec, _Mapping]] = ..., status: _Optional[_Union[PodGroupStatus, _Mapping]] = ...) -> None: ...

class PodGroupSpec(_message.Message):
    __slots__ = ("podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "priority")
    PODGROUPTEMPLATEREF_FIELD_NUMBER: _ClassVar[int]
    SCHEDULINGPOLICY_FIELD_NUMBER: _ClassVar[int]
    SCHEDULINGCONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    RESOURCECLAIMS_FIELD_NUMBER: _ClassVar[int]
    DISRUPTIONMODE_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSNAME_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    podGroupTemplateRef: PodGroupTemplateReference
    schedulingPolicy: PodGroupSchedulingPolicy
    schedulingConstraints: PodGroupSchedulingConstraints
    resourceClaims: _containers.RepeatedCompositeFieldContainer[PodGroupResourceClaim]
    disruptionMode: str
    priorityClassName: str
    priority: int
    def __init__(self, podGroupTemplateRef: _Optional[_Union[PodGroupTemplateReference, _Mapping]] = ..., schedulingPolicy: _Optional[_Union[PodGroupSchedulingPolicy, _Mapping]] = ..., schedulingConstraints: _Optional[_Union[PodGroupSchedulingConstraints, _Mapping]] = ..., resourceClaims: _Optional[_Iterable[_Union[PodGroupResourceClaim, _Mapping]]] = ..., disruptionMode: _Optional[str] = ..., priorityClassName: _Optional[str] = ..., priority: _Optional[int] = ...) -> None: ...

class PodGroupStatus(_message.Message):
    __slots__ = ("conditions", "resourceClaimStatuses")
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    RESOURCECLAIMSTATUSES_FIELD_NUMBER: _ClassVar[int]
    conditions: _containers.RepeatedCompositeFieldContainer[_meta_v1_pb2.Condition]
    resourceClaimStatuses: _containers.RepeatedCompositeFieldContainer[PodGroupResourceClaimStatus]
    def __init__(self, conditions: _Optional[_Iterable[_Union[_meta_v1_pb2.Condition, _Mapping]]] = ..., resourceClaimStatuses: _Optional[_Iterable[_Union[PodGroupResourceClaimStatus, _Mapping]]] = ...) -> None: ...

class PodGroupResourceClaimStatus(_message.Message):
    __slots__ = ("name", "resourceClaimName")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RESOURCECLAIMNAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    resourceClaimName: str
    def __init__(self, name: _Optional[str] = ..., resourceClaimName: _Optional[str] = ...) -> None: ...

class PodGroupTemplateReference(_message.Message):
    __slots__ = ("workload",)
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    workload: WorkloadPodGroupTemplateReference
    def __init__(self, workload: _Optional[_Union[WorkloadPodGroupTemplateReference, _Mapping]] = ...) -> None: ...

class WorkloadPodGroupTemplateReference(_message.Message):
    __slots__ = ("workloadName", "podGroupTemplateName")
    WORKLOADNAME_FIELD_NUMBER: _ClassVar[int]
    PODGROUPTEMPLATENAME_FIELD_NUMBER: _ClassVar[int]
    workloadName: str
    podGroupTemplateName: str
    def __init__(self, workloadName: _Optional[str] = ..., podGroupTemplateName: _Optional[str] = ...) -> None: ...

class PodGroupSchedulingConstraints(_message.Message):
    __slots__ = ("topology",)
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    topology: _containers.RepeatedCompositeFieldContainer[TopologyConstraint]
    def __init__(self, topology: _Optional[_Iterable[_Union[TopologyConstraint, _Mapping]]] = ...) -> None: ...

class TopologyConstraint(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...
