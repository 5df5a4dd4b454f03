package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
)

// objectWorld is the API server, as far as the workload controllers notice it, and a kubelet with simple rules.
type objectWorld struct {
	tracker  clienttesting.ObjectTracker
	start    time.Time
	version  int
	made     int
	failures int
	events   []string
	// held are the resources whose watches show nothing, until the channel is closed.
	held     map[string]chan struct{}
	dropped  map[types.UID]string
	heldLock sync.Mutex
}

func newObjectWorld(client *fake.Clientset) *objectWorld {
	w := &objectWorld{tracker: client.Tracker(), held: map[string]chan struct{}{}, dropped: map[types.UID]string{}}
	client.PrependReactor("*", "*", w.react)
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		inner, err := w.tracker.Watch(action.GetResource(), action.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		slow := &slowWatch{Interface: inner, events: make(chan watch.Event), world: w, resource: action.GetResource().Resource}
		go slow.run()
		return true, slow, nil
	})
	return w
}

// slowWatch shows everything a millisecond late: no sync sees what it has written itself.
type slowWatch struct {
	watch.Interface
	events   chan watch.Event
	world    *objectWorld
	resource string
}

const (
	watchLatency = time.Millisecond
	moment       = 2 * watchLatency
)

func (s *slowWatch) ResultChan() <-chan watch.Event { return s.events }

func (s *slowWatch) run() {
	defer close(s.events)
	type timed struct {
		watch.Event
		at time.Time
	}
	waiting := make(chan timed, 10000)
	go func() {
		defer close(waiting)
		for event := range s.Interface.ResultChan() {
			waiting <- timed{s.world.shown(event), time.Now().Add(watchLatency)}
		}
	}()
	for next := range waiting {
		time.Sleep(time.Until(next.at))
		for until := s.world.heldUntil(s.resource); until != nil; until = s.world.heldUntil(s.resource) {
			<-until
		}
		select {
		case s.events <- next.Event:
		case <-time.After(time.Minute):
			// Nobody watches any longer.
		}
	}
}

// hold keeps what watches of a resource have still to show.
func (w *objectWorld) hold(resource string) {
	w.heldLock.Lock()
	defer w.heldLock.Unlock()
	if w.held[resource] == nil {
		w.held[resource] = make(chan struct{})
	}
}

func (w *objectWorld) release(resource string) {
	w.heldLock.Lock()
	defer w.heldLock.Unlock()
	if w.held[resource] != nil {
		close(w.held[resource])
		delete(w.held, resource)
	}
}

func (w *objectWorld) releaseAll() {
	for _, of := range ofTypes {
		w.release(of.resource.Resource)
	}
}

func (w *objectWorld) heldUntil(resource string) chan struct{} {
	w.heldLock.Lock()
	defer w.heldLock.Unlock()
	return w.held[resource]
}

// settle lets the informers see what was written.
func settle() {
	time.Sleep(moment)
	synctest.Wait()
}

func (w *objectWorld) happened(event *v1.Event) {
	message := event.Message
	for _, verb := range []string{"Created pod: ", "Deleted pod: "} {
		if name, found := strings.CutPrefix(message, verb); found {
			if i := strings.LastIndex(name, "-x"); i > 0 {
				message = verb + name[:i]
			}
		}
	}
	w.events = append(w.events, fmt.Sprintf("%s %s %s: %s", event.Type, event.Reason, event.InvolvedObject.Kind, message))
}

func (w *objectWorld) stamp(obj metav1.Object) {
	w.version++
	obj.SetResourceVersion(strconv.Itoa(w.version))
}

// drop deletes an object. Watches show the version of the deletion, as those of the API server do.
func (w *objectWorld) drop(resource schema.GroupVersionResource, namespace, name string) error {
	old, err := w.tracker.Get(resource, namespace, name)
	if err != nil {
		return err
	}
	last := old.(metav1.Object)
	w.version++
	w.heldLock.Lock()
	w.dropped[last.GetUID()] = strconv.Itoa(w.version)
	w.heldLock.Unlock()
	return w.tracker.Delete(resource, namespace, name)
}

