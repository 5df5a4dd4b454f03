package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
)

const (
	repetitionsOfDevices    = 12
	repetitionsOfPostFilter = 80
	untilSeen               = time.Second
	longestPreBind          = 700 * time.Second
)

// allocatable is what a question says of dynamic resource allocation.
type allocatable struct {
	ResourceClaims []*resourceapi.ResourceClaim `json:"resourceClaims"`
	ResourceSlices []*resourceapi.ResourceSlice `json:"resourceSlices"`
	DeviceClasses  []*resourceapi.DeviceClass   `json:"deviceClasses"`
	// AllocatedAgoS says how long ago a claim was allocated, by name.
	AllocatedAgoS map[string]int64 `json:"allocatedAgoS"`
	// Drivers write the status of a claim during PreBind.
	Drivers []driverWrite `json:"drivers"`
	// Hints are events of which the plugins are asked whether they might help the pod.
	Hints []hintCase `json:"hints"`
}

type hintCase struct {
	Kind string          `json:"kind"`
	Old  json.RawMessage `json:"old"`
	New  json.RawMessage `json:"new"`
}

type driverWrite struct {
	AtS     float64                             `json:"atS"`
	Claim   string                              `json:"claim"`
	Devices []resourceapi.AllocatedDeviceStatus `json:"devices"`
}

// devicesDecision is a decision, and what the plugin DynamicResources would allocate and writes.
type devicesDecision struct {
	*decision
	PreEnqueue  *answered                 `json:"preEnqueue,omitempty"`
	Allocations map[string]allocationPlan `json:"allocations,omitempty"`
	Bound       *boundClaims              `json:"bound,omitempty"`
	Written     *writtenClaims            `json:"written,omitempty"` // by PostFilter
	Hints       []map[string]bool         `json:"hints,omitempty"`   // by plugin, for each event
}

type allocationPlan struct {
	Results  []resourceapi.AllocationResult        `json:"results,omitempty"`
	Requests []resourceapi.DeviceRequest           `json:"requests,omitempty"`
	Mappings []v1.ContainerExtendedResourceRequest `json:"mappings,omitempty"`
}

type boundClaims struct {
	Node     string    `json:"node"`
	Reserve  *answered `json:"reserve,omitempty"`
	PreBind  *answered `json:"preBind,omitempty"`
	EndedAtS float64   `json:"endedAtS"`
	*writtenClaims
	Unreserved *writtenClaims `json:"unreserved,omitempty"`
}

// writtenClaims are the claims that are no longer as they were, null where one is gone.
type writtenClaims struct {
	Claims map[string]any                     `json:"claims,omitempty"`
	Pod    *v1.PodExtendedResourceClaimStatus `json:"pod,omitempty"`
}

// answerDevices plays a case several times, and leaves it out if the order of a map decides.
func answerDevices(t *testing.T, data json.RawMessage) (any, error) {
	play := func() (any, error) {
		asked := &question{}
		if err := json.Unmarshal(data, asked); err != nil {
			return nil, err
		}
		var found *devicesDecision
		err := inBubble(t, func(t *testing.T) (err error) {
			found, err = decideDevices(t.Context(), asked)
			return err
		})
		if err != nil {
			return nil, err
		}
		return normalizedDevices(found)
	}
	answers, err := distinct(repetitionsOfDevices, play)
	if err == nil && bytes.Contains(answers[0], []byte(`"written"`)) {
		// PostFilter takes the claim that it met first seven times in eight.
		answers, err = distinct(repetitionsOfPostFilter, play)
	}
	if err != nil {
		return nil, err
	}
	if len(answers) > 1 {
		return nil, ambiguous{len(answers)}
	}
	return answers[0], nil
}

