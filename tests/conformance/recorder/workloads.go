package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for go:linkname

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clientrecord "k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/statefulset"
)

//go:linkname syncDeployment k8s.io/kubernetes/pkg/controller/deployment.(*DeploymentController).syncDeployment
func syncDeployment(*deployment.DeploymentController, context.Context, string) error

//go:linkname syncReplicaSet k8s.io/kubernetes/pkg/controller/replicaset.(*ReplicaSetController).syncReplicaSet
func syncReplicaSet(*replicaset.ReplicaSetController, context.Context, string) error

//go:linkname syncStatefulSet k8s.io/kubernetes/pkg/controller/statefulset.(*StatefulSetController).sync
func syncStatefulSet(*statefulset.StatefulSetController, context.Context, string) error

//go:linkname syncDaemonSet k8s.io/kubernetes/pkg/controller/daemon.(*DaemonSetsController).syncDaemonSet
func syncDaemonSet(*daemon.DaemonSetsController, context.Context, string) error

// drawsOfSyncs is how often a case is played: the controllers go over Go maps.
const drawsOfSyncs = 12

// workloadQuestion is what there is, and what happens in turn. Times are offsets from the start in seconds: "@-120".
type workloadQuestion struct {
	ID, Family string
	Objects    []json.RawMessage
	Steps      []workloadStep
	// ReadyS is after how many seconds a pod with this image becomes ready; with an image that is not there, never.
	ReadyS map[string]int64
	// ShutdownS is how long pods take to terminate.
	ShutdownS int64
	Gates     map[string]bool
	// Failures: the controllers' next creations of pods that fail.
	Failures int
}

type workloadStep struct {
	Do       string
	Kind     string
	Name     string
	Count    int
	Seconds  int64
	Failures int
	Object   json.RawMessage
}

type syncAnswer struct {
	Failed  bool             `json:"failed,omitempty"`
	Changes []map[string]any `json:"changes"`
	Events  []string         `json:"events,omitempty"`
}

// answerWorkloads asks the workload controllers for single syncs, and for their state after rounds of syncs.
func answerWorkloads(t *testing.T, data json.RawMessage) (any, error) {
	answers, err := distinct(drawsOfSyncs, func() (any, error) {
		asked := &workloadQuestion{}
		if err := json.Unmarshal(data, asked); err != nil {
			return nil, err
		}
		var answer []any
		err := inBubble(t, func(t *testing.T) error {
			var err error
			answer, err = asked.play(t.Context())
			return err
		})
		return answer, err
	})
	if err != nil {
		return nil, err
	}
	if len(answers) > drawsOfSyncs/2 {
		return nil, ambiguous{len(answers)}
	}
	return map[string]any{"anyOf": answers}, nil
}

type workloadControllers struct {
	deployments  *deployment.DeploymentController
	replicaSets  *replicaset.ReplicaSetController
	replications *replication.ReplicationManager
	statefulSets *statefulset.StatefulSetController
	daemonSets   *daemon.DaemonSetsController
}

func (c *workloadControllers) sync(ctx context.Context, kind, key string) error {
	switch kind {
	case "Deployment":
		return syncDeployment(c.deployments, ctx, key)
	case "ReplicaSet":
		return syncReplicaSet(c.replicaSets, ctx, key)
	case "ReplicationController":
		return syncReplicaSet(&c.replications.ReplicaSetController, ctx, key)
	case "StatefulSet":
		return syncStatefulSet(c.statefulSets, ctx, key)
	case "DaemonSet":
		return syncDaemonSet(c.daemonSets, ctx, key)
	}
	return fmt.Errorf("no controller for %s", kind)
}

var roundOf = []struct{ kind, resource string }{
	{"Deployment", "deployments"}, {"ReplicaSet", "replicasets"}, {"ReplicationController", "replicationcontrollers"},
	{"StatefulSet", "statefulsets"}, {"DaemonSet", "daemonsets"},
}

