// Command clusterautoscaler asks the cluster autoscaler itself what it does to a small cluster, one iteration after the
// other: StaticAutoscaler.RunOnce as its builder wires it, in virtual time. scripts/record compiles it as a package of
// the autoscaler's own module. The world of a case (machines, nodes, pods) is here, and its mirror image is in
// kemu/lab/conformance/controllers/cluster_autoscaling.py.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/autoscaler/cluster-autoscaler/builder"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider"
	"k8s.io/autoscaler/cluster-autoscaler/clusterstate/utils"
	"k8s.io/autoscaler/cluster-autoscaler/config"
	"k8s.io/autoscaler/cluster-autoscaler/config/flags"
	cacontext "k8s.io/autoscaler/cluster-autoscaler/context"
	"k8s.io/autoscaler/cluster-autoscaler/core"
	"k8s.io/autoscaler/cluster-autoscaler/core/scaledown"
	"k8s.io/autoscaler/cluster-autoscaler/debuggingsnapshot"
	"k8s.io/autoscaler/cluster-autoscaler/expander"
	"k8s.io/autoscaler/cluster-autoscaler/expander/factory"
	"k8s.io/autoscaler/cluster-autoscaler/expander/priority"
	"k8s.io/autoscaler/cluster-autoscaler/loop"
	"k8s.io/autoscaler/cluster-autoscaler/simulator"
	"k8s.io/autoscaler/cluster-autoscaler/simulator/framework"
	caerrors "k8s.io/autoscaler/cluster-autoscaler/utils/errors"
	kubeutil "k8s.io/autoscaler/cluster-autoscaler/utils/kubernetes"
	"k8s.io/autoscaler/cluster-autoscaler/utils/taints"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// draws is how often a case is played: much is decided by the order of Go's maps.
const draws = 24

// beforeLook is how long before the first look the autoscaler starts: what it does every two minutes falls between looks.
const beforeLook = 250 * time.Millisecond

// poolLabel names the group of a node; groups that differ only in it are alike.
const poolLabel = "kops.k8s.io/instancegroup"

// settles is how long after the last look the case ends: what has begun comes to its end.
const settles = 40 * time.Second

// question is a cluster and when it is looked at.
type question struct {
	Settings    settings
	Groups      []groupCase
	Nodes       []nodeCase
	Pods        []podCase
	Budgets     []*policyv1.PodDisruptionBudget
	DaemonSets  []*appsv1.DaemonSet
	ReplicaSets []*appsv1.ReplicaSet
	Jobs        []*batchv1.Job
	// AfterS of each look: how long after the one before.
	AfterS []int64
}

// settings are kemu's, as a scenario writes them; what is left out has the default of its flag.
type settings struct {
	CutOff                                                              *int
	Expander                                                            *string
	Priorities                                                          map[string][]string
	BalanceSimilarNodeGroups, EnforceNodeGroupMinSize                   *bool
	ScaleUpFromZero, ForceDaemonSets                                    *bool
	MaxNodesTotal, MaxNodesPerScaleUp, OkTotalUnreadyCount              *int
	MaxTotalUnreadyPercentage                                           *float64
	NewPodScaleUpDelay, MaxNodeProvisionTime, MaxNodeStartupTime        *duration
	InitialNodeGroupBackoff, MaxNodeGroupBackoff, NodeGroupBackoffReset *duration
	ScaleDown                                                           struct {
		Enabled, UnreadyEnabled, IgnoreDaemonSetsUtilization                    *bool
		SkipNodesWithSystemPods, SkipNodesWithLocalStorage                      *bool
		SkipNodesWithCustomControllerPods, Cordon                               *bool
		DaemonSetEvictionForEmptyNodes, DaemonSetEvictionForOccupiedNodes       *bool
		DelayAfterAdd, DelayAfterDelete, DelayAfterFailure                      *duration
		UnneededTime, UnreadyTime, UnremovableRecheckTime                       *duration
		SystemPodDisruptionTime, DeleteDelayAfterTaint                          *duration
		UtilizationThreshold                                                    *float64
		MinReplicaCount, MaxParallelism, MaxDrainParallelism, MaxBulkSoftTaints *int
	}
}