func decideDevices(parent context.Context, asked *question) (*devicesDecision, error) {
	ctx, cancel := context.WithCancel(parent)
	defer func() {
		cancel()
		time.Sleep(untilAllEnded)
	}()
	given, err := configurationOfProfile(asked.Profile)
	if err != nil {
		return nil, err
	}
	w := &devicesWorld{client: fake.NewSimpleClientset()}
	w.client.PrependReactor("create", "*", w.write)
	w.client.PrependReactor("update", "*", w.write)
	s, err := stillSchedulerOf(ctx, w.client, asked, given)
	if err != nil {
		return nil, err
	}
	kinds := s.factory.Resource().V1()
	go kinds.ResourceClaims().Informer().Run(ctx.Done())
	go kinds.ResourceSlices().Informer().Run(ctx.Done())
	go kinds.DeviceClasses().Informer().Run(ctx.Done())
	time.Sleep(untilSeen)
	if err := w.fill(ctx, asked); err != nil {
		return nil, err
	}
	time.Sleep(untilSeen)
	before, err := w.claims(ctx)
	if err != nil {
		return nil, err
	}
	found := &devicesDecision{}
	found.PreEnqueue = w.preEnqueue(ctx, s, asked.Pod)
	if found.Hints, err = hintsOf(ctx, s, asked); err != nil {
		return nil, err
	}
	if err := s.await(asked.Pod); err != nil {
		return nil, err
	}
	if found.decision, err = s.decide(asked, given); err != nil {
		if strings.HasPrefix(err.Error(), "running ") {
			return nil, ambiguous{0} // the plugin fails on a node about which only the dry run of preemption asks it
		}
		return nil, err
	}
	time.Sleep(untilSeen)
	if found.Written, err = w.written(ctx, before, asked.Pod); err != nil {
		return nil, err
	}
	if len(found.Feasible) == 0 {
		return found, nil
	}
	found.Allocations = map[string]allocationPlan{}
	for node, plan := range plannedAllocations(s.state) {
		for _, name := range found.Feasible {
			if node == name {
				found.Allocations[node] = plan
			}
		}
	}
	found.Bound, err = w.bind(ctx, s, asked, found.Best[0], before)
	return found, err
}

// preEnqueue asks the plugin alone.
func (w *devicesWorld) preEnqueue(ctx context.Context, s *still, pod *v1.Pod) *answered {
	asked, ok := pluginOf(s.first, dynamicresources.Name).(fwk.PreEnqueuePlugin)
	if !ok {
		return nil
	}
	return answeredBy(asked.PreEnqueue(ctx, pod))
}

var hintedKinds = map[string]struct {
	resource fwk.EventResource
	make     func() runtime.Object
}{
	"ResourceClaim": {fwk.ResourceClaim, func() runtime.Object { return &resourceapi.ResourceClaim{} }},
	"DeviceClass":   {fwk.DeviceClass, func() runtime.Object { return &resourceapi.DeviceClass{} }},
	"Pod":           {fwk.Pod, func() runtime.Object { return &v1.Pod{} }},
}

// hintsOf asks the plugins that know of devices about events.
func hintsOf(ctx context.Context, s *still, asked *question) ([]map[string]bool, error) {
	var found []map[string]bool
	for _, one := range asked.Hints {
		kind, action := hintedKinds[one.Kind], fwk.Update
		var before, after any
		after = kind.make()
		if err := json.Unmarshal(one.New, after); err != nil {
			return nil, err
		}
		if string(one.Old) == "null" || len(one.Old) == 0 {
			action = fwk.Add
		} else {
			before = kind.make()
			if err := json.Unmarshal(one.Old, before); err != nil {
				return nil, err
			}
		}
		if one.Kind == "Pod" {
			action = fwk.UpdatePodGeneratedResourceClaim
		}
		answers := map[string]bool{}
		for _, name := range []string{dynamicresources.Name, "NodeResourcesFit"} {
			events, err := pluginOf(s.first, name).(fwk.EnqueueExtensions).EventsToRegister(ctx)
			if err != nil {
				return nil, err
			}
			for _, event := range events {
				if event.Event.Resource != kind.resource || event.Event.ActionType&action == 0 {
					continue
				}
				if event.QueueingHintFn == nil {
					answers[name] = true
					continue
				}
				hint, err := event.QueueingHintFn(s.logger, asked.Pod, before, after)
				if err != nil {
					return nil, err
				}
				answers[name] = hint == fwk.Queue
			}
		}
		found = append(found, answers)
	}
	return found, nil
}

