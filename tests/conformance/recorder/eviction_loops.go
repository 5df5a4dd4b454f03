package main

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientevents "k8s.io/client-go/tools/record"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/utils/clock"
)

type loopQuestion struct {
	Resource                  string
	Config                    managerSettings
	Filesystem                filesystem
	Capacity                  int64
	SystemUsage               int64
	MonitoringIntervalSeconds float64
	HorizonSeconds            float64
	Pods                      []*loopPod
}

type loopPod struct {
	Pod             *v1.Pod
	StartMs         int64
	UsageAtStart    int64
	GrowthPerSecond int64
	UsageMax        int64
	KillSeconds     float64
	CleanupSeconds  float64
	killed          time.Time
}

type loopAnswer struct {
	Passes           [][2]int64        `json:"passes"`
	Evictions        []loopEviction    `json:"evictions"`
	ConditionChanges []conditionChange `json:"conditionChanges"`
	Admissions       []loopAdmission   `json:"admissions"`
}

type loopEviction struct {
	AtMs                int64  `json:"atMs"`
	Pod                 string `json:"pod"`
	GracePeriodOverride *int64 `json:"gracePeriodOverride"`
}

type conditionChange struct {
	AtMs       int64                  `json:"atMs"`
	Conditions []v1.NodeConditionType `json:"conditions"`
}

type loopAdmission struct {
	AtMs  int64  `json:"atMs"`
	Pod   string `json:"pod"`
	Admit bool   `json:"admit"`
}

// answerEvictionLoop starts the eviction manager in virtual time, on a node whose pods free what they used when killed.
func answerEvictionLoop(t *testing.T, data json.RawMessage) (any, error) {
	node := &loopNode{answer: &loopAnswer{
		Passes: [][2]int64{}, Evictions: []loopEviction{}, ConditionChanges: []conditionChange{}, Admissions: []loopAdmission{}}}
	if err := json.Unmarshal(data, &node.asked); err != nil {
		return nil, err
	}
	return node.answer, inBubble(t, node.play)
}

type loopNode struct {
	clientevents.FakeRecorder
	asked   loopQuestion
	answer  *loopAnswer
	start   time.Time
	running []*loopPod
	ended   chan struct{}
}

func (n *loopNode) nowMs() int64 { return time.Since(n.start).Milliseconds() }

func (n *loopNode) play(t *testing.T) error {
	config, err := n.asked.Config.config()
	if err != nil {
		return err
	}
	n.start, n.ended = time.Now(), make(chan struct{})
	reference := &v1.ObjectReference{Kind: "Node", Name: "node-1"}
	manager, admission := eviction.NewManager(
		n, config, n.kill, n, n, n, reference, clock.RealClock{}, n.asked.Config.LocalStorageCapacityIsolation)
	var arrivals []*loopPod
	for _, one := range n.asked.Pods {
		if one.StartMs == 0 {
			n.running = append(n.running, one)
		} else {
			arrivals = append(arrivals, one)
		}
	}
	slices.SortStableFunc(arrivals, func(one, other *loopPod) int { return int(one.StartMs - other.StartMs) })
	seconds := func(given float64) time.Duration { return time.Duration(given * float64(time.Second)) }
	manager.Start(context.Background(), n, n.active, n.isCleanedUp, seconds(n.asked.MonitoringIntervalSeconds))
	conditions := []v1.NodeConditionType{}
	for second := time.Duration(0); second < seconds(n.asked.HorizonSeconds); second += time.Second {
		time.Sleep(time.Until(n.start.Add(second)))
		synctest.Wait()
		if now := stateOfManager(manager).NodeConditions; !reflect.DeepEqual(now, conditions) {
			conditions = now
			n.answer.ConditionChanges = append(n.answer.ConditionChanges, conditionChange{n.nowMs(), now})
		}
		for len(arrivals) > 0 && arrivals[0].StartMs < (second+time.Second).Milliseconds() {
			one := arrivals[0]
			arrivals = arrivals[1:]
			time.Sleep(time.Until(n.start.Add(time.Duration(one.StartMs) * time.Millisecond)))
			synctest.Wait()
			admitted := admissionOf(admission, one.Pod).Admit
			n.answer.Admissions = append(n.answer.Admissions, loopAdmission{n.nowMs(), one.Pod.Name, admitted})
			if admitted {
				n.running = append(n.running, one)
				// Pods that compare equal are ranked in the order of the case.
				slices.SortFunc(n.running, func(one, other *loopPod) int {
					return slices.Index(n.asked.Pods, one) - slices.Index(n.asked.Pods, other)
				})
			}
		}
	}
	<-n.ended
	return nil
}