// duration is written as Go writes it.
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	found, err := time.ParseDuration(string(text))
	*d = duration(found)
	return err
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// options are the flags of the autoscaler.
func (s settings) options() config.AutoscalingOptions {
	found := flags.AutoscalingOptions()
	found.WriteStatusConfigMap = true
	set(&found.ExpendablePodsPriorityCutoff, s.CutOff)
	set(&found.ExpanderNames, s.Expander)
	set(&found.BalanceSimilarNodeGroups, s.BalanceSimilarNodeGroups)
	set(&found.MaxNodesTotal, s.MaxNodesTotal)
	set(&found.MaxNodesPerScaleUp, s.MaxNodesPerScaleUp)
	set(&found.EnforceNodeGroupMinSize, s.EnforceNodeGroupMinSize)
	set(&found.ScaleUpFromZero, s.ScaleUpFromZero)
	set(&found.ForceDaemonSets, s.ForceDaemonSets)
	set((*duration)(&found.NewPodScaleUpDelay), s.NewPodScaleUpDelay)
	set((*duration)(&found.NodeGroupDefaults.MaxNodeProvisionTime), s.MaxNodeProvisionTime)
	set((*duration)(&found.NodeGroupDefaults.MaxNodeStartupTime), s.MaxNodeStartupTime)
	set(&found.OkTotalUnreadyCount, s.OkTotalUnreadyCount)
	set(&found.MaxTotalUnreadyPercentage, s.MaxTotalUnreadyPercentage)
	set((*duration)(&found.InitialNodeGroupBackoffDuration), s.InitialNodeGroupBackoff)
	set((*duration)(&found.MaxNodeGroupBackoffDuration), s.MaxNodeGroupBackoff)
	set((*duration)(&found.NodeGroupBackoffResetTimeout), s.NodeGroupBackoffReset)
	set((*duration)(&found.ScaleDownDelayAfterAdd), s.ScaleDown.DelayAfterAdd)
	set((*duration)(&found.ScaleDownDelayAfterDelete), s.ScaleDown.DelayAfterDelete)
	set((*duration)(&found.ScaleDownDelayAfterFailure), s.ScaleDown.DelayAfterFailure)
	set((*duration)(&found.NodeGroupDefaults.ScaleDownUnneededTime), s.ScaleDown.UnneededTime)
	set((*duration)(&found.NodeGroupDefaults.ScaleDownUnreadyTime), s.ScaleDown.UnreadyTime)
	set(&found.NodeGroupDefaults.ScaleDownUtilizationThreshold, s.ScaleDown.UtilizationThreshold)
	set(&found.ScaleDownEnabled, s.ScaleDown.Enabled)
	set(&found.ScaleDownUnreadyEnabled, s.ScaleDown.UnreadyEnabled)
	set((*duration)(&found.UnremovableNodeRecheckTimeout), s.ScaleDown.UnremovableRecheckTime)
	set(&found.NodeGroupDefaults.IgnoreDaemonSetsUtilization, s.ScaleDown.IgnoreDaemonSetsUtilization)
	set(&found.SkipNodesWithSystemPods, s.ScaleDown.SkipNodesWithSystemPods)
	set(&found.SkipNodesWithLocalStorage, s.ScaleDown.SkipNodesWithLocalStorage)
	set(&found.SkipNodesWithCustomControllerPods, s.ScaleDown.SkipNodesWithCustomControllerPods)
	set((*duration)(&found.BspDisruptionTimeout), s.ScaleDown.SystemPodDisruptionTime)
	set(&found.MinReplicaCount, s.ScaleDown.MinReplicaCount)
	set(&found.MaxScaleDownParallelism, s.ScaleDown.MaxParallelism)
	set(&found.MaxDrainParallelism, s.ScaleDown.MaxDrainParallelism)
	set((*duration)(&found.NodeDeleteDelayAfterTaint), s.ScaleDown.DeleteDelayAfterTaint)
	set(&found.CordonNodeBeforeTerminate, s.ScaleDown.Cordon)
	set(&found.DaemonSetEvictionForEmptyNodes, s.ScaleDown.DaemonSetEvictionForEmptyNodes)
	set(&found.DaemonSetEvictionForOccupiedNodes, s.ScaleDown.DaemonSetEvictionForOccupiedNodes)
	set(&found.MaxBulkSoftTaintCount, s.ScaleDown.MaxBulkSoftTaints)
	return found
}

// groupCase is a group of machines. A node of it registers RegisterS after it was asked for, and is ready ReadyS later.
type groupCase struct {
	Name                       string
	Min, Max                   int
	Price                      float64
	Template                   *v1.Node
	RegisterS, ReadyS, RemoveS int64
	// Fails says how increases of the size go in looks From to Until: error, out-of-resources, never-registers.
	Fails []struct {
		Kind        string
		From, Until int
	}
}

