from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Resource(_message.Message):
    __slots__ = ("resource", "namespace", "version")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    resource: str
    namespace: str
    version: str
    def __init__(self, resource: _Optional[str] = ..., namespace: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class Preconditions(_message.Message):
    __slots__ = ("uid", "resource_version")
    UID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    uid: str
    resource_version: str
    def __init__(self, uid: _Optional[str] = ..., resource_version: _Optional[str] = ...) -> None: ...

class WriteOptions(_message.Message):
    __slots__ = ("dry_run", "field_manager", "field_validation", "user_agent")
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    FIELD_VALIDATION_FIELD_NUMBER: _ClassVar[int]
    USER_AGENT_FIELD_NUMBER: _ClassVar[int]
    dry_run: _containers.RepeatedScalarFieldContainer[str]
    field_manager: str
    field_validation: str
    user_agent: str
    def __init__(self, dry_run: _Optional[_Iterable[str]] = ..., field_manager: _Optional[str] = ..., field_validation: _Optional[str] = ..., user_agent: _Optional[str] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("resource", "name", "resource_version", "subresource")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    SUBRESOURCE_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    name: str
    resource_version: str
    subresource: str
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ..., name: _Optional[str] = ..., resource_version: _Optional[str] = ..., subresource: _Optional[str] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("resource", "label_selector", "field_selector", "limit", "resource_version", "resource_version_match", "send_initial_events")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    LABEL_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    FIELD_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_MATCH_FIELD_NUMBER: _ClassVar[int]
    SEND_INITIAL_EVENTS_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    label_selector: str
    field_selector: str
    limit: int
    resource_version: str
    resource_version_match: str
    send_initial_events: bool
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ..., label_selector: _Optional[str] = ..., field_selector: _Optional[str] = ..., limit: _Optional[int] = ..., resource_version: _Optional[str] = ..., resource_version_match: _Optional[str] = ..., send_initial_events: _Optional[bool] = ..., **kwargs) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("resource_version", "remaining_item_count", "items")
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_FIELD_NUMBER: _ClassVar[int]
    REMAINING_ITEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    resource_version: str
    remaining_item_count: int
    items: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, resource_version: _Optional[str] = ..., remaining_item_count: _Optional[int] = ..., items: _Optional[_Iterable[bytes]] = ..., **kwargs) -> None: ...

class CreateRequest(_message.Message):
    __slots__ = ("resource", "object", "options", "content_type")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    object: bytes
    options: WriteOptions
    content_type: str
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ..., object: _Optional[bytes] = ..., options: _Optional[_Union[WriteOptions, _Mapping]] = ..., content_type: _Optional[str] = ...) -> None: ...

class UpdateRequest(_message.Message):
    __slots__ = ("resource", "object", "options", "content_type", "subresource", "name")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    SUBRESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    object: bytes
    options: WriteOptions
    content_type: str
    subresource: str
    name: str
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ..., object: _Optional[bytes] = ..., options: _Optional[_Union[WriteOptions, _Mapping]] = ..., content_type: _Optional[str] = ..., subresource: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class UpdateStatusRequest(_message.Message):
    __slots__ = ("resource", "object")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    object: bytes
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ..., object: _Optional[bytes] = ...) -> None: ...

