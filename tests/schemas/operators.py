"""Small schemas with what the definitions of public operators use: each the part that is peculiar to one of them, and
objects that are right and wrong by it."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

import yaml

QUANTITY = "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$"

_TEXT = r"""
clusterqueue:
  schema:
    required: [resourceGroups]
    properties:
      cohort: {type: string, maxLength: 253, pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}
      queueingStrategy: {type: string, default: BestEffortFIFO, enum: [StrictFIFO, BestEffortFIFO]}
      preemption:
        type: object
        default: {}
        properties:
          reclaimWithinCohort: {type: string, default: Never, enum: [Never, LowerPriority, Any]}
          borrowWithinCohort:
            type: object
            properties: {policy: {type: string, default: Never, enum: [Never, LowerPriority]}}
        x-kubernetes-validations:
        - {rule: "!(self.reclaimWithinCohort == 'Never' && has(self.borrowWithinCohort) && self.borrowWithinCohort.policy != 'Never')",
           message: reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never}
      resourceGroups:
        type: array
        maxItems: 16
        x-kubernetes-list-type: atomic
        items:
          type: object
          required: [coveredResources, flavors]
          properties:
            coveredResources:
              {type: array, minItems: 1, maxItems: 16, x-kubernetes-list-type: atomic, items: {type: string, maxLength: 317}}
            flavors:
              type: array
              minItems: 1
              maxItems: 16
              x-kubernetes-list-type: map
              x-kubernetes-list-map-keys: [name]
              items:
                type: object
                required: [name, quota]
                properties:
                  name: {type: string, maxLength: 63}
                  quota: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], pattern: "QUANTITY"}
          x-kubernetes-validations:
          - {rule: self.flavors.size() >= self.coveredResources.size(), message: flavors must cover the resources}
  objects:
  - {resourceGroups: [{coveredResources: [cpu], flavors: [{name: a, quota: 5}]}]}
  - {resourceGroups: [{coveredResources: [cpu], flavors: [{name: a, quota: 5x}, {name: a, quota: 1.5}]}]}
  - {resourceGroups: [{coveredResources: [cpu, memory], flavors: [{name: a, quota: 5Gi}]}], queueingStrategy: LIFO}
  - {resourceGroups: [], cohort: A_b, preemption: {borrowWithinCohort: {policy: LowerPriority}}}
  - {resourceGroups: [], preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}}
jobset:
  schema:
    properties:
      replicatedJobs:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name, template]
          properties:
            name: {type: string}
            replicas: {type: integer, format: int32, default: 1}
            template: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {spec: {type: object, properties: {parallelism: {type: integer}}}}}
            groups: {type: array, maxItems: 10, items: {type: string}}
      network:
        type: object
        properties: {enableDNSHostnames: {type: boolean}, subdomain: {type: string}}
        x-kubernetes-validations: [{rule: self == oldSelf, message: Value is immutable}]
      ttl: {type: integer, format: int32, minimum: 0}
      suspend: {type: boolean}
  objects:
  - {replicatedJobs: [{name: a, template: {x: 1, spec: {parallelism: 2, z: 1}}}], network: {subdomain: a}}
  - {replicatedJobs: [{name: a, replicas: 3000000000, template: {spec: {parallelism: x}}}], ttl: -1}
  - {replicatedJobs: [{name: a}, {template: {}}], suspend: "yes"}
  - {replicatedJobs: [{name: a, template: null, groups: [1]}]}
leaderworkers:
  schema:
    required: [template]
    properties:
      replicas: {type: integer, format: int32, default: 1, minimum: 0}
      rollout:
        type: object
        default: {type: RollingUpdate, configuration: {maxUnavailable: 1, maxSurge: 0}}
        required: [type]
        properties:
          type: {type: string, enum: [RollingUpdate]}
          configuration:
            type: object
            required: [maxUnavailable, maxSurge]
            properties:
              maxUnavailable: {x-kubernetes-int-or-string: true, default: 1, anyOf: [{type: integer}, {type: string}]}
              maxSurge: {x-kubernetes-int-or-string: true, default: 0}
      template:
        type: object
        properties:
          size: {type: integer, format: int32, default: 1, minimum: 1}
          restartPolicy: {type: string, default: RecreateGroupOnPodRestart, enum: [Default, RecreateGroupOnPodRestart, None]}
        x-kubernetes-validations: [{rule: self.size < 100, message: too large, fieldPath: .size, reason: FieldValueForbidden}]
  objects:
  - {template: {}}
  - {template: {size: 0, restartPolicy: Never}, rollout: {}}
  - {template: {size: 100}, rollout: {type: RollingUpdate, configuration: {maxUnavailable: 30%, maxSurge: true}}}
  - {}
