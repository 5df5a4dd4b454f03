package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

const (
	repetitionsOfTimelines        = 12
	repetitionsOfOutcomes         = 6
	mostOutcomes                  = 8
	toleranceS                    = 0.15
	stepS                         = 0.001
	repetitionsWithOtherLatencies = 2
	untilAllEnded                 = time.Minute
)

// latencies are the small times of the scheduler's surroundings.
type latencies struct {
	// call is how long a call of the API takes; it is applied so long before its end.
	call, answer time.Duration
	// step is the shortest time from one attempt to the next.
	step time.Duration
}

// An idle scheduler looks at its queue once in a period, so long after its beginning: what users and timers do comes first.
const (
	period = time.Millisecond
	phase  = 400 * time.Microsecond
)

const ms = time.Millisecond

var recordedLatencies = latencies{call: 3 * ms, answer: 600 * time.Microsecond, step: ms}

// otherLatencies must not change what happens: a case where they do is left out.
var otherLatencies = []latencies{
	{call: ms, answer: 600 * time.Microsecond, step: ms},
	{call: 5 * ms, answer: 600 * time.Microsecond, step: ms},
	{call: 3 * ms, answer: 600 * time.Microsecond, step: 3 * ms},
}

// history is a case of a timeline: a small cluster and what happens to it.
type history struct {
	ID            string                          `json:"id"`
	Start         time.Time                       `json:"start"`
	HorizonS      float64                         `json:"horizon_s"`
	Nodes         []*v1.Node                      `json:"nodes"`
	Pods          []*v1.Pod                       `json:"pods"`
	Budgets       []*policyv1.PodDisruptionBudget `json:"pdbs"`
	Groups        []*schedulingv1alpha2.PodGroup  `json:"podGroups"`
	Events        []event                         `json:"events"`
	AttemptS      float64                         `json:"attempt_s"`
	WatchS        float64                         `json:"watch_s"`
	LateKinds     map[string]float64              `json:"lateKinds"`
	BindErrors    map[string]int                  `json:"bindErrors"`
	StatusErrors  map[string][]string             `json:"statusErrors"`
	FeatureGates  map[string]bool                 `json:"featureGates"`
	Configuration json.RawMessage                 `json:"configuration"`
	Extenders     []extenderCase                  `json:"extenders"`
}

