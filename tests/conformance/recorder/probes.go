package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clientevents "k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/prober"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	"k8s.io/kubernetes/pkg/kubelet/status"
	statustest "k8s.io/kubernetes/pkg/kubelet/status/testing"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
	utilexec "k8s.io/utils/exec"
)

// probingQuestion is a pod whose containers start, end and answer by a script.
type probingQuestion struct {
	Pod *v1.Pod
	// RestartMs is how long a container is down that the kubelet has killed.
	RestartMs int64
	HorizonMs int64
	Script    []probingStep
	// Answers by container and kind, from each time since the start of the container on.
	Answers map[string]map[string][]probingAnswer
}

// beginsApart is the time from the beginning of one worker to that of the next.
const beginsApart = 137 * time.Millisecond

type probingStep struct {
	AtMs      int64
	What      string // start, exit, sync
	Container string
}

type probingAnswer struct {
	FromMs    int64
	Ok        bool
	LatencyMs int64
}

type probingAnswers struct {
	// Changes are all changes of started and ready: time, container, started, ready.
	Changes [][]any `json:"changes"`
	// Failures are the failed probes: time, message.
	Failures [][]any `json:"failures"`
	// Kills are the containers that have to start anew: time, container, kind.
	Kills [][]any `json:"kills"`
}

type probingWorld struct {
	sync.Mutex
	asked probingQuestion
	// Of the same case.
	repetition int
	began      time.Time
	status     v1.PodStatus
	starts     map[string]int
	killed     map[string]bool
	shown      map[string][2]bool
	answer     probingAnswers
	manager    prober.Manager
	statuses   status.Manager
}

// answerProbing runs the prober of the kubelet in virtual time, on containers that do as the case says.
func answerProbing(t *testing.T, data json.RawMessage) (any, error) {
	repetition := -1
	answers, err := distinct(12, func() (any, error) {
		repetition++
		asked := probingQuestion{}
		if err := json.Unmarshal(data, &asked); err != nil {
			return nil, err
		}
		world := &probingWorld{asked: asked, repetition: repetition, starts: map[string]int{}, killed: map[string]bool{}, shown: map[string][2]bool{}}
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		err := inBubble(t, func(*testing.T) error { world.play(); return nil })
		return world.answer, err
	})
	if err != nil {
		return nil, err
	}
	if len(answers) > 1 {
		return nil, ambiguous{len(answers)}
	}
	return answers[0], nil
}

func (w *probingWorld) ms() int64 { return time.Since(w.began).Milliseconds() }

// RunInContainer is the command of each probe: the container and the kind.
func (w *probingWorld) RunInContainer(_ context.Context, id kubecontainer.ContainerID, command []string, timeout time.Duration) ([]byte, error) {
	w.Lock()
	var since int64
	for _, one := range append(slices.Clone(w.status.ContainerStatuses), w.status.InitContainerStatuses...) {
		if one.ContainerID == id.String() && one.State.Running != nil {
			since = time.Since(one.State.Running.StartedAt.Time).Milliseconds()
		}
	}
	w.Unlock()
	said := probingAnswer{Ok: true, LatencyMs: 1}
	for _, one := range w.asked.Answers[command[0]][command[1]] {
		if one.FromMs <= since {
			said = one
		}
	}
	// Where chance decides what comes first in one instant, repetitions differ, and the case is left out.
	turn := (len(command[0]) + len(command[1]) + w.repetition) % 3
	latency := time.Duration(said.LatencyMs)*time.Millisecond + time.Duration(turn)*200*time.Microsecond
	if latency > timeout {
		time.Sleep(timeout)
		return nil, fmt.Errorf("%w: %q timed out after %s", remote.ErrCommandTimedOut, strings.Join(command, " "), timeout)
	}
	time.Sleep(latency)
	if !said.Ok {
		return nil, utilexec.CodeExitError{Err: errors.New("exit"), Code: 1}
	}
	return nil, nil
}

