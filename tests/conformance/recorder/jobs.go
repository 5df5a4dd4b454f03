package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/utils/ptr"
)

// repetitionsOfJobs is how often a case of the Job controller is played: its informers hold pods in maps.
const repetitionsOfJobs = 6

var jobsResource = batchv1.SchemeGroupVersion.WithResource("jobs")

type jobQuestion struct {
	ID         string
	Job        *batchv1.Job
	Pods       []*v1.Pod
	Behaviours []podBehaviour
	Events     []jobEvent
	HorizonMs  int64
}

// podBehaviour is what becomes of a pod, counted from its creation.
type podBehaviour struct {
	StartMs   int64
	ReadyMs   int64
	EndMs     int64
	ExitCode  int32
	Restarts  int32
	Disrupted bool
}

type jobEvent struct {
	AtMs   int64
	Do     string
	Pod    string
	Verb   string
	Count  int
	Spec   json.RawMessage
	Labels map[string]string
}

type jobMoment struct {
	AtMs     int64       `json:"atMs"`
	Created  []any       `json:"created,omitempty"`
	Deleted  []string    `json:"deleted,omitempty"`
	Patched  []string    `json:"patched,omitempty"`
	Statuses []jobStatus `json:"statuses,omitempty"`
}

type createdPod struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Finalizers  []string          `json:"finalizers"`
	Hostname    string            `json:"hostname"`
	Environment []string          `json:"environment"`
	Owner       string            `json:"owner"`
}

type jobStatus struct {
	Active           int32    `json:"active"`
	Ready            *int32   `json:"ready"`
	Terminating      *int32   `json:"terminating"`
	Succeeded        int32    `json:"succeeded"`
	Failed           int32    `json:"failed"`
	CompletedIndexes string   `json:"completedIndexes"`
	FailedIndexes    *string  `json:"failedIndexes"`
	Uncounted        []string `json:"uncounted"`
	Conditions       []string `json:"conditions"`
	StartSeconds     *int64   `json:"startSeconds"`
	CompletedSeconds *int64   `json:"completedSeconds"`
}

// answerJob plays a case with the Job controller. Pods behave as the case says, and the API server deletes them as
// kube-apiserver does.
func answerJob(t *testing.T, data json.RawMessage) (any, error) {
	var q jobQuestion
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, err
	}
	answers, err := distinct(repetitionsOfJobs, func() (any, error) {
		var moments []*jobMoment
		var err error
		synctest.Test(t, func(*testing.T) { moments, err = q.play() })
		return map[string]any{"moments": moments}, err
	})
	if err != nil {
		return nil, err
	}
	if len(answers) != 1 {
		return nil, ambiguous{len(answers)}
	}
	return answers[0], nil
}

type jobWorld struct {
	q       *jobQuestion
	ctx     context.Context
	tracker clienttesting.ObjectTracker
	start   time.Time

	// pods is the watch of pods: the tracker's own tells of a deletion with the version of the last change before it.
	pods *watch.RaceFreeFakeWatcher

	mutex    sync.Mutex
	version  int
	moments  []*jobMoment
	made     map[string]int
	failures map[string]int
}

func (q *jobQuestion) play() ([]*jobMoment, error) {
	ctx, cancel := context.WithCancel(context.Background())
	client := fake.NewClientset()
	w := &jobWorld{q: q, ctx: ctx, tracker: client.Tracker(), pods: watch.NewRaceFreeFake(), made: map[string]int{}, failures: map[string]int{}}
	factory := informers.NewSharedInformerFactory(client, 0)
	controller, err := job.NewController(ctx, client, factory.Core().V1().Pods(), factory.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	client.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) { return true, w.pods, nil })
	client.PrependReactor("create", "pods", w.createPod)
	client.PrependReactor("delete", "pods", w.deletePod)
	client.PrependReactor("patch", "pods", w.patchPod)
	client.PrependReactor("update", "jobs", w.updateJob)
	factory.Start(ctx.Done())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(ctx, 1)
	}()
	defer func() {
		cancel()
		factory.Shutdown()
		<-ended
		synctest.Wait()
	}()
	// Until the caches are filled.
	time.Sleep(time.Minute)
	w.start = time.Now()
	for _, pod := range q.Pods {
		created := w.relative(pod.DeepCopy())
		w.stamp(&created.ObjectMeta)
		if err := w.tracker.Create(podsResource, created, pod.Namespace); err != nil {
			return nil, err
		}
		w.pods.Add(created.DeepCopy())
		synctest.Wait()
	}
	created := q.Job.DeepCopy()
	w.stamp(&created.ObjectMeta)
	if err := w.tracker.Create(jobsResource, created, q.Job.Namespace); err != nil {
		return nil, err
	}
	synctest.Wait()
	for _, event := range q.Events {
		time.Sleep(time.Until(w.start.Add(time.Duration(event.AtMs) * time.Millisecond)))
		synctest.Wait()
		if err := w.happen(event); err != nil {
			return nil, err
		}
		synctest.Wait()
	}
	time.Sleep(time.Until(w.start.Add(time.Duration(q.HorizonMs) * time.Millisecond)))
	synctest.Wait()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, moment := range w.moments {
		slices.SortFunc(moment.Created, func(one, other any) int {
			return strings.Compare(one.(createdPod).Name, other.(createdPod).Name)
		})
		slices.Sort(moment.Deleted)
		slices.Sort(moment.Patched)
	}
	return w.moments, nil
}