class PatchRequest(_message.Message):
    __slots__ = ("resource", "name", "type", "patch", "subresource", "preconditions", "removed", "options", "force")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MERGE: _ClassVar[PatchRequest.Type]
        STRATEGIC: _ClassVar[PatchRequest.Type]
        MESSAGE: _ClassVar[PatchRequest.Type]
        JSON: _ClassVar[PatchRequest.Type]
        APPLY: _ClassVar[PatchRequest.Type]
    MERGE: PatchRequest.Type
    STRATEGIC: PatchRequest.Type
    MESSAGE: PatchRequest.Type
    JSON: PatchRequest.Type
    APPLY: PatchRequest.Type
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    SUBRESOURCE_FIELD_NUMBER: _ClassVar[int]
    PRECONDITIONS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    name: str
    type: PatchRequest.Type
    patch: bytes
    subresource: str
    preconditions: Preconditions
    removed: bytes
    options: WriteOptions
    force: bool
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ..., name: _Optional[str] = ..., type: _Optional[_Union[PatchRequest.Type, str]] = ..., patch: _Optional[bytes] = ..., subresource: _Optional[str] = ..., preconditions: _Optional[_Union[Preconditions, _Mapping]] = ..., removed: _Optional[bytes] = ..., options: _Optional[_Union[WriteOptions, _Mapping]] = ..., force: _Optional[bool] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("resource", "name", "grace_period_seconds", "preconditions", "propagation_policy", "orphan_dependents", "dry_run", "in_steps")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GRACE_PERIOD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PRECONDITIONS_FIELD_NUMBER: _ClassVar[int]
    PROPAGATION_POLICY_FIELD_NUMBER: _ClassVar[int]
    ORPHAN_DEPENDENTS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    IN_STEPS_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    name: str
    grace_period_seconds: int
    preconditions: Preconditions
    propagation_policy: str
    orphan_dependents: bool
    dry_run: _containers.RepeatedScalarFieldContainer[str]
    in_steps: bool
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ..., name: _Optional[str] = ..., grace_period_seconds: _Optional[int] = ..., preconditions: _Optional[_Union[Preconditions, _Mapping]] = ..., propagation_policy: _Optional[str] = ..., orphan_dependents: _Optional[bool] = ..., dry_run: _Optional[_Iterable[str]] = ..., in_steps: _Optional[bool] = ...) -> None: ...

class DeleteCollectionRequest(_message.Message):
    __slots__ = ("list", "delete")
    LIST_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    list: ListRequest
    delete: DeleteRequest
    def __init__(self, list: _Optional[_Union[ListRequest, _Mapping]] = ..., delete: _Optional[_Union[DeleteRequest, _Mapping]] = ...) -> None: ...

class BindRequest(_message.Message):
    __slots__ = ("namespace", "name", "uid", "node", "annotations", "labels", "node_generation", "client")
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NODE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    uid: str
    node: str
    annotations: _containers.ScalarMap[str, str]
    labels: _containers.ScalarMap[str, str]
    node_generation: int
    client: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., node: _Optional[str] = ..., annotations: _Optional[_Mapping[str, str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., node_generation: _Optional[int] = ..., client: _Optional[str] = ...) -> None: ...

class CommitRequest(_message.Message):
    __slots__ = ("bindings", "all_or_nothing")
    BINDINGS_FIELD_NUMBER: _ClassVar[int]
    ALL_OR_NOTHING_FIELD_NUMBER: _ClassVar[int]
    bindings: _containers.RepeatedCompositeFieldContainer[BindRequest]
    all_or_nothing: bool
    def __init__(self, bindings: _Optional[_Iterable[_Union[BindRequest, _Mapping]]] = ..., all_or_nothing: _Optional[bool] = ...) -> None: ...

class CommitResponse(_message.Message):
    __slots__ = ("results", "refused_by")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_BY_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[CommitResult]
    refused_by: int
    def __init__(self, results: _Optional[_Iterable[_Union[CommitResult, _Mapping]]] = ..., refused_by: _Optional[int] = ...) -> None: ...

class CommitResult(_message.Message):
    __slots__ = ("object", "error")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    object: bytes
    error: bytes
    def __init__(self, object: _Optional[bytes] = ..., error: _Optional[bytes] = ...) -> None: ...

class EvictRequest(_message.Message):
    __slots__ = ("namespace", "name", "grace_period_seconds", "preconditions", "dry_run")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GRACE_PERIOD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PRECONDITIONS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    grace_period_seconds: int
    preconditions: Preconditions
    dry_run: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., grace_period_seconds: _Optional[int] = ..., preconditions: _Optional[_Union[Preconditions, _Mapping]] = ..., dry_run: _Optional[_Iterable[str]] = ...) -> None: ...