// pluginOf reads a plugin of a profile.
func pluginOf(of any, name string) any {
	plugins := readable(privateField(of, "pluginsMap")).Interface().(map[string]fwk.Plugin)
	return plugins[name]
}

// readable makes what reflection found in an unexported field readable; it must be addressable.
func readable(value reflect.Value) reflect.Value {
	return reflect.NewAt(value.Type(), unsafe.Pointer(value.UnsafeAddr())).Elem()
}

// plannedAllocations reads what Filter found for each node.
func plannedAllocations(state fwk.CycleState) map[string]allocationPlan {
	found := map[string]allocationPlan{}
	kept, err := state.Read(fwk.StateKey(dynamicresources.Name))
	if err != nil {
		return found
	}
	nodes := readable(privateField(kept, "nodeAllocations"))
	for _, key := range nodes.MapKeys() {
		value := reflect.New(nodes.Type().Elem()).Elem()
		value.Set(nodes.MapIndex(key))
		plan := allocationPlan{
			Results:  readable(value.FieldByName("allocationResults")).Interface().([]resourceapi.AllocationResult),
			Mappings: readable(value.FieldByName("containerResourceRequestMappings")).Interface().([]v1.ContainerExtendedResourceRequest),
		}
		if claim := readable(value.FieldByName("extendedResourceClaim")).Interface().(*resourceapi.ResourceClaim); claim != nil {
			plan.Requests = claim.Spec.Devices.Requests
		}
		found[key.String()] = plan
	}
	return found
}

// bind is Reserve and PreBind of the plugin on a node, and Unreserve if it fails.
func (w *devicesWorld) bind(
	ctx context.Context, s *still, asked *question, node string, before map[string]*resourceapi.ResourceClaim,
) (*boundClaims, error) {
	pod := asked.Pod.DeepCopy()
	found := &boundClaims{Node: node}
	start := time.Now()
	plugin := pluginOf(s.first, dynamicresources.Name)
	status := plugin.(fwk.ReservePlugin).Reserve(ctx, s.state, pod, node)
	if found.Reserve = answeredBy(status); found.Reserve == nil {
		for _, one := range asked.Drivers {
			time.AfterFunc(seconds(formatted(one.AtS)), func() { w.drive(ctx, one) })
		}
		limited, cancel := context.WithTimeout(ctx, longestPreBind)
		found.PreBind = answeredBy(plugin.(fwk.PreBindPlugin).PreBind(limited, s.state, pod, node))
		cancel()
	}
	found.EndedAtS = rounded(time.Since(start))
	var err error
	if found.writtenClaims, err = w.written(ctx, before, pod); err != nil {
		return nil, err
	}
	if found.Reserve != nil || found.PreBind != nil {
		plugin.(fwk.ReservePlugin).Unreserve(ctx, s.state, pod, node)
		found.Unreserved, err = w.written(ctx, before, pod)
	}
	return found, err
}

// devicesWorld is an API server that counts the versions of its objects and names those that have no name.
type devicesWorld struct {
	client  *fake.Clientset
	mu      sync.Mutex
	version int
}

func (w *devicesWorld) write(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var object runtime.Object
	if action.GetVerb() == "update" {
		object = action.(clienttesting.UpdateAction).GetObject()
	} else {
		object = action.(clienttesting.CreateAction).GetObject()
	}
	given, err := meta.Accessor(object)
	must(err)
	if action.GetVerb() == "update" {
		stored, err := w.client.Tracker().Get(action.GetResource(), action.GetNamespace(), given.GetName())
		if err != nil {
			return true, nil, err
		}
		known, err := meta.Accessor(stored)
		must(err)
		if known.GetResourceVersion() != given.GetResourceVersion() {
			return true, nil, apierrors.NewConflict(
				action.GetResource().GroupResource(), given.GetName(), errors.New("it has changed"))
		}
	}
	w.version++
	given.SetResourceVersion(strconv.Itoa(w.version))
	if given.GetName() == "" {
		given.SetName(given.GetGenerateName() + "generated")
	}
	if given.GetUID() == "" {
		given.SetUID("uid-generated")
	}
	return false, nil, nil
}