// shown is an event as watches show it.
func (w *objectWorld) shown(event watch.Event) watch.Event {
	if event.Type == watch.Deleted {
		event.Object = event.Object.DeepCopyObject()
		last := event.Object.(metav1.Object)
		w.heldLock.Lock()
		defer w.heldLock.Unlock()
		last.SetResourceVersion(w.dropped[last.GetUID()])
	}
	return event
}

// react does what the strategies of pkg/registry do to a write.
func (w *objectWorld) react(action clienttesting.Action) (bool, runtime.Object, error) {
	resource, namespace := action.GetResource(), action.GetNamespace()
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		obj := asStored(action.GetObject())
		given := obj.(metav1.Object)
		if pod, ok := obj.(*v1.Pod); ok {
			if w.failures > 0 {
				w.failures--
				return true, nil, apierrors.NewForbidden(resource.GroupResource(), "", fmt.Errorf("no more pods"))
			}
			pod.Status = v1.PodStatus{Phase: v1.PodPending}
		}
		w.made++
		if given.GetName() == "" {
			given.SetName(fmt.Sprintf("%sx%04d", given.GetGenerateName(), w.made))
		}
		given.SetNamespace(namespace)
		given.SetUID(types.UID(fmt.Sprintf("made-%04d", w.made)))
		given.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
		if resource.Resource != "controllerrevisions" {
			given.SetGeneration(1)
		}
		w.stamp(given)
		if err := w.tracker.Create(resource, obj, namespace); err != nil {
			return true, nil, err
		}
		return true, w.asRead(obj), nil
	case clienttesting.UpdateActionImpl:
		obj := asStored(action.GetObject())
		given := obj.(metav1.Object)
		old, err := w.tracker.Get(resource, namespace, given.GetName())
		if err != nil {
			return true, nil, err
		}
		known := old.(metav1.Object)
		if given.GetResourceVersion() != "" && given.GetResourceVersion() != known.GetResourceVersion() {
			return true, nil, apierrors.NewConflict(resource.GroupResource(), given.GetName(), errors.New("the object has been modified; please apply your changes to the latest version and try again"))
		}
		given.SetGeneration(known.GetGeneration())
		now, before := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
		if action.GetSubresource() == "status" {
			now.FieldByName("Spec").Set(before.FieldByName("Spec"))
			given.SetLabels(known.GetLabels())
		} else if now.FieldByName("Status").IsValid() {
			now.FieldByName("Status").Set(before.FieldByName("Status"))
			changed := !equality.Semantic.DeepEqual(now.FieldByName("Spec").Interface(), before.FieldByName("Spec").Interface())
			if resource.Resource == "deployments" {
				changed = changed || !equality.Semantic.DeepEqual(given.GetAnnotations(), known.GetAnnotations())
			}
			if resource.Resource != "pods" && changed {
				given.SetGeneration(known.GetGeneration() + 1)
			}
		}
		given.SetResourceVersion(known.GetResourceVersion())
		if reflect.DeepEqual(obj, old) {
			return true, w.asRead(obj), nil
		}
		w.stamp(given)
		if err := w.tracker.Update(resource, obj, namespace); err != nil {
			return true, nil, err
		}
		return true, w.asRead(obj), nil
	case clienttesting.PatchActionImpl:
		_, obj, err := clienttesting.ObjectReaction(w.tracker)(action)
		if err != nil {
			return true, nil, err
		}
		obj = obj.DeepCopyObject()
		w.stamp(obj.(metav1.Object))
		return true, obj, w.tracker.Update(resource, obj, namespace)
	case clienttesting.DeleteActionImpl:
		old, err := w.tracker.Get(resource, namespace, action.GetName())
		if err != nil {
			return true, nil, err
		}
		pod, ok := old.(*v1.Pod)
		ended := ok && (pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded)
		if ok && pod.Spec.NodeName != "" && (pod.DeletionTimestamp != nil || !ended) {
			if pod.DeletionTimestamp == nil {
				pod = pod.DeepCopy()
				grace := int64(30)
				at := metav1.NewTime(time.Now().Truncate(time.Second).Add(30 * time.Second))
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
				w.stamp(pod)
				return true, nil, w.tracker.Update(resource, pod, namespace)
			}
			return true, nil, nil
		}
		return true, nil, w.drop(resource, namespace, action.GetName())
	}
	return false, nil, nil
}

