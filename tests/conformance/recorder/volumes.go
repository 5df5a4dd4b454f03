package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const (
	repetitionsOfVolumes = 20
	longestWrite         = 4 * time.Millisecond
	mostOutcomesOfVolume = 8
	// untilSynced passes before second 0 of a case, while caches are filled.
	untilSynced = time.Minute
)

// stored is what a case says about volumes.
type stored struct {
	PersistentVolumes      []*v1.PersistentVolume          `json:"persistentVolumes"`
	PersistentVolumeClaims []*v1.PersistentVolumeClaim     `json:"persistentVolumeClaims"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers             []*storagev1.CSIDriver          `json:"csiDrivers"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity `json:"csiStorageCapacities"`
	VolumeAttachments      []*storagev1.VolumeAttachment   `json:"volumeAttachments"`
}

// fill puts everything into the listers of a scheduler whose informers do not run.
func (s *stored) fill(factory informers.SharedInformerFactory) error {
	core, storage := factory.Core().V1(), factory.Storage().V1()
	return firstError(
		fill(core.PersistentVolumes().Informer(), s.PersistentVolumes),
		fill(core.PersistentVolumeClaims().Informer(), s.PersistentVolumeClaims),
		fill(storage.StorageClasses().Informer(), s.StorageClasses),
		fill(storage.CSINodes().Informer(), s.CSINodes),
		fill(storage.CSIDrivers().Informer(), s.CSIDrivers),
		fill(storage.CSIStorageCapacities().Informer(), s.CSIStorageCapacities),
		fill(storage.VolumeAttachments().Informer(), s.VolumeAttachments),
	)
}

// isAboutVolumes says whether the order of PersistentVolumes in a map may matter.
func (s *stored) isAboutVolumes() bool { return len(s.PersistentVolumes) > 0 }

func (s *stored) objects() []runtime.Object {
	var all []runtime.Object
	for _, one := range s.PersistentVolumes {
		all = append(all, one)
	}
	for _, one := range s.PersistentVolumeClaims {
		all = append(all, one)
	}
	for _, one := range s.StorageClasses {
		all = append(all, one)
	}
	for _, one := range s.CSINodes {
		all = append(all, one)
	}
	for _, one := range s.CSIDrivers {
		all = append(all, one)
	}
	for _, one := range s.CSIStorageCapacities {
		all = append(all, one)
	}
	return all
}

// storageCase is a case of volumes over time.
type storageCase struct {
	stored
	ID                 string         `json:"id"`
	HorizonS           float64        `json:"horizonS"`
	Nodes              []*v1.Node     `json:"nodes"`
	Pods               []*v1.Pod      `json:"pods"`
	Pending            []claimant     `json:"pending"`
	Events             []storageEvent `json:"events"`
	BindTimeoutSeconds int64          `json:"bindTimeoutSeconds"`
	unevenness         time.Duration
}

// storageEvent is what others do: users, the PV controller, provisioners. A patch is a JSON merge patch.
type storageEvent struct {
	AtS       float64         `json:"atS"`
	Do        string          `json:"do"`
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Object    json.RawMessage `json:"object"`
	Patch     json.RawMessage `json:"patch"`
}

var storageKinds = map[string]struct {
	resource schema.GroupVersionResource
	make     func() runtime.Object
}{
	"PersistentVolume": {v1.SchemeGroupVersion.WithResource("persistentvolumes"),
		func() runtime.Object { return &v1.PersistentVolume{} }},
	"PersistentVolumeClaim": {v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
		func() runtime.Object { return &v1.PersistentVolumeClaim{} }},
	"StorageClass": {storagev1.SchemeGroupVersion.WithResource("storageclasses"),
		func() runtime.Object { return &storagev1.StorageClass{} }},
	"Node": {nodesResource, func() runtime.Object { return &v1.Node{} }},
	"Pod":  {podsResource, func() runtime.Object { return &v1.Pod{} }},
}