// nodeCase is a node that is there at the first look. It changes when it is said to.
type nodeCase struct {
	Group string
	Node  *v1.Node
	AgeS  int64
	// Ready at each look from the given one on, in order; its condition changes a second before that look.
	Ready []struct {
		From int
		Is   bool
	}
}

// podCase is a pod, which is there at the looks From to Until (without it), and waits or runs.
type podCase struct {
	Pod         *v1.Pod
	AgeS        int64
	From, Until int
	// DeletedAgoS: how long before the first look its deletion timestamp is.
	DeletedAgoS *int64
}

// lookAnswer is what one look has led to, up to the next one.
type lookAnswer struct {
	Sizes       map[string]int      `json:"sizes"`
	Marks       map[string][]string `json:"marks"`
	Unneeded    []string            `json:"unneeded"`
	Unremovable map[string]string   `json:"unremovable"`
	Utilization map[string]string   `json:"utilization"`
	Events      []string            `json:"events"`
}

type machine struct {
	node       string
	registers  time.Time
	ready      time.Time
	gone       time.Time
	never      bool
	isDeleting bool
	failed     bool
	group      *group
}

// world is what the autoscaler sees; it stands for the provider, the API server and the recorder of events.
type world struct {
	sync.Mutex
	asked    question
	start    time.Time
	look     int
	version  int
	groups   []*group
	machines []*machine
	nodes    []*v1.Node
	pods     []*v1.Pod
	evicted  map[string]bool
	events   []string
}

func main() {
	klog.InitFlags(nil)
	_ = flag.Set("logtostderr", "false")
	_ = flag.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
	if path := os.Getenv("KEMU_RECORDER_LOG"); path != "" {
		file, err := os.Create(path)
		must(err)
		_ = flag.Set("v", "4")
		klog.SetOutput(file)
	}
	files := os.Args[1:]
	if len(files) == 0 {
		files = []string{"/dev/stdin"}
	}
	stdout := os.Stdout
	runTest(func(t *testing.T) {
		recordAll(files, func(data json.RawMessage) (any, error) { return answer(t, data) }, stdout)
	})
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func answer(t *testing.T, data json.RawMessage) (any, error) {
	answers, err := distinct(draws, func() (any, error) {
		w := &world{evicted: map[string]bool{}}
		if err := json.Unmarshal(data, &w.asked); err != nil {
			return nil, err
		}
		var looks []lookAnswer
		err := inBubble(t, func(t *testing.T) error {
			var err error
			looks, err = w.play(t.Context())
			return err
		})
		return map[string]any{"looks": looks}, err
	})
	if err != nil {
		return nil, err
	}
	if len(answers) > 1 {
		if os.Getenv("KEMU_RECORDER_ANSWERS") != "" {
			fmt.Fprintf(os.Stderr, "%s\n%s\n", answers[0], answers[1])
		}
		return nil, ambiguous{len(answers)}
	}
	return answers[0], nil
}

func (w *world) play(parent context.Context) ([]lookAnswer, error) {
	ctx, cancel := context.WithCancel(parent)
	w.start = time.Now().Add(beforeLook)
	w.populate()
	kube := fake.NewClientset()
	w.serve(kube)
	options := w.asked.Settings.options()
	// The expander priority reads a ConfigMap, and never ends to watch it: it is made below.
	expanders := options.ExpanderNames
	options.ExpanderNames = "random"
	told, err := utils.NewStatusMapRecorder(kube, options.ConfigNamespace, w, true, options.StatusConfigMapName)
	if err != nil {
		cancel()
		return nil, err
	}
	shared := informers.NewSharedInformerFactory(kube, 0)
	clients := &cacontext.AutoscalingKubeClients{ListerRegistry: w.listers(), ClientSet: kube, Recorder: w, LogRecorder: told}
	made, _, err := builder.New(options).
		WithDebuggingSnapshotter(debuggingsnapshot.NewDebuggingSnapshotter(false)).
		WithManager(noManager{}).WithKubeClient(kube).WithAutoscalingKubeClients(clients).
		WithInformerFactory(shared).WithCloudProvider(w).WithPodObserver(&loop.UnschedulablePodObserver{}).Build(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	defer func() {
		made.ExitCleanUp()
		cancel()
		shared.Shutdown()
		time.Sleep(time.Hour)
	}()
	autoscaler := made.(*core.StaticAutoscaler)
	if autoscaler.ExpanderStrategy, err = w.strategy(kube, clients, expanders); err != nil {
		return nil, err
	}
	// Building has waited for caches, and the clock has gone on.
	w.start = time.Now().Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(w.start.Add(-beforeLook)))
	w.populate()
	if err := made.Start(); err != nil {
		return nil, err
	}
	time.Sleep(beforeLook)
	planner := fieldOf(made, "scaleDownPlanner").(scaledown.Planner)
	answers := []lookAnswer{}
	for number, after := range w.asked.AfterS {
		time.Sleep(time.Duration(after) * time.Second)
		w.see(number)
		if number > 0 {
			answers[number-1].Events = w.happened()
		}
		if err := made.RunOnce(time.Now()); err != nil {
			w.note("autoscaler", "", "", "the iteration failed")
		}
		answers = append(answers, w.answer(planner))
	}
	time.Sleep(settles)
	answers[len(answers)-1].Events = w.happened()
	return answers, nil
}

// strategy chooses among groups.
func (w *world) strategy(kube *fake.Clientset, clients *cacontext.AutoscalingKubeClients, names string) (expander.Strategy, error) {
	namespace := "kube-system"
	lister, err := kubeutil.NewTestConfigMapLister([]*v1.ConfigMap{{
		ObjectMeta: metav1.ObjectMeta{Name: priority.PriorityConfigMapName, Namespace: namespace},
		Data:       map[string]string{priority.ConfigMapKey: priorities(w.asked.Settings.Priorities)},
	}})
	if err != nil {
		return nil, err
	}
	made := factory.NewFactory()
	made.RegisterDefaultExpanders(w, clients, kube, namespace, "", "")
	made.RegisterFilter(expander.PriorityBasedExpanderName, func() expander.Filter {
		return priority.NewFilter(lister.ConfigMaps(namespace), w)
	})
	return made.Build(strings.Split(names, ","))
}

// priorities in the YAML of the priority expander.
func priorities(all map[string][]string) string {
	lines := []string{}
	for _, priority := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, priority+":")
		for _, expression := range all[priority] {
			lines = append(lines, "  - "+strconv.Quote(expression))
		}
	}
	return strings.Join(lines, "\n")
}