// asStored is an object as the API server keeps it: its times have whole seconds.
func asStored(obj runtime.Object) runtime.Object {
	data, err := json.Marshal(obj)
	must(err)
	read := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	must(json.Unmarshal(data, read))
	return read
}

func (w *objectWorld) asRead(obj runtime.Object) runtime.Object { return obj.DeepCopyObject() }

// put stores an object of the case with Kubernetes' defaults, as a client reads it: decoded from its protobuf encoding.
func (w *objectWorld) put(data json.RawMessage) error {
	kind, obj, err := w.read(data)
	if err != nil {
		return err
	}
	given := obj.(metav1.Object)
	if kind != "Node" {
		given.SetNamespace("default")
	}
	w.complete(kind, given)
	w.stamp(given)
	return w.tracker.Create(ofTypes[kind].resource, obj, given.GetNamespace())
}

// complete adds what the API server would have given an object of a case.
func (w *objectWorld) complete(kind string, given metav1.Object) {
	if given.GetUID() == "" {
		given.SetUID(types.UID("uid-" + kind + "-" + given.GetName()))
	}
	if stamp := given.GetCreationTimestamp(); stamp.IsZero() {
		given.SetCreationTimestamp(metav1.NewTime(w.start))
	}
	if given.GetGeneration() == 0 && !slices.Contains(withoutGeneration, kind) {
		given.SetGeneration(1)
	}
}

var withoutGeneration = []string{"Pod", "ControllerRevision", "PersistentVolumeClaim"}

func (w *objectWorld) read(data json.RawMessage) (string, runtime.Object, error) {
	named := struct{ Kind string }{}
	if err := json.Unmarshal(data, &named); err != nil {
		return "", nil, err
	}
	of, known := ofTypes[named.Kind]
	if !known {
		return "", nil, fmt.Errorf("the kind %q is unknown", named.Kind)
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		return "", nil, err
	}
	dated, err := json.Marshal(w.withTimes(plain))
	if err != nil {
		return "", nil, err
	}
	obj := of.empty()
	if err := json.Unmarshal(dated, obj); err != nil {
		return "", nil, err
	}
	legacyscheme.Scheme.Default(obj)
	encoder := legacyscheme.Codecs.EncoderForVersion(protobufSerializer(), of.resource.GroupVersion())
	wire, err := runtime.Encode(encoder, obj)
	if err != nil {
		return "", nil, err
	}
	read, _, err := protobufSerializer().Decode(wire, nil, of.empty())
	return named.Kind, read, err
}

// withTimes replaces offsets from the start by times.
func (w *objectWorld) withTimes(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = w.withTimes(value[key])
		}
	case []any:
		for i := range value {
			value[i] = w.withTimes(value[i])
		}
	case string:
		if offset, found := strings.CutPrefix(value, "@"); found {
			seconds, err := strconv.Atoi(offset)
			must(err)
			return w.start.Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
		}
	}
	return value
}

// replace is an update by a user: of the spec, labels and annotations.
func (w *objectWorld) replace(data json.RawMessage) error {
	kind, obj, err := w.read(data)
	if err != nil {
		return err
	}
	of, given := ofTypes[kind], obj.(metav1.Object)
	namespace := "default"
	if kind == "Node" {
		namespace = ""
	}
	old, err := w.tracker.Get(of.resource, namespace, given.GetName())
	if err != nil {
		return err
	}
	known := old.(metav1.Object)
	given.SetNamespace(namespace)
	given.SetUID(known.GetUID())
	given.SetCreationTimestamp(known.GetCreationTimestamp())
	given.SetOwnerReferences(known.GetOwnerReferences())
	annotations := map[string]string{}
	for key, value := range known.GetAnnotations() {
		annotations[key] = value
	}
	for key, value := range given.GetAnnotations() {
		annotations[key] = value
	}
	given.SetAnnotations(annotations)
	given.SetResourceVersion("")
	_, _, err = w.react(clienttesting.NewUpdateAction(of.resource, namespace, obj))
	return err
}

