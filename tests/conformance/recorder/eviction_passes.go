package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientevents "k8s.io/client-go/tools/record"
	k8smetrics "k8s.io/component-base/metrics"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// synchronize is a pass of the eviction manager. It is linked because the exported Start calls it in a loop of its own,
// in which passes cannot be told apart nor be given their time.
//
//go:linkname synchronize k8s.io/kubernetes/pkg/kubelet/eviction.(*managerImpl).synchronize
func synchronize(
	manager unsafe.Pointer, ctx context.Context, disks eviction.DiskInfoProvider, pods eviction.ActivePodsFunc,
) ([]*v1.Pod, error)

type managerSettings struct {
	evictionSettings
	EvictionPressureTransitionPeriodSeconds float64
	EvictionMaxPodGracePeriod               int64
	LocalStorageCapacityIsolation           bool
}

func (s *managerSettings) config() (eviction.Config, error) {
	thresholds, err := s.parse()
	return eviction.Config{
		PressureTransitionPeriod: time.Duration(s.EvictionPressureTransitionPeriodSeconds * float64(time.Second)),
		MaxPodGracePeriodSeconds: s.EvictionMaxPodGracePeriod,
		Thresholds:               thresholds,
	}, err
}

type passesQuestion struct {
	Config     managerSettings
	Filesystem filesystem
	Pods       []*v1.Pod
	Probes     []*v1.Pod
	Steps      []*passQuestion
}

type passQuestion struct {
	At                       float64
	ActivePods               []string
	Node                     statsapi.NodeStats
	PodStats                 []statsapi.PodStats
	NodeAfterContainerGC     *statsapi.NodeStats
	NodeAfterImageGC         *statsapi.NodeStats
	ContainerGCError         any
	ImageGCError             any
	KillErrors               []string
	SummaryError             any
	SummaryErrorAfterReclaim any
	ImageFsError             string
}

type passOutcome struct {
	AttemptedReclaim string   `json:"attemptedReclaim,omitempty"`
	GC               []string `json:"gc,omitempty"`
	Evictions        []kill   `json:"evictions"`
	Returned         []string `json:"returned"`
	EvictionSignal   string   `json:"evictionSignal,omitempty"`
}

type passAnswer struct {
	Error                   string                           `json:"error,omitempty"`
	ThresholdsObserved      []json.RawMessage                `json:"thresholdsObserved"`
	ThresholdsMet           []json.RawMessage                `json:"thresholdsMet"`
	NodeConditions          []v1.NodeConditionType           `json:"nodeConditions"`
	ConditionLastObservedAt map[v1.NodeConditionType]float64 `json:"conditionLastObservedAt"`
	Admission               map[string]podAdmission          `json:"admission"`
	Outcomes                []json.RawMessage                `json:"outcomes"`
}