func (q *workloadQuestion) play(parent context.Context) ([]any, error) {
	ctx, cancel := context.WithCancel(parent)
	gates := map[string]bool{
		"MaxUnavailableStatefulSet": q.Gates["MaxUnavailableStatefulSet"],
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		cancel()
		return nil, err
	}
	client := fake.NewSimpleClientset() //nolint:staticcheck // managed fields decide nothing here
	world := newObjectWorld(client)
	world.failures = q.Failures
	factory := informers.NewSharedInformerFactory(client, 0)
	apps, core := factory.Apps().V1(), factory.Core().V1()
	controllers := &workloadControllers{}
	var err error
	if controllers.deployments, err = deployment.NewDeploymentController(
		ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client); err != nil {
		cancel()
		return nil, err
	}
	controllers.replicaSets = replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, replicaset.BurstReplicas)
	controllers.replications = replication.NewReplicationManager(ctx, core.Pods(), core.ReplicationControllers(), client, replicaset.BurstReplicas)
	controllers.statefulSets = statefulset.NewStatefulSetController(
		ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), client)
	if controllers.daemonSets, err = daemon.NewDaemonSetsController(
		ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), client,
		flowcontrol.NewBackOff(time.Second, 15*time.Minute)); err != nil {
		cancel()
		return nil, err
	}
	closing := []interface{ ShutDown() }{fieldOf(controllers.daemonSets, "nodeUpdateQueue").(interface{ ShutDown() })}
	broadcasters := []clientrecord.EventBroadcaster{}
	for _, one := range []any{controllers.deployments, controllers.replicaSets, controllers.statefulSets,
		controllers.daemonSets, &controllers.replications.ReplicaSetController} {
		broadcaster := fieldOf(one, "eventBroadcaster").(clientrecord.EventBroadcaster)
		broadcaster.StartEventWatcher(world.happened)
		broadcasters = append(broadcasters, broadcaster)
		closing = append(closing, fieldOf(one, "queue").(interface{ ShutDown() }))
	}
	factory.Start(ctx.Done())
	defer func() {
		world.releaseAll()
		cancel()
		for _, broadcaster := range broadcasters {
			broadcaster.Shutdown()
		}
		for _, queue := range closing {
			queue.ShutDown()
		}
		factory.Shutdown()
		time.Sleep(time.Hour)
	}()
	synctest.Wait()
	world.start = time.Now()
	// The controllers act in the middle between two seconds, so that no time is equal to another by chance.
	time.Sleep(500 * time.Millisecond)
	for _, data := range q.Objects {
		if err := world.put(data); err != nil {
			return nil, err
		}
	}
	settle()
	answer := []any{}
	var last map[string]any
	rounds := 0
	for _, step := range q.Steps {
		world.failures += step.Failures
		switch step.Do {
		case "sync":
			given, err := world.sync(ctx, controllers, step.Kind, "default/"+step.Name)
			if err != nil {
				return nil, err
			}
			answer = append(answer, given)
		case "rounds":
			for range step.Count {
				for _, one := range roundOf {
					for _, name := range world.names(one.resource) {
						// What fails is tried again in the next round.
						_ = controllers.sync(ctx, one.kind, "default/"+name)
						settle()
					}
				}
				rounds++
				world.events = nil
				now := world.summary()
				if !reflect.DeepEqual(last, now) {
					answer = append(answer, map[string]any{"round": rounds, "state": now})
					last = now
				}
				if err := world.pass(q.ReadyS, q.ShutdownS); err != nil {
					return nil, err
				}
				settle()
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1500 * time.Millisecond)))
				synctest.Wait()
			}
		case "pass":
			if err := world.pass(q.ReadyS, q.ShutdownS); err != nil {
				return nil, err
			}
		case "replace":
			if err := world.replace(step.Object); err != nil {
				return nil, err
			}
		case "delete":
			if err := world.remove(step.Kind, step.Name); err != nil {
				return nil, err
			}
		case "hold":
			world.hold(ofTypes[step.Kind].resource.Resource)
		case "release":
			world.release(ofTypes[step.Kind].resource.Resource)
		case "sleep":
			time.Sleep(time.Duration(step.Seconds) * time.Second)
		default:
			return nil, fmt.Errorf("unknown step %q", step.Do)
		}
		settle()
	}
	return answer, nil
}