type noManager struct{ manager.Manager }

func (noManager) GetClient() client.Client { return nil }
func (noManager) GetCache() cache.Cache    { return nil }

// --- the world ---------------------------------------------------------------------------------------------------------

func (w *world) at(seconds int64) metav1.Time {
	return metav1.NewTime(w.start.Add(time.Duration(seconds) * time.Second))
}

// populate makes the world as it is at the first look.
func (w *world) populate() {
	w.groups, w.machines, w.nodes = nil, nil, nil
	for _, one := range w.asked.Groups {
		w.groups = append(w.groups, &group{groupCase: one, world: w})
	}
	for _, one := range w.asked.Nodes {
		node := one.Node.DeepCopy()
		node.CreationTimestamp = w.at(-one.AgeS)
		node.Spec.ProviderID = node.Name
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: "True", LastTransitionTime: w.at(-one.AgeS)}}
		w.nodes = append(w.nodes, w.versioned(node))
		for _, of := range w.groups {
			if of.Name == one.Group {
				of.target++
				w.machines = append(w.machines, &machine{node: node.Name, registers: node.CreationTimestamp.Time,
					ready: node.CreationTimestamp.Time, group: of})
			}
		}
	}
}

// see lets a look begin: what has become due happens.
func (w *world) see(number int) {
	w.Lock()
	defer w.Unlock()
	w.look = number
	now := time.Now()
	for _, one := range slices.Clone(w.machines) {
		if one.isDeleting && !one.gone.After(now) {
			w.remove(one)
		}
	}
	for _, one := range w.machines {
		if one.never || one.failed || one.registers.After(now) {
			continue
		}
		index := slices.IndexFunc(w.nodes, func(node *v1.Node) bool { return node.Name == one.node })
		if index < 0 && !one.isDeleting {
			node := one.group.Template.DeepCopy()
			node.Name, node.UID, node.Spec.ProviderID = one.node, "", one.node
			node.CreationTimestamp = metav1.NewTime(one.registers)
			if node.Labels == nil {
				node.Labels = map[string]string{}
			}
			node.Labels[v1.LabelHostname] = one.node
			node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: "False", LastTransitionTime: metav1.NewTime(one.registers)}}
			w.nodes = append(w.nodes, w.versioned(node))
			index = len(w.nodes) - 1
		}
		if index >= 0 && !one.ready.After(now) && one.ready.After(w.start) && w.nodes[index].Status.Conditions[0].Status == "False" {
			w.setReady(index, true, one.ready)
		}
	}
	for _, one := range w.asked.Nodes {
		for _, change := range one.Ready {
			index := slices.IndexFunc(w.nodes, func(node *v1.Node) bool { return node.Name == one.Node.Name })
			if change.From == number && index >= 0 {
				w.setReady(index, change.Is, now.Add(-time.Second))
			}
		}
	}
	w.pods = nil
	for _, one := range w.asked.Pods {
		pod := one.Pod.DeepCopy()
		pod.CreationTimestamp = w.at(-one.AgeS)
		if one.DeletedAgoS != nil {
			deleted := w.at(-*one.DeletedAgoS)
			pod.DeletionTimestamp = &deleted
		}
		known := pod.Spec.NodeName == "" || w.node(pod.Spec.NodeName) != nil
		if one.From <= number && number < one.Until && known && !w.evicted[pod.Namespace+"/"+pod.Name] {
			w.pods = append(w.pods, pod)
		}
	}
}

