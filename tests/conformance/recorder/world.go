package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	orphansLive        = 40 * time.Second
	namespace          = "default"
	shutdownAnnotation = "kemu.dev/shutdown-seconds"
	runAnnotation      = "kemu.dev/run-seconds"
)

var (
	podsResource    = v1.SchemeGroupVersion.WithResource("pods")
	nodesResource   = v1.SchemeGroupVersion.WithResource("nodes")
	budgetsResource = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
)

// world is the API server, the kubelets and the people, as far as a timeline knows them; also who writes it down.
type world struct {
	asked     *history
	latencies latencies
	tracker   clienttesting.ObjectTracker
	changed   chan struct{}

	mu       sync.Mutex
	began    bool
	version  int
	pods     map[string]*v1.Pod
	nodes    map[string]*v1.Node
	ends     map[string]time.Time
	gone     map[string]place
	refusals map[string]int
	deleted  map[string]bool
	failing  map[string]string
	timeline []entry
	groups   map[string]*schedulingv1alpha2.PodGroup
	arrived  []*v1.Pod
	ordered  map[types.UID]bool
}

func newWorld(asked *history, small latencies, tracker clienttesting.ObjectTracker) *world {
	return &world{
		asked: asked, latencies: small, tracker: tracker, changed: make(chan struct{}, 1), pods: map[string]*v1.Pod{}, nodes: map[string]*v1.Node{},
		ends: map[string]time.Time{}, gone: map[string]place{}, refusals: asked.BindErrors, deleted: map[string]bool{},
		failing: map[string]string{}, timeline: []entry{}, groups: map[string]*schedulingv1alpha2.PodGroup{},
		ordered: map[types.UID]bool{},
	}
}

func (w *world) now() time.Duration { return time.Since(w.asked.Start) }

func (w *world) note(one entry) {
	one.AtS = math.Round(w.now().Seconds()*1000) / 1000
	w.timeline = append(w.timeline, one)
}

// wake lets the loop of the scheduler look at its queue.
func (w *world) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// setUp stores what there is from the beginning, but for the pending pods.
func (w *world) setUp() error {
	for _, budget := range w.asked.Budgets {
		if err := w.tracker.Create(budgetsResource, budget, namespace); err != nil {
			return err
		}
	}
	for _, group := range w.asked.Groups {
		if err := w.createGroup(group); err != nil {
			return err
		}
	}
	for _, node := range w.asked.Nodes {
		w.putNode(node, false)
	}
	for _, pod := range w.asked.Pods {
		if pod.Spec.NodeName != "" {
			w.create(pod)
		}
	}
	return w.tracker.Create(v1.SchemeGroupVersion.WithResource("namespaces"),
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, "")
}

// begin arms the ends of the pods that run from the beginning: they count from second 0.
func (w *world) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = true
	for _, pod := range w.asked.Pods {
		if known := w.pods[pod.Name]; known != nil && known.Spec.NodeName != "" {
			w.armRun(known)
		}
	}
}

