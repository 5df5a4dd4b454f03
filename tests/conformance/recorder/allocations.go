package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	clientevents "k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/kubelet/allocation"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/status"
	statustest "k8s.io/kubernetes/pkg/kubelet/status/testing"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
)

// allocationQuestion is a node with pods that are resized and go.
type allocationQuestion struct {
	Node  *v1.Node
	Pods  []*v1.Pod
	Steps []allocationStep
}

type allocationStep struct {
	What     string // resize, remove
	Pod      string
	Requests map[string]v1.ResourceList
}

// allocationState is what is known after a step: of each pod the condition PodResizePending and the allocated requests.
type allocationState struct {
	Pending   map[string][]any                        `json:"pending"`
	Allocated map[string]map[string]map[string]string `json:"allocated"`
	Events    []string                                `json:"events"`
}

// stepsApart is the time between two steps; it never reaches the periodic retry.
const stepsApart = 10 * time.Second

// recoversNothing kills nobody for a pod that does not fit.
type recoversNothing struct{}

func (recoversNothing) HandleAdmissionFailure(_ context.Context, _ *v1.Pod, reasons []lifecycle.PredicateFailureReason) ([]lifecycle.PredicateFailureReason, error) {
	return reasons, nil
}

// answerAllocations lets the allocation manager of the kubelet decide about the resizes of a case.
func answerAllocations(t *testing.T, data json.RawMessage) (any, error) {
	answers, err := distinct(3, func() (any, error) {
		asked := allocationQuestion{}
		if err := json.Unmarshal(data, &asked); err != nil {
			return nil, err
		}
		states := []allocationState{}
		err := inBubble(t, func(*testing.T) error { states = playAllocations(asked); return nil })
		return map[string]any{"states": states}, err
	})
	if err != nil {
		return nil, err
	}
	if len(answers) > 1 {
		return nil, ambiguous{len(answers)}
	}
	return answers[0], nil
}

func playAllocations(asked allocationQuestion) []allocationState {
	active := slices.Clone(asked.Pods)
	events := clientevents.NewFakeRecorder(10_000)
	statuses := status.NewManager(&fake.Clientset{}, kubepod.NewBasicPodManager(), &statustest.FakePodDeletionSafetyProvider{}, kubeletutil.NewPodStartupLatencyTracker())
	byUID := func(uid types.UID) (*v1.Pod, bool) {
		i := slices.IndexFunc(active, func(pod *v1.Pod) bool { return pod.UID == uid })
		if i < 0 {
			return nil, false
		}
		return active[i], true
	}
	ready := config.NewSourcesReady(func(sets.Set[string]) bool { return true })
	manager := allocation.NewInMemoryManager(statuses, func(*v1.Pod) {}, func() []*v1.Pod { return active }, byUID, ready, events)
	node := func(context.Context, bool) (*v1.Node, error) { return asked.Node, nil }
	plugins := func(*schedulerframework.NodeInfo, *lifecycle.PodAdmitAttributes) error { return nil }
	manager.AddPodAdmitHandlers(lifecycle.PodAdmitHandlers{lifecycle.NewPredicateAdmitHandler(node, recoversNothing{}, plugins)})
	for i, pod := range active {
		manager.AddPod(active[:i], pod)
	}
	states := []allocationState{}
	for _, step := range asked.Steps {
		time.Sleep(stepsApart)
		i := slices.IndexFunc(active, func(pod *v1.Pod) bool { return pod.Name == step.Pod })
		if i < 0 {
			continue
		}
		if step.What == "remove" {
			pod := active[i]
			active = slices.Delete(slices.Clone(active), i, i+1)
			manager.RemovePod(pod.UID)
			manager.RetryPendingResizes("removed")
		} else {
			pod := active[i].DeepCopy()
			pod.Generation++
			for j := range pod.Spec.Containers {
				for name, amount := range step.Requests[pod.Spec.Containers[j].Name] {
					pod.Spec.Containers[j].Resources.Requests[name] = amount
				}
			}
			active[i] = pod
			// As HandlePodUpdates does.
			if _, differs := manager.UpdatePodFromAllocation(pod); differs {
				manager.PushPendingResize(pod.UID)
				manager.RetryPendingResizes("updated")
			} else {
				statuses.ClearPodResizePendingCondition(pod.UID)
			}
		}
		synctest.Wait()
		states = append(states, allocationStateOf(active, statuses, manager, events))
	}
	return states
}

func allocationStateOf(active []*v1.Pod, statuses status.Manager, manager allocation.Manager, events *clientevents.FakeRecorder) allocationState {
	state := allocationState{Pending: map[string][]any{}, Allocated: map[string]map[string]map[string]string{}, Events: []string{}}
	for _, pod := range active {
		for _, one := range statuses.GetPodResizeConditions(pod.UID) {
			if one.Type == v1.PodResizePending {
				state.Pending[pod.Name] = []any{one.Reason, one.Message, one.ObservedGeneration}
			}
		}
		state.Allocated[pod.Name] = map[string]map[string]string{}
		for _, container := range pod.Spec.Containers {
			amounts := map[string]string{}
			resources, _ := manager.GetContainerResourceAllocation(pod.UID, container.Name)
			for name, amount := range resources.Requests {
				amounts[string(name)] = amount.String()
			}
			state.Allocated[pod.Name][container.Name] = amounts
		}
	}
	for len(events.Events) > 0 {
		// The order of the fields of a message is that of maps.
		reason := strings.Fields(<-events.Events)[1]
		state.Events = append(state.Events, reason)
	}
	return state
}