// relative makes times of pods that the case brings count from the start.
func (w *jobWorld) relative(pod *v1.Pod) *v1.Pod {
	shift := func(at *metav1.Time) {
		if at != nil && !at.IsZero() {
			*at = metav1.NewTime(w.start.Add(at.Sub(epochOfCases)))
		}
	}
	shift(&pod.CreationTimestamp)
	shift(pod.DeletionTimestamp)
	for i := range pod.Status.Conditions {
		shift(&pod.Status.Conditions[i].LastTransitionTime)
	}
	for _, statuses := range [][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if ended := statuses[i].State.Terminated; ended != nil {
				shift(&ended.FinishedAt)
			}
		}
	}
	return pod
}

// epochOfCases is the time in a case that stands for its start.
var epochOfCases = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *jobWorld) now() *jobMoment {
	at := time.Since(w.start).Milliseconds()
	if n := len(w.moments); n > 0 && w.moments[n-1].AtMs == at {
		return w.moments[n-1]
	}
	moment := &jobMoment{AtMs: at}
	w.moments = append(w.moments, moment)
	return moment
}

// stamp gives an object its next resource version, which the tracker does not.
func (w *jobWorld) stamp(metadata *metav1.ObjectMeta) {
	w.version++
	metadata.ResourceVersion = fmt.Sprint(1_000_000 + w.version)
}

func (w *jobWorld) fails(verb string) error {
	if w.failures[verb] > 0 {
		w.failures[verb]--
		return apierrors.NewInternalError(fmt.Errorf("as the case says"))
	}
	return nil
}

// --- the API server ---

func (w *jobWorld) createPod(action clienttesting.Action) (bool, k8sruntime.Object, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err := w.fails("create"); err != nil {
		return true, nil, err
	}
	pod := action.(clienttesting.CreateAction).GetObject().(*v1.Pod).DeepCopy()
	number := w.made[pod.GenerateName]
	w.made[pod.GenerateName]++
	pod.Name = fmt.Sprintf("%s%03d", pod.GenerateName, number)
	pod.Namespace = action.GetNamespace()
	pod.UID = types.UID("uid-" + pod.Name)
	pod.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	pod.Status.Phase = v1.PodPending
	made := createdPod{
		Name: pod.Name, Labels: pod.Labels, Annotations: pod.Annotations, Finalizers: pod.Finalizers,
		Hostname: pod.Spec.Hostname, Environment: []string{}, Owner: string(pod.OwnerReferences[0].UID),
	}
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.ValueFrom != nil && variable.ValueFrom.FieldRef != nil {
			made.Environment = append(made.Environment, variable.Name+"="+variable.ValueFrom.FieldRef.FieldPath)
		}
	}
	moment := w.now()
	moment.Created = append(moment.Created, made)
	w.stamp(&pod.ObjectMeta)
	if err := w.tracker.Create(podsResource, pod, pod.Namespace); err != nil {
		return true, nil, err
	}
	w.pods.Add(pod.DeepCopy())
	index := 0
	if text, has := pod.Annotations[batchv1.JobCompletionIndexAnnotation]; has {
		_, _ = fmt.Sscan(text, &index)
	}
	if n := len(w.q.Behaviours); n > 0 {
		w.live(pod.Namespace, pod.Name, pod.UID, w.q.Behaviours[(number+index)%n])
	}
	return true, pod.DeepCopy(), nil
}

func (w *jobWorld) get(namespace, name string) *v1.Pod {
	found, err := w.tracker.Get(podsResource, namespace, name)
	if err != nil {
		return nil
	}
	return found.(*v1.Pod).DeepCopy()
}