func (w *world) setReady(index int, ready bool, since time.Time) {
	node := w.versioned(w.nodes[index])
	status := v1.ConditionFalse
	if ready {
		status = v1.ConditionTrue
	}
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(since)}}
	w.nodes[index] = node
}

// versioned is a copy with a new resource version.
func (w *world) versioned(node *v1.Node) *v1.Node {
	w.version++
	made := node.DeepCopy()
	made.ResourceVersion = strconv.Itoa(w.version)
	return made
}

// remove lets a machine be gone, with its node.
func (w *world) remove(one *machine) {
	w.machines = slices.DeleteFunc(w.machines, func(other *machine) bool { return other == one })
	w.nodes = slices.DeleteFunc(w.nodes, func(node *v1.Node) bool { return node.Name == one.node })
	w.pods = slices.DeleteFunc(w.pods, func(pod *v1.Pod) bool { return pod.Spec.NodeName == one.node })
}

func (w *world) node(name string) *v1.Node {
	for _, node := range w.nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}

func (w *world) machine(node string) *machine {
	for _, one := range w.machines {
		if one.node == node {
			return one
		}
	}
	return nil
}

func (w *world) answer(planner scaledown.Planner) lookAnswer {
	w.Lock()
	defer w.Unlock()
	found := lookAnswer{Sizes: map[string]int{}, Marks: map[string][]string{}, Unneeded: []string{},
		Unremovable: map[string]string{}, Utilization: map[string]string{}}
	for _, one := range w.groups {
		found.Sizes[one.Name] = one.target
	}
	for _, node := range w.nodes {
		marks := []string{}
		for _, taint := range node.Spec.Taints {
			if taint.Key == taints.ToBeDeletedTaint || taint.Key == taints.DeletionCandidateTaintKey {
				marks = append(marks, taint.Key)
			}
		}
		if node.Spec.Unschedulable {
			marks = append(marks, "unschedulable")
		}
		slices.Sort(marks)
		found.Marks[node.Name] = marks
	}
	for _, one := range planner.UnneededNodes() {
		found.Unneeded = append(found.Unneeded, one.Node.Name)
	}
	slices.Sort(found.Unneeded)
	for _, one := range planner.UnremovableNodes() {
		reason := reasons[one.Reason]
		if one.BlockingPod != nil {
			pod := one.BlockingPod
			reason = fmt.Sprintf("%s: %s/%s: %s", reason, pod.Pod.Namespace, pod.Pod.Name, pod.Reason)
		}
		found.Unremovable[one.Node.Name] = reason
	}
	for name, one := range planner.NodeUtilizationMap() {
		found.Utilization[name] = fmt.Sprintf("%.6f", one.Utilization)
	}
	return found
}

