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
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/util/parsers"
	"k8s.io/utils/ptr"
)

// repetitionsOfCronJobs is how often a case of the CronJob controller is played: its informers hold Jobs in maps.
const repetitionsOfCronJobs = 6

var cronJobsResource = batchv1.SchemeGroupVersion.WithResource("cronjobs")

type scheduleQuestion struct {
	Schedule string
	From     []time.Time
	Count    int
}

type scheduleAnswer struct {
	Error string     `json:"error,omitempty"`
	Next  [][]string `json:"next,omitempty"`
}

// answerSchedule asks the parser of cron expressions for the times that follow each of several times.
func answerSchedule(data json.RawMessage) (any, error) {
	var q scheduleQuestion
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, err
	}
	schedule, err := parsers.ParseCronScheduleWithPanicRecovery(q.Schedule)
	if err != nil {
		return scheduleAnswer{Error: err.Error()}, nil
	}
	answer := scheduleAnswer{Next: [][]string{}}
	for _, at := range q.From {
		times := []string{}
		for range q.Count {
			at = schedule.Next(at)
			if at.IsZero() {
				times = append(times, "never")
				break
			}
			times = append(times, at.UTC().Format(time.RFC3339Nano))
		}
		answer.Next = append(answer.Next, times)
	}
	return answer, nil
}

type cronQuestion struct {
	ID         string
	CronJob    *batchv1.CronJob
	Jobs       []*batchv1.Job
	Behaviours []jobBehaviour
	Events     []cronEvent
	StartMs    int64
	HorizonMs  int64
}

// jobBehaviour is what becomes of a Job, counted from its creation.
type jobBehaviour struct {
	StartMs int64
	EndMs   int64
	Fails   bool
}

type cronEvent struct {
	AtMs int64
	Do   string
	Job  string
	Verb string
	Spec json.RawMessage
}

type cronMoment struct {
	AtMs     int64        `json:"atMs"`
	Created  []any        `json:"created,omitempty"`
	Deleted  []string     `json:"deleted,omitempty"`
	Statuses []cronStatus `json:"statuses,omitempty"`
}

type createdJob struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Owner       string            `json:"owner"`
}

type cronStatus struct {
	Active         []string `json:"active"`
	LastSchedule   string   `json:"lastSchedule"`
	LastSuccessful string   `json:"lastSuccessful"`
}

type cronWorld struct {
	q       *cronQuestion
	ctx     context.Context
	tracker clienttesting.ObjectTracker
	start   time.Time

	mutex    sync.Mutex
	version  int
	moments  []*cronMoment
	made     int
	failures map[string]int
}