// put stores a pod, or removes it if nobody wants to keep it.
func (w *jobWorld) put(pod *v1.Pod) error {
	if pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 0) == 0 && len(pod.Finalizers) == 0 {
		w.stamp(&pod.ObjectMeta)
		w.pods.Delete(pod.DeepCopy())
		return w.tracker.Delete(podsResource, pod.Namespace, pod.Name)
	}
	w.stamp(&pod.ObjectMeta)
	w.pods.Modify(pod.DeepCopy())
	return w.tracker.Update(podsResource, pod, pod.Namespace)
}

func (w *jobWorld) deletePod(action clienttesting.Action) (bool, k8sruntime.Object, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	name := action.(clienttesting.DeleteAction).GetName()
	if err := w.fails("delete"); err != nil {
		return true, nil, err
	}
	pod := w.get(action.GetNamespace(), name)
	if pod == nil {
		return true, nil, apierrors.NewNotFound(podsResource.GroupResource(), name)
	}
	moment := w.now()
	moment.Deleted = append(moment.Deleted, name)
	return true, nil, w.remove(pod)
}

// remove begins the graceful deletion of a pod.
func (w *jobWorld) remove(pod *v1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return w.put(pod)
	}
	grace := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 30)
	if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		grace = 0
	}
	at := metav1.NewTime(time.Now().Truncate(time.Second).Add(time.Duration(grace) * time.Second))
	pod.DeletionTimestamp = &at
	pod.DeletionGracePeriodSeconds = &grace
	if grace > 0 {
		w.after(pod, time.Duration(grace)*time.Second, func(pod *v1.Pod) { w.end(pod, 137) })
		w.after(pod, time.Duration(grace)*time.Second+time.Millisecond, func(pod *v1.Pod) {
			zero := int64(0)
			pod.DeletionGracePeriodSeconds = &zero
		})
	}
	return w.put(pod)
}

func (w *jobWorld) patchPod(action clienttesting.Action) (bool, k8sruntime.Object, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	patch := action.(clienttesting.PatchAction)
	if err := w.fails("patch"); err != nil {
		return true, nil, err
	}
	pod := w.get(action.GetNamespace(), patch.GetName())
	if pod == nil {
		return true, nil, apierrors.NewNotFound(podsResource.GroupResource(), patch.GetName())
	}
	before, err := json.Marshal(pod)
	if err != nil {
		return true, nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch.GetPatch(), pod)
	if err != nil {
		return true, nil, err
	}
	changed := &v1.Pod{}
	if err := json.Unmarshal(after, changed); err != nil {
		return true, nil, err
	}
	owner := "-"
	if reference := metav1.GetControllerOf(changed); reference != nil {
		owner = string(reference.UID)
	}
	moment := w.now()
	moment.Patched = append(moment.Patched, fmt.Sprintf("%s %s %v", changed.Name, owner, changed.Finalizers))
	err = w.put(changed)
	return true, changed.DeepCopy(), err
}

func (w *jobWorld) updateJob(action clienttesting.Action) (bool, k8sruntime.Object, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err := w.fails("updateStatus"); err != nil {
		return true, nil, err
	}
	// As it arrives: times are whole seconds.
	text, err := json.Marshal(action.(clienttesting.UpdateAction).GetObject())
	if err != nil {
		return true, nil, err
	}
	updated := &batchv1.Job{}
	if err := json.Unmarshal(text, updated); err != nil {
		return true, nil, err
	}
	status := updated.Status
	written := jobStatus{
		Active: status.Active, Ready: status.Ready, Terminating: status.Terminating, Succeeded: status.Succeeded,
		Failed: status.Failed, CompletedIndexes: status.CompletedIndexes, FailedIndexes: status.FailedIndexes,
		StartSeconds: w.seconds(status.StartTime), CompletedSeconds: w.seconds(status.CompletionTime),
		Uncounted: []string{}, Conditions: []string{},
	}
	if status.UncountedTerminatedPods != nil {
		for _, uid := range status.UncountedTerminatedPods.Succeeded {
			written.Uncounted = append(written.Uncounted, strings.TrimPrefix(string(uid), "uid-")+" succeeded")
		}
		for _, uid := range status.UncountedTerminatedPods.Failed {
			written.Uncounted = append(written.Uncounted, strings.TrimPrefix(string(uid), "uid-")+" failed")
		}
	}
	slices.Sort(written.Uncounted)
	for _, condition := range status.Conditions {
		at := w.seconds(&condition.LastTransitionTime)
		written.Conditions = append(written.Conditions,
			fmt.Sprintf("%s=%s %s at %d: %s", condition.Type, condition.Status, condition.Reason, *at, condition.Message))
	}
	moment := w.now()
	moment.Statuses = append(moment.Statuses, written)
	w.stamp(&updated.ObjectMeta)
	err = w.tracker.Update(jobsResource, updated.DeepCopy(), updated.Namespace)
	return true, updated, err
}

