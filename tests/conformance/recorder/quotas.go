package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissionquota "k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/helper/qos"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/quota/v1/install"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
)

// syncQuota is linked: one step of the quota controller.
//
//go:linkname syncQuota k8s.io/kubernetes/pkg/controller/resourcequota.(*Controller).syncResourceQuotaFromKey
func syncQuota(controller *resourcequota.Controller, ctx context.Context, key string) error

// repetitionsOfQuotas is how often a case is played: quotas and limit ranges are asked in any order.
const repetitionsOfQuotas = 12

// quotaWrite is how long it takes to write the status of a quota while requests come together.
const quotaWrite = 900 * time.Millisecond

type quotaQuestion struct {
	LimitedResources []quotaapi.LimitedResource
	LimitRanges      []*v1.LimitRange
	DeviceClasses    []*resourceapi.DeviceClass
	Steps            []quotaStep
}

type quotaStep struct {
	// quota, dropQuota, sync, see, charge, wait, create, update, resize, status, delete, remove, together
	Do       string
	Resource string
	Object   json.RawMessage
	Name     string
	Seconds  int64
	Used     v1.ResourceList
	Stale    bool
	Requests []quotaStep
	Charge   *quotaStep
}

type quotaState struct {
	Hard map[string]string `json:"hard,omitempty"`
	Used map[string]string `json:"used,omitempty"`
}

type quotaResult struct {
	Message   string                `json:"message,omitempty"`
	Reason    string                `json:"reason,omitempty"`
	Completed map[string]any        `json:"completed,omitempty"`
	Usage     map[string]string     `json:"usage,omitempty"`
	Frees     *bool                 `json:"frees,omitempty"`
	Quotas    map[string]quotaState `json:"quotas,omitempty"`
	Together  []quotaResult         `json:"together,omitempty"`
}