rabbit:
  schema:
    properties:
      replicas: {type: integer, format: int32, default: 1, minimum: 0}
      image: {type: string}
      persistence:
        type: object
        default: {storage: 10Gi}
        properties: {storage: {x-kubernetes-int-or-string: true, default: 10Gi, anyOf: [{type: integer}, {type: string}], pattern: "QUANTITY"}}
      rabbitmq:
        type: object
        properties:
          additionalPlugins: {type: array, maxItems: 100, items: {type: string, maxLength: 100, pattern: "^\\w+$"}}
          additionalConfig: {type: string, maxLength: 2000}
      override:
        type: object
        properties:
          statefulSet:
            type: object
            properties:
              metadata: {type: object, properties: {labels: {type: object, additionalProperties: {type: string}}}}
              spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
      delayStartSeconds: {type: integer, format: int32, default: 30, minimum: 0}
  objects:
  - {}
  - {replicas: -1, rabbitmq: {additionalPlugins: [a, "b-c", ""]}, persistence: {storage: null}}
  - {override: {statefulSet: {metadata: {labels: {a: 1}, name: x}, spec: {anything: [1]}}}, persistence: {}}
certificate:
  schema:
    required: [issuerRef, secretName]
    properties:
      secretName: {type: string}
      duration: {type: string}
      usages: {type: array, items: {type: string, enum: [signing, digital signature, server auth]}}
      ipAddresses: {type: array, items: {type: string}}
      privateKey:
        type: object
        properties:
          algorithm: {type: string, enum: [RSA, ECDSA, Ed25519]}
          size: {type: integer}
          rotationPolicy: {type: string, enum: [Never, Always]}
      issuerRef:
        type: object
        required: [name]
        properties: {group: {type: string}, kind: {type: string}, name: {type: string}}
      keystores:
        type: object
        properties:
          jks:
            type: object
            required: [create]
            properties: {create: {type: boolean}, passwordSecretRef: {type: object, required: [name], properties: {name: {type: string}}}}
      notAfter: {type: string, format: date-time}
      solvers:
        type: array
        items:
          type: object
          properties:
            http01: {type: object, properties: {port: {type: integer}}}
            dns01: {type: object, properties: {zone: {type: string}}}
          oneOf: [{required: [http01]}, {required: [dns01]}]
  objects:
  - {secretName: a, issuerRef: {name: b}, usages: [signing], notAfter: "2026-01-01T00:00:00Z", solvers: [{http01: {}}]}
  - {secretName: a, issuerRef: {}, usages: [signing, client auth], notAfter: tomorrow}
  - {keystores: {jks: {passwordSecretRef: {}}}, privateKey: {algorithm: DSA, size: big}, ipAddresses: [1]}
  - {secretName: a, issuerRef: {name: b}, solvers: [{}, {http01: {}, dns01: {}}, {dns01: {zone: 1}}]}
prometheus:
  schema:
    properties:
      interval: {type: string, default: 30s, pattern: "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"}
      retentionSize: {type: string, pattern: "(^0|([0-9]*[.])?[0-9]+((K|M|G|T|E|P)i?)?B)$"}
      shards: {type: integer, format: int32}
      externalLabels: {type: object, additionalProperties: {type: string}}
      endpoints:
        type: array
        items:
          type: object
          properties:
            port: {type: string}
            targetPort: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
            params: {type: object, additionalProperties: {type: array, items: {type: string}}}
            relabelings:
              type: array
              minItems: 1
              items:
                type: object
                properties:
                  action: {type: string, default: replace, enum: [replace, Replace, keep, drop]}
                  regex: {type: string}
                  modulus: {type: integer, format: int64}
                  sourceLabels: {type: array, items: {type: string, pattern: "^(([a-zA-Z_])([a-zA-Z0-9_])*)$"}}
      conditions:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [type]
        items: {type: object, required: [type, status], properties: {type: {type: string, minLength: 1}, status: {type: string, minLength: 1}}}
  objects:
  - {interval: 1m30s, endpoints: [{targetPort: 80, relabelings: [{}]}], externalLabels: {a: b}}
  - {interval: 30s1m, retentionSize: 5GB5, endpoints: [{targetPort: 1.5, relabelings: []}]}
  - {endpoints: [{params: {a: b}, relabelings: [{action: hash, sourceLabels: [a, "1"]}]}], externalLabels: {a: 1}}
  - {conditions: [{type: a, status: b}, {type: a, status: ""}, {type: ""}], shards: 1.0}
zookeeper:
  schema:
    x-kubernetes-preserve-unknown-fields: true
    properties:
      replicas: {type: integer, minimum: 1}
      image: {type: object, properties: {repository: {type: string}, tag: {type: string}}}
      labels: {type: object, additionalProperties: {type: string}}
      ports: {type: array, items: {type: object, required: [containerPort], properties: {containerPort: {type: integer, format: int32}, protocol: {type: string, default: TCP}}}, x-kubernetes-list-map-keys: [containerPort, protocol], x-kubernetes-list-type: map}
  objects:
  - {replicas: 3, unknown: {a: [null]}, image: {tag: a, other: b}, ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}
  - {replicas: 0, ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}], labels: {a: null, b: 1}}