var reasons = map[simulator.UnremovableReason]string{
	simulator.ScaleDownDisabledAnnotation: "ScaleDownDisabledAnnotation",
	simulator.ScaleDownUnreadyDisabled:    "ScaleDownUnreadyDisabled",
	simulator.NotAutoscaled:               "NotAutoscaled",
	simulator.NotUnneededLongEnough:       "NotUnneededLongEnough",
	simulator.NotUnreadyLongEnough:        "NotUnreadyLongEnough",
	simulator.NodeGroupMinSizeReached:     "NodeGroupMinSizeReached",
	simulator.CurrentlyBeingDeleted:       "CurrentlyBeingDeleted",
	simulator.NotUnderutilized:            "NotUnderutilized",
	simulator.NotUnneededOtherReason:      "NotUnneededOtherReason",
	simulator.RecentlyUnremovable:         "RecentlyUnremovable",
	simulator.NoPlaceToMovePods:           "NoPlaceToMovePods",
	simulator.BlockedByPod:                "BlockedByPod",
	simulator.UnexpectedError:             "UnexpectedError",
	simulator.NoNodeInfo:                  "NoNodeInfo",
	simulator.BlockedByOnCompletionPod:    "BlockedByOnCompletionPod",
}

// --- the API server ----------------------------------------------------------------------------------------------------

func (w *world) serve(kube *fake.Clientset) {
	kube.PrependReactor("*", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.Lock()
		defer w.Unlock()
		switch one := action.(type) {
		case clienttesting.UpdateAction:
			node := one.GetObject().(*v1.Node)
			for index, old := range w.nodes {
				if old.Name != node.Name {
					continue
				}
				if old.ResourceVersion != node.ResourceVersion {
					return true, nil, apierrors.NewConflict(v1.Resource("nodes"), node.Name, errors.New("changed"))
				}
				w.nodes[index] = w.versioned(node)
				return true, w.nodes[index].DeepCopy(), nil
			}
			return true, nil, apierrors.NewNotFound(v1.Resource("nodes"), node.Name)
		case clienttesting.GetAction:
			if node := w.node(one.GetName()); node != nil {
				return true, node.DeepCopy(), nil
			}
			return true, nil, apierrors.NewNotFound(v1.Resource("nodes"), one.GetName())
		}
		return false, nil, nil
	})
	kube.PrependReactor("*", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.Lock()
		defer w.Unlock()
		switch one := action.(type) {
		case clienttesting.CreateAction:
			if one.GetSubresource() != "eviction" {
				return false, nil, nil
			}
			accessor := one.GetObject().(metav1.Object)
			key := action.GetNamespace() + "/" + accessor.GetName()
			if w.evicted[key] {
				return true, nil, apierrors.NewNotFound(v1.Resource("pods"), accessor.GetName())
			}
			w.evicted[key] = true
			w.pods = slices.DeleteFunc(w.pods, func(pod *v1.Pod) bool { return pod.Namespace+"/"+pod.Name == key })
			return true, nil, nil
		case clienttesting.GetAction:
			for _, pod := range w.pods {
				if pod.Namespace == action.GetNamespace() && pod.Name == one.GetName() {
					return true, pod.DeepCopy(), nil
				}
			}
			return true, nil, apierrors.NewNotFound(v1.Resource("pods"), one.GetName())
		}
		return false, nil, nil
	})
}

type nodeLister struct {
	world *world
	ready bool
}

func (l nodeLister) List() ([]*v1.Node, error) {
	l.world.Lock()
	defer l.world.Unlock()
	found := []*v1.Node{}
	for _, node := range l.world.nodes {
		if !l.ready || kubeutil.IsNodeReadyAndSchedulable(node) {
			found = append(found, node)
		}
	}
	return found, nil
}

func (l nodeLister) Get(name string) (*v1.Node, error) {
	l.world.Lock()
	defer l.world.Unlock()
	if node := l.world.node(name); node != nil {
		return node, nil
	}
	return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
}

type podLister struct{ world *world }

func (l podLister) List() ([]*v1.Pod, error) {
	l.world.Lock()
	defer l.world.Unlock()
	return slices.Clone(l.world.pods), nil
}

type budgetLister struct{ world *world }

func (l budgetLister) List() ([]*policyv1.PodDisruptionBudget, error) {
	return l.world.asked.Budgets, nil
}

func (w *world) listers() kubeutil.ListerRegistry {
	daemons, err := kubeutil.NewTestDaemonSetLister(w.asked.DaemonSets)
	must(err)
	controllers, err := kubeutil.NewTestReplicationControllerLister(nil)
	must(err)
	jobs, err := kubeutil.NewTestJobLister(w.asked.Jobs)
	must(err)
	replicas, err := kubeutil.NewTestReplicaSetLister(w.asked.ReplicaSets)
	must(err)
	stateful, err := kubeutil.NewTestStatefulSetLister(nil)
	must(err)
	return kubeutil.NewListerRegistry(nodeLister{w, false}, nodeLister{w, true}, podLister{w}, budgetLister{w},
		daemons, controllers, jobs, replicas, stateful)
}