func (w *probingWorld) play() {
	// The kubelet has run for long: its workers begin at once.
	ctx, end := context.WithCancel(context.Background())
	defer end()
	pod := w.asked.Pod
	pods := kubepod.NewBasicPodManager()
	pods.AddPod(pod)
	w.statuses = status.NewManager(&fake.Clientset{}, pods, &statustest.FakePodDeletionSafetyProvider{}, kubeletutil.NewPodStartupLatencyTracker())
	liveness, readiness, startup := results.NewManager(), results.NewManager(), results.NewManager()
	events := clientevents.NewFakeRecorder(100_000)
	w.manager = prober.NewManager(w.statuses, liveness, readiness, startup, w, events)
	time.Sleep(time.Hour)
	w.began = time.Now()
	for _, container := range pod.Spec.InitContainers {
		w.status.InitContainerStatuses = append(w.status.InitContainerStatuses, v1.ContainerStatus{Name: container.Name})
	}
	for _, container := range pod.Spec.Containers {
		w.status.ContainerStatuses = append(w.status.ContainerStatuses, v1.ContainerStatus{Name: container.Name})
	}
	w.status.Phase = v1.PodRunning
	w.statuses.SetPodStatus(klog.Background(), pod, w.status)
	w.begin(ctx, pod)
	steps := make(chan probingStep)
	for _, step := range w.asked.Script {
		time.AfterFunc(time.Duration(step.AtMs)*time.Millisecond, func() { w.send(ctx, steps, step) })
	}
	horizon := time.After(time.Duration(w.asked.HorizonMs) * time.Millisecond)
	for done := false; !done; {
		select {
		case <-horizon:
			done = true
		case step := <-steps:
			w.take(step)
			w.sync()
		case update := <-readiness.Updates():
			w.statuses.SetContainerReadiness(klog.Background(), pod.UID, update.ContainerID, update.Result == results.Success)
			w.sync()
		case update := <-startup.Updates():
			w.statuses.SetContainerStartup(klog.Background(), pod.UID, update.ContainerID, update.Result == results.Success)
			w.sync()
			if update.Result == results.Failure {
				w.kill(ctx, steps, update.ContainerID, "startup")
			}
		case update := <-liveness.Updates():
			if update.Result == results.Failure {
				w.sync()
				w.kill(ctx, steps, update.ContainerID, "liveness")
			}
		case text := <-events.Events:
			message := strings.TrimPrefix(text, "Warning Unhealthy ")
			if kind, output, _ := strings.Cut(message, ": "); strings.HasPrefix(output, "command timed out") {
				message = kind + ": timed out"
			}
			w.answer.Failures = append(w.answer.Failures, []any{w.ms(), message})
		}
		synctest.Wait()
	}
	w.manager.RemovePod(pod)
	// Until the workers have ended.
	for ended := time.After(time.Minute); ended != nil; {
		select {
		case <-ended:
			ended = nil
		case <-readiness.Updates():
		case <-startup.Updates():
		case <-liveness.Updates():
		}
	}
}

// begin starts the workers one after the other, so that no two of them tick in the same instant: which would come first
// is left to chance. No container runs yet.
func (w *probingWorld) begin(ctx context.Context, pod *v1.Pod) {
	number := 0
	for _, container := range append(slices.Clone(pod.Spec.Containers), pod.Spec.InitContainers...) {
		for kind, probe := range []*v1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
			if probe == nil {
				continue
			}
			number++
			one := pod.DeepCopy()
			for _, all := range [][]v1.Container{one.Spec.Containers, one.Spec.InitContainers} {
				for i := range all {
					probes := []**v1.Probe{&all[i].StartupProbe, &all[i].ReadinessProbe, &all[i].LivenessProbe}
					for other := range probes {
						if all[i].Name != container.Name || other != kind {
							*probes[other] = nil
						}
					}
				}
			}
			time.AfterFunc(time.Duration(number)*beginsApart, func() { w.manager.AddPod(ctx, one) })
		}
	}
}

func (w *probingWorld) send(ctx context.Context, steps chan<- probingStep, step probingStep) {
	select {
	case steps <- step:
	case <-ctx.Done():
	}
}

// each calls work with the status of the container of that name.
func (w *probingWorld) each(name string, work func(*v1.ContainerStatus)) {
	w.Lock()
	defer w.Unlock()
	for _, all := range [][]v1.ContainerStatus{w.status.ContainerStatuses, w.status.InitContainerStatuses} {
		for i := range all {
			if all[i].Name == name {
				work(&all[i])
			}
		}
	}
}

func (w *probingWorld) take(step probingStep) {
	w.each(step.Container, func(one *v1.ContainerStatus) {
		switch {
		case step.What == "start" && one.State.Running == nil:
			w.starts[one.Name]++
			one.ContainerID = fmt.Sprintf("test://%s-%d", one.Name, w.starts[one.Name])
			one.State = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}}
			one.Started, one.Ready = nil, false
		case step.What == "exit" && one.State.Running != nil:
			started := one.State.Running.StartedAt
			one.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1, StartedAt: started, FinishedAt: metav1.Now(), ContainerID: one.ContainerID}}
		}
	})
}