func (w *world) create(given *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := given.DeepCopy()
	if pod.Namespace == "" {
		pod.Namespace = namespace
	}
	if pod.UID == "" {
		pod.UID = types.UID("uid-" + pod.Name)
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	if pod.Spec.NodeName != "" {
		w.run(pod)
	} else {
		pod.Status.Phase = v1.PodPending
	}
	if isMember(pod) {
		w.arrived = append(w.arrived, pod)
	}
	w.put(pod)
}

// put stores a pod; the watch shows it.
func (w *world) put(pod *v1.Pod) {
	w.version++
	pod.ResourceVersion = strconv.Itoa(w.version)
	w.wake()
	_, known := w.pods[pod.Name]
	w.pods[pod.Name] = pod
	if known {
		must(w.tracker.Update(podsResource, pod.DeepCopy(), namespace))
	} else {
		must(w.tracker.Create(podsResource, pod.DeepCopy(), namespace))
	}
}

func (w *world) run(pod *v1.Pod) {
	pod.Status.Phase = v1.PodRunning
	if pod.Status.StartTime == nil {
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		pod.Status.StartTime = &now
	}
	if w.began {
		w.armRun(pod)
	}
}

func (w *world) armRun(pod *v1.Pod) {
	if text, ok := pod.Annotations[runAnnotation]; ok {
		name, uid := pod.Name, pod.UID
		time.AfterFunc(seconds(text), func() { w.finish(name, uid) })
	}
}

func (w *world) finish(name string, uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := w.pods[name]
	if pod == nil || (uid != "" && pod.UID != uid) || w.nodes[pod.Spec.NodeName] == nil {
		return
	}
	if pod.Status.Phase != v1.PodRunning {
		return
	}
	if pod.DeletionTimestamp != nil {
		w.remove(name)
		return
	}
	w.note(entry{Pod: name, What: "finished"})
	w.gone[name] = place{State: "finished", Node: pod.Spec.NodeName, Nominated: pod.Status.NominatedNodeName}
	w.forget(name)
}

func (w *world) remove(name string) {
	w.note(entry{Pod: name, What: "gone"})
	w.gone[name] = place{State: "gone", Node: w.pods[name].Spec.NodeName}
	w.forget(name)
}

// forget ends what the watch shows of a pod. The scheduler does not watch finished pods.
func (w *world) forget(name string) {
	w.wake()
	delete(w.pods, name)
	must(w.tracker.Delete(podsResource, namespace, name))
}

// terminate is a DELETE. The grace period is that of the pod where none is given.
func (w *world) terminate(name string, given *int64, byUser bool) {
	pod := w.pods[name].DeepCopy()
	if pod.Spec.NodeName == "" {
		w.remove(name)
		return
	}
	grace := int64(30)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	again := pod.DeletionTimestamp != nil
	if given != nil {
		grace = *given
	} else if again {
		return
	}
	if grace == 0 {
		w.remove(name)
		return
	}
	wait := time.Duration(grace) * time.Second
	if text, ok := pod.Annotations[shutdownAnnotation]; ok {
		wait = min(wait, seconds(text))
	}
	end := time.Now().Add(wait)
	if before, ok := w.ends[name]; again && ok && !end.Before(before) {
		return
	}
	if !again {
		at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
		if byUser {
			w.note(entry{Pod: name, What: "deleted"})
		}
		w.put(pod)
	}
	w.ends[name] = end
	uid := pod.UID
	time.AfterFunc(wait, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		known := w.pods[name]
		if known != nil && known.UID == uid && w.nodes[known.Spec.NodeName] != nil && !time.Now().Before(w.ends[name]) {
			w.remove(name)
		}
	})
}

// Events