// --- the recorder of events ----------------------------------------------------------------------------------------------

func (w *world) Event(object runtime.Object, kind, reason, message string) {
	name := "autoscaler"
	switch one := object.(type) {
	case *v1.Pod:
		name = "pod " + one.Namespace + "/" + one.Name
	case *v1.Node:
		name = "node " + one.Name
	}
	// Reasons are counted, and pods of a node are listed, in the order of a map.
	for sign, separator := range map[string]string{"pod didn't trigger scale-up: ": ", ", "pods to reschedule: ": ","} {
		if before, after, found := strings.Cut(message, sign); found {
			parts := strings.Split(after, separator)
			slices.Sort(parts)
			message = before + sign + strings.Join(parts, separator)
		}
	}
	w.note(name, kind, reason, message)
}

func (w *world) note(name, kind, reason, message string) {
	w.Lock()
	defer w.Unlock()
	w.events = append(w.events, strings.Join([]string{name, kind, reason, message}, " | "))
}

func (w *world) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	w.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (w *world) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	w.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (w *world) happened() []string {
	w.Lock()
	defer w.Unlock()
	found := w.events
	w.events = nil
	slices.Sort(found)
	if found == nil {
		found = []string{}
	}
	return found
}

// --- the provider of machines ----------------------------------------------------------------------------------------------

func (w *world) Name() string { return "world" }

func (w *world) NodeGroups() []cloudprovider.NodeGroup {
	found := []cloudprovider.NodeGroup{}
	for _, one := range w.groups {
		found = append(found, one)
	}
	return found
}

func (w *world) NodeGroupForNode(node *v1.Node) (cloudprovider.NodeGroup, error) {
	w.Lock()
	defer w.Unlock()
	if one := w.machine(node.Name); one != nil {
		return one.group, nil
	}
	return nil, nil
}

func (w *world) HasInstance(node *v1.Node) (bool, error) {
	w.Lock()
	defer w.Unlock()
	if one := w.machine(node.Name); one != nil {
		return !one.isDeleting, nil
	}
	return false, cloudprovider.ErrNotImplemented
}

func (w *world) Pricing() (cloudprovider.PricingModel, caerrors.AutoscalerError) { return w, nil }

// NodePrice is that of its group, which a label names.
func (w *world) NodePrice(node *v1.Node, start, end time.Time) (float64, error) {
	for _, one := range w.groups {
		if node.Labels[poolLabel] == one.Name {
			return one.Price * end.Sub(start).Hours(), nil
		}
	}
	return 0, errors.New("a node of no group")
}

// PodPrice is what a pod takes of the dearest of the groups' CPU and memory, halves each.
func (w *world) PodPrice(pod *v1.Pod, start, end time.Time) (float64, error) {
	perMilli, perByte := 0.0, 0.0
	for _, one := range w.groups {
		capacity := one.Template.Status.Capacity
		perMilli = max(perMilli, one.Price/2/float64(capacity.Cpu().MilliValue()))
		perByte = max(perByte, one.Price/2/float64(capacity.Memory().Value()))
	}
	total := 0.0
	for _, container := range pod.Spec.Containers {
		requests := container.Resources.Requests
		total += float64(requests.Cpu().MilliValue())*perMilli + float64(requests.Memory().Value())*perByte
	}
	return total * end.Sub(start).Hours(), nil
}

func (w *world) GetAvailableMachineTypes() ([]string, error) { return nil, nil }

func (w *world) NewNodeGroup(string, map[string]string, map[string]string, []v1.Taint, map[string]resource.Quantity) (cloudprovider.NodeGroup, error) {
	return nil, cloudprovider.ErrNotImplemented
}

func (w *world) GetResourceLimiter() (*cloudprovider.ResourceLimiter, error) {
	return cloudprovider.NewResourceLimiter(map[string]int64{}, map[string]int64{}), nil
}

func (w *world) GPULabel() string                                        { return "gpu" }
func (w *world) GetAvailableGPUTypes() map[string]struct{}               { return nil }
func (w *world) GetNodeGpuConfig(node *v1.Node) *cloudprovider.GpuConfig { return nil }
func (w *world) Cleanup() error                                          { return nil }
func (w *world) Refresh() error                                          { return nil }

