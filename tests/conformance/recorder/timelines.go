package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

const (
	repetitionsOfTimelines        = 12
	mostOutcomes                  = 12
	toleranceS                    = 0.15
	repetitionsWithOtherLatencies = 2
	untilAllEnded                 = time.Minute
)

// latencies are the small times of the scheduler's surroundings.
type latencies struct {
	// call is how long a call of the API takes; it is applied a little before its end.
	call time.Duration
	// step is the shortest time from one attempt to the next.
	step time.Duration
}

var recordedLatencies = latencies{3 * time.Millisecond, time.Millisecond}

// otherLatencies must not change what happens: a case where they do is left out.
var otherLatencies = []latencies{
	{time.Millisecond, time.Millisecond}, {5 * time.Millisecond, time.Millisecond}, {3 * time.Millisecond, 3 * time.Millisecond},
}

// history is a case of a timeline: a small cluster and what happens to it.
type history struct {
	ID            string                          `json:"id"`
	Start         time.Time                       `json:"start"`
	HorizonS      float64                         `json:"horizon_s"`
	Nodes         []*v1.Node                      `json:"nodes"`
	Pods          []*v1.Pod                       `json:"pods"`
	Budgets       []*policyv1.PodDisruptionBudget `json:"pdbs"`
	Events        []event                         `json:"events"`
	AttemptS      float64                         `json:"attempt_s"`
	BindErrors    map[string]int                  `json:"bindErrors"`
	FeatureGates  map[string]bool                 `json:"featureGates"`
	Configuration json.RawMessage                 `json:"configuration"`
}

type event struct {
	AtS            float64                       `json:"at_s"`
	Do             string                        `json:"do"`
	Name           string                        `json:"name"`
	Pod            *v1.Pod                       `json:"pod"`
	Node           *v1.Node                      `json:"node"`
	Budget         *policyv1.PodDisruptionBudget `json:"pdb"`
	GraceSeconds   *int64                        `json:"graceSeconds"`
	Labels         map[string]string             `json:"labels"`
	RemoveGates    json.RawMessage               `json:"removeGates"`
	AddTolerations []v1.Toleration               `json:"addTolerations"`
	Requests       v1.ResourceList               `json:"requests"`
}

// outcome is what happened when, and how it stood at the end.
type outcome struct {
	Timeline []entry          `json:"timeline"`
	Final    map[string]place `json:"final"`
}

type entry struct {
	AtS     float64 `json:"t_s"`
	Pod     string  `json:"pod"`
	What    string  `json:"what"`
	Node    string  `json:"node,omitempty"`
	By      string  `json:"by,omitempty"`
	Message string  `json:"message,omitempty"`
}

type place struct {
	State     string `json:"state"`
	Node      string `json:"node,omitempty"`
	Nominated string `json:"nominated,omitempty"`
}

type outcomes struct {
	ID       string     `json:"id"`
	Outcomes []*outcome `json:"outcomes"`
}

// inVirtualTime calls work with a test, which the bubbles of testing/synctest ask for, and ends the process.
func inVirtualTime(work func(*testing.T)) {
	// The loop of os/signal must not begin within a bubble: it would hold its clock.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, os.Interrupt)
	signal.Stop(ignored)
	os.Args = os.Args[:1]
	os.Stdout = os.Stderr
	// The handlers of errors wait when errors come quickly, and so would the scheduler.
	utilruntime.ErrorHandlers = nil
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "record", F: work}}, nil, nil)
}

// answerTimeline plays a case many times. Equal nodes and equal candidates are chosen in any order.
func answerTimeline(t *testing.T, data json.RawMessage) (any, error) {
	answer := &outcomes{}
	seen := map[string]bool{}
	for repetition := range repetitionsOfTimelines {
		one, err := playTimeline(t, data, repetition, recordedLatencies)
		if err != nil {
			return nil, err
		}
		answer.ID = one.id
		content, err := json.Marshal(one.result)
		if err != nil {
			return nil, err
		}
		if !seen[string(content)] {
			seen[string(content)] = true
			answer.Outcomes = append(answer.Outcomes, one.result)
		}
	}
	if len(answer.Outcomes) > mostOutcomes {
		return nil, ambiguous{len(answer.Outcomes)}
	}
	for repetition := range repetitionsWithOtherLatencies {
		for _, others := range otherLatencies {
			one, err := playTimeline(t, data, repetition, others)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(answer.Outcomes, one.result.isLike) {
				return nil, ambiguous{len(answer.Outcomes) + 1}
			}
		}
	}
	return answer, nil
}

// isLike compares two outcomes as schedulers of different latencies compare: times within 0.15 s, and without failed
// attempts that another attempt of the same pod follows within that time.
func (o *outcome) isLike(other *outcome) bool {
	here, there := o.byPod(), other.byPod()
	if len(here) != len(there) || !reflect.DeepEqual(o.Final, other.Final) {
		return false
	}
	for name, entries := range here {
		if !slices.EqualFunc(entries, there[name], func(one, two entry) bool {
			return one.What == two.What && one.Node == two.Node && one.By == two.By && one.isSoonAfter(two)
		}) {
			return false
		}
	}
	return true
}

