package main

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	restfake "k8s.io/client-go/rest/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
)

const (
	// Most cases have one outcome; one that has several is asked until each has come up often.
	repetitionsOfFailures = 5
	timesOfEachFailure    = 5
	mostAnswersOfFailures = 3
	leaseRenewal          = 10 * time.Second
	// statusWrite is how long the status of a node takes to be written; all else takes no time.
	statusWrite = time.Millisecond
	// early is how long before the time that it bears something is written, so that a look at that time sees it.
	early        = 100 * time.Microsecond
	sampleOffset = 600 * time.Millisecond
)

type failureCase struct {
	HorizonSeconds                float64
	NodeMonitorPeriodSeconds      float64
	NodeMonitorGracePeriodSeconds float64
	NodeStartupGracePeriodSeconds float64
	NodeEvictionRate              float32
	SecondaryNodeEvictionRate     float32
	LargeClusterSizeThreshold     int32
	UnhealthyZoneThreshold        float32
	Nodes                         []*failureNode
	Pods                          []*v1.Pod
	Events                        []failureEvent
}

type failureNode struct {
	Node         *v1.Node
	LeasePhaseMs int64
	SilentMs     [][2]int64
}

type failureEvent struct {
	AtMs      int64
	Node      string
	Condition v1.NodeCondition
}

type nodeChange struct {
	AtSeconds int64    `json:"atSeconds"`
	Node      string   `json:"node"`
	Ready     string   `json:"ready"`
	Taints    []string `json:"taints"`
}

type podChange struct {
	AtSeconds int64  `json:"atSeconds"`
	Pod       string `json:"pod"`
}

type failureOutcome struct {
	NodeChanges []nodeChange `json:"nodeChanges"`
	Deletions   []podChange  `json:"deletions"`
	Marked      []podChange  `json:"podsMarkedNotReady"`
}

// answerNodeFailure plays a case some times: nodes that fail in one instant are handled in any order.
func answerNodeFailure(t *testing.T, data json.RawMessage) (any, error) {
	same := func(one, other *failureOutcome) bool { return reflect.DeepEqual(one, other) }
	outcomes, err := answersOf(
		repetitionsOfFailures, timesOfEachFailure, mostAnswersOfFailures, same, func(int) (*failureOutcome, error) {
			asked := &failureCase{}
			if err := json.Unmarshal(data, asked); err != nil {
				return nil, err
			}
			outcome := &failureOutcome{[]nodeChange{}, []podChange{}, []podChange{}}
			return outcome, inBubble(t, func(t *testing.T) error { return asked.play(t.Context(), outcome) })
		})
	if err != nil {
		return nil, err
	}
	return map[string]any{"outcomes": outcomes}, nil
}

type failureWorld struct {
	client *fake.Clientset
	start  time.Time
}

// play lets the node lifecycle and the taint eviction controller run, with kubelets as the case says.
func (q *failureCase) play(parent context.Context, outcome *failureOutcome) error {
	ctx, cancel := context.WithCancel(parent)
	w := &failureWorld{fake.NewClientset(), time.Now()}
	factory := informers.NewSharedInformerFactory(w.client, 0)
	core := factory.Core().V1()
	lifecycle, err := nodelifecycle.NewNodeLifecycleController(ctx, factory.Coordination().V1().Leases(), core.Pods(), core.Nodes(),
		factory.Apps().V1().DaemonSets(), slowStatuses{w.client}, secondsOf(q.NodeMonitorPeriodSeconds),
		secondsOf(q.NodeStartupGracePeriodSeconds), secondsOf(q.NodeMonitorGracePeriodSeconds), q.NodeEvictionRate,
		q.SecondaryNodeEvictionRate, q.LargeClusterSizeThreshold, q.UnhealthyZoneThreshold)
	if err != nil {
		cancel()
		return err
	}
	eviction, err := tainteviction.New(ctx, w.client, core.Pods(), core.Nodes(), "taint-eviction-controller")
	if err != nil {
		cancel()
		return err
	}
	for _, one := range q.Nodes {
		for i := range one.Node.Status.Conditions {
			one.Node.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(w.start)
		}
		if err := w.client.Tracker().Add(one.Node); err != nil {
			cancel()
			return err
		}
	}
	for _, pod := range q.Pods {
		if err := w.client.Tracker().Add(pod); err != nil {
			cancel()
			return err
		}
	}
	w.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.DeleteAction).GetName()
		outcome.Deletions = append(outcome.Deletions, podChange{int64(time.Since(w.start).Seconds()), name})
		return false, nil, nil
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	synctest.Wait()
	w.start = time.Now()
	ended := make(chan struct{}, 2)
	for _, run := range []func(context.Context){eviction.Run, lifecycle.Run} {
		go func() {
			run(ctx)
			ended <- struct{}{}
		}()
	}
	defer func() {
		cancel()
		factory.Shutdown()
		<-ended
		<-ended
	}()
	if err := q.follow(w, outcome); err != nil {
		return err
	}
	slices.SortFunc(outcome.Deletions, func(one, other podChange) int {
		return cmp.Or(cmp.Compare(one.AtSeconds, other.AtSeconds), cmp.Compare(one.Pod, other.Pod))
	})
	return nil
}

