package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"
	"unsafe"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/scale"
	clientrecord "k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	podmetrics "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

//go:linkname reconcileAutoscaler k8s.io/kubernetes/pkg/controller/podautoscaler.(*HorizontalController).reconcileKey
func reconcileAutoscaler(*podautoscaler.HorizontalController, context.Context, string) (bool, error)

// drawsOfAutoscaling is how often a case is played: of several pods without a container the controller names any.
const drawsOfAutoscaling = 12

const autoscaledNamespace, autoscaledName = "default", "a"

// autoscalingQuestion is an autoscaler and what it sees, look by look. Times are seconds from the start.
type autoscalingQuestion struct {
	Autoscaler autoscalingv2.HorizontalPodAutoscaler
	Replicas   int32
	Looks      []autoscalingLook
}

type autoscalingLook struct {
	// AfterS is how long after the last look.
	AfterS int64
	// Replicas is what somebody else has scaled to.
	Replicas *int32
	Pods     []autoscalingPod
	// Samples by pod, container and resource, in thousandths.
	Samples map[string]map[string]map[string]int64
	// AgeS is how old the samples are.
	AgeS int64
}

type autoscalingPod struct {
	Name, Phase, Ready string
	Deleted            bool
	ReadyS             int64
	StartS             *int64
	Requests, Sidecars map[string]map[string]string
	PodRequests        map[string]string
}

type autoscalingAnswer struct {
	Replicas   int32                        `json:"replicas"`
	Current    int32                        `json:"current"`
	Desired    int32                        `json:"desired"`
	ScaledS    *int64                       `json:"scaledS"`
	Metrics    []autoscalingv2.MetricStatus `json:"metrics"`
	Conditions [][]any                      `json:"conditions"`
	Events     []string                     `json:"events"`
}

// autoscaling is the world of a case: it is the scale of its workload and the metrics API, too.
type autoscaling struct {
	asked autoscalingQuestion
	start time.Time
	scale autoscalingv1.Scale
	look  autoscalingLook
}

// answerAutoscaling asks the HorizontalPodAutoscaler controller for one look after the other, in virtual time.
func answerAutoscaling(t *testing.T, data json.RawMessage) (any, error) {
	answers, err := distinct(drawsOfAutoscaling, func() (any, error) {
		world := &autoscaling{}
		if err := json.Unmarshal(data, &world.asked); err != nil {
			return nil, err
		}
		var answer []autoscalingAnswer
		err := inBubble(t, func(t *testing.T) error {
			var err error
			answer, err = world.play(t.Context())
			return err
		})
		return map[string]any{"looks": answer}, err
	})
	if err != nil {
		return nil, err
	}
	if len(answers) > 1 {
		return nil, ambiguous{len(answers)}
	}
	return answers[0], nil
}

func (w *autoscaling) play(parent context.Context) ([]autoscalingAnswer, error) {
	ctx, cancel := context.WithCancel(parent)
	asked := w.asked.Autoscaler.DeepCopy()
	client := fake.NewSimpleClientset(asked) //nolint:staticcheck // managed fields decide nothing here
	factory := informers.NewSharedInformerFactory(client, 0)
	autoscalers, pods := factory.Autoscaling().V2().HorizontalPodAutoscalers(), factory.Core().V1().Pods()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	controller := podautoscaler.NewHorizontalController(ctx, client.CoreV1(), w, client.AutoscalingV2(), mapper, w,
		autoscalers, pods, 15*time.Second, 5*time.Minute, 0.1, 5*time.Minute, 30*time.Second)
	events := clientrecord.NewFakeRecorder(1000)
	recorder := reflect.ValueOf(controller).Elem().FieldByName("eventRecorder")
	reflect.NewAt(recorder.Type(), unsafe.Pointer(recorder.UnsafeAddr())).Elem().Set(reflect.ValueOf(events))
	defer func() {
		cancel()
		fieldOf(controller, "queue").(interface{ ShutDown() }).ShutDown()
		time.Sleep(time.Hour)
	}()
	w.start = time.Now()
	w.scale = autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: autoscaledNamespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: w.asked.Replicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: w.asked.Replicas, Selector: "app=a"},
	}
	// It looks in the middle between two seconds, so that no time is equal to another by chance.
	time.Sleep(500 * time.Millisecond)
	answers := []autoscalingAnswer{}
	for _, look := range w.asked.Looks {
		time.Sleep(time.Duration(look.AfterS) * time.Second)
		w.look = look
		if look.Replicas != nil {
			w.scale.Spec.Replicas = *look.Replicas
		}
		w.scale.Status.Replicas = w.scale.Spec.Replicas
		indexer := pods.Informer().GetIndexer()
		for _, known := range indexer.List() {
			_ = indexer.Delete(known)
		}
		for _, pod := range look.Pods {
			_ = indexer.Add(w.pod(pod))
		}
		known, err := client.AutoscalingV2().HorizontalPodAutoscalers(autoscaledNamespace).Get(ctx, autoscaledName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		_ = autoscalers.Informer().GetIndexer().Add(known)
		// What fails is in the status.
		_, _ = reconcileAutoscaler(controller, ctx, autoscaledNamespace+"/"+autoscaledName)
		now, err := client.AutoscalingV2().HorizontalPodAutoscalers(autoscaledNamespace).Get(ctx, autoscaledName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		answers = append(answers, w.answer(now, events))
	}
	return answers, nil
}

func (w *autoscaling) answer(now *autoscalingv2.HorizontalPodAutoscaler, events *clientrecord.FakeRecorder) autoscalingAnswer {
	answer := autoscalingAnswer{
		Replicas: w.scale.Spec.Replicas, Current: now.Status.CurrentReplicas, Desired: now.Status.DesiredReplicas,
		Metrics: now.Status.CurrentMetrics, Conditions: [][]any{}, Events: []string{},
	}
	if now.Status.LastScaleTime != nil {
		seconds := w.seconds(now.Status.LastScaleTime.Time)
		answer.ScaledS = &seconds
	}
	for _, one := range now.Status.Conditions {
		answer.Conditions = append(answer.Conditions,
			[]any{one.Type, one.Status, one.Reason, one.Message, w.seconds(one.LastTransitionTime.Time)})
	}
	for len(events.Events) > 0 {
		answer.Events = append(answer.Events, <-events.Events)
	}
	return answer
}

func (w *autoscaling) seconds(at time.Time) int64 { return int64(at.Sub(w.start) / time.Second) }

func (w *autoscaling) pod(asked autoscalingPod) *v1.Pod {
	at := func(seconds int64) metav1.Time {
		return metav1.NewTime(w.start.Add(time.Duration(seconds) * time.Second))
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: asked.Name, Namespace: autoscaledNamespace, Labels: map[string]string{"app": "a"}},
		Status:     v1.PodStatus{Phase: v1.PodPhase(asked.Phase)},
	}
	if asked.Deleted {
		now := at(0)
		pod.DeletionTimestamp = &now
	}
	if asked.StartS != nil {
		start := at(*asked.StartS)
		pod.Status.StartTime = &start
	}
	if asked.Ready != "" {
		pod.Status.Conditions = []v1.PodCondition{
			{Type: v1.PodReady, Status: v1.ConditionStatus(asked.Ready), LastTransitionTime: at(asked.ReadyS)}}
	}
	for _, name := range []string{"c", "d"} {
		if requests, found := asked.Requests[name]; found {
			pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: amounts(requests)}})
		}
	}
	always := v1.ContainerRestartPolicyAlways
	for name, requests := range asked.Sidecars {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{
			Name: name, RestartPolicy: &always, Resources: v1.ResourceRequirements{Requests: amounts(requests)}})
	}
	if len(asked.PodRequests) > 0 {
		pod.Spec.Resources = &v1.ResourceRequirements{Requests: amounts(asked.PodRequests)}
	}
	return pod
}

