"""Scenarios that several tests explore."""

from __future__ import annotations

RACE = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: race}
spec:
  seed: 3
  duration: 20s
  nodes:
    - {name: alpha, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
  schedulers: [{name: red}, {name: blue}]
  timing: {watchLatency: {uniform: {min: 1ms, max: 40ms}}}
  events:
    - {at: 1s, create: {apiVersion: v1, kind: Pod, metadata: {name: red-pod},
       spec: {schedulerName: red, containers: [{name: main, resources: {requests: {cpu: "3"}}}]}}}
    - {at: 1020ms, create: {apiVersion: v1, kind: Pod, metadata: {name: blue-pod},
       spec: {schedulerName: blue, containers: [{name: main, resources: {requests: {cpu: "3"}}}]}}}
  expect:
    - {id: one-is-bound, pods: {names: [red-pod, blue-pod]}, count: {is: {bound: {}}, equals: 1}}
"""
"""Some seeds show that both are bound, some do not."""
