package main

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// question is a case for the scheduler: a cluster and one pending pod, or several in turn.
type question struct {
	stored
	ID                     string                          `json:"id"`
	Nodes                  []*v1.Node                      `json:"nodes"`
	Pods                   []*v1.Pod                       `json:"pods"`
	Pod                    *v1.Pod                         `json:"pod"`
	Pending                []*v1.Pod                       `json:"pending"`
	Popped                 bool                            `json:"popped"` // they come from the queue, in this order
	Nominated              []*v1.Pod                       `json:"nominated"`
	Namespaces             []*v1.Namespace                 `json:"namespaces"`
	Budgets                []*policyv1.PodDisruptionBudget `json:"pdbs"`
	Services               []*v1.Service                   `json:"services"`
	ReplicationControllers []*v1.ReplicationController     `json:"replicationControllers"`
	ReplicaSets            []*appsv1.ReplicaSet            `json:"replicaSets"`
	StatefulSets           []*appsv1.StatefulSet           `json:"statefulSets"`
	allocatable
	Profile       json.RawMessage `json:"profile"`
	Configuration json.RawMessage `json:"configuration"`
}

// configurationOf completes a KubeSchedulerConfiguration with the defaults of its version, v1.
func configurationOf(data json.RawMessage) (*config.KubeSchedulerConfiguration, error) {
	fields := map[string]any{}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &fields); err != nil {
			return nil, err
		}
	}
	fields["apiVersion"], fields["kind"] = "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"
	delete(fields, "featureGates")
	content, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(content, nil, nil)
	if err != nil {
		return nil, err
	}
	return object.(*config.KubeSchedulerConfiguration), nil
}

// configurationOfProfile is the configuration of the recorded single decisions: all nodes are looked at.
func configurationOfProfile(profile json.RawMessage) (*config.KubeSchedulerConfiguration, error) {
	if len(profile) == 0 {
		profile = json.RawMessage(`{}`)
	}
	content, err := json.Marshal(map[string]any{
		"profiles": []json.RawMessage{profile}, "percentageOfNodesToScore": 100, "parallelism": 1,
	})
	if err != nil {
		return nil, err
	}
	return configurationOf(content)
}

// schedulerWith makes the real scheduler, connected to client and factory.
func schedulerWith(
	ctx context.Context,
	client kubernetes.Interface,
	factory informers.SharedInformerFactory,
	given *config.KubeSchedulerConfiguration,
	recorders func(string) events.EventRecorderLogger,
	registry frameworkruntime.Registry,
) (*scheduler.Scheduler, error) {
	return scheduler.New(ctx, client, factory, nil, recorders,
		scheduler.WithComponentConfigVersion("kubescheduler.config.k8s.io/v1"),
		scheduler.WithProfiles(given.Profiles...),
		scheduler.WithPercentageOfNodesToScore(given.PercentageOfNodesToScore),
		scheduler.WithParallelism(given.Parallelism),
		scheduler.WithPodInitialBackoffSeconds(given.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(given.PodMaxBackoffSeconds),
		scheduler.WithExtenders(given.Extenders...),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
	)
}

// still is a scheduler whose loop does not run, with a cluster in its cache.
type still struct {
	ctx        context.Context
	logger     klog.Logger
	hasDevices bool
	scheduler  *scheduler.Scheduler
	factory    informers.SharedInformerFactory
	first      framework.Framework
	state      fwk.CycleState // of the last cycle
}

// stillScheduler puts the cluster of a question into cache, nominator and listers.
func stillScheduler(ctx context.Context, asked *question, given *config.KubeSchedulerConfiguration) (*still, error) {
	return stillSchedulerOf(ctx, fake.NewSimpleClientset(), asked, given)
}

func stillSchedulerOf(
	ctx context.Context, client kubernetes.Interface, asked *question, given *config.KubeSchedulerConfiguration,
) (*still, error) {
	factory := scheduler.NewInformerFactory(client, 0)
	recorders := func(string) events.EventRecorderLogger { return silent{} }
	made, err := schedulerWith(ctx, client, factory, given, recorders, nil)
	if err != nil {
		return nil, err
	}
	s := &still{
		ctx: ctx, logger: klog.FromContext(ctx), scheduler: made, factory: factory,
		first: made.Profiles[given.Profiles[0].SchedulerName], hasDevices: len(asked.DeviceClasses) > 0,
	}
	for _, node := range asked.Nodes {
		s.scheduler.Cache.AddNode(s.logger, node)
	}
	core, apps := factory.Core().V1(), factory.Apps().V1()
	pods := core.Pods().Informer().GetIndexer()
	for _, pod := range asked.Pods {
		if err := s.scheduler.Cache.AddPod(s.logger, pod); err != nil {
			return nil, err
		}
		if err := pods.Add(pod); err != nil {
			return nil, err
		}
	}
	for _, pod := range asked.Nominated {
		if err := s.await(pod); err != nil {
			return nil, err
		}
	}
	return s, firstError(
		asked.stored.fill(factory),
		fill(core.Namespaces().Informer(), asked.Namespaces),
		fill(core.Services().Informer(), asked.Services),
		fill(core.ReplicationControllers().Informer(), asked.ReplicationControllers),
		fill(apps.ReplicaSets().Informer(), asked.ReplicaSets),
		fill(apps.StatefulSets().Informer(), asked.StatefulSets),
		fill(factory.Policy().V1().PodDisruptionBudgets().Informer(), asked.Budgets),
	)
}

// await makes a pending pod known. Only a pod that is in the queue counts on the node that it is nominated to.
func (s *still) await(pod *v1.Pod) error {
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = s.first.ProfileName()
	}
	if err := s.factory.Core().V1().Pods().Informer().GetIndexer().Add(pod); err != nil {
		return err
	}
	if pod.Status.NominatedNodeName != "" {
		s.scheduler.SchedulingQueue.Add(s.ctx, pod)
	}
	return nil
}

// snapshot is the cluster as a scheduling cycle sees it, brought up to date.
func (s *still) snapshot() (*schedulercache.Snapshot, error) {
	snapshot, ok := s.first.SnapshotSharedLister().(*schedulercache.Snapshot)
	if !ok {
		return nil, fmt.Errorf("no snapshot but a %T", s.first.SnapshotSharedLister())
	}
	return snapshot, s.scheduler.Cache.UpdateSnapshot(s.logger, snapshot)
}

func fill[T any](informer cache.SharedIndexInformer, objects []T) error {
	for _, object := range objects {
		if err := informer.GetIndexer().Add(object); err != nil {
			return err
		}
	}
	return nil
}

func firstError(found ...error) error {
	for _, err := range found {
		if err != nil {
			return err
		}
	}
	return nil
}

// silent records no events.
type silent struct{}

func (silent) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...interface{}) {
}

func (s silent) WithLogger(klog.Logger) events.EventRecorderLogger { return s }
