package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	namespaces "k8s.io/kubernetes/pkg/controller/namespace"
)

const (
	emptiedName      = "x"
	namespaceWorkers = 10
)

// emptyingCase is a namespace with contents that is deleted.
type emptyingCase struct {
	HorizonMs  int64
	Finalizers []v1.FinalizerName
	Objects    []content
	Events     []emptyingEvent
}

// content is an object in the namespace: of pods, also whether they run on a node, and how long they take to end.
type content struct {
	Resource   string
	Name       string
	Finalizers []string
	GraceS     int64
	Runs       bool
	deleting   bool
}

// emptyingEvent is what users and kubelets do, or which of the next requests of the controller fail.
type emptyingEvent struct {
	AtMs     int64
	Do       string
	Resource string
	Name     string
	Object   *content
	Verb     string
	Times    int
	Code     int
}

type namespaceWrite struct {
	AtMs       int64             `json:"atMs"`
	Verb       string            `json:"verb"`
	Phase      string            `json:"phase"`
	Finalizers []string          `json:"finalizers"`
	Conditions map[string]string `json:"conditions"`
}

type contentMoment struct {
	AtMs      int64    `json:"atMs"`
	Namespace string   `json:"namespace"`
	Contents  []string `json:"contents"`
}

type emptyingOutcome struct {
	Looks   []int64          `json:"looks"`
	Writes  []namespaceWrite `json:"writes"`
	Moments []contentMoment  `json:"moments"`
}

// emptiedKinds are those of which there are objects.
var emptiedKinds = []schema.GroupVersionResource{
	podsResource, v1.SchemeGroupVersion.WithResource("configmaps"), v1.SchemeGroupVersion.WithResource("secrets"),
	v1.SchemeGroupVersion.WithResource("services"),
	{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
}

var namespacesResource = v1.SchemeGroupVersion.WithResource("namespaces")

func answerNamespaces(t *testing.T, data json.RawMessage) (any, error) {
	asked := &emptyingCase{}
	if err := json.Unmarshal(data, asked); err != nil {
		return nil, err
	}
	w := &emptiedWorld{client: fake.NewClientset(), objects: asked.Objects,
		outcome: &emptyingOutcome{[]int64{}, []namespaceWrite{}, []contentMoment{}}}
	return w.outcome, inBubble(t, func(t *testing.T) error { return w.play(t.Context(), asked) })
}

// emptiedWorld is the API server, as far as the namespace controller notices it.
type emptiedWorld struct {
	client  *fake.Clientset
	start   time.Time
	version int
	objects []content
	faults  []*emptyingEvent
	outcome *emptyingOutcome
}

func (w *emptiedWorld) nowMs() int64 { return time.Since(w.start).Milliseconds() }

func (w *emptiedWorld) play(parent context.Context, asked *emptyingCase) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	w.start = time.Now()
	w.client.PrependReactor("*", "namespaces", w.reactToNamespace)
	w.client.PrependReactor("list", "pods", w.listPods)
	scheme := metadatafake.NewTestScheme()
	must(metav1.AddMetaToScheme(scheme))
	metadata := metadatafake.NewSimpleMetadataClient(scheme)
	metadata.PrependReactor("*", "*", w.reactToContents)
	discovered := []*metav1.APIResourceList{}
	for _, kind := range emptiedKinds {
		discovered = append(discovered, &metav1.APIResourceList{GroupVersion: kind.GroupVersion().String(), APIResources: []metav1.APIResource{{
			Name: kind.Resource, Namespaced: true, Verbs: []string{"list", "delete", "deletecollection"}}}})
	}
	factory := informers.NewSharedInformerFactory(w.client, 0)
	discover := func() ([]*metav1.APIResourceList, error) { return discovered, nil }
	controller := namespaces.NewNamespaceController(ctx, w.client, metadata, discover, factory.Core().V1().Namespaces(), 0, v1.FinalizerKubernetes)
	one := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: emptiedName, UID: "uid-x"}, Status: v1.NamespaceStatus{Phase: v1.NamespaceActive},
		Spec: v1.NamespaceSpec{Finalizers: append([]v1.FinalizerName{v1.FinalizerKubernetes}, asked.Finalizers...)}}
	w.stamp(one)
	if err := w.client.Tracker().Add(one); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(ctx, namespaceWorkers)
	}()
	defer func() {
		cancel()
		factory.Shutdown()
		<-ended
	}()
	for _, event := range asked.Events {
		w.until(event.AtMs)
		w.look(event.AtMs)
		if err := w.happen(&event); err != nil {
			return err
		}
		synctest.Wait()
	}
	w.until(asked.HorizonMs)
	w.look(asked.HorizonMs)
	return nil
}

