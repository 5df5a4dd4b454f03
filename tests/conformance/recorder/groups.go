package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	schedulingclient "k8s.io/client-go/kubernetes/typed/scheduling/v1alpha2"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var groupsResource = schedulingv1alpha2.SchemeGroupVersion.WithResource("podgroups")

// switchGates sets all gates at once, as some need others, and returns what sets them back.
func switchGates(wanted map[string]bool) (func(), error) {
	before, after := []string{}, []string{}
	for gate, on := range wanted {
		before = append(before, fmt.Sprintf("%s=%t", gate, utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(gate))))
		after = append(after, fmt.Sprintf("%s=%t", gate, on))
	}
	back := func() { must(utilfeature.DefaultMutableFeatureGate.Set(strings.Join(before, ","))) }
	return back, utilfeature.DefaultMutableFeatureGate.Set(strings.Join(after, ","))
}

func (w *world) createGroup(given *schedulingv1alpha2.PodGroup) error {
	group := given.DeepCopy()
	group.Namespace = namespace
	if group.UID == "" {
		group.UID = types.UID("uid-group-" + group.Name)
	}
	w.version++
	group.ResourceVersion = fmt.Sprint(w.version)
	w.groups[group.Name] = group
	return w.tracker.Create(groupsResource, group.DeepCopy(), namespace)
}

func (w *world) deleteGroup(name string) error {
	if w.groups[name] == nil {
		return nil
	}
	delete(w.groups, name)
	return w.tracker.Delete(groupsResource, namespace, name)
}

func (c slowClient) SchedulingV1alpha2() schedulingclient.SchedulingV1alpha2Interface {
	return slowScheduling{c.Interface.SchedulingV1alpha2(), c.world}
}

type slowScheduling struct {
	schedulingclient.SchedulingV1alpha2Interface
	world *world
}

func (c slowScheduling) PodGroups(space string) schedulingclient.PodGroupInterface {
	return slowGroups{c.SchedulingV1alpha2Interface.PodGroups(space), c.world}
}

type slowGroups struct {
	schedulingclient.PodGroupInterface
	world *world
}

// Patch writes the condition of a group; the timeline has its reason and message.
func (g slowGroups) Patch(
	_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string,
) (*schedulingv1alpha2.PodGroup, error) {
	w := g.world
	time.Sleep(w.latencies.call - w.latencies.answer)
	w.mu.Lock()
	err := w.patchGroup(name, data)
	w.mu.Unlock()
	time.Sleep(w.latencies.answer)
	w.wake()
	return nil, err
}

func (w *world) patchGroup(name string, data []byte) error {
	before := w.groups[name]
	if before == nil {
		return fmt.Errorf("podgroups %q not found", name)
	}
	content, err := json.Marshal(before)
	if err == nil {
		content, err = strategicpatch.StrategicMergePatch(content, data, schedulingv1alpha2.PodGroup{})
	}
	group := &schedulingv1alpha2.PodGroup{}
	if err == nil {
		err = json.Unmarshal(content, group)
	}
	if err != nil {
		return err
	}
	for _, one := range group.Status.Conditions {
		w.note(entry{Pod: "group/" + name, What: one.Reason, Message: one.Message})
	}
	w.version++
	group.ResourceVersion = fmt.Sprint(w.version)
	w.groups[name] = group
	return w.tracker.Update(groupsResource, group.DeepCopy(), namespace)
}

// orderMembers lets pods of groups that got ready in one instant, in the order of a map, be tried in the order of their
// arrival: the scheduler sorts them by the time at which they got ready, which differs by nanoseconds in a real process.
func (w *world) orderMembers(sched *scheduler.Scheduler) {
	if len(w.asked.Groups) == 0 {
		return
	}
	queue := sched.SchedulingQueue.(interface {
		GetPod(name, namespace string) (*framework.QueuedPodInfo, bool)
	})
	w.mu.Lock()
	arrived := slices.Clone(w.arrived)
	w.mu.Unlock()
	for place, pod := range arrived {
		waiting, ok := queue.GetPod(pod.Name, pod.Namespace)
		if !ok || waiting.InitialAttemptTimestamp == nil || waiting.Pod.UID != pod.UID || w.ordered[pod.UID] {
			continue
		}
		w.ordered[pod.UID] = true
		at := waiting.InitialAttemptTimestamp.Add(time.Duration(place))
		waiting.InitialAttemptTimestamp = &at
	}
}

func isMember(pod *v1.Pod) bool { return pod.Spec.SchedulingGroup != nil }