func (w *world) happen(one event) {
	switch one.Do {
	case "createPod":
		w.create(one.Pod)
		return
	case "finishPod":
		w.finish(one.Name, "")
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake()
	switch one.Do {
	case "deletePod":
		if w.pods[one.Name] != nil {
			w.terminate(one.Name, one.GraceSeconds, true)
		}
	case "updatePod":
		if w.pods[one.Name] != nil {
			w.update(one)
		}
	case "addNode", "updateNode":
		w.putNode(one.Node, one.Do == "updateNode")
	case "deleteNode":
		if w.nodes[one.Name] != nil {
			delete(w.nodes, one.Name)
			must(w.tracker.Delete(nodesResource, "", one.Name))
			time.AfterFunc(orphansLive, func() { w.collect(one.Name) })
		}
	case "createPodGroup":
		must(w.createGroup(one.Group))
	case "deletePodGroup":
		must(w.deleteGroup(one.Name))
	case "updateBudget":
		budget := one.Budget.DeepCopy()
		w.version++
		budget.ResourceVersion = strconv.Itoa(w.version)
		must(w.tracker.Update(budgetsResource, budget, namespace))
	default:
		panic("no such event: " + one.Do)
	}
}

func (w *world) update(one event) {
	pod := w.pods[one.Name].DeepCopy()
	if one.Labels != nil {
		pod.Labels = one.Labels
	}
	if len(one.RemoveGates) > 0 {
		var names []string
		all := string(one.RemoveGates) == "true"
		if !all {
			must(json.Unmarshal(one.RemoveGates, &names))
		}
		pod.Spec.SchedulingGates = slices.DeleteFunc(pod.Spec.SchedulingGates, func(gate v1.PodSchedulingGate) bool {
			return all || slices.Contains(names, gate.Name)
		})
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, one.AddTolerations...)
	for name, amount := range one.Requests {
		pod.Spec.Containers[0].Resources.Requests[name] = amount
	}
	w.put(pod)
}

func (w *world) putNode(given *v1.Node, onlyKnown bool) {
	node := given.DeepCopy()
	w.version++
	node.ResourceVersion = strconv.Itoa(w.version)
	if w.nodes[node.Name] != nil {
		w.nodes[node.Name] = node
		must(w.tracker.Update(nodesResource, node, ""))
	} else if !onlyKnown {
		w.nodes[node.Name] = node
		must(w.tracker.Create(nodesResource, node, ""))
	}
}

// collect removes the pods of a node that is gone for long.
func (w *world) collect(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name, pod := range w.pods {
			if pod.Spec.NodeName == node && !yield(name) {
				return
			}
		}
	}) {
		w.remove(name)
	}
}

// The API as the scheduler calls it

// slowClient is the client of the scheduler: its calls take time.
type slowClient struct {
	kubernetes.Interface
	world *world
}

func (c slowClient) CoreV1() corev1client.CoreV1Interface {
	return slowCore{c.Interface.CoreV1(), c.world}
}

type slowCore struct {
	corev1client.CoreV1Interface
	world *world
}

func (c slowCore) Pods(space string) corev1client.PodInterface {
	return slowPods{c.CoreV1Interface.Pods(space), c.world}
}

type slowPods struct {
	corev1client.PodInterface
	world *world
}

func (p slowPods) Bind(_ context.Context, binding *v1.Binding, _ metav1.CreateOptions) error {
	return p.world.bind(binding.Name, binding.Target.Name)
}

func (p slowPods) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	return p.world.call(name, func() error {
		p.world.deleted[name] = true
		p.world.terminate(name, nil, false)
		return nil
	})
}

func (p slowPods) Patch(
	_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string,
) (*v1.Pod, error) {
	pod := &v1.Pod{}
	return pod, p.world.call(name, func() error {
		if rest := p.world.asked.StatusErrors[name]; len(rest) > 0 {
			p.world.asked.StatusErrors[name] = rest[1:]
			p.world.note(entry{Pod: name, What: "refused", Message: rest[0]})
			return statusError(rest[0], name)
		}
		before := p.world.pods[name]
		content, err := json.Marshal(before)
		if err == nil {
			content, err = strategicpatch.StrategicMergePatch(content, data, v1.Pod{})
		}
		if err == nil {
			err = json.Unmarshal(content, pod)
		}
		if err != nil {
			return err
		}
		if node := pod.Status.NominatedNodeName; node == "" && before.Status.NominatedNodeName != "" {
			p.world.note(entry{Pod: name, What: "nominationCleared"})
		} else if node != before.Status.NominatedNodeName {
			p.world.note(entry{Pod: name, What: "nominated", Node: node})
		}
		p.world.put(pod)
		return nil
	})
}