// answerVolumes plays a case many times: equal volumes are chosen in any order.
func answerVolumes(t *testing.T, data json.RawMessage) (any, error) {
	asked := &storageCase{}
	if err := json.Unmarshal(data, asked); err != nil {
		return nil, err
	}
	play := playBinding
	if strings.HasPrefix(asked.ID, "pv-controller") {
		play = playVolumeController
	}
	repetition := 0
	outcomes, err := distinct(repetitionsOfVolumes, func() (any, error) {
		again := &storageCase{}
		if err := json.Unmarshal(data, again); err != nil {
			return nil, err
		}
		// Workers that are equally fast meet in one order again and again.
		again.unevenness = longestWrite * time.Duration(repetition%2)
		repetition++
		var outcome any
		err := inBubble(t, func(t *testing.T) (err error) {
			outcome, err = play(t.Context(), again)
			return err
		})
		return outcome, err
	})
	if err != nil {
		return nil, err
	}
	if len(outcomes) > mostOutcomesOfVolume {
		return nil, ambiguous{len(outcomes)}
	}
	texts := make([]string, len(outcomes))
	for place, one := range outcomes {
		texts[place] = string(one)
	}
	slices.Sort(texts)
	sorted := make([]json.RawMessage, len(texts))
	for place, text := range texts {
		sorted[place] = json.RawMessage(text)
	}
	return map[string]any{"id": asked.ID, "outcomes": sorted}, nil
}

// storageWorld is an API server that counts the versions of its objects.
type storageWorld struct {
	asked   *storageCase
	client  *fake.Clientset
	factory informers.SharedInformerFactory
	mu      sync.Mutex
	version int
	start   time.Time
}