type group struct {
	groupCase
	world  *world
	target int
	made   int
}

func (g *group) MaxSize() int { return g.Max }
func (g *group) MinSize() int { return g.Min }

func (g *group) TargetSize() (int, error) {
	g.world.Lock()
	defer g.world.Unlock()
	return g.target, nil
}

func (g *group) IncreaseSize(delta int) error {
	w := g.world
	w.Lock()
	defer w.Unlock()
	kind := ""
	for _, one := range g.Fails {
		if one.From <= w.look && w.look < one.Until {
			kind = one.Kind
		}
	}
	if kind == "error" {
		return errors.New("no more machines")
	}
	g.target += delta
	for range delta {
		g.made++
		one := &machine{node: fmt.Sprintf("%s-n%d", g.Name, g.made), group: g}
		one.registers = time.Now().Add(time.Duration(g.RegisterS) * time.Second)
		one.ready = one.registers.Add(time.Duration(g.ReadyS) * time.Second)
		one.never, one.failed = kind == "never-registers", kind == "out-of-resources"
		w.machines = append(w.machines, one)
	}
	return nil
}

func (g *group) AtomicIncreaseSize(int) error { return cloudprovider.ErrNotImplemented }

func (g *group) DeleteNodes(nodes []*v1.Node) error {
	w := g.world
	w.Lock()
	defer w.Unlock()
	for _, node := range nodes {
		one := w.machine(node.Name)
		if one == nil || one.isDeleting {
			return fmt.Errorf("%s has no machine %s", g.Name, node.Name)
		}
		g.target--
		one.isDeleting, one.gone = true, time.Now().Add(time.Duration(g.RemoveS)*time.Second)
		if g.RemoveS == 0 {
			w.remove(one)
		}
	}
	return nil
}

func (g *group) ForceDeleteNodes([]*v1.Node) error { return cloudprovider.ErrNotImplemented }

// DecreaseTargetSize gives up machines that have not registered, the newest first.
func (g *group) DecreaseTargetSize(delta int) error {
	w := g.world
	w.Lock()
	defer w.Unlock()
	waiting := []*machine{}
	for _, one := range w.machines {
		if one.group == g && !one.isDeleting && w.node(one.node) == nil {
			waiting = append(waiting, one)
		}
	}
	if len(waiting) < -delta {
		return fmt.Errorf("%s has no %d machines to come", g.Name, -delta)
	}
	g.target += delta
	for _, one := range waiting[len(waiting)+delta:] {
		w.remove(one)
	}
	return nil
}

func (g *group) Id() string    { return g.Name }
func (g *group) Debug() string { return g.Name }

func (g *group) Nodes() ([]cloudprovider.Instance, error) {
	w := g.world
	w.Lock()
	defer w.Unlock()
	found := []cloudprovider.Instance{}
	for _, one := range w.machines {
		if one.group != g {
			continue
		}
		status := &cloudprovider.InstanceStatus{State: cloudprovider.InstanceRunning}
		switch {
		case one.isDeleting:
			status.State = cloudprovider.InstanceDeleting
		case one.failed:
			status.State = cloudprovider.InstanceCreating
			status.ErrorInfo = &cloudprovider.InstanceErrorInfo{ErrorClass: cloudprovider.OutOfResourcesErrorClass,
				ErrorCode: "STOCKOUT", ErrorMessage: "none left"}
		case w.node(one.node) == nil:
			status.State = cloudprovider.InstanceCreating
		}
		found = append(found, cloudprovider.Instance{Id: one.node, Status: status})
	}
	return found, nil
}

func (g *group) TemplateNodeInfo() (*framework.NodeInfo, error) {
	node := g.Template.DeepCopy()
	node.Name = "template-" + g.Name
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: "True"}}
	return framework.NewNodeInfo(node, nil), nil
}

func (g *group) Exist() bool                              { return true }
func (g *group) Create() (cloudprovider.NodeGroup, error) { return nil, cloudprovider.ErrAlreadyExist }
func (g *group) Delete() error                            { return cloudprovider.ErrNotImplemented }
func (g *group) Autoprovisioned() bool                    { return false }

func (g *group) GetOptions(config.NodeGroupAutoscalingOptions) (*config.NodeGroupAutoscalingOptions, error) {
	return nil, cloudprovider.ErrNotImplemented
}