type podAdmission struct {
	Admit   bool   `json:"admit"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// answerEvictionManager plays the passes many times. What the manager knows after a pass is always the same; which of the
// thresholds it acts on may depend on the order of maps.
func answerEvictionManager(data json.RawMessage) (any, error) {
	asked := &passesQuestion{}
	if err := json.Unmarshal(data, asked); err != nil {
		return nil, err
	}
	var answers []*passAnswer
	var states []string
	for range drawsOfMaps {
		played, err := asked.play()
		if err != nil {
			return nil, err
		}
		for i, one := range played {
			outcomes := one.Outcomes
			one.Outcomes = nil
			state, err := json.Marshal(one)
			if err != nil {
				return nil, err
			}
			if len(answers) == i {
				answers, states = append(answers, one), append(states, string(state))
			} else if states[i] != string(state) {
				return nil, ambiguous{2}
			}
			for _, outcome := range outcomes {
				isThis := func(other json.RawMessage) bool { return string(other) == string(outcome) }
				if !slices.ContainsFunc(answers[i].Outcomes, isThis) {
					answers[i].Outcomes = append(answers[i].Outcomes, outcome)
				}
			}
		}
	}
	return map[string]any{"steps": answers}, nil
}

var startOfPasses = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (q *passesQuestion) play() ([]*passAnswer, error) {
	config, err := q.Config.config()
	if err != nil {
		return nil, err
	}
	node := &evictedNode{filesystem: q.Filesystem}
	now := clocktesting.NewFakeClock(startOfPasses)
	manager, admission := newEvictionManager(node, config, now, q.Config.LocalStorageCapacityIsolation)
	pods := map[string]*v1.Pod{}
	for _, pod := range q.Pods {
		pods[pod.Name] = pod
	}
	var answers []*passAnswer
	for _, step := range q.Steps {
		now.SetTime(startOfPasses.Add(time.Duration(step.At * float64(time.Second))))
		node.begin(step)
		active := func() []*v1.Pod {
			var found []*v1.Pod
			for _, name := range step.ActivePods {
				found = append(found, pods[name])
			}
			return found
		}
		evictedSignals() // those of others
		evicted, err := synchronize(reflect.ValueOf(manager).UnsafePointer(), context.Background(), node, active)
		answer := stateOfManager(manager)
		if err != nil {
			answer.Error = err.Error()
		}
		for _, pod := range evicted {
			node.outcome.Returned = append(node.outcome.Returned, pod.Name)
		}
		node.outcome.EvictionSignal = strings.Join(evictedSignals(), " ")
		text, err := json.Marshal(node.outcome)
		if err != nil {
			return nil, err
		}
		answer.Outcomes = []json.RawMessage{text}
		for _, probe := range q.Probes {
			answer.Admission[probe.Name] = admissionOf(admission, probe)
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

func newEvictionManager(
	node *evictedNode, config eviction.Config, now clock.WithTicker, localStorage bool,
) (eviction.Manager, lifecycle.PodAdmitHandler) {
	reference := &v1.ObjectReference{Kind: "Node", Name: "node-1"}
	return eviction.NewManager(node, config, node.kill, imageGC{node}, containerGC{node}, node, reference, now, localStorage)
}

func admissionOf(handler lifecycle.PodAdmitHandler, pod *v1.Pod) podAdmission {
	result := handler.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
	message := result.Message
	if before, rest, ok := strings.Cut(message, "["); ok {
		// The manager lists the conditions in the order of a map.
		inside, after, _ := strings.Cut(rest, "]")
		conditions := strings.Fields(inside)
		slices.Sort(conditions)
		message = before + "[" + strings.Join(conditions, " ") + "]" + after
	}
	return podAdmission{Admit: result.Admit, Reason: result.Reason, Message: message}
}

// stateOfManager reads fields that the manager does not export.
func stateOfManager(manager eviction.Manager) *passAnswer {
	fields := reflect.ValueOf(manager).Elem()
	at := func(name string) unsafe.Pointer { return fields.FieldByName(name).Addr().UnsafePointer() }
	conditions := *(*[]v1.NodeConditionType)(at("nodeConditions"))
	lastObserved := *(*map[v1.NodeConditionType]time.Time)(at("nodeConditionsLastObservedAt"))
	met := *(*[]evictionapi.Threshold)(at("thresholdsMet"))
	firstObserved := *(*map[evictionapi.Threshold]time.Time)(at("thresholdsFirstObservedAt"))
	answer := &passAnswer{
		ThresholdsMet:           thresholdsAsSet(met),
		NodeConditions:          append([]v1.NodeConditionType{}, conditions...),
		ConditionLastObservedAt: map[v1.NodeConditionType]float64{},
		Admission:               map[string]podAdmission{},
	}
	slices.Sort(answer.NodeConditions)
	for condition, when := range lastObserved {
		answer.ConditionLastObservedAt[condition] = when.Sub(startOfPasses).Seconds()
	}
	var observed []threshold
	for one, when := range firstObserved {
		seconds := when.Sub(startOfPasses).Seconds()
		found := thresholdOf(one)
		found.FirstObservedAt = &seconds
		observed = append(observed, found)
	}
	answer.ThresholdsObserved = inOrderOfText(observed)
	return answer
}

var registerEvictions = sync.OnceValue(func() k8smetrics.KubeRegistry {
	registry := k8smetrics.NewKubeRegistry()
	registry.MustRegister(metrics.Evictions)
	return registry
})

// evictedSignals are the signals to which the manager's metric has charged evictions since the last call.
func evictedSignals() []string {
	families, err := registerEvictions().Gather()
	must(err)
	var signals []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				signals = append(signals, label.GetValue())
			}
		}
	}
	metrics.Evictions.Reset()
	return signals
}

// evictedNode is all that an eviction manager deals with in a pass: statistics, disks, collections of garbage, kills, events.
type evictedNode struct {
	filesystem
	step    *passQuestion
	stats   statsapi.NodeStats
	looks   int
	outcome *passOutcome
}

func (n *evictedNode) begin(step *passQuestion) {
	n.step, n.stats, n.looks = step, step.Node, 0
	n.outcome = &passOutcome{Evictions: []kill{}, Returned: []string{}}
}

func (n *evictedNode) Get(context.Context, bool) (*statsapi.Summary, error) {
	n.looks++
	if (n.looks == 1 && isError(n.step.SummaryError)) || (n.looks > 1 && isError(n.step.SummaryErrorAfterReclaim)) {
		return nil, errors.New("no statistics")
	}
	return &statsapi.Summary{Node: n.stats, Pods: n.step.PodStats}, nil
}

func (n *evictedNode) GetCPUAndMemoryStats(ctx context.Context) (*statsapi.Summary, error) {
	return n.Get(ctx, true)
}

func (n *evictedNode) HasDedicatedImageFs(context.Context) (bool, error) {
	if n.step.ImageFsError != "" {
		return false, errors.New(n.step.ImageFsError)
	}
	return n.DedicatedImageFs, nil
}

func (n *evictedNode) HasDedicatedContainerFs(context.Context) (bool, error) {
	return n.DedicatedContainerFs, nil
}

func (n *evictedNode) kill(pod *v1.Pod, isEvicted bool, gracePeriod *int64, change func(*v1.PodStatus)) error {
	n.outcome.Evictions = append(n.outcome.Evictions, killOf(pod, isEvicted, gracePeriod, change))
	if slices.Contains(n.step.KillErrors, pod.Name) {
		return errors.New("the pod cannot be killed")
	}
	return nil
}

func (n *evictedNode) collect(name string, after *statsapi.NodeStats, failure any) error {
	n.outcome.GC = append(n.outcome.GC, name)
	if after != nil {
		n.stats = *after
	}
	if isError(failure) {
		return errors.New("nothing was collected")
	}
	return nil
}

// isError tells whether a case gives an error, as a text or as true.
func isError(given any) bool { return given != nil && given != "" && given != false }

type imageGC struct{ *evictedNode }

func (c imageGC) DeleteUnusedImages(context.Context) error {
	return c.collect("imageGC", c.step.NodeAfterImageGC, c.step.ImageGCError)
}

type containerGC struct{ *evictedNode }

func (c containerGC) DeleteAllUnusedContainers(context.Context) error {
	return c.collect("containerGC", c.step.NodeAfterContainerGC, c.step.ContainerGCError)
}

var _ clientevents.EventRecorder = &evictedNode{}

func (n *evictedNode) Event(runtime.Object, string, string, string) {}

func (n *evictedNode) Eventf(_ runtime.Object, _, reason, _ string, args ...any) {
	if reason == "EvictionThresholdMet" {
		n.outcome.AttemptedReclaim = string(args[0].(v1.ResourceName))
	}
}

func (n *evictedNode) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {
}