func (w *objectWorld) remove(kind, name string) error {
	of := ofTypes[kind]
	namespace := "default"
	if kind == "Node" {
		namespace = ""
	}
	return w.drop(of.resource, namespace, name)
}

// pass is what kubelets do once a second: they run new pods, make those ready that have had the time, and end others.
func (w *objectWorld) pass(readyS map[string]int64, shutdownS int64) error {
	for _, one := range w.list("Pod") {
		pod := one.(*v1.Pod).DeepCopy()
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		switch {
		case pod.DeletionTimestamp != nil:
			asked := pod.DeletionTimestamp.Add(-30 * time.Second)
			if time.Since(asked) >= time.Duration(shutdownS)*time.Second {
				if err := w.drop(podsResource, pod.Namespace, pod.Name); err != nil {
					return err
				}
			}
			continue
		case pod.Spec.NodeName == "":
			pod.Spec.NodeName = targetOf(pod)
			pod.Status.Phase = v1.PodRunning
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: now}}
		case pod.Status.Phase == v1.PodRunning && len(pod.Status.Conditions) == 1 && pod.Status.Conditions[0].Status != v1.ConditionTrue:
			after, known := readyS[pod.Spec.Containers[0].Image]
			if !known || time.Since(pod.CreationTimestamp.Time) < time.Duration(after)*time.Second {
				continue
			}
			pod.Status.Conditions[0].Status = v1.ConditionTrue
			pod.Status.Conditions[0].LastTransitionTime = now
		default:
			continue
		}
		w.stamp(pod)
		if err := w.tracker.Update(podsResource, pod, pod.Namespace); err != nil {
			return err
		}
	}
	return nil
}

func targetOf(pod *v1.Pod) string {
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, field := range term.MatchFields {
				if field.Key == "metadata.name" && len(field.Values) == 1 {
					return field.Values[0]
				}
			}
		}
	}
	return "node-0"
}

// objects are those that controllers change, in the form in which they are compared.
func (w *objectWorld) objects() map[string]map[string]any {
	found := map[string]map[string]any{}
	for kind := range ofTypes {
		if kind == "Node" {
			continue
		}
		for _, one := range w.list(kind) {
			found[kind+"/"+one.GetName()] = w.view(kind, one)
		}
	}
	return found
}

func (w *objectWorld) view(kind string, one metav1.Object) map[string]any {
	view := map[string]any{"kind": kind, "name": one.GetName(), "labels": one.GetLabels(), "annotations": one.GetAnnotations()}
	if one.GetGenerateName() != "" {
		view["generated"] = one.GetGenerateName()
	}
	if one.GetDeletionTimestamp() != nil {
		view["deleting"] = true
	}
	if !slices.Contains(withoutGeneration, kind) {
		view["generation"] = one.GetGeneration()
	}
	owners := []string{}
	for _, owner := range one.GetOwnerReferences() {
		owners = append(owners, fmt.Sprintf("%s %s %v", owner.Kind, owner.Name, owner.Controller != nil && *owner.Controller))
	}
	view["owners"] = owners
	switch one := one.(type) {
	case *v1.Pod:
		view["spec"] = w.podView(one)
	case *appsv1.Deployment:
		view["spec"] = map[string]any{"replicas": one.Spec.Replicas, "template": templateView(&one.Spec.Template)}
		view["status"] = one.Status
	case *appsv1.ReplicaSet:
		view["spec"] = map[string]any{"replicas": one.Spec.Replicas, "minReadySeconds": one.Spec.MinReadySeconds,
			"selector": one.Spec.Selector.MatchLabels, "template": templateView(&one.Spec.Template)}
		view["status"] = one.Status
	case *v1.ReplicationController:
		view["spec"] = map[string]any{"replicas": one.Spec.Replicas}
		view["status"] = one.Status
	case *appsv1.StatefulSet:
		view["status"] = one.Status
	case *appsv1.DaemonSet:
		view["status"] = one.Status
	case *appsv1.ControllerRevision:
		view["spec"] = map[string]any{"revision": one.Revision, "data": string(one.Data.Raw)}
	case *v1.PersistentVolumeClaim:
		view["spec"] = map[string]any{"resources": one.Spec.Resources, "accessModes": one.Spec.AccessModes}
	}
	var plain any
	must(json.Unmarshal([]byte(text(view)), &plain))
	return w.pruned(plain).(map[string]any)
}