func amounts(asked map[string]string) v1.ResourceList {
	found := v1.ResourceList{}
	for name, amount := range asked {
		found[v1.ResourceName(name)] = resource.MustParse(amount)
	}
	return found
}

// Scales is the client of scales.
func (w *autoscaling) Scales(string) scale.ScaleInterface { return autoscalingScale{w} }

type autoscalingScale struct{ world *autoscaling }

func (s autoscalingScale) Get(context.Context, schema.GroupResource, string, metav1.GetOptions) (*autoscalingv1.Scale, error) {
	return s.world.scale.DeepCopy(), nil
}

func (s autoscalingScale) Update(_ context.Context, _ schema.GroupResource, wanted *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	s.world.scale.Spec.Replicas = wanted.Spec.Replicas
	return s.world.scale.DeepCopy(), nil
}

func (s autoscalingScale) Patch(context.Context, schema.GroupVersionResource, string, types.PatchType, []byte, metav1.PatchOptions) (*autoscalingv1.Scale, error) {
	return nil, errors.New("nobody patches scales")
}

// GetResourceMetric answers as the client of metrics.k8s.io does for these samples.
func (w *autoscaling) GetResourceMetric(_ context.Context, name v1.ResourceName, _ string, _ labels.Selector, container string) (podmetrics.PodMetricsInfo, time.Time, error) {
	if len(w.look.Samples) == 0 {
		return nil, time.Time{}, errors.New("no metrics returned from resource metrics API")
	}
	at := time.Now().Truncate(time.Second).Add(-time.Duration(w.look.AgeS) * time.Second)
	found := podmetrics.PodMetricsInfo{}
	for pod, containers := range w.look.Samples {
		total, missing := int64(0), len(containers) == 0
		for of, used := range containers {
			if container != "" && of != container {
				continue
			}
			amount, has := used[string(name)]
			missing = missing || !has
			total += amount
		}
		if _, has := containers[container]; container != "" && !has {
			missing = true
		}
		if !missing {
			found[pod] = podmetrics.PodMetric{Timestamp: at, Window: 10 * time.Second, Value: total}
		}
	}
	return found, at, nil
}

func (w *autoscaling) GetRawMetric(string, string, labels.Selector, labels.Selector) (podmetrics.PodMetricsInfo, time.Time, error) {
	return nil, time.Time{}, errors.New(noCustomMetrics)
}

const noCustomMetrics = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"

func (w *autoscaling) GetObjectMetric(string, string, *autoscalingv2.CrossVersionObjectReference, labels.Selector) (int64, time.Time, error) {
	return 0, time.Time{}, errors.New(noCustomMetrics)
}

func (w *autoscaling) GetExternalMetric(name, _ string, _ labels.Selector) ([]int64, time.Time, error) {
	return nil, time.Time{}, errors.New("unable to fetch metrics from external metrics API: the server could not find the requested resource (get " +
		name + ".external.metrics.k8s.io)")
}