func (e entry) isSoonAfter(other entry) bool { return math.Abs(e.AtS-other.AtS) <= toleranceS }

func (o *outcome) byPod() map[string][]entry {
	found := map[string][]entry{}
	for place, one := range o.Timeline {
		repeated := false
		if one.What == "unschedulable" || one.What == "error" {
			for _, later := range o.Timeline[place+1:] {
				if later.Pod == one.Pod && (later.What == "unschedulable" || later.What == "error" || later.What == "bound") {
					repeated = later.isSoonAfter(one)
					break
				}
			}
		}
		if !repeated {
			found[one.Pod] = append(found[one.Pod], one)
		}
	}
	return found
}

type played struct {
	id     string
	result *outcome
}

func playTimeline(t *testing.T, data json.RawMessage, repetition int, small latencies) (*played, error) {
	var result *played
	var err error
	ok := t.Run("case", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			asked := &history{}
			if err = json.Unmarshal(data, asked); err != nil {
				return
			}
			result = &played{id: asked.ID}
			result.result, err = play(t.Context(), asked, small, rand.New(rand.NewSource(int64(repetition))))
		})
	})
	if err == nil && !ok {
		err = errors.New("the case could not be played")
	}
	return result, err
}

func play(parent context.Context, asked *history, small latencies, lots *rand.Rand) (*outcome, error) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	defaults := map[string]any{"percentageOfNodesToScore": 100, "parallelism": 1}
	if len(asked.Configuration) > 0 {
		if err := json.Unmarshal(asked.Configuration, &defaults); err != nil {
			return nil, err
		}
	}
	content, err := json.Marshal(defaults)
	if err != nil {
		return nil, err
	}
	given, err := configurationOf(content)
	if err != nil {
		return nil, err
	}
	for gate, on := range asked.FeatureGates {
		before := utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(gate))
		if err := utilfeature.DefaultMutableFeatureGate.Set(fmt.Sprintf("%s=%t", gate, on)); err != nil {
			return nil, err
		}
		defer func() { _ = utilfeature.DefaultMutableFeatureGate.Set(fmt.Sprintf("%s=%t", gate, before)) }()
	}
	stored := fake.NewSimpleClientset()
	w := newWorld(asked, small, stored.Tracker())
	factory := scheduler.NewInformerFactory(stored, 0)
	recorders := func(string) events.EventRecorderLogger { return listener{w} }
	registry := frameworkruntime.Registry{permitName: newScriptedPermit}
	sched, err := schedulerWith(ctx, slowClient{stored, w}, factory, given, recorders, registry)
	if err != nil {
		return nil, err
	}
	w.listenTo(sched)
	if err := w.setUp(); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		return nil, err
	}
	time.Sleep(time.Until(asked.Start.Add(-time.Second)))
	for _, pod := range asked.Pods {
		if pod.Spec.NodeName == "" {
			w.create(pod)
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(time.Until(asked.Start))
	delayAttempts(sched, time.Duration(asked.AttemptS*float64(time.Second)), lots)
	w.begin()
	sched.SchedulingQueue.Run(klog.FromContext(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		loop(ctx, sched, w)
	}()
	for _, one := range asked.Events {
		time.Sleep(time.Until(asked.Start.Add(time.Duration(one.AtS * float64(time.Second)))))
		w.happen(one)
	}
	time.Sleep(time.Until(asked.Start.Add(time.Duration(asked.HorizonS * float64(time.Second)))))
	result := w.outcome()
	cancel()
	sched.SchedulingQueue.Close()
	<-ended
	factory.Shutdown()
	// Some goroutines notice only at their next tick; no time passes when this one is over.
	time.Sleep(untilAllEnded)
	return result, nil
}

// loop tries pods as Scheduler.Run does, but attempts are a step apart, and one begins up to a step after that which made
// it possible: so whatever happens in one instant is known to all.
func loop(ctx context.Context, sched *scheduler.Scheduler, w *world) {
	for ctx.Err() == nil {
		if len(sched.SchedulingQueue.PodsInActiveQ())+len(sched.SchedulingQueue.PodsInBackoffQ()) > 0 {
			sched.ScheduleOne(ctx)
		} else {
			// The queue's own timers go off at whole seconds.
			tick := time.NewTimer(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			select {
			case <-w.changed:
			case <-tick.C:
			}
			tick.Stop()
		}
		time.Sleep(time.Until(time.Now().Truncate(w.latencies.step).Add(w.latencies.step)))
	}
}

// delayAttempts lets each attempt take its time between the choice of a node and what follows from it. Where the search
// begins is drawn by lot: so each of several nodes with the highest score is chosen in some repetition.
func delayAttempts(sched *scheduler.Scheduler, attempt time.Duration, lots *rand.Rand) {
	decide := sched.SchedulePod
	field := reflect.ValueOf(sched).Elem().FieldByName("nextStartNodeIndex")
	start := (*int)(unsafe.Pointer(field.UnsafeAddr()))
	sched.SchedulePod = func(
		ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *framework.QueuedPodInfo,
	) (scheduler.ScheduleResult, error) {
		*start = lots.Intn(1 << 20)
		result, err := decide(ctx, profile, state, pod)
		time.Sleep(attempt)
		return result, err
	}
}