class ObjectResponse(_message.Message):
    __slots__ = ("object", "warnings", "created", "gone")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    object: bytes
    warnings: _containers.RepeatedScalarFieldContainer[str]
    created: bool
    gone: bool
    def __init__(self, object: _Optional[bytes] = ..., warnings: _Optional[_Iterable[str]] = ..., created: _Optional[bool] = ..., gone: _Optional[bool] = ...) -> None: ...

class ReviewRequest(_message.Message):
    __slots__ = ("user", "groups", "resource", "non_resource")
    class ResourceAttributes(_message.Message):
        __slots__ = ("verb", "group", "resource", "subresource", "namespace", "name")
        VERB_FIELD_NUMBER: _ClassVar[int]
        GROUP_FIELD_NUMBER: _ClassVar[int]
        RESOURCE_FIELD_NUMBER: _ClassVar[int]
        SUBRESOURCE_FIELD_NUMBER: _ClassVar[int]
        NAMESPACE_FIELD_NUMBER: _ClassVar[int]
        NAME_FIELD_NUMBER: _ClassVar[int]
        verb: str
        group: str
        resource: str
        subresource: str
        namespace: str
        name: str
        def __init__(self, verb: _Optional[str] = ..., group: _Optional[str] = ..., resource: _Optional[str] = ..., subresource: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...
    class NonResourceAttributes(_message.Message):
        __slots__ = ("verb", "path")
        VERB_FIELD_NUMBER: _ClassVar[int]
        PATH_FIELD_NUMBER: _ClassVar[int]
        verb: str
        path: str
        def __init__(self, verb: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...
    USER_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NON_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    user: str
    groups: _containers.RepeatedScalarFieldContainer[str]
    resource: ReviewRequest.ResourceAttributes
    non_resource: ReviewRequest.NonResourceAttributes
    def __init__(self, user: _Optional[str] = ..., groups: _Optional[_Iterable[str]] = ..., resource: _Optional[_Union[ReviewRequest.ResourceAttributes, _Mapping]] = ..., non_resource: _Optional[_Union[ReviewRequest.NonResourceAttributes, _Mapping]] = ...) -> None: ...

class ReviewResponse(_message.Message):
    __slots__ = ("allowed", "reason")
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    allowed: bool
    reason: str
    def __init__(self, allowed: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class AdmitRequest(_message.Message):
    __slots__ = ("operation", "api_version", "resource", "subresource", "namespace", "name", "object", "validates")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    SUBRESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    VALIDATES_FIELD_NUMBER: _ClassVar[int]
    operation: str
    api_version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    object: bytes
    validates: bool
    def __init__(self, operation: _Optional[str] = ..., api_version: _Optional[str] = ..., resource: _Optional[str] = ..., subresource: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., object: _Optional[bytes] = ..., validates: _Optional[bool] = ...) -> None: ...

class AdmitResponse(_message.Message):
    __slots__ = ("object", "warnings")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    object: bytes
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, object: _Optional[bytes] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class LevelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LevelsResponse(_message.Message):
    __slots__ = ("levels",)
    class Schema(_message.Message):
        __slots__ = ("name", "dispatched", "rejected", "executing", "executing_seats", "waiting", "waiting_seats")
        class RejectedEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: int
            def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
        NAME_FIELD_NUMBER: _ClassVar[int]
        DISPATCHED_FIELD_NUMBER: _ClassVar[int]
        REJECTED_FIELD_NUMBER: _ClassVar[int]
        EXECUTING_FIELD_NUMBER: _ClassVar[int]
        EXECUTING_SEATS_FIELD_NUMBER: _ClassVar[int]
        WAITING_FIELD_NUMBER: _ClassVar[int]
        WAITING_SEATS_FIELD_NUMBER: _ClassVar[int]
        name: str
        dispatched: int
        rejected: _containers.ScalarMap[str, int]
        executing: int
        executing_seats: int
        waiting: int
        waiting_seats: int
        def __init__(self, name: _Optional[str] = ..., dispatched: _Optional[int] = ..., rejected: _Optional[_Mapping[str, int]] = ..., executing: _Optional[int] = ..., executing_seats: _Optional[int] = ..., waiting: _Optional[int] = ..., waiting_seats: _Optional[int] = ...) -> None: ...
    class Level(_message.Message):
        __slots__ = ("name", "nominal", "least", "most", "now", "schemas")
        NAME_FIELD_NUMBER: _ClassVar[int]
        NOMINAL_FIELD_NUMBER: _ClassVar[int]
        LEAST_FIELD_NUMBER: _ClassVar[int]
        MOST_FIELD_NUMBER: _ClassVar[int]
        NOW_FIELD_NUMBER: _ClassVar[int]
        SCHEMAS_FIELD_NUMBER: _ClassVar[int]
        name: str
        nominal: int
        least: int
        most: int
        now: int
        schemas: _containers.RepeatedCompositeFieldContainer[LevelsResponse.Schema]
        def __init__(self, name: _Optional[str] = ..., nominal: _Optional[int] = ..., least: _Optional[int] = ..., most: _Optional[int] = ..., now: _Optional[int] = ..., schemas: _Optional[_Iterable[_Union[LevelsResponse.Schema, _Mapping]]] = ...) -> None: ...
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    levels: _containers.RepeatedCompositeFieldContainer[LevelsResponse.Level]
    def __init__(self, levels: _Optional[_Iterable[_Union[LevelsResponse.Level, _Mapping]]] = ...) -> None: ...

class RulesRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class RulesResponse(_message.Message):
    __slots__ = ("rules", "incomplete", "error")
    class Rule(_message.Message):
        __slots__ = ("verbs", "groups", "resources", "names", "paths")
        VERBS_FIELD_NUMBER: _ClassVar[int]
        GROUPS_FIELD_NUMBER: _ClassVar[int]
        RESOURCES_FIELD_NUMBER: _ClassVar[int]
        NAMES_FIELD_NUMBER: _ClassVar[int]
        PATHS_FIELD_NUMBER: _ClassVar[int]
        verbs: _containers.RepeatedScalarFieldContainer[str]
        groups: _containers.RepeatedScalarFieldContainer[str]
        resources: _containers.RepeatedScalarFieldContainer[str]
        names: _containers.RepeatedScalarFieldContainer[str]
        paths: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, verbs: _Optional[_Iterable[str]] = ..., groups: _Optional[_Iterable[str]] = ..., resources: _Optional[_Iterable[str]] = ..., names: _Optional[_Iterable[str]] = ..., paths: _Optional[_Iterable[str]] = ...) -> None: ...
    RULES_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    rules: _containers.RepeatedCompositeFieldContainer[RulesResponse.Rule]
    incomplete: bool
    error: str
    def __init__(self, rules: _Optional[_Iterable[_Union[RulesResponse.Rule, _Mapping]]] = ..., incomplete: _Optional[bool] = ..., error: _Optional[str] = ...) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ("calls",)
    CALLS_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[Call]
    def __init__(self, calls: _Optional[_Iterable[_Union[Call, _Mapping]]] = ...) -> None: ...

class Call(_message.Message):
    __slots__ = ("id", "get", "list", "create", "update", "update_status", "patch", "delete", "bind", "evict", "commit", "delete_collection")
    ID_FIELD_NUMBER: _ClassVar[int]
    GET_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    CREATE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_STATUS_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    BIND_FIELD_NUMBER: _ClassVar[int]
    EVICT_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    DELETE_COLLECTION_FIELD_NUMBER: _ClassVar[int]
    id: int
    get: GetRequest
    list: ListRequest
    create: CreateRequest
    update: UpdateRequest
    update_status: UpdateStatusRequest
    patch: PatchRequest
    delete: DeleteRequest
    bind: BindRequest
    evict: EvictRequest
    commit: CommitRequest
    delete_collection: DeleteCollectionRequest
    def __init__(self, id: _Optional[int] = ..., get: _Optional[_Union[GetRequest, _Mapping]] = ..., list: _Optional[_Union[ListRequest, _Mapping]] = ..., create: _Optional[_Union[CreateRequest, _Mapping]] = ..., update: _Optional[_Union[UpdateRequest, _Mapping]] = ..., update_status: _Optional[_Union[UpdateStatusRequest, _Mapping]] = ..., patch: _Optional[_Union[PatchRequest, _Mapping]] = ..., delete: _Optional[_Union[DeleteRequest, _Mapping]] = ..., bind: _Optional[_Union[BindRequest, _Mapping]] = ..., evict: _Optional[_Union[EvictRequest, _Mapping]] = ..., commit: _Optional[_Union[CommitRequest, _Mapping]] = ..., delete_collection: _Optional[_Union[DeleteCollectionRequest, _Mapping]] = ...) -> None: ...

class SessionResponse(_message.Message):
    __slots__ = ("replies", "sent_ns")
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    SENT_NS_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[Reply]
    sent_ns: int
    def __init__(self, replies: _Optional[_Iterable[_Union[Reply, _Mapping]]] = ..., sent_ns: _Optional[int] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("id", "object", "list", "error", "commit")
    ID_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    id: int
    object: ObjectResponse
    list: ListResponse
    error: bytes
    commit: CommitResponse
    def __init__(self, id: _Optional[int] = ..., object: _Optional[_Union[ObjectResponse, _Mapping]] = ..., list: _Optional[_Union[ListResponse, _Mapping]] = ..., error: _Optional[bytes] = ..., commit: _Optional[_Union[CommitResponse, _Mapping]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("create", "cancel")
    CREATE_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    create: WatchCreate
    cancel: WatchCancel
    def __init__(self, create: _Optional[_Union[WatchCreate, _Mapping]] = ..., cancel: _Optional[_Union[WatchCancel, _Mapping]] = ...) -> None: ...

class WatchCreate(_message.Message):
    __slots__ = ("watch_id", "resource", "label_selector", "field_selector", "resource_version", "allow_bookmarks", "resource_version_match", "send_initial_events", "acknowledge")
    WATCH_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    LABEL_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    FIELD_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    ALLOW_BOOKMARKS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_MATCH_FIELD_NUMBER: _ClassVar[int]
    SEND_INITIAL_EVENTS_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    watch_id: int
    resource: Resource
    label_selector: str
    field_selector: str
    resource_version: str
    allow_bookmarks: bool
    resource_version_match: str
    send_initial_events: bool
    acknowledge: bool
    def __init__(self, watch_id: _Optional[int] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., label_selector: _Optional[str] = ..., field_selector: _Optional[str] = ..., resource_version: _Optional[str] = ..., allow_bookmarks: _Optional[bool] = ..., resource_version_match: _Optional[str] = ..., send_initial_events: _Optional[bool] = ..., acknowledge: _Optional[bool] = ...) -> None: ...

class WatchCancel(_message.Message):
    __slots__ = ("watch_id",)
    WATCH_ID_FIELD_NUMBER: _ClassVar[int]
    watch_id: int
    def __init__(self, watch_id: _Optional[int] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[WatchEvent]
    def __init__(self, events: _Optional[_Iterable[_Union[WatchEvent, _Mapping]]] = ...) -> None: ...

class WatchEvent(_message.Message):
    __slots__ = ("watch_id", "type", "resource_version", "object", "error")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ADDED: _ClassVar[WatchEvent.Type]
        MODIFIED: _ClassVar[WatchEvent.Type]
        DELETED: _ClassVar[WatchEvent.Type]
        BOOKMARK: _ClassVar[WatchEvent.Type]
        ERROR: _ClassVar[WatchEvent.Type]
        STARTED: _ClassVar[WatchEvent.Type]
    ADDED: WatchEvent.Type
    MODIFIED: WatchEvent.Type
    DELETED: WatchEvent.Type
    BOOKMARK: WatchEvent.Type
    ERROR: WatchEvent.Type
    STARTED: WatchEvent.Type
    WATCH_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    watch_id: int
    type: WatchEvent.Type
    resource_version: int
    object: bytes
    error: bytes
    def __init__(self, watch_id: _Optional[int] = ..., type: _Optional[_Union[WatchEvent.Type, str]] = ..., resource_version: _Optional[int] = ..., object: _Optional[bytes] = ..., error: _Optional[bytes] = ...) -> None: ...