// fill creates classes, slices, claims and the pod, one after another.
func (w *devicesWorld) fill(ctx context.Context, asked *question) error {
	kinds := w.client.ResourceV1()
	for _, one := range asked.DeviceClasses {
		if _, err := kinds.DeviceClasses().Create(ctx, one, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, one := range asked.ResourceSlices {
		if _, err := kinds.ResourceSlices().Create(ctx, one, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, one := range asked.ResourceClaims {
		if ago, found := asked.AllocatedAgoS[one.Name]; found {
			one.Status.Allocation.AllocationTimestamp = &metav1.Time{Time: time.Now().Add(-time.Duration(ago) * time.Second)}
		}
		if _, err := kinds.ResourceClaims(one.Namespace).Create(ctx, one, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	_, err := w.client.CoreV1().Pods(asked.Pod.Namespace).Create(ctx, asked.Pod.DeepCopy(), metav1.CreateOptions{})
	return err
}

func (w *devicesWorld) drive(ctx context.Context, one driverWrite) {
	claims := w.client.ResourceV1().ResourceClaims("default")
	claim, err := claims.Get(ctx, one.Claim, metav1.GetOptions{})
	if err != nil {
		return
	}
	claim = claim.DeepCopy()
	claim.Status.Devices = one.Devices
	_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	must(err)
}

func (w *devicesWorld) claims(ctx context.Context) (map[string]*resourceapi.ResourceClaim, error) {
	found := map[string]*resourceapi.ResourceClaim{}
	all, err := w.client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, one := range all.Items {
		found[one.Namespace+"/"+one.Name] = one.DeepCopy()
	}
	return found, nil
}

func (w *devicesWorld) written(
	ctx context.Context, before map[string]*resourceapi.ResourceClaim, pod *v1.Pod,
) (*writtenClaims, error) {
	now, err := w.claims(ctx)
	if err != nil {
		return nil, err
	}
	found := &writtenClaims{Claims: map[string]any{}}
	for name, claim := range now {
		old := before[name]
		if old != nil && old.ResourceVersion == claim.ResourceVersion && reflect.DeepEqual(old, claim) {
			continue
		}
		one := map[string]any{"status": claim.Status, "finalizers": claim.Finalizers}
		if old == nil {
			one["spec"], one["owners"], one["annotations"] = claim.Spec, claim.OwnerReferences, claim.Annotations
			one["generateName"] = claim.GenerateName
		}
		found.Claims[name] = one
	}
	for name := range before {
		if now[name] == nil {
			found.Claims[name] = nil
		}
	}
	stored, err := w.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	found.Pod = stored.Status.ExtendedResourceClaimStatus
	if len(found.Claims) == 0 && found.Pod == nil {
		return nil, nil
	}
	return found, nil
}

var shareIDs = regexp.MustCompile(`"shareID":"([0-9a-f-]{36})"`)

// normalizedDevices numbers share IDs by their first appearance; a time is the seconds that passed since 2000.
func normalizedDevices(found *devicesDecision) (json.RawMessage, error) {
	text, err := json.Marshal(found)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	return json.RawMessage(shareIDs.ReplaceAllStringFunc(string(text), func(match string) string {
		id := strings.TrimSuffix(strings.TrimPrefix(match, `"shareID":"`), `"`)
		if known[id] == "" {
			known[id] = fmt.Sprintf("share-%d", len(known)+1)
		}
		return fmt.Sprintf(`"shareID":%q`, known[id])
	})), nil
}