var resourcesOfQuotas = map[string]schema.GroupVersionKind{
	"pods":                   {Version: "v1", Kind: "Pod"},
	"services":               {Version: "v1", Kind: "Service"},
	"persistentvolumeclaims": {Version: "v1", Kind: "PersistentVolumeClaim"},
	"replicationcontrollers": {Version: "v1", Kind: "ReplicationController"},
	"configmaps":             {Version: "v1", Kind: "ConfigMap"},
	"secrets":                {Version: "v1", Kind: "Secret"},
	"deployments":            {Group: "apps", Version: "v1", Kind: "Deployment"},
	"jobs":                   {Group: "batch", Version: "v1", Kind: "Job"},
	"resourceclaims":         {Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaim"},
}

func answerQuota(t *testing.T, data json.RawMessage) (any, error) {
	answers, err := distinct(repetitionsOfQuotas, func() (any, error) {
		world := &quotaWorld{}
		if err := json.Unmarshal(data, &world.asked); err != nil {
			return nil, err
		}
		return &world.results, inBubble(t, world.play)
	})
	if err != nil {
		return nil, err
	}
	if len(answers) > 6 {
		return nil, ambiguous{len(answers)}
	}
	outcomes := make([]map[string]json.RawMessage, 0, len(answers))
	for _, answer := range answers {
		outcomes = append(outcomes, map[string]json.RawMessage{"steps": answer})
	}
	return map[string]any{"outcomes": outcomes}, nil
}

type quotaWorld struct {
	asked   quotaQuestion
	results []quotaResult

	lock     sync.Mutex // of what requests that come together share
	revision int64
	delay    time.Duration
	quotas   map[string]*v1.ResourceQuota // as stored
	seen     map[string]*v1.ResourceQuota // as the API server has seen them
	objects  map[string]map[string]runtime.Object
	written  map[string]string
	known    map[string]bool // pods and claims that the API server has seen

	shown      *fake.Clientset
	client     *fake.Clientset
	quotaCheck *admissionquota.QuotaAdmission
	ranger     *limitranger.LimitRanger
	evaluators quota.Registry
	controller *resourcequota.Controller
	ofQuotas   cache.Indexer
	filter     resourcequota.UpdateFilter
	own        informers.SharedInformerFactory
}

func (w *quotaWorld) play(t *testing.T) error {
	ctx, cancel := context.WithCancel(t.Context())
	w.quotas, w.seen = map[string]*v1.ResourceQuota{}, map[string]*v1.ResourceQuota{}
	w.known = map[string]bool{}
	w.objects, w.written = map[string]map[string]runtime.Object{}, map[string]string{}
	w.shown, w.client = fake.NewClientset(), fake.NewClientset()
	for _, limitRange := range w.asked.LimitRanges {
		legacyscheme.Scheme.Default(limitRange)
		if err := w.shown.Tracker().Add(limitRange); err != nil {
			cancel()
			return err
		}
	}
	for _, class := range w.asked.DeviceClasses {
		if err := errors.Join(w.shown.Tracker().Add(class), w.client.Tracker().Add(class.DeepCopy())); err != nil {
			cancel()
			return err
		}
	}
	factory := informers.NewSharedInformerFactory(w.shown, 0)
	defer func() {
		cancel()
		factory.Shutdown()
		synctest.Wait()
	}()
	if err := w.wire(ctx, factory); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if len(w.asked.DeviceClasses) > 0 {
		classes := w.own.Resource().V1().DeviceClasses().Informer()
		ended := make(chan struct{})
		go func() {
			classes.Run(ctx.Done())
			close(ended)
		}()
		defer func() {
			cancel()
			<-ended
		}()
	}
	synctest.Wait()
	// Whole seconds, as the time of objects.
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	for _, step := range w.asked.Steps {
		result, err := w.step(ctx, step)
		if err != nil {
			return fmt.Errorf("%s: %w", step.Do, err)
		}
		if err := w.show(); err != nil {
			return err
		}
		result.Quotas = w.changes()
		w.results = append(w.results, *result)
	}
	return nil
}

func (w *quotaWorld) wire(ctx context.Context, factory informers.SharedInformerFactory) error {
	w.client.PrependReactor("update", "resourcequotas", func(action clienttesting.Action) (bool, runtime.Object, error) {
		written, err := w.write(action.(clienttesting.UpdateAction).GetObject().(*v1.ResourceQuota))
		return true, written, err
	})
	configuration, err := install.NewQuotaConfigurationForAdmission(factory, nil)
	if err != nil {
		return err
	}
	w.quotaCheck, err = admissionquota.NewResourceQuota(&quotaapi.Configuration{LimitedResources: w.asked.LimitedResources}, 5)
	if err != nil {
		return err
	}
	w.quotaCheck.SetDrainedNotification(ctx.Done())
	w.quotaCheck.SetExternalKubeClientSet(w.client)
	w.quotaCheck.SetExternalKubeInformerFactory(factory)
	w.quotaCheck.SetQuotaConfiguration(configuration)
	if w.ranger, err = limitranger.NewLimitRanger(nil); err != nil {
		return err
	}
	w.ranger.SetExternalKubeClientSet(w.shown)
	w.ranger.SetExternalKubeInformerFactory(factory)

	own := informers.NewSharedInformerFactory(w.client, 0)
	w.own = own
	lister := func(resource schema.GroupVersionResource) (cache.GenericLister, error) {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		for _, object := range w.objects[resource.Resource] {
			if err := indexer.Add(object); err != nil {
				return nil, err
			}
		}
		return cache.NewGenericLister(indexer, resource.GroupResource()), nil
	}
	counting, err := install.NewQuotaConfigurationForControllers(lister, own)
	if err != nil {
		return err
	}
	w.evaluators = generic.NewRegistry(counting.Evaluators())
	for _, name := range slices.Sorted(maps.Keys(resourcesOfQuotas)) {
		resource := resourcesOfQuotas[name].GroupVersion().WithResource(name)
		if w.evaluators.Get(resource.GroupResource()) == nil {
			list := generic.ListResourceUsingListerFunc(lister, resource)
			w.evaluators.Add(generic.NewObjectCountEvaluator(resource.GroupResource(), list, ""))
		}
	}
	w.ofQuotas = own.Core().V1().ResourceQuotas().Informer().GetIndexer()
	w.filter = install.DefaultUpdateFilter()
	w.controller, err = resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               w.client.CoreV1(),
		ResourceQuotaInformer:     own.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.NoResyncPeriodFunc,
		Registry:                  w.evaluators,
		ReplenishmentResyncPeriod: controller.NoResyncPeriodFunc,
		UpdateFilter:              w.filter,
	})
	if err == nil {
		// Without workers: it only closes its queues in the end.
		go w.controller.Run(ctx, 0)
	}
	return err
}