func (w *emptiedWorld) until(atMs int64) {
	time.Sleep(time.Until(w.start.Add(milliseconds(atMs))))
	synctest.Wait()
}

func (w *emptiedWorld) stamp(one *v1.Namespace) {
	w.version++
	one.ResourceVersion = strconv.Itoa(w.version)
}

// fault is the error of a request that is to fail.
func (w *emptiedWorld) fault(resource schema.GroupResource, verb string) error {
	for _, one := range w.faults {
		if one.Times > 0 && one.Resource == resource.Resource && one.Verb == verb {
			one.Times--
			if one.Code == 409 {
				return apierrors.NewConflict(resource, emptiedName, errors.New("the object has been modified"))
			}
			return apierrors.NewInternalError(fmt.Errorf("%s of %s fails", verb, resource.Resource))
		}
	}
	return nil
}

func (w *emptiedWorld) reactToNamespace(action clienttesting.Action) (bool, runtime.Object, error) {
	tracker, verb := w.client.Tracker(), action.GetVerb()
	write, ok := action.(clienttesting.CreateAction)
	if verb != "update" && verb != "create" || !ok {
		if verb == "get" {
			err := w.fault(namespacesResource.GroupResource(), verb)
			return err != nil, nil, err
		}
		return false, nil, nil
	}
	// Finalize is a creation to the fake client.
	verb = action.GetSubresource()
	given := write.GetObject().(*v1.Namespace).DeepCopy()
	if err := w.fault(namespacesResource.GroupResource(), verb); err != nil {
		return true, nil, err
	}
	old, err := tracker.Get(namespacesResource, "", emptiedName)
	if err != nil {
		return true, nil, err
	}
	now := old.(*v1.Namespace).DeepCopy()
	if given.ResourceVersion != now.ResourceVersion {
		return true, nil, apierrors.NewConflict(namespacesResource.GroupResource(), emptiedName, errors.New("it has changed"))
	}
	if verb == "status" {
		now.Status = given.Status
		for i := range now.Status.Conditions {
			at := &now.Status.Conditions[i].LastTransitionTime
			*at = metav1.NewTime(at.Truncate(time.Second))
		}
	} else {
		now.Spec.Finalizers = given.Spec.Finalizers
	}
	w.outcome.Writes = append(w.outcome.Writes, w.written(verb, now))
	if equality.Semantic.DeepEqual(old, now) {
		return true, now, nil // an API server writes nothing
	}
	w.stamp(now)
	if len(now.Spec.Finalizers) == 0 {
		return true, now, tracker.Delete(namespacesResource, "", emptiedName)
	}
	return true, now.DeepCopy(), tracker.Update(namespacesResource, now, "")
}

func (w *emptiedWorld) written(verb string, one *v1.Namespace) namespaceWrite {
	write := namespaceWrite{w.nowMs(), verb, string(one.Status.Phase), []string{}, map[string]string{}}
	for _, finalizer := range one.Spec.Finalizers {
		write.Finalizers = append(write.Finalizers, string(finalizer))
	}
	for _, condition := range one.Status.Conditions {
		since := int64(condition.LastTransitionTime.Sub(w.start) / time.Second)
		write.Conditions[string(condition.Type)] = fmt.Sprintf("%s %s @%d: %s", condition.Status, condition.Reason, since, condition.Message)
	}
	return write
}