kafka:
  schema:
    properties:
      kafka:
        type: object
        required: [listeners]
        properties:
          version: {type: string}
          config: {type: object, x-kubernetes-preserve-unknown-fields: true}
          listeners:
            type: array
            minItems: 1
            items:
              type: object
              required: [name, port, type, tls]
              properties:
                name: {type: string, pattern: "^[a-z0-9]{1,11}$"}
                port: {type: integer, minimum: 9092}
                type: {type: string, enum: [internal, route, loadbalancer]}
                tls: {type: boolean}
          storage:
            type: object
            required: [type]
            properties:
              type: {type: string, enum: [ephemeral, persistent-claim, jbod]}
              size: {type: string}
              volumes: {type: array, items: {type: object, required: [id], properties: {id: {type: integer, minimum: 0}}}}
      entityOperator: {type: object, nullable: true, properties: {watched: {type: array, items: {type: string}}}}
  objects:
  - {kafka: {config: {a.b: 1, c: [x]}, listeners: [{name: a, port: 9092, type: internal, tls: false}]}, entityOperator: null}
  - {kafka: {listeners: [{name: UPPER, port: 80, type: nodeport, tls: "no"}], storage: {}}}
  - {kafka: {listeners: [], storage: {type: jbod, volumes: [{id: -1}, {}]}}}
workflow:
  schema:
    properties:
      entrypoint: {type: string}
      templates: {type: array, items: {type: object, x-kubernetes-map-type: atomic, x-kubernetes-preserve-unknown-fields: true}}
      arguments: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-map-type: atomic}
      volumes: {type: array, items: {type: object, required: [name], properties: {name: {type: string}}, x-kubernetes-preserve-unknown-fields: true}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name]}
  objects:
  - {entrypoint: a, templates: [{dag: {tasks: [{name: b}]}}], arguments: {parameters: [{name: c, value: 1}]}}
  - {entrypoint: 1, templates: [x], arguments: [], volumes: [{}, {name: a, emptyDir: {}}]}
virtualmachine:
  schema:
    required: [template]
    properties:
      running: {type: boolean}
      runStrategy: {type: string}
      template:
        type: object
        nullable: true
        properties:
          metadata: {type: object, nullable: true, x-kubernetes-preserve-unknown-fields: true}
          spec:
            type: object
            properties:
              memory: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], pattern: "QUANTITY"}
              cores: {type: integer, format: int32}
              disks: {type: array, maxItems: 256, items: {type: object, required: [name], properties: {name: {type: string}, bootOrder: {type: integer}, serial: {type: string}}}}
              probe: {type: object, properties: {port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}, periodSeconds: {type: integer, format: int32}}}
    x-kubernetes-validations: [{rule: "!(has(self.running) && has(self.runStrategy))", message: running and runStrategy exclude each other}]
  objects:
  - {running: true, template: {metadata: {anything: 1}, spec: {memory: 1Gi, disks: [{name: a}]}}}
  - {running: true, runStrategy: Always, template: {spec: {memory: 1 Gi}}}
  - {template: null}
  - {template: {metadata: null, spec: {cores: 2147483648, disks: [{}], probe: {port: 8.5}}}}
httproute:
  schema:
    properties:
      hostnames: {type: array, maxItems: 16, x-kubernetes-list-type: atomic, items: {type: string, minLength: 1, maxLength: 253, pattern: "^(\\*\\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}}
      rules:
        type: array
        default: [{matches: [{path: {type: PathPrefix, value: /}}]}]
        minItems: 1
        maxItems: 16
        items:
          type: object
          properties:
            name: {type: string, maxLength: 253}
            matches:
              type: array
              default: [{path: {type: PathPrefix, value: /}}]
              maxItems: 8
              items:
                type: object
                properties:
                  path:
                    type: object
                    default: {type: PathPrefix, value: /}
                    properties: {type: {type: string, default: PathPrefix, enum: [Exact, PathPrefix]}, value: {type: string, default: /, maxLength: 1024}}
                    x-kubernetes-validations:
                    - {rule: "self.value.startsWith('/')", message: value must be an absolute path}
                    - {rule: "!self.value.contains('//')", message: must not contain '//'}
            timeout: {type: string, pattern: "^([0-9]{1,5}(h|m|s|ms)){1,4}$"}
            weight: {type: integer, format: int32, default: 1, minimum: 0, maximum: 1000000}
          x-kubernetes-validations: [{rule: "!has(self.timeout) || duration(self.timeout) != duration('0s')", message: timeout must not be zero}]
        x-kubernetes-validations: [{rule: "self.all(l1, !has(l1.name) || self.exists_one(l2, has(l2.name) && l1.name == l2.name))", message: names must be unique}]
  objects:
  - {}
  - {hostnames: ["*.a.b", "A"], rules: []}
  - {rules: [{}, {matches: [{path: {value: a//b}}], timeout: 0s}, {name: x}, {name: x, weight: 1000001}]}
  - {rules: [{timeout: 1x}, {matches: null}]}
"""


def load() -> dict[str, dict[str, Any]]:
    """By name: the schema of ``spec``, and specs."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(_TEXT.replace("QUANTITY", QUANTITY.replace("\\", "\\\\")))
    for one in found.values():
        one["schema"] = {"type": "object", **one["schema"]}
    return found