// statusError is what a client gets instead of an answer to a patch of a status.
func statusError(what, name string) error {
	switch what {
	case "Conflict":
		return apierrors.NewConflict(podsResource.GroupResource(), name, errors.New("it changed"))
	case "InternalError":
		return apierrors.NewInternalError(errors.New("it broke"))
	case "ServiceUnavailable":
		return apierrors.NewServiceUnavailable("it is away")
	case "Timeout":
		return apierrors.NewTimeoutError("it is slow", 0)
	case "TooManyRequests":
		return apierrors.NewTooManyRequests("it is busy", 0)
	case "outcome unknown":
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "etcdserver: request timed out"}}
	case "connection refused", "connection reset":
		cause := map[string]syscall.Errno{"connection refused": syscall.ECONNREFUSED, "connection reset": syscall.ECONNRESET}[what]
		return &url.Error{Op: "Patch", URL: "https://apiserver", Err: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", cause)}}
	}
	panic("no such error: " + what)
}

// call waits, applies what is asked for if the pod is there, and waits for the answer.
func (w *world) call(name string, apply func() error) error {
	time.Sleep(w.latencies.call - w.latencies.answer)
	w.mu.Lock()
	err := error(apierrors.NewNotFound(podsResource.GroupResource(), name))
	if w.pods[name] != nil {
		err = apply()
	}
	w.mu.Unlock()
	time.Sleep(w.latencies.answer)
	w.wake()
	return err
}

func (w *world) bind(name, node string) error {
	return w.call(name, func() error {
		if w.refusals[name] > 0 {
			w.refusals[name]--
			return errors.New("the binding was refused")
		}
		pod := w.pods[name].DeepCopy()
		if pod.Spec.NodeName != "" {
			return apierrors.NewConflict(podsResource.GroupResource(), name, errors.New("assigned already"))
		}
		pod.Spec.NodeName, pod.Status.NominatedNodeName = node, ""
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(one v1.PodCondition) bool {
			return one.Type == v1.PodScheduled
		})
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{
			Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now(),
		})
		w.run(pod)
		w.note(entry{Pod: name, What: "bound", Node: node})
		w.put(pod)
		return nil
	})
}

// What the scheduler says

// listenTo learns of each failed attempt whether plugins rejected the pod or something went wrong.
func (w *world) listenTo(sched *scheduler.Scheduler) {
	handle := sched.FailureHandler
	sched.FailureHandler = func(
		ctx context.Context, profile framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status,
		nominating *fwk.NominatingInfo, start time.Time,
	) {
		w.mu.Lock()
		w.failing[pod.Pod.Name] = "error"
		if status.IsRejected() {
			w.failing[pod.Pod.Name] = "unschedulable"
		}
		w.mu.Unlock()
		handle(ctx, profile, pod, status, nominating, start)
	}
}

// listener takes the events of the scheduler.
type listener struct{ world *world }

func (l listener) WithLogger(klog.Logger) events.EventRecorderLogger { return l }

func (l listener) Eventf(object, related runtime.Object, _, reason, _, text string, _ ...interface{}) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return
	}
	w := l.world
	w.mu.Lock()
	defer w.mu.Unlock()
	// A pod that failed is in the queue again.
	w.wake()
	switch {
	case reason == "FailedScheduling" && !strings.HasPrefix(text, "skip schedule"):
		w.note(entry{Pod: pod.Name, What: w.failing[pod.Name], Message: text})
	case reason == "Preempted" && w.deleted[pod.Name]:
		delete(w.deleted, pod.Name)
		w.note(entry{Pod: pod.Name, What: "preempted", By: related.(metav1.Object).GetName()})
	}
}

func (w *world) outcome() *outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	final := map[string]place{}
	for name, where := range w.gone {
		final[name] = where
	}
	for name, pod := range w.pods {
		state := "pending"
		if pod.DeletionTimestamp != nil {
			state = "terminating"
		} else if pod.Spec.NodeName != "" {
			state = "running"
		}
		final[name] = place{State: state, Node: pod.Spec.NodeName, Nominated: pod.Status.NominatedNodeName}
	}
	return &outcome{Timeline: slices.Clone(w.timeline), Final: final}
}

func seconds(text string) time.Duration {
	value, err := strconv.ParseFloat(text, 64)
	must(err)
	return time.Duration(math.Round(value * float64(time.Second)))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