type event struct {
	AtS            float64                       `json:"at_s"`
	Do             string                        `json:"do"`
	Name           string                        `json:"name"`
	Pod            *v1.Pod                       `json:"pod"`
	Node           *v1.Node                      `json:"node"`
	Budget         *policyv1.PodDisruptionBudget `json:"pdb"`
	Group          *schedulingv1alpha2.PodGroup  `json:"podGroup"`
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

// inVirtualTime calls work as runTest does, with extenders that answer.
func inVirtualTime(work func(*testing.T)) {
	var err error
	extenderAddress, err = serveExtenders(func() []extenderCase { return extendersOfCase })
	must(err)
	// The handlers of errors wait when errors come quickly, and so would the scheduler.
	utilruntime.ErrorHandlers = nil
	runTest(work)
}

// answerTimeline plays a case many times, because equal nodes and equal candidates are chosen in any order.
func answerTimeline(t *testing.T, data json.RawMessage) (any, error) {
	answer := &outcomes{}
	var err error
	answer.Outcomes, err = answersOf(
		repetitionsOfTimelines, repetitionsOfOutcomes, mostOutcomes, (*outcome).isSame, func(repetition int) (*outcome, error) {
			one, err := playTimeline(t, data, repetition, recordedLatencies)
			if err != nil {
				return nil, err
			}
			answer.ID = one.id
			return one.result, nil
		})
	if err != nil {
		return nil, err
	}
	for repetition := range repetitionsWithOtherLatencies {
		for _, others := range otherLatencies {
			if err := answer.holdsWith(t, data, repetition, others); err != nil {
				return nil, err
			}
		}
	}
	return answer, nil
}

// holdsWith says whether other small times lead to one of the outcomes as well.
func (a *outcomes) holdsWith(t *testing.T, data json.RawMessage, repetition int, small latencies) error {
	one, err := playTimeline(t, data, repetition, small)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(a.Outcomes, func(other *outcome) bool { return one.result.isLike(other) }) {
		return nil
	}
	return ambiguous{len(a.Outcomes) + 1}
}

// isSame compares two outcomes in full. A time may fall on either side of a millisecond.
func (o *outcome) isSame(other *outcome) bool {
	return o.equals(other, func(one, two entry) bool {
		return one.What == two.What && one.Node == two.Node && one.By == two.By && one.Message == two.Message &&
			math.Abs(one.AtS-two.AtS) < 1.5*stepS
	}, false)
}

// isLike compares two outcomes as schedulers of different latencies compare: times within 0.15 s, and without failed
// attempts that another attempt of the same pod follows within that time.
func (o *outcome) isLike(other *outcome) bool {
	return o.equals(other, func(one, two entry) bool {
		return one.What == two.What && one.Node == two.Node && one.By == two.By && one.isSoonAfter(two)
	}, true)
}

func (o *outcome) equals(other *outcome, same func(entry, entry) bool, coarse bool) bool {
	here, there := o.byPod(coarse), other.byPod(coarse)
	if len(here) != len(there) || !reflect.DeepEqual(o.Final, other.Final) {
		return false
	}
	for name, entries := range here {
		if !slices.EqualFunc(entries, there[name], same) {
			return false
		}
	}
	return true
}

func (e entry) isSoonAfter(other entry) bool { return math.Abs(e.AtS-other.AtS) <= toleranceS }

func (o *outcome) byPod(coarse bool) map[string][]entry {
	found := map[string][]entry{}
	for place, one := range o.Timeline {
		repeated := false
		if coarse && (one.What == "unschedulable" || one.What == "error") {
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

// extendersOfCase are those of the case that is being played; extenderAddress is where they are served.
var (
	extendersOfCase []extenderCase
	extenderAddress string
)

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
	// The default plugins depend on the gates.
	switchBack, err := switchGates(asked.FeatureGates)
	if err != nil {
		return nil, err
	}
	defer switchBack()
	defaults := map[string]any{"percentageOfNodesToScore": 100, "parallelism": 1}
	if len(asked.Configuration) > 0 {
		if err := json.Unmarshal(asked.Configuration, &defaults); err != nil {
			return nil, err
		}
	}
	if len(asked.Extenders) > 0 {
		extenders := []map[string]any{}
		for number, one := range asked.Extenders {
			one.Configuration["urlPrefix"] = fmt.Sprintf("http://%s/%d", extenderAddress, number)
			extenders = append(extenders, one.Configuration)
		}
		defaults["extenders"] = extenders
		extendersOfCase = asked.Extenders
	}
	content, err := json.Marshal(defaults)
	if err != nil {
		return nil, err
	}
	given, err := configurationOf(content)
	if err != nil {
		return nil, err
	}
	stored := fake.NewSimpleClientset()
	w := newWorld(asked, small, stored.Tracker())
	if asked.WatchS > 0 || len(asked.LateKinds) > 0 {
		stored.PrependWatchReactor("*", w.lateWatches(asked.WatchS, asked.LateKinds))
	}
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
	if len(asked.Groups) > 0 {
		// Of all ways to place the members of a group on equal nodes only one is recorded: that of a search from the first.
		lots = nil
	}
	if len(asked.StatusErrors) > 0 {
		// The first of equal nodes, and waits without jitter.
		lots = nil
		defer func(drawn func() float64) { jitterRand = drawn }(jitterRand)
		jitterRand = func() float64 { return 0 }
	}
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

// loop tries pods as Scheduler.Run does, but attempts are a step apart, and an idle scheduler looks at its queue once in a
// period: whatever happens in one instant is known to all.
func loop(ctx context.Context, sched *scheduler.Scheduler, w *world) {
	untilPhase()
	for ctx.Err() == nil {
		if isReady(sched) {
			w.orderMembers(sched)
			sched.ScheduleOne(ctx)
			time.Sleep(w.latencies.step)
			continue
		}
		// The queue's own timers go off at whole seconds.
		tick := time.NewTimer(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		select {
		case <-w.changed:
		case <-tick.C:
		}
		tick.Stop()
		untilPhase()
	}
}

// untilPhase waits for the next look at the queue.
func untilPhase() {
	now := time.Now().Add(-phase)
	time.Sleep(now.Truncate(period).Add(period).Sub(now))
}

// isReady says whether an attempt would begin at once. A pod that waits after an error, or with a backoff that has to end,
// would let ScheduleOne wait for the next event, and begin in the middle of it.
func isReady(sched *scheduler.Scheduler) bool {
	if len(sched.SchedulingQueue.PodsInActiveQ()) > 0 {
		return true
	}
	queue := sched.SchedulingQueue.(interface {
		GetPod(name, namespace string) (*framework.QueuedPodInfo, bool)
	})
	return slices.ContainsFunc(sched.SchedulingQueue.PodsInBackoffQ(), func(pod *v1.Pod) bool {
		waiting, ok := queue.GetPod(pod.Name, pod.Namespace)
		return ok && takesFromBackoff(waiting)
	})
}

// takesFromBackoff says which pods are taken before their backoff ends.
func takesFromBackoff(pod *framework.QueuedPodInfo) bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.SchedulerPopFromBackoffQ) &&
		(pod.UnschedulablePlugins.Len() > 0 || pod.PendingPlugins.Len() > 0)
}

// delayAttempts lets each attempt take its time between the choice of a node and what follows from it. The order of the
// nodes is drawn by lot, as many workers find them in any: so each of several nodes with the highest score is chosen equally often.
func delayAttempts(sched *scheduler.Scheduler, attempt time.Duration, lots *rand.Rand) {
	decide := sched.SchedulePod
	snapshot := fieldOf(sched, "nodeInfoSnapshot").(*schedulercache.Snapshot)
	sched.SchedulePod = func(
		ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *framework.QueuedPodInfo,
	) (scheduler.ScheduleResult, error) {
		if lots != nil {
			nodes := fieldOf(snapshot, "nodeInfoList").([]fwk.NodeInfo)
			lots.Shuffle(len(nodes), func(one, other int) { nodes[one], nodes[other] = nodes[other], nodes[one] })
		}
		result, err := decide(ctx, profile, state, pod)
		time.Sleep(attempt)
		return result, err
	}
}