func (w *jobWorld) seconds(at *metav1.Time) *int64 {
	if at == nil {
		return nil
	}
	return ptr.To(int64(at.Sub(w.start.Truncate(time.Second)) / time.Second))
}

// --- pods ---

// after changes the pod some time from now, if it is still there.
func (w *jobWorld) after(pod *v1.Pod, wait time.Duration, change func(*v1.Pod)) {
	namespace, name, uid := pod.Namespace, pod.Name, pod.UID
	time.AfterFunc(wait, func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if w.ctx.Err() != nil {
			return
		}
		now := w.get(namespace, name)
		if now == nil || now.UID != uid {
			return
		}
		before := now.DeepCopy()
		change(now)
		if !equality.Semantic.DeepEqual(before, now) {
			_ = w.put(now)
		}
	})
}

func (w *jobWorld) live(namespace, name string, uid types.UID, behaviour podBehaviour) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}}
	is := func(phase v1.PodPhase, change func(*v1.Pod)) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			if pod.Status.Phase == phase && pod.DeletionTimestamp == nil {
				change(pod)
			}
		}
	}
	w.after(pod, time.Duration(behaviour.StartMs)*time.Millisecond, is(v1.PodPending, func(pod *v1.Pod) {
		pod.Spec.NodeName = "node"
		pod.Status.Phase = v1.PodRunning
		pod.Status.ContainerStatuses = []v1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, RestartCount: behaviour.Restarts,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
		}}
	}))
	if behaviour.ReadyMs > 0 {
		w.after(pod, time.Duration(behaviour.ReadyMs)*time.Millisecond, is(v1.PodRunning, func(pod *v1.Pod) {
			w.condition(pod, v1.PodReady, v1.ConditionTrue)
		}))
	}
	if behaviour.EndMs > 0 {
		w.after(pod, time.Duration(behaviour.EndMs)*time.Millisecond, is(v1.PodRunning, func(pod *v1.Pod) {
			if behaviour.Disrupted {
				w.condition(pod, v1.DisruptionTarget, v1.ConditionTrue)
			}
			w.end(pod, behaviour.ExitCode)
		}))
	}
}

func (w *jobWorld) condition(pod *v1.Pod, kind v1.PodConditionType, status v1.ConditionStatus) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			pod.Status.Conditions = slices.Delete(pod.Status.Conditions, i, i+1)
			break
		}
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	pod.Status.Conditions = append(pod.Status.Conditions,
		v1.PodCondition{Type: kind, Status: status, LastTransitionTime: now})
}

func (w *jobWorld) end(pod *v1.Pod, exitCode int32) {
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return
	}
	pod.Status.Phase = v1.PodSucceeded
	if exitCode != 0 {
		pod.Status.Phase = v1.PodFailed
	}
	w.condition(pod, v1.PodReady, v1.ConditionFalse)
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].State = v1.ContainerState{
			Terminated: &v1.ContainerStateTerminated{ExitCode: exitCode, FinishedAt: now},
		}
	}
}

// --- what the case does ---

func (w *jobWorld) happen(event jobEvent) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	namespace := w.q.Job.Namespace
	switch event.Do {
	case "fail":
		w.failures[event.Verb] += event.Count
		return nil
	case "deletePod":
		if pod := w.get(namespace, event.Pod); pod != nil {
			return w.remove(pod)
		}
		return nil
	case "disruptPod":
		if pod := w.get(namespace, event.Pod); pod != nil && pod.DeletionTimestamp == nil {
			w.condition(pod, v1.DisruptionTarget, v1.ConditionTrue)
			return w.remove(pod)
		}
		return nil
	case "relabelPod":
		if pod := w.get(namespace, event.Pod); pod != nil {
			pod.Labels = event.Labels
			return w.put(pod)
		}
		return nil
	}
	found, err := w.tracker.Get(jobsResource, namespace, w.q.Job.Name)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	if event.Do == "deleteJob" {
		return w.tracker.Delete(jobsResource, namespace, w.q.Job.Name)
	}
	changed := found.(*batchv1.Job).DeepCopy()
	if err := json.Unmarshal(event.Spec, &changed.Spec); err != nil {
		return err
	}
	changed.Generation++
	w.stamp(&changed.ObjectMeta)
	return w.tracker.Update(jobsResource, changed, namespace)
}