// Get gives the statistics of now. The manager's loop never ends by itself: its first look beyond the horizon ends it.
func (n *loopNode) Get(context.Context, bool) (*statsapi.Summary, error) {
	if float64(n.nowMs()) >= n.asked.HorizonSeconds*1000 {
		close(n.ended)
		runtime.Goexit()
	}
	now := metav1.Now()
	summary := &statsapi.Summary{}
	left := n.asked.Capacity - n.asked.SystemUsage
	for _, one := range n.running {
		if !one.killed.IsZero() {
			continue
		}
		used := one.UsageAtStart + one.GrowthPerSecond*((n.nowMs()-one.StartMs)/1000)
		used = min(used, one.UsageMax)
		left -= used
		amount := uint64(used)
		stats := statsapi.PodStats{
			PodRef: statsapi.PodReference{Name: one.Pod.Name, Namespace: one.Pod.Namespace, UID: string(one.Pod.UID)}}
		switch n.asked.Resource {
		case "memory":
			stats.Memory = &statsapi.MemoryStats{Time: now, WorkingSetBytes: &amount}
		case "pids":
			stats.ProcessStats = &statsapi.ProcessStats{ProcessCount: &amount}
		default:
			logs := &statsapi.FsStats{Time: now, UsedBytes: &amount}
			stats.Containers = []statsapi.ContainerStats{{Name: one.Pod.Spec.Containers[0].Name, Logs: logs}}
		}
		summary.Pods = append(summary.Pods, stats)
	}
	left = max(left, 0)
	n.answer.Passes = append(n.answer.Passes, [2]int64{n.nowMs(), left})
	available, used, capacity := uint64(left), n.asked.Capacity-left, uint64(n.asked.Capacity)
	switch n.asked.Resource {
	case "memory":
		working := uint64(used)
		summary.Node.Memory = &statsapi.MemoryStats{Time: now, AvailableBytes: &available, WorkingSetBytes: &working}
	case "pids":
		summary.Node.Rlimit = &statsapi.RlimitStats{Time: now, MaxPID: &n.asked.Capacity, NumOfRunningProcesses: &used}
	default:
		summary.Node.Fs = &statsapi.FsStats{Time: now, AvailableBytes: &available, CapacityBytes: &capacity}
	}
	return summary, nil
}

func (n *loopNode) GetCPUAndMemoryStats(ctx context.Context) (*statsapi.Summary, error) {
	return n.Get(ctx, true)
}

func (n *loopNode) HasDedicatedImageFs(context.Context) (bool, error) {
	return n.asked.Filesystem.DedicatedImageFs, nil
}

func (n *loopNode) HasDedicatedContainerFs(context.Context) (bool, error) {
	return n.asked.Filesystem.DedicatedContainerFs, nil
}

func (n *loopNode) DeleteUnusedImages(context.Context) error { return nil }

func (n *loopNode) DeleteAllUnusedContainers(context.Context) error { return nil }

func (n *loopNode) active() []*v1.Pod {
	var pods []*v1.Pod
	for _, one := range n.running {
		if one.killed.IsZero() {
			pods = append(pods, one.Pod)
		}
	}
	return pods
}

func (n *loopNode) find(pod *v1.Pod) *loopPod {
	return n.running[slices.IndexFunc(n.running, func(one *loopPod) bool { return one.Pod.UID == pod.UID })]
}

func (n *loopNode) kill(pod *v1.Pod, _ bool, gracePeriod *int64, _ func(*v1.PodStatus)) error {
	override := *gracePeriod
	n.answer.Evictions = append(n.answer.Evictions, loopEviction{n.nowMs(), pod.Name, &override})
	victim := n.find(pod)
	time.Sleep(time.Duration(victim.KillSeconds * float64(time.Second)))
	victim.killed = time.Now()
	return nil
}

func (n *loopNode) isCleanedUp(pod *v1.Pod) bool {
	one := n.find(pod)
	return one.CleanupSeconds >= 0 && time.Since(one.killed).Seconds() >= one.CleanupSeconds
}
