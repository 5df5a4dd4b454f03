package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/devicetainteviction"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
)

const (
	repetitionsOfClaims = 12
	mostAnswersOfClaims = 4
	claimWorkers        = 50
	deviceTaintWorkers  = 8
	// mostApplied is more than a case needs.
	mostApplied       = 500
	deviceTaintFamily = "device-taints"
)

// deviceCase is a case of the controllers of devices.
type deviceCase struct {
	ID        string
	Family    string
	HorizonMs int64
	Objects   []deviceObject
	Events    []deviceEvent
	// unevenness is up to how long an update of a claim by the claim controller takes.
	unevenness time.Duration
}

type deviceObject struct {
	Kind   string
	Object json.RawMessage
}

// deviceEvent is what users, schedulers and drivers do. A patch is a JSON merge patch; "@pod/entry" in the place of a
// name means the claim that was generated last for that entry of the pod.
type deviceEvent struct {
	AtMs   int64
	Do     string
	Kind   string
	Name   string
	Object json.RawMessage
	Patch  json.RawMessage
}

type claimMoment struct {
	Allocated   bool              `json:"allocated,omitempty"`
	ReservedFor []string          `json:"reservedFor,omitempty"`
	Finalizers  []string          `json:"finalizers,omitempty"`
	Deleting    bool              `json:"deleting,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Owner       string            `json:"owner,omitempty"`
	Base        string            `json:"base,omitempty"`
}

type podMoment struct {
	Claims    map[string]string `json:"claims,omitempty"`
	Deleting  bool              `json:"deleting,omitempty"`
	Disrupted string            `json:"disrupted,omitempty"`
}

type deviceMoment struct {
	AtMs   int64                  `json:"atMs"`
	Claims map[string]claimMoment `json:"claims"`
	Pods   map[string]podMoment   `json:"pods"`
}

type deviceOutcome struct {
	Moments   []deviceMoment `json:"moments"`
	Events    []string       `json:"events"`
	Deletions []podDeletion  `json:"deletions"`
}

var deviceKinds = map[string]struct {
	resource schema.GroupVersionResource
	make     func() runtime.Object
}{
	"Pod":           {podsResource, func() runtime.Object { return &v1.Pod{} }},
	"ResourceClaim": {claimsOfDevices, func() runtime.Object { return &resourceapi.ResourceClaim{} }},
	"ResourceClaimTemplate": {resourceapi.SchemeGroupVersion.WithResource("resourceclaimtemplates"),
		func() runtime.Object { return &resourceapi.ResourceClaimTemplate{} }},
	"ResourceSlice": {resourceapi.SchemeGroupVersion.WithResource("resourceslices"),
		func() runtime.Object { return &resourceapi.ResourceSlice{} }},
}

var claimsOfDevices = resourceapi.SchemeGroupVersion.WithResource("resourceclaims")

// answerClaims plays a case some times: workers of a controller are equally fast, or their updates take a little time.
func answerClaims(t *testing.T, data json.RawMessage) (any, error) {
	unevenness := time.Duration(0)
	outcomes, err := distinct(repetitionsOfClaims, func() (any, error) {
		asked := &deviceCase{unevenness: unevenness}
		unevenness = longestWrite - unevenness
		if err := json.Unmarshal(data, asked); err != nil {
			return nil, err
		}
		outcome := &deviceOutcome{Moments: []deviceMoment{}, Events: []string{}, Deletions: []podDeletion{}}
		err := inBubble(t, func(t *testing.T) error { return asked.play(t.Context(), outcome) })
		return outcome, err
	})
	if err != nil {
		return nil, err
	}
	if len(outcomes) == 1 {
		return outcomes[0], nil
	}
	if len(outcomes) > mostAnswersOfClaims {
		return nil, ambiguous{len(outcomes)}
	}
	return map[string]any{"outcomes": outcomes}, nil
}

// deviceWorld is the API server, as far as the controllers of devices notice it.
type deviceWorld struct {
	client  *fake.Clientset
	mu      sync.Mutex
	version int
	made    int
	applied int
	start   time.Time
	byUser  bool
	labels  map[string]string
	counts  map[string]int
	outcome *deviceOutcome
}

func (q *deviceCase) play(parent context.Context, outcome *deviceOutcome) error {
	ctx, cancel := context.WithCancel(parent)
	w := &deviceWorld{client: fake.NewClientset(), outcome: outcome, start: time.Now().Add(untilSynced),
		labels: map[string]string{}, counts: map[string]int{}}
	for _, verb := range []string{"create", "update", "delete", "patch"} {
		w.client.PrependReactor(verb, "*", w.react)
	}
	if q.Family != deviceTaintFamily {
		makeUneven(w.client, q.unevenness, "update", "resourceclaims")
	}
	for _, one := range q.Objects {
		if err := w.create(one.Kind, one.Object); err != nil {
			cancel()
			return err
		}
	}
	factory := informers.NewSharedInformerFactory(w.client, 0)
	core, devices := factory.Core().V1(), factory.Resource().V1()
	ended := make(chan error, 1)
	if q.Family == deviceTaintFamily {
		controller := devicetainteviction.New(w.client, core.Pods(), devices.ResourceClaims(), devices.ResourceSlices(),
			nil, devices.DeviceClasses(), "device-taint-eviction-controller", false)
		factory.Start(ctx.Done())
		go func() { ended <- controller.Run(ctx, deviceTaintWorkers) }()
	} else {
		features := resourceclaim.Features{AdminAccess: true, PrioritizedList: true}
		controller, err := resourceclaim.NewController(klog.Background(), features, w.client, core.Pods(), nil,
			devices.ResourceClaims(), devices.ResourceClaimTemplates())
		if err != nil {
			cancel()
			return err
		}
		factory.Start(ctx.Done())
		go func() {
			controller.Run(ctx, claimWorkers)
			ended <- nil
		}()
	}
	defer func() {
		cancel()
		factory.Shutdown()
		<-ended
	}()
	for _, event := range q.Events {
		w.until(event.AtMs)
		if err := w.look(ctx, event.AtMs); err != nil {
			return err
		}
		if err := w.happen(ctx, event); err != nil {
			return err
		}
		synctest.Wait()
	}
	w.until(q.HorizonMs)
	if err := w.look(ctx, q.HorizonMs); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(outcome.Events)
	slices.SortFunc(outcome.Deletions, func(one, other podDeletion) int {
		return cmp.Or(cmp.Compare(one.AtMs, other.AtMs), cmp.Compare(one.Pod, other.Pod))
	})
	return nil
}

func (w *deviceWorld) until(atMs int64) {
	time.Sleep(time.Until(w.start.Add(time.Duration(atMs) * time.Millisecond)))
	synctest.Wait()
}

func (w *deviceWorld) stamp(object runtime.Object) {
	w.version++
	accessor, err := meta.Accessor(object)
	must(err)
	accessor.SetResourceVersion(strconv.Itoa(w.version))
}

// react does what the strategies of pkg/registry do to a write.
func (w *deviceWorld) react(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	resource, namespace := action.GetResource(), action.GetNamespace()
	tracker := w.client.Tracker()
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		if event, ok := action.GetObject().(*v1.Event); ok {
			text := event.InvolvedObject.Name + " " + event.Type + " " + event.Reason + ": " + event.Message
			if !slices.Contains(w.outcome.Events, text) {
				w.outcome.Events = append(w.outcome.Events, text)
			}
			return true, event, nil
		}
		claim, ok := action.GetObject().(*resourceapi.ResourceClaim)
		if !ok {
			return false, nil, nil
		}
		claim = claim.DeepCopy()
		w.made++
		claim.Namespace = namespace
		claim.Name = fmt.Sprintf("%sx%04d", claim.GenerateName, w.made)
		claim.UID = types.UID(fmt.Sprintf("made-%04d", w.made))
		w.name(claim)
		w.stamp(claim)
		return true, claim.DeepCopy(), tracker.Create(resource, claim, namespace)
	case clienttesting.UpdateActionImpl:
		claim, ok := action.GetObject().(*resourceapi.ResourceClaim)
		if !ok {
			return false, nil, nil
		}
		claim = claim.DeepCopy()
		old, err := tracker.Get(resource, namespace, claim.Name)
		if err != nil {
			return true, nil, err
		}
		known := old.(*resourceapi.ResourceClaim)
		if claim.ResourceVersion != known.ResourceVersion {
			return true, nil, apierrors.NewConflict(resource.GroupResource(), claim.Name, errors.New("it has changed"))
		}
		claim.Spec = known.Spec
		if action.GetSubresource() == "status" {
			claim.ObjectMeta = *known.ObjectMeta.DeepCopy()
		} else {
			claim.Status = known.Status
		}
		w.stamp(claim)
		if claim.DeletionTimestamp != nil && len(claim.Finalizers) == 0 {
			return true, claim, tracker.Delete(resource, namespace, claim.Name)
		}
		return true, claim.DeepCopy(), tracker.Update(resource, claim, namespace)
	case clienttesting.PatchActionImpl:
		if action.GetPatchType() != types.ApplyPatchType {
			return false, nil, nil
		}
		return w.apply(action)
	case clienttesting.DeleteActionImpl:
		return true, nil, w.delete(action.GetResource(), namespace, action.GetName(), action.DeleteOptions)
	}
	return false, nil, nil
}

// apply lets the claims of a pod be those that their only manager states. One that changes nothing is not written.
func (w *deviceWorld) apply(action clienttesting.PatchActionImpl) (bool, runtime.Object, error) {
	stated := &v1.Pod{}
	if err := json.Unmarshal(action.GetPatch(), stated); err != nil {
		return true, nil, err
	}
	old, err := w.client.Tracker().Get(podsResource, action.GetNamespace(), action.GetName())
	if err != nil {
		return true, nil, err
	}
	pod := old.(*v1.Pod).DeepCopy()
	order := func(one, other v1.PodResourceClaimStatus) int { return cmp.Compare(one.Name, other.Name) }
	slices.SortFunc(stated.Status.ResourceClaimStatuses, order)
	before := len(pod.Status.ResourceClaimStatuses)
	if before > 0 && equality.Semantic.DeepEqual(pod.Status.ResourceClaimStatuses, stated.Status.ResourceClaimStatuses) {
		return true, pod, nil
	}
	pod.Status.ResourceClaimStatuses = stated.Status.ResourceClaimStatuses
	if w.applied++; w.applied > mostApplied {
		return true, nil, apierrors.NewInternalError(errors.New("the controller applies without an end"))
	}
	w.stamp(pod)
	return true, pod.DeepCopy(), w.client.Tracker().Update(podsResource, pod, action.GetNamespace())
}

// delete is graceful for pods on nodes, and waits for finalizers.
func (w *deviceWorld) delete(resource schema.GroupVersionResource, namespace, name string, options metav1.DeleteOptions) error {
	tracker := w.client.Tracker()
	old, err := tracker.Get(resource, namespace, name)
	if err != nil {
		return err
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	switch object := old.DeepCopyObject().(type) {
	case *v1.Pod:
		if options.Preconditions != nil && options.Preconditions.UID != nil && *options.Preconditions.UID != object.UID {
			return apierrors.NewConflict(resource.GroupResource(), name, errors.New("another UID"))
		}
		if !w.byUser {
			deletion := podDeletion{time.Since(w.start).Milliseconds(), name}
			w.outcome.Deletions = append(w.outcome.Deletions, deletion)
		}
		ended := object.Status.Phase == v1.PodFailed || object.Status.Phase == v1.PodSucceeded
		// While a graceful deletion is pending, another request does nothing, even if the pod has ended (BeforeDelete).
		if object.Spec.NodeName != "" && (object.DeletionTimestamp != nil || !ended) {
			if object.DeletionTimestamp == nil {
				grace := int64(30)
				at := metav1.NewTime(now.Add(30 * time.Second))
				object.DeletionTimestamp, object.DeletionGracePeriodSeconds = &at, &grace
				w.stamp(object)
				return tracker.Update(resource, object, namespace)
			}
			return nil
		}
	case *resourceapi.ResourceClaim:
		if len(object.Finalizers) > 0 {
			if object.DeletionTimestamp == nil {
				object.DeletionTimestamp = &now
				w.stamp(object)
				return tracker.Update(resource, object, namespace)
			}
			return nil
		}
	}
	return tracker.Delete(resource, namespace, name)
}

// name gives a generated claim the name by which the record calls it.
func (w *deviceWorld) name(claim *resourceapi.ResourceClaim) {
	owner := metav1.GetControllerOf(claim)
	if owner == nil {
		return
	}
	entry := "@" + string(owner.UID) + "/" + claim.Annotations[resourceapi.PodResourceClaimAnnotation]
	w.counts[entry]++
	w.labels[claim.Name] = entry + "#" + strconv.Itoa(w.counts[entry])
}

func (w *deviceWorld) label(name string) string {
	if label, made := w.labels[name]; made {
		return label
	}
	return name
}

func (w *deviceWorld) read(kind string, data json.RawMessage) (runtime.Object, error) {
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		return nil, err
	}
	dated, err := json.Marshal((&objectWorld{start: w.start}).withTimes(plain))
	if err != nil {
		return nil, err
	}
	object := deviceKinds[kind].make()
	return object, json.Unmarshal(dated, object)
}

func (w *deviceWorld) create(kind string, data json.RawMessage) error {
	object, err := w.read(kind, data)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	w.stamp(object)
	return w.client.Tracker().Create(deviceKinds[kind].resource, object, accessor.GetNamespace())
}

// happen does what an event says to what there still is.
func (w *deviceWorld) happen(ctx context.Context, event deviceEvent) error {
	if event.Do == "create" {
		err := w.create(event.Kind, event.Object)
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	resource, namespace, tracker := deviceKinds[event.Kind].resource, "default", w.client.Tracker()
	if event.Kind == "ResourceSlice" {
		namespace = ""
	}
	name, found := w.resolve(event.Name)
	if !found {
		return nil
	}
	before, err := tracker.Get(resource, namespace, name)
	if err != nil {
		return nil
	}
	switch event.Do {
	case "delete":
		w.byUser = true
		defer func() { w.byUser = false }()
		return w.delete(resource, namespace, name, metav1.DeleteOptions{})
	case "remove":
		return tracker.Delete(resource, namespace, name)
	}
	var plain any
	if err := json.Unmarshal(event.Patch, &plain); err != nil {
		return err
	}
	dated, err := json.Marshal((&objectWorld{start: w.start}).withTimes(plain))
	if err != nil {
		return err
	}
	object, err := mergePatched(before, dated, deviceKinds[event.Kind].make())
	if err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before, object) {
		return nil // an API server writes nothing
	}
	w.stamp(object)
	return tracker.Update(resource, object, namespace)
}

// resolve finds the newest claim of an entry of a pod.
func (w *deviceWorld) resolve(name string) (string, bool) {
	entry, generated := strings.CutPrefix(name, "@")
	if !generated {
		return name, true
	}
	newest := "@" + entry + "#" + strconv.Itoa(w.counts["@"+entry])
	for made, label := range w.labels {
		if label == newest {
			return made, true
		}
	}
	return "", false
}

// look notes how everything stands.
func (w *deviceWorld) look(ctx context.Context, atMs int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	moment := deviceMoment{AtMs: atMs, Claims: map[string]claimMoment{}, Pods: map[string]podMoment{}}
	claims, err := w.client.Tracker().List(claimsOfDevices, resourceapi.SchemeGroupVersion.WithKind("ResourceClaim"), "default")
	if err != nil {
		return err
	}
	for _, claim := range claims.(*resourceapi.ResourceClaimList).Items {
		state := claimMoment{Allocated: claim.Status.Allocation != nil, Finalizers: claim.Finalizers,
			Deleting: claim.DeletionTimestamp != nil, Labels: claim.Labels, Annotations: claim.Annotations}
		for _, consumer := range claim.Status.ReservedFor {
			state.ReservedFor = append(state.ReservedFor, consumer.Name+"/"+string(consumer.UID))
		}
		if owner := metav1.GetControllerOf(&claim); owner != nil {
			state.Owner = owner.Kind + "/" + owner.Name + "/" + string(owner.UID)
			state.Base = claim.GenerateName
		}
		moment.Claims[w.label(claim.Name)] = state
	}
	pods, err := w.client.Tracker().List(podsResource, v1.SchemeGroupVersion.WithKind("Pod"), "default")
	if err != nil {
		return err
	}
	for _, pod := range pods.(*v1.PodList).Items {
		state := podMoment{Deleting: pod.DeletionTimestamp != nil}
		for _, status := range pod.Status.ResourceClaimStatuses {
			if state.Claims == nil {
				state.Claims = map[string]string{}
			}
			if status.ResourceClaimName != nil {
				state.Claims[status.Name] = w.label(*status.ResourceClaimName)
			}
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == v1.DisruptionTarget {
				state.Disrupted = condition.Reason + ": " + condition.Message
			}
		}
		moment.Pods[pod.Name] = state
	}
	w.outcome.Moments = append(w.outcome.Moments, moment)
	return nil
}