func newStorageWorld(asked *storageCase) (*storageWorld, error) {
	client := fake.NewSimpleClientset()
	w := &storageWorld{asked: asked, client: client, factory: informers.NewSharedInformerFactory(client, 0)}
	stamp := func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "update" {
			object := action.(clienttesting.UpdateAction).GetObject()
			if err := w.conflict(action, object); err != nil {
				return true, nil, err
			}
			w.stamp(object)
		} else {
			w.stamp(action.(clienttesting.CreateAction).GetObject())
		}
		return false, nil, nil
	}
	client.PrependReactor("create", "*", stamp)
	client.PrependReactor("update", "*", stamp)
	var all []runtime.Object
	for _, node := range asked.Nodes {
		all = append(all, node)
	}
	for _, pod := range asked.Pods {
		all = append(all, pod)
	}
	for _, object := range append(all, asked.objects()...) {
		w.stamp(object)
		if err := client.Tracker().Add(object); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// conflict is how an API server answers who changes an object that he has not seen; a tracker overwrites it.
func (w *storageWorld) conflict(action clienttesting.Action, object runtime.Object) error {
	given, err := meta.Accessor(object)
	must(err)
	stored, err := w.client.Tracker().Get(action.GetResource(), action.GetNamespace(), given.GetName())
	if err != nil {
		return nil
	}
	known, err := meta.Accessor(stored)
	must(err)
	if known.GetResourceVersion() == given.GetResourceVersion() {
		return nil
	}
	return apierrors.NewConflict(action.GetResource().GroupResource(), given.GetName(), errors.New("it has changed"))
}

func (w *storageWorld) stamp(object runtime.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	accessor, err := meta.Accessor(object)
	must(err)
	accessor.SetResourceVersion(strconv.Itoa(w.version))
}

// happen does what an event says to what there still is.
func (w *storageWorld) happen(one storageEvent) error {
	kind, known := storageKinds[one.Kind]
	if !known {
		return fmt.Errorf("no such kind: %s", one.Kind)
	}
	tracker := w.client.Tracker()
	if one.Do == "create" {
		object := kind.make()
		if err := json.Unmarshal(one.Object, object); err != nil {
			return err
		}
		w.stamp(object)
		return tracker.Create(kind.resource, object, one.Namespace)
	}
	before, err := tracker.Get(kind.resource, one.Namespace, one.Name)
	if err != nil {
		return nil
	}
	if one.Do == "delete" {
		return tracker.Delete(kind.resource, one.Namespace, one.Name)
	}
	object, err := mergePatched(before, one.Patch, kind.make())
	if err != nil {
		return err
	}
	w.stamp(object)
	return tracker.Update(kind.resource, object, one.Namespace)
}

// run lets the events happen, each after check, which is called a last time at the horizon.
func (w *storageWorld) run(check func(atS float64) error) error {
	for _, event := range w.asked.Events {
		w.until(event.AtS)
		if err := check(event.AtS); err != nil {
			return err
		}
		if err := w.happen(event); err != nil {
			return err
		}
	}
	w.until(w.asked.HorizonS)
	return check(w.asked.HorizonS)
}

func (w *storageWorld) until(atS float64) {
	time.Sleep(time.Until(w.start.Add(seconds(strconv.FormatFloat(atS, 'f', -1, 64)))))
}

// volumesNow and claimsNow are the objects as the API server has them, without what never differs.
func (w *storageWorld) volumesNow(ctx context.Context) (map[string]any, error) {
	found := map[string]any{}
	all, err := w.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	for _, one := range allOf(all, err) {
		found[one.Name] = volumeNow(&one)
	}
	return found, err
}

func allOf(list *v1.PersistentVolumeList, err error) []v1.PersistentVolume {
	if err != nil {
		return nil
	}
	return list.Items
}

type volumeState struct {
	Claim       string            `json:"claim,omitempty"`
	ClaimUID    string            `json:"claimUID,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Finalizers  []string          `json:"finalizers,omitempty"`
	Phase       string            `json:"phase,omitempty"`
	Message     string            `json:"message,omitempty"`
}

func volumeNow(volume *v1.PersistentVolume) volumeState {
	state := volumeState{Annotations: volume.Annotations, Finalizers: volume.Finalizers,
		Phase: string(volume.Status.Phase), Message: volume.Status.Message}
	if reference := volume.Spec.ClaimRef; reference != nil {
		state.Claim, state.ClaimUID = reference.Namespace+"/"+reference.Name, string(reference.UID)
	}
	return state
}

type claimState struct {
	Volume      string            `json:"volume,omitempty"`
	Class       *string           `json:"class,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Phase       string            `json:"phase,omitempty"`
	Capacity    string            `json:"capacity,omitempty"`
	AccessModes []string          `json:"accessModes,omitempty"`
}

func (w *storageWorld) claimsNow(ctx context.Context) (map[string]any, error) {
	found := map[string]any{}
	all, err := w.client.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, claim := range all.Items {
		state := claimState{Volume: claim.Spec.VolumeName, Class: claim.Spec.StorageClassName,
			Annotations: claim.Annotations, Phase: string(claim.Status.Phase)}
		if amount, ok := claim.Status.Capacity[v1.ResourceStorage]; ok {
			state.Capacity = amount.String()
		}
		for _, mode := range claim.Status.AccessModes {
			state.AccessModes = append(state.AccessModes, string(mode))
		}
		found[claim.Namespace+"/"+claim.Name] = state
	}
	return found, nil
}

func mergePatched(before runtime.Object, patch json.RawMessage, made runtime.Object) (runtime.Object, error) {
	content, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	var fields, changes map[string]any
	if err := json.Unmarshal(content, &fields); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, err
	}
	if content, err = json.Marshal(merged(fields, changes)); err != nil {
		return nil, err
	}
	return made, json.Unmarshal(content, made)
}

func merged(fields, changes map[string]any) map[string]any {
	if fields == nil {
		fields = map[string]any{}
	}
	for name, value := range changes {
		if value == nil {
			delete(fields, name)
			continue
		}
		inner, isMap := value.(map[string]any)
		before, wasMap := fields[name].(map[string]any)
		if isMap && (wasMap || fields[name] == nil) {
			fields[name] = merged(before, inner)
			if len(fields[name].(map[string]any)) == 0 {
				// An API server that stores messages knows no empty maps.
				delete(fields, name)
			}
		} else {
			fields[name] = value
		}
	}
	return fields
}

// privateField reads what a plugin keeps to itself.
func privateField(of any, names ...string) reflect.Value {
	value := reflect.ValueOf(of)
	for _, name := range names {
		for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
			value = value.Elem()
		}
		value = value.FieldByName(name)
	}
	return value
}