// sync asks for one sync and says what it changed.
func (w *objectWorld) sync(ctx context.Context, controllers *workloadControllers, kind, key string) (*syncAnswer, error) {
	before := w.objects()
	w.events = nil
	failure := controllers.sync(ctx, kind, key)
	settle()
	after := w.objects()
	answer := &syncAnswer{Failed: failure != nil, Changes: []map[string]any{}}
	for name, now := range after {
		if old, there := before[name]; !there {
			answer.Changes = append(answer.Changes, map[string]any{"created": now})
		} else if !reflect.DeepEqual(old, now) {
			answer.Changes = append(answer.Changes, map[string]any{"changed": now})
		}
	}
	for name, old := range before {
		if _, there := after[name]; !there {
			gone := old["name"]
			if isGenerated(old) {
				gone = old["generated"]
			}
			answer.Changes = append(answer.Changes, map[string]any{"deleted": gone, "kind": old["kind"]})
		}
	}
	for _, change := range answer.Changes {
		if created, ok := change["created"].(map[string]any); ok && isGenerated(created) {
			delete(created, "name")
		}
	}
	slices.SortFunc(answer.Changes, func(one, other map[string]any) int { return strings.Compare(text(one), text(other)) })
	for _, event := range w.events {
		answer.Events = append(answer.Events, event)
	}
	slices.Sort(answer.Events)
	return answer, nil
}

// isGenerated says whether the name of an object is chance. StatefulSets name their pods.
func isGenerated(view map[string]any) bool {
	labels, _ := view["labels"].(map[string]any)
	return view["generated"] != nil && view["name"] != labels["statefulset.kubernetes.io/pod-name"]
}

func text(value any) string {
	data, err := json.Marshal(value)
	must(err)
	return string(data)
}

// ofTypes are the kinds of a case, with what a summary says of them.
var ofTypes = map[string]struct {
	resource schema.GroupVersionResource
	empty    func() runtime.Object
}{
	"Deployment":            {appsv1.SchemeGroupVersion.WithResource("deployments"), func() runtime.Object { return &appsv1.Deployment{} }},
	"ReplicaSet":            {appsv1.SchemeGroupVersion.WithResource("replicasets"), func() runtime.Object { return &appsv1.ReplicaSet{} }},
	"StatefulSet":           {appsv1.SchemeGroupVersion.WithResource("statefulsets"), func() runtime.Object { return &appsv1.StatefulSet{} }},
	"DaemonSet":             {appsv1.SchemeGroupVersion.WithResource("daemonsets"), func() runtime.Object { return &appsv1.DaemonSet{} }},
	"ControllerRevision":    {appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), func() runtime.Object { return &appsv1.ControllerRevision{} }},
	"ReplicationController": {v1.SchemeGroupVersion.WithResource("replicationcontrollers"), func() runtime.Object { return &v1.ReplicationController{} }},
	"Pod":                   {v1.SchemeGroupVersion.WithResource("pods"), func() runtime.Object { return &v1.Pod{} }},
	"Node":                  {v1.SchemeGroupVersion.WithResource("nodes"), func() runtime.Object { return &v1.Node{} }},
	"PersistentVolumeClaim": {v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), func() runtime.Object { return &v1.PersistentVolumeClaim{} }},
}

// list gives the objects of a kind by name.
func (w *objectWorld) list(kind string) []metav1.Object {
	of := ofTypes[kind]
	list, err := w.tracker.List(of.resource, of.resource.GroupVersion().WithKind(kind), "")
	must(err)
	items, err := meta.ExtractList(list)
	must(err)
	found := []metav1.Object{}
	for _, item := range items {
		found = append(found, item.(metav1.Object))
	}
	slices.SortFunc(found, func(one, other metav1.Object) int { return strings.Compare(one.GetName(), other.GetName()) })
	return found
}

func (w *objectWorld) names(resource string) []string {
	found := []string{}
	for kind, of := range ofTypes {
		if of.resource.Resource == resource {
			for _, one := range w.list(kind) {
				found = append(found, one.GetName())
			}
		}
	}
	return found
}