// follow lets everything happen at its time, and notes each second how nodes and pods are.
func (q *failureCase) follow(w *failureWorld, outcome *failureOutcome) error {
	type happening struct {
		at   time.Duration
		tell func(time.Duration) error
	}
	var all []happening
	byName := map[string]*failureNode{}
	horizon := secondsOf(q.HorizonSeconds)
	for _, one := range q.Nodes {
		byName[one.Node.Name] = one
		for at := milliseconds(one.LeasePhaseMs); at < horizon; at += leaseRenewal {
			all = append(all, happening{at, func(at time.Duration) error { return w.renew(one, at) }})
		}
	}
	for _, event := range q.Events {
		tell := func(at time.Duration) error { return w.post(byName[event.Node], event.Condition, at) }
		all = append(all, happening{milliseconds(event.AtMs), tell})
	}
	slices.SortStableFunc(all, func(one, other happening) int { return cmp.Compare(one.at, other.at) })
	known, ready := map[string]nodeChange{}, map[string]bool{}
	for _, pod := range q.Pods {
		ready[pod.Namespace+"/"+pod.Name] = podIsReady(pod)
	}
	for second := range int64(horizon / time.Second) {
		sample := time.Duration(second)*time.Second + sampleOffset
		for len(all) > 0 && all[0].at <= sample {
			w.until(all[0].at - early)
			if err := all[0].tell(all[0].at); err != nil {
				return err
			}
			all = all[1:]
		}
		w.until(sample)
		if err := w.sample(second, known, ready, outcome); err != nil {
			return err
		}
	}
	return nil
}

func (w *failureWorld) until(at time.Duration) {
	time.Sleep(time.Until(w.start.Add(at)))
	synctest.Wait()
}

func (w *failureWorld) sample(second int64, known map[string]nodeChange, ready map[string]bool, outcome *failureOutcome) error {
	nodes, err := w.client.Tracker().List(nodesResource, v1.SchemeGroupVersion.WithKind("Node"), "")
	if err != nil {
		return err
	}
	for _, node := range nodes.(*v1.NodeList).Items {
		state := nodeChange{second, node.Name, "", []string{}}
		for _, condition := range node.Status.Conditions {
			if condition.Type == v1.NodeReady {
				state.Ready = string(condition.Status)
			}
		}
		for _, taint := range node.Spec.Taints {
			state.Taints = append(state.Taints, taint.Key+":"+string(taint.Effect))
		}
		slices.Sort(state.Taints)
		before, seen := known[node.Name]
		if !seen || before.Ready != state.Ready || !slices.Equal(before.Taints, state.Taints) {
			known[node.Name] = state
			outcome.NodeChanges = append(outcome.NodeChanges, state)
		}
	}
	pods, err := w.client.Tracker().List(podsResource, v1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		return err
	}
	for _, pod := range pods.(*v1.PodList).Items {
		key := pod.Namespace + "/" + pod.Name
		if ready[key] && !podIsReady(&pod) {
			ready[key] = false
			outcome.Marked = append(outcome.Marked, podChange{second, pod.Name})
		}
	}
	slices.SortFunc(outcome.Marked, func(one, other podChange) int {
		return cmp.Or(cmp.Compare(one.AtSeconds, other.AtSeconds), cmp.Compare(one.Pod, other.Pod))
	})
	return nil
}