// listPods is how the controller asks for grace periods: its first request about contents.
func (w *emptiedWorld) listPods(clienttesting.Action) (bool, runtime.Object, error) {
	w.outcome.Looks = append(w.outcome.Looks, w.nowMs())
	list := &v1.PodList{}
	for _, one := range w.objects {
		if one.Resource == podsResource.Resource {
			grace := one.GraceS
			list.Items = append(list.Items, v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: one.Name, Namespace: emptiedName},
				Spec: v1.PodSpec{TerminationGracePeriodSeconds: &grace}})
		}
	}
	return true, list, nil
}

func (w *emptiedWorld) reactToContents(action clienttesting.Action) (bool, runtime.Object, error) {
	resource := action.GetResource()
	verb := map[string]string{"delete-collection": "deletecollection", "list": "list"}[action.GetVerb()]
	if err := w.fault(resource.GroupResource(), verb); err != nil {
		return true, nil, err
	}
	if verb == "deletecollection" {
		for _, one := range slices.Clone(w.objects) {
			if one.Resource == resource.Resource {
				w.delete(one.Resource, one.Name, one.GraceS)
			}
		}
		return true, nil, nil
	}
	list := &metav1.List{}
	for _, one := range w.objects {
		if one.Resource == resource.Resource {
			item := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: one.Name, Namespace: emptiedName, Finalizers: one.Finalizers}}
			list.Items = append(list.Items, runtime.RawExtension{Object: item})
		}
	}
	return true, list, nil
}

// delete is graceful for pods that run, and waits for finalizers.
func (w *emptiedWorld) delete(resource, name string, graceS int64) {
	i := slices.IndexFunc(w.objects, func(one content) bool { return one.Resource == resource && one.Name == name })
	if i < 0 {
		return
	}
	one := &w.objects[i]
	if one.Runs && graceS > 0 {
		one.deleting = true
		return
	}
	one.Runs = false
	one.deleting = true
	if len(one.Finalizers) == 0 {
		w.objects = slices.Delete(w.objects, i, i+1)
	}
}

func (w *emptiedWorld) happen(event *emptyingEvent) error {
	switch event.Do {
	case "create":
		if !slices.ContainsFunc(w.objects, func(one content) bool { return one.Resource == event.Object.Resource && one.Name == event.Object.Name }) {
			w.objects = append(w.objects, *event.Object)
		}
	case "fail":
		w.faults = append(w.faults, event)
	case "end":
		w.delete(event.Resource, event.Name, 0)
	case "release":
		for i := range w.objects {
			one := &w.objects[i]
			if one.Resource != event.Resource || one.Name != event.Name {
				continue
			}
			one.Finalizers = nil
			if one.deleting && !one.Runs {
				w.objects = slices.Delete(w.objects, i, i+1)
			}
			break
		}
	case "delete", "free":
		old, err := w.client.Tracker().Get(namespacesResource, "", emptiedName)
		if err != nil {
			return nil
		}
		one := old.(*v1.Namespace).DeepCopy()
		if event.Do == "free" {
			one.Spec.Finalizers = slices.DeleteFunc(one.Spec.Finalizers, func(name v1.FinalizerName) bool { return name != v1.FinalizerKubernetes })
		} else if one.DeletionTimestamp == nil {
			now := metav1.NewTime(time.Now().Truncate(time.Second))
			one.DeletionTimestamp = &now
			one.Status.Phase = v1.NamespaceTerminating
		} else {
			return nil
		}
		w.stamp(one)
		if one.DeletionTimestamp != nil && len(one.Spec.Finalizers) == 0 {
			return w.client.Tracker().Delete(namespacesResource, "", emptiedName)
		}
		return w.client.Tracker().Update(namespacesResource, one, "")
	default:
		return fmt.Errorf("the event %q is unknown", event.Do)
	}
	return nil
}

func (w *emptiedWorld) look(atMs int64) {
	moment := contentMoment{AtMs: atMs, Contents: []string{}}
	if one, err := w.client.Tracker().Get(namespacesResource, "", emptiedName); err == nil {
		moment.Namespace = string(one.(*v1.Namespace).Status.Phase)
	}
	for _, one := range w.objects {
		text := one.Resource + "/" + one.Name
		if one.deleting {
			text += " deleting"
		}
		moment.Contents = append(moment.Contents, text)
	}
	slices.Sort(moment.Contents)
	w.outcome.Moments = append(w.outcome.Moments, moment)
}