func templateView(template *v1.PodTemplateSpec) map[string]any {
	images := []string{}
	for _, container := range template.Spec.Containers {
		images = append(images, container.Image)
	}
	return map[string]any{"labels": template.Labels, "annotations": template.Annotations, "images": images}
}

func (w *objectWorld) podView(pod *v1.Pod) map[string]any {
	view := templateView(&v1.PodTemplateSpec{Spec: pod.Spec})
	view["node"] = pod.Spec.NodeName
	view["hostname"] = pod.Spec.Hostname
	view["subdomain"] = pod.Spec.Subdomain
	if pod.Spec.Affinity != nil {
		view["affinity"] = pod.Spec.Affinity
	}
	tolerations := []string{}
	for _, one := range pod.Spec.Tolerations {
		if one.TolerationSeconds == nil {
			tolerations = append(tolerations, fmt.Sprintf("%s %s", one.Key, one.Effect))
		}
	}
	slices.Sort(tolerations)
	view["tolerations"] = tolerations
	claims := map[string]string{}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			claims[volume.Name] = volume.PersistentVolumeClaim.ClaimName
		}
	}
	view["claims"] = claims
	return view
}

// pruned leaves out what is empty or zero, and turns times into seconds since the start.
func (w *objectWorld) pruned(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = w.pruned(value[key])
			if isEmpty(value[key]) {
				delete(value, key)
			}
		}
	case []any:
		for i := range value {
			value[i] = w.pruned(value[i])
		}
	case string:
		if at, err := time.Parse(time.RFC3339, value); err == nil {
			return fmt.Sprintf("@%d", int(at.Sub(w.start).Seconds()))
		}
	}
	return value
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	case string:
		return value == ""
	case float64:
		return value == 0
	case bool:
		return !value
	}
	return false
}

// summary says of generated pods how many there are of each sort: their names are chance.
func (w *objectWorld) summary() map[string]any {
	found, pods := map[string]any{}, map[string]any{}
	for name, view := range w.objects() {
		if !strings.HasPrefix(name, "Pod/") {
			found[name] = view
		}
	}
	for _, one := range w.list("Pod") {
		pod := one.(*v1.Pod)
		owner, ready := "", false
		for _, reference := range pod.OwnerReferences {
			owner = reference.Kind + " " + reference.Name
		}
		for _, condition := range pod.Status.Conditions {
			ready = condition.Status == v1.ConditionTrue
		}
		name := pod.Name
		if pod.GenerateName != "" && !strings.HasPrefix(owner, "StatefulSet ") {
			name = pod.GenerateName
		}
		revision := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
		sort := fmt.Sprintf("%s of %s: %s ready=%v deleting=%v revision=%s image=%s", name, owner, pod.Status.Phase, ready,
			pod.DeletionTimestamp != nil, revision, pod.Spec.Containers[0].Image)
		count, _ := pods[sort].(float64)
		pods[sort] = count + 1
	}
	found["pods"] = pods
	return found
}

func protobufSerializer() runtime.Serializer {
	return protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme)
}