func podIsReady(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(one v1.PodCondition) bool {
		return one.Type == v1.PodReady && one.Status == v1.ConditionTrue
	})
}

func (n *failureNode) isSilent(at time.Duration) bool {
	return slices.ContainsFunc(n.SilentMs, func(span [2]int64) bool {
		return milliseconds(span[0]) <= at && at < milliseconds(span[1])
	})
}

var leasesResource = coordinationv1.SchemeGroupVersion.WithResource("leases")

// renew writes the lease; a kubelet that finds itself given up says that it is well.
func (w *failureWorld) renew(one *failureNode, at time.Duration) error {
	if one.isSilent(at) {
		return nil
	}
	now := metav1.NewMicroTime(w.start.Add(at))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: one.Node.Name, Namespace: v1.NamespaceNodeLease},
		Spec: coordinationv1.LeaseSpec{RenewTime: &now}}
	if _, err := w.client.Tracker().Get(leasesResource, lease.Namespace, lease.Name); err != nil {
		if err := w.client.Tracker().Create(leasesResource, lease, lease.Namespace); err != nil {
			return err
		}
	} else if err := w.client.Tracker().Update(leasesResource, lease, lease.Namespace); err != nil {
		return err
	}
	return w.change(one.Node.Name, at, func(node *v1.Node) bool {
		lost := false
		for i := range node.Status.Conditions {
			if condition := &node.Status.Conditions[i]; condition.Status == v1.ConditionUnknown {
				lost = true
				condition.Status = v1.ConditionFalse
				if condition.Type == v1.NodeReady {
					condition.Status = v1.ConditionTrue
				}
			}
		}
		return lost
	})
}

// post is a condition that the kubelet writes, with a heartbeat.
func (w *failureWorld) post(one *failureNode, wanted v1.NodeCondition, at time.Duration) error {
	if one.isSilent(at) {
		return nil
	}
	return w.change(one.Node.Name, at, func(node *v1.Node) bool {
		for i := range node.Status.Conditions {
			if node.Status.Conditions[i].Type == wanted.Type {
				node.Status.Conditions[i].Status = wanted.Status
				return true
			}
		}
		node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{Type: wanted.Type, Status: wanted.Status})
		return true
	})
}

func (w *failureWorld) change(name string, at time.Duration, change func(*v1.Node) bool) error {
	old, err := w.client.Tracker().Get(nodesResource, "", name)
	if err != nil {
		return err
	}
	node := old.(*v1.Node).DeepCopy()
	if !change(node) {
		return nil
	}
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(w.start.Add(at))
	}
	return w.client.Tracker().Update(nodesResource, node, "")
}

func secondsOf(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// slowStatuses is a client whose writes of a node's status take a moment. Its Event objects go nowhere.
type slowStatuses struct{ kubernetes.Interface }

func (c slowStatuses) CoreV1() corev1client.CoreV1Interface {
	return slowStatusCore{c.Interface.CoreV1()}
}

type slowStatusCore struct{ corev1client.CoreV1Interface }

func (c slowStatusCore) Nodes() corev1client.NodeInterface {
	return slowNodes{c.CoreV1Interface.Nodes()}
}

func (c slowStatusCore) RESTClient() rest.Interface {
	nothing := func(*http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: http.StatusCreated, Header: header, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	}
	return &restfake.RESTClient{NegotiatedSerializer: scheme.Codecs.WithoutConversion(), GroupVersion: schema.GroupVersion{Version: "v1"},
		Client: restfake.CreateHTTPClient(nothing)}
}

type slowNodes struct{ corev1client.NodeInterface }

func (n slowNodes) UpdateStatus(ctx context.Context, node *v1.Node, options metav1.UpdateOptions) (*v1.Node, error) {
	time.Sleep(statusWrite)
	return n.NodeInterface.UpdateStatus(ctx, node, options)
}
