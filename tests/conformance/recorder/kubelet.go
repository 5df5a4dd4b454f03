package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/kubelet/qos"
	kubelettypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// drawsOfMaps is how often a question is asked whose answer may depend on the iteration order of a Go map.
const drawsOfMaps = 200

var kubeletFamilies = map[string]func(json.RawMessage) (any, error){
	"qos":                 answerQOS,
	"critical":            answerCritical,
	"thresholds":          answerThresholds,
	"config-defaults":     answerConfigDefaults,
	"admission":           answerAdmission,
	"critical-preemption": answerAdmission,
	"eviction-rank":       answerRanking,
	"eviction-manager":    answerEvictionManager,
	"readiness":           answerReadiness,
	"resize":              answerResize,
}

// familiesInTime run controllers in virtual time.
var familiesInTime = map[string]func(*testing.T, json.RawMessage) (any, error){
	"eviction-loop":  answerEvictionLoop,
	"node-failure":   answerNodeFailure,
	"taint-eviction": answerTaintEviction,
	"probes":         answerProbing,
	"allocations":    answerAllocations,
}

// answerKubelet answers a decision of the kubelet. The id of a case begins with its family; families of generated cases
// end in "-mixed" and ask the same questions.
func answerKubelet(t *testing.T, data json.RawMessage) (any, error) {
	asked := struct{ ID, Family string }{}
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	family := asked.Family
	if family == "" {
		family = asked.ID[:max(0, strings.LastIndex(asked.ID, "-"))]
	}
	family = strings.TrimSuffix(family, "-mixed")
	if answer, known := kubeletFamilies[family]; known {
		return answer(data)
	}
	if answer, known := familiesInTime[family]; known {
		return answer(t, data)
	}
	return nil, fmt.Errorf("%s: the recorder cannot ask the family %q", asked.ID, family)
}

var resourcesOfQOS = []v1.ResourceName{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "pods"}

func answerQOS(data json.RawMessage) (any, error) {
	asked := struct {
		Pod            *v1.Pod
		MemoryCapacity json.Number
	}{}
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	capacity, ok := new(big.Int).SetString(asked.MemoryCapacity.String(), 10)
	if !ok || !capacity.IsInt64() {
		return nil, fmt.Errorf("memoryCapacity %s is not an integer", asked.MemoryCapacity)
	}
	scores := map[string]int{}
	for _, containers := range [][]v1.Container{asked.Pod.Spec.InitContainers, asked.Pod.Spec.Containers} {
		for i := range containers {
			scores[containers[i].Name] = qos.GetContainerOOMScoreAdjust(asked.Pod, &containers[i], capacity.Int64())
		}
	}
	requests := map[v1.ResourceName]int64{}
	for _, name := range resourcesOfQOS {
		requests[name] = resource.GetResourceRequest(asked.Pod, name)
	}
	return map[string]any{
		"qosClass":         v1qos.GetPodQOS(asked.Pod),
		"computedQOSClass": v1qos.ComputePodQOS(asked.Pod),
		"oomScoreAdj":      scores,
		"requests":         requests,
	}, nil
}

func answerCritical(data json.RawMessage) (any, error) {
	asked := struct{ Pods []*v1.Pod }{}
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	properties, victims := map[string]any{}, map[string][]string{}
	for _, pod := range asked.Pods {
		properties[pod.Name] = map[string]bool{
			"static":       kubelettypes.IsStaticPod(pod),
			"mirror":       kubelettypes.IsMirrorPod(pod),
			"critical":     kubelettypes.IsCriticalPod(pod),
			"nodeCritical": kubelettypes.IsNodeCriticalPod(pod),
		}
		victims[pod.Name] = []string{}
		for _, other := range asked.Pods {
			if kubelettypes.Preemptable(pod, other) {
				victims[pod.Name] = append(victims[pod.Name], other.Name)
			}
		}
	}
	return map[string]any{"pods": properties, "canPreempt": victims}, nil
}