// write is the update of a status, with its precondition.
func (w *quotaWorld) write(changed *v1.ResourceQuota) (*v1.ResourceQuota, error) {
	time.Sleep(w.delay)
	there, found := w.quotas[changed.Name]
	group := schema.GroupResource{Resource: "resourcequotas"}
	if !found {
		return nil, apierrors.NewNotFound(group, changed.Name)
	}
	if changed.ResourceVersion != there.ResourceVersion {
		return nil, apierrors.NewConflict(group, changed.Name, fmt.Errorf(
			"the object has been modified; please apply your changes to the latest version and try again"))
	}
	now := there.DeepCopy()
	now.Status = *changed.Status.DeepCopy()
	w.store(now)
	return now.DeepCopy(), nil
}

func (w *quotaWorld) store(quota *v1.ResourceQuota) {
	w.revision++
	quota.ResourceVersion = strconv.FormatInt(w.revision, 10)
	w.quotas[quota.Name] = quota
}

// see shows the API server what is stored.
func (w *quotaWorld) see() error {
	resource := v1.SchemeGroupVersion.WithResource("resourcequotas")
	for name, before := range w.seen {
		if _, there := w.quotas[name]; !there {
			if err := w.shown.Tracker().Delete(resource, before.Namespace, name); err != nil {
				return err
			}
			delete(w.seen, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.quotas)) {
		now := w.quotas[name].DeepCopy()
		if _, there := w.seen[name]; there {
			if err := w.shown.Tracker().Update(resource, now, now.Namespace); err != nil {
				return err
			}
		} else if err := w.shown.Tracker().Create(resource, now, now.Namespace); err != nil {
			return err
		}
		w.seen[name] = now.DeepCopy()
	}
	synctest.Wait()
	return nil
}

// show lets those who count claims see the pods and claims that there are.
func (w *quotaWorld) show() error {
	if len(w.asked.DeviceClasses) == 0 {
		return nil
	}
	of := map[string]cache.Indexer{
		"pods":           w.own.Core().V1().Pods().Informer().GetIndexer(),
		"resourceclaims": w.own.Resource().V1().ResourceClaims().Informer().GetIndexer(),
	}
	for resource, indexer := range of {
		items := []any{}
		at := resourcesOfQuotas[resource].GroupVersion().WithResource(resource)
		there := map[string]bool{}
		for name, object := range w.objects[resource] {
			items = append(items, object.DeepCopyObject())
			there[name] = true
			err := w.shown.Tracker().Update(at, object.DeepCopyObject(), "ns")
			if apierrors.IsNotFound(err) {
				err = w.shown.Tracker().Create(at, object.DeepCopyObject(), "ns")
			}
			if err != nil {
				return err
			}
			w.known[resource+"/"+name] = true
		}
		for key := range w.known {
			name, is := strings.CutPrefix(key, resource+"/")
			if is && !there[name] {
				delete(w.known, key)
				if err := w.shown.Tracker().Delete(at, "ns", name); err != nil {
					return err
				}
			}
		}
		if err := indexer.Replace(items, ""); err != nil {
			return err
		}
	}
	synctest.Wait()
	return nil
}

func (w *quotaWorld) step(ctx context.Context, step quotaStep) (*quotaResult, error) {
	switch step.Do {
	case "quota":
		given := &v1.ResourceQuota{}
		if err := json.Unmarshal(step.Object, given); err != nil {
			return nil, err
		}
		if there, found := w.quotas[given.Name]; found {
			given.Status = there.Status
		} else {
			given.Status = v1.ResourceQuotaStatus{}
		}
		w.store(given)
		return &quotaResult{}, nil
	case "dropQuota":
		delete(w.quotas, step.Name)
		return &quotaResult{}, nil
	case "see":
		return &quotaResult{}, w.see()
	case "wait":
		time.Sleep(time.Duration(step.Seconds) * time.Second)
		return &quotaResult{}, nil
	case "charge":
		w.charge(step)
		return &quotaResult{}, nil
	case "sync":
		return w.sync(ctx, step)
	case "remove":
		delete(w.objects[step.Resource], step.Name)
		return &quotaResult{}, nil
	case "delete":
		object := w.objects[step.Resource][step.Name]
		if object == nil {
			return &quotaResult{}, nil
		}
		old := object.DeepCopyObject()
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		at := metav1.NewTime(time.Now().Truncate(time.Second).Add(time.Duration(step.Seconds) * time.Second))
		accessor.SetDeletionTimestamp(&at)
		accessor.SetDeletionGracePeriodSeconds(&step.Seconds)
		return w.filtered(step.Resource, old, object), nil
	case "together":
		return w.together(ctx, step)
	}
	return w.request(ctx, step)
}

// charge is what another API server charges.
func (w *quotaWorld) charge(step quotaStep) {
	if there, found := w.quotas[step.Name]; found {
		now := there.DeepCopy()
		now.Status.Used = quota.Add(now.Status.Used, quota.Mask(step.Used, quota.ResourceNames(now.Status.Hard)))
		w.store(now)
	}
}

func (w *quotaWorld) sync(ctx context.Context, step quotaStep) (*quotaResult, error) {
	quotas := w.quotas
	if step.Stale {
		quotas = w.seen
	}
	items := []any{}
	for _, one := range quotas {
		items = append(items, one.DeepCopy())
	}
	if err := w.ofQuotas.Replace(items, ""); err != nil {
		return nil, err
	}
	return quotaResultOf(syncQuota(w.controller, ctx, "ns/"+step.Name)), nil
}

func (w *quotaWorld) together(ctx context.Context, step quotaStep) (*quotaResult, error) {
	w.delay = quotaWrite
	results := make([]*quotaResult, len(step.Requests))
	errs := make([]error, len(step.Requests))
	ended := make(chan struct{})
	for index, request := range step.Requests {
		go func() {
			results[index], errs[index] = w.request(ctx, request)
			ended <- struct{}{}
		}()
		synctest.Wait()
	}
	if step.Charge != nil {
		time.Sleep(quotaWrite / 2)
		w.charge(*step.Charge)
		if !step.Charge.Stale {
			if err := w.see(); err != nil {
				return nil, err
			}
		}
	}
	for range step.Requests {
		<-ended
	}
	w.delay = 0
	all := &quotaResult{}
	for index := range results {
		if errs[index] != nil {
			return nil, errs[index]
		}
		all.Together = append(all.Together, *results[index])
	}
	return all, nil
}

// request is a write of a user, whose object is as the API server decodes it.
func (w *quotaWorld) request(ctx context.Context, step quotaStep) (*quotaResult, error) {
	kind, known := resourcesOfQuotas[step.Resource]
	if !known {
		return nil, fmt.Errorf("unknown resource %q", step.Resource)
	}
	object, err := legacyscheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(step.Object, object); err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(object)
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	w.lock.Lock()
	old := w.objects[step.Resource][accessor.GetName()]
	w.lock.Unlock()
	operation, subresource := admission.Update, ""
	switch step.Do {
	case "create":
		operation, old = admission.Create, nil
	case "resize", "status":
		subresource = step.Do
	}
	if operation == admission.Update && old == nil {
		return &quotaResult{Message: "there is nothing to update"}, nil
	}
	accessor.SetResourceVersion("")
	if operation == admission.Update {
		accessor.SetResourceVersion("1")
	}
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, err
	}
	var internalOld runtime.Object
	if old != nil {
		if internalOld, err = legacyscheme.Scheme.ConvertToVersion(old.DeepCopyObject(), runtime.InternalGroupVersioner); err != nil {
			return nil, err
		}
	}
	attributes := admission.NewAttributesRecord(internal, internalOld, kind, "ns", accessor.GetName(),
		kind.GroupVersion().WithResource(step.Resource), subresource, operation, nil, false, nil)
	result := &quotaResult{}
	refused := w.ranger.Admit(ctx, attributes, nil)
	if pod, isPod := internal.(*api.Pod); isPod && operation == admission.Create {
		result.Completed = completedOf(pod)
		pod.Status = api.PodStatus{Phase: api.PodPending, QOSClass: qos.GetPodQOS(pod)}
	}
	if refused == nil {
		refused = w.ranger.Validate(ctx, attributes, nil)
	}
	if refused == nil {
		refused = w.quotaCheck.Validate(ctx, attributes, nil)
	}
	given := quotaResultOf(refused)
	result.Message, result.Reason = given.Message, given.Reason
	stored, err := legacyscheme.Scheme.ConvertToVersion(internal, kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	stored.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if accessor, err = meta.Accessor(stored); err != nil {
		return nil, err
	}
	accessor.SetResourceVersion("1")
	w.lock.Lock()
	defer w.lock.Unlock()
	usage, err := w.evaluators.Get(schema.GroupResource{Group: kind.Group, Resource: step.Resource}).Usage(stored)
	if err != nil {
		return nil, err
	}
	result.Usage = textsOf(usage)
	if refused != nil {
		return result, nil
	}
	if old != nil {
		result.Frees = w.filtered(step.Resource, old, stored).Frees
	}
	if w.objects[step.Resource] == nil {
		w.objects[step.Resource] = map[string]runtime.Object{}
	}
	w.objects[step.Resource][accessor.GetName()] = stored
	return result, nil
}

func (w *quotaWorld) filtered(resource string, old, now runtime.Object) *quotaResult {
	frees := w.filter(resourcesOfQuotas[resource].GroupVersion().WithResource(resource), old, now)
	return &quotaResult{Frees: &frees}
}

func quotaResultOf(err error) *quotaResult {
	if err == nil {
		return &quotaResult{}
	}
	reason := string(apierrors.ReasonForError(err))
	return &quotaResult{Message: err.Error(), Reason: reason}
}

// completedOf is what limit ranges have made of a pod.
func completedOf(pod *api.Pod) map[string]any {
	found := map[string]any{}
	for annotation, text := range pod.Annotations {
		if strings.HasPrefix(annotation, "kubernetes.io/") {
			found[annotation] = text
		}
	}
	for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		for which, amounts := range map[string]api.ResourceList{"requests": container.Resources.Requests, "limits": container.Resources.Limits} {
			if len(amounts) > 0 {
				texts := map[string]string{}
				for name, amount := range amounts {
					texts[string(name)] = amount.String()
				}
				found[container.Name+" "+which] = texts
			}
		}
	}
	return found
}

func textsOf(amounts v1.ResourceList) map[string]string {
	texts := map[string]string{}
	for name, amount := range amounts {
		texts[string(name)] = amount.String()
	}
	return texts
}

// changes are the quotas whose status is another than after the step before.
func (w *quotaWorld) changes() map[string]quotaState {
	found := map[string]quotaState{}
	for name, one := range w.quotas {
		state := quotaState{textsOf(one.Status.Hard), textsOf(one.Status.Used)}
		text, _ := json.Marshal(state)
		if w.written[name] != string(text) {
			w.written[name] = string(text)
			found[name] = state
		}
	}
	return found
}