// kill is what the kubelet does with a container whose liveness or startup probe has failed.
func (w *probingWorld) kill(ctx context.Context, steps chan<- probingStep, id kubecontainer.ContainerID, kind string) {
	name := ""
	for _, container := range append(slices.Clone(w.asked.Pod.Spec.Containers), w.asked.Pod.Spec.InitContainers...) {
		w.each(container.Name, func(one *v1.ContainerStatus) {
			if one.ContainerID == id.String() && one.State.Running != nil {
				name = one.Name
			}
		})
	}
	if name == "" {
		return
	}
	// A container takes time to stop: the sync has had its effects by then.
	synctest.Wait()
	w.answer.Kills = append(w.answer.Kills, []any{w.ms(), name, kind})
	w.take(probingStep{What: "exit", Container: name})
	if w.asked.RestartMs == 0 {
		// The sync that kills the container starts it anew: none sees that it is down.
		w.take(probingStep{What: "start", Container: name})
		w.sync()
		return
	}
	w.sync()
	time.AfterFunc(time.Duration(w.asked.RestartMs)*time.Millisecond, func() {
		w.send(ctx, steps, probingStep{What: "start", Container: name})
	})
}

// sync is a sync of the pod: its status is made anew.
func (w *probingWorld) sync() {
	pod := w.asked.Pod
	w.Lock()
	made := w.status.DeepCopy()
	w.Unlock()
	// As convertToAPIContainerStatuses does, by the name of the container alone.
	for _, all := range [][]v1.ContainerStatus{made.ContainerStatuses, made.InitContainerStatuses} {
		for i := range all {
			if started := w.shown[all[i].Name][0]; all[i].State.Running != nil {
				all[i].Started = &started
			}
		}
	}
	w.manager.UpdatePodStatus(context.Background(), pod, made)
	w.statuses.SetPodStatus(klog.Background(), pod, *made)
	for _, one := range append(slices.Clone(made.ContainerStatuses), made.InitContainerStatuses...) {
		show := [2]bool{one.Started != nil && *one.Started, one.Ready}
		if w.shown[one.Name] != show {
			w.shown[one.Name] = show
			w.answer.Changes = append(w.answer.Changes, []any{w.ms(), one.Name, show[0], show[1]})
		}
	}
}

// readinessQuestion is a pod and what its containers do.
type readinessQuestion struct {
	Pod        *v1.Pod
	Phase      v1.PodPhase
	Sandbox    bool
	Containers []readinessContainer
}

type readinessContainer struct {
	Name     string
	State    string // waiting, running, terminated
	ExitCode int32
	Started  bool
	Ready    bool
}

// answerReadiness asks for the conditions that the kubelet makes from the statuses of containers.
func answerReadiness(data json.RawMessage) (any, error) {
	asked := readinessQuestion{}
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	pod, old := asked.Pod, asked.Pod.Status
	statuses := []v1.ContainerStatus{}
	for _, one := range asked.Containers {
		made := v1.ContainerStatus{Name: one.Name, Ready: one.Ready, Started: &one.Started}
		switch one.State {
		case "running":
			made.State.Running = &v1.ContainerStateRunning{}
		case "terminated":
			made.State.Terminated = &v1.ContainerStateTerminated{ExitCode: one.ExitCode}
		default:
			made.State.Waiting = &v1.ContainerStateWaiting{}
		}
		statuses = append(statuses, made)
	}
	sandboxes := &kubecontainer.PodStatus{}
	if asked.Sandbox {
		sandboxes.SandboxStatuses = []*runtimeapi.PodSandboxStatus{{
			Id: "s", Metadata: &runtimeapi.PodSandboxMetadata{}, State: runtimeapi.PodSandboxState_SANDBOX_READY,
			Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1"},
		}}
	}
	answer := map[string]any{}
	for _, one := range []v1.PodCondition{
		status.GeneratePodInitializedCondition(pod, &old, statuses, asked.Phase),
		status.GeneratePodReadyCondition(pod, &old, old.Conditions, statuses, asked.Phase),
		status.GenerateContainersReadyCondition(pod, &old, statuses, asked.Phase),
		status.GeneratePodReadyToStartContainersCondition(pod, &old, sandboxes),
	} {
		answer[string(one.Type)] = []any{one.Status, one.Reason, one.Message, one.ObservedGeneration}
	}
	return map[string]any{"conditions": answer}, nil
}