// answerCronJob plays a case with the CronJob controller. Jobs behave as the case says.
func answerCronJob(t *testing.T, data json.RawMessage) (any, error) {
	var q cronQuestion
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, err
	}
	answers, err := distinct(repetitionsOfCronJobs, func() (any, error) {
		var moments []*cronMoment
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

func (q *cronQuestion) play() ([]*cronMoment, error) {
	// Cases state times from the epoch of bubbles on.
	time.Sleep(time.Duration(q.StartMs) * time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	client := fake.NewClientset()
	w := &cronWorld{q: q, ctx: ctx, tracker: client.Tracker(), start: time.Now(), failures: map[string]int{}}
	factory := informers.NewSharedInformerFactory(client, 0)
	controller, err := cronjob.NewControllerV2(ctx, factory.Batch().V1().Jobs(), factory.Batch().V1().CronJobs(), client)
	if err != nil {
		cancel()
		return nil, err
	}
	for _, job := range q.Jobs {
		if err := w.tracker.Create(jobsResource, job.DeepCopy(), job.Namespace); err != nil {
			cancel()
			return nil, err
		}
	}
	if err := w.tracker.Create(cronJobsResource, q.CronJob.DeepCopy(), q.CronJob.Namespace); err != nil {
		cancel()
		return nil, err
	}
	client.PrependReactor("create", "jobs", w.createJob)
	client.PrependReactor("delete", "jobs", w.deleteJob)
	client.PrependReactor("update", "cronjobs", w.updateCronJob)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	synctest.Wait()
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
		slices.Sort(moment.Deleted)
	}
	return w.moments, nil
}

func (w *cronWorld) now() *cronMoment {
	at := time.Since(w.start).Milliseconds()
	if n := len(w.moments); n > 0 && w.moments[n-1].AtMs == at {
		return w.moments[n-1]
	}
	moment := &cronMoment{AtMs: at}
	w.moments = append(w.moments, moment)
	return moment
}

// stamp gives an object its next resource version, which the tracker does not.
func (w *cronWorld) stamp(metadata *metav1.ObjectMeta) {
	w.version++
	metadata.ResourceVersion = fmt.Sprint(1_000_000 + w.version)
}

func (w *cronWorld) fails(verb string) error {
	if w.failures[verb] > 0 {
		w.failures[verb]--
		return apierrors.NewInternalError(fmt.Errorf("as the case says"))
	}
	return nil
}

func (w *cronWorld) createJob(action clienttesting.Action) (bool, k8sruntime.Object, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err := w.fails("create"); err != nil {
		return true, nil, err
	}
	made := action.(clienttesting.CreateAction).GetObject().(*batchv1.Job).DeepCopy()
	made.Namespace = action.GetNamespace()
	made.UID = types.UID("uid-" + made.Name)
	made.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	w.stamp(&made.ObjectMeta)
	if err := w.tracker.Create(jobsResource, made, made.Namespace); err != nil {
		return true, nil, err
	}
	moment := w.now()
	moment.Created = append(moment.Created, createdJob{
		Name: made.Name, Labels: made.Labels, Annotations: made.Annotations, Owner: string(made.OwnerReferences[0].UID),
	})
	if n := len(w.q.Behaviours); n > 0 {
		behaviour := w.q.Behaviours[w.made%n]
		w.made++
		w.after(made, behaviour.StartMs, func(job *batchv1.Job) {
			job.Status.StartTime = ptr.To(metav1.NewTime(time.Now().Truncate(time.Second)))
			job.Status.Active = 1
		})
		if behaviour.EndMs > 0 {
			w.after(made, behaviour.EndMs, func(job *batchv1.Job) { finishJob(job, behaviour.Fails) })
		}
	}
	return true, made.DeepCopy(), nil
}

func finishJob(job *batchv1.Job, fails bool) {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	condition := batchv1.JobCondition{Type: batchv1.JobComplete, Status: v1.ConditionTrue, LastTransitionTime: now}
	if fails {
		condition.Type = batchv1.JobFailed
	} else {
		job.Status.CompletionTime = &now
	}
	job.Status.Active = 0
	job.Status.Conditions = append(job.Status.Conditions, condition)
}

func (w *cronWorld) after(made *batchv1.Job, ms int64, change func(*batchv1.Job)) {
	namespace, name, uid := made.Namespace, made.Name, made.UID
	time.AfterFunc(time.Duration(ms)*time.Millisecond, func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if w.ctx.Err() != nil {
			return
		}
		found, err := w.tracker.Get(jobsResource, namespace, name)
		if err != nil {
			return
		}
		now := found.(*batchv1.Job).DeepCopy()
		if now.UID != uid {
			return
		}
		change(now)
		w.stamp(&now.ObjectMeta)
		_ = w.tracker.Update(jobsResource, now, namespace)
	})
}

func (w *cronWorld) deleteJob(action clienttesting.Action) (bool, k8sruntime.Object, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	name := action.(clienttesting.DeleteAction).GetName()
	if err := w.fails("delete"); err != nil {
		return true, nil, err
	}
	if err := w.tracker.Delete(jobsResource, action.GetNamespace(), name); err != nil {
		return true, nil, err
	}
	moment := w.now()
	moment.Deleted = append(moment.Deleted, name)
	return true, nil, nil
}

func (w *cronWorld) updateCronJob(action clienttesting.Action) (bool, k8sruntime.Object, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err := w.fails("updateStatus"); err != nil {
		return true, nil, err
	}
	text, err := json.Marshal(action.(clienttesting.UpdateAction).GetObject())
	if err != nil {
		return true, nil, err
	}
	updated := &batchv1.CronJob{}
	if err := json.Unmarshal(text, updated); err != nil {
		return true, nil, err
	}
	stored, err := w.tracker.Get(cronJobsResource, updated.Namespace, updated.Name)
	if err != nil {
		return true, nil, err
	}
	if stored.(*batchv1.CronJob).ResourceVersion != updated.ResourceVersion {
		return true, nil, apierrors.NewConflict(cronJobsResource.GroupResource(), updated.Name, fmt.Errorf("modified"))
	}
	if equality.Semantic.DeepEqual(stored.(*batchv1.CronJob).Status, updated.Status) {
		// As with kube-apiserver, nothing is written and nobody is told.
		return true, stored.DeepCopyObject(), nil
	}
	written := cronStatus{Active: []string{}}
	for _, reference := range updated.Status.Active {
		written.Active = append(written.Active, strings.Join([]string{reference.Kind, reference.APIVersion, reference.Name}, " "))
	}
	if at := updated.Status.LastScheduleTime; at != nil {
		written.LastSchedule = at.UTC().Format(time.RFC3339)
	}
	if at := updated.Status.LastSuccessfulTime; at != nil {
		written.LastSuccessful = at.UTC().Format(time.RFC3339)
	}
	moment := w.now()
	moment.Statuses = append(moment.Statuses, written)
	w.stamp(&updated.ObjectMeta)
	err = w.tracker.Update(cronJobsResource, updated.DeepCopy(), updated.Namespace)
	return true, updated, err
}

func (w *cronWorld) happen(event cronEvent) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	namespace := w.q.CronJob.Namespace
	switch event.Do {
	case "fail":
		w.failures[event.Verb]++
		return nil
	case "deleteJob":
		if _, err := w.tracker.Get(jobsResource, namespace, event.Job); err != nil {
			return nil
		}
		return w.tracker.Delete(jobsResource, namespace, event.Job)
	}
	found, err := w.tracker.Get(cronJobsResource, namespace, w.q.CronJob.Name)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	if event.Do == "deleteCronJob" {
		return w.tracker.Delete(cronJobsResource, namespace, w.q.CronJob.Name)
	}
	changed := found.(*batchv1.CronJob).DeepCopy()
	if err := json.Unmarshal(event.Spec, &changed.Spec); err != nil {
		return err
	}
	changed.Generation++
	w.stamp(&changed.ObjectMeta)
	return w.tracker.Update(cronJobsResource, changed, namespace)
}
