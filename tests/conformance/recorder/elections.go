package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// jitterRand is linked, so that the same case is played in the same way again.
//
//go:linkname jitterRand k8s.io/apimachinery/pkg/util/wait.jitterRand
var jitterRand func() float64

type electionQuestion struct {
	LeaseMs, RenewMs, RetryMs int64
	Release                   bool
	LatencyMs, HorizonMs      int64
	Candidates                []electionCandidate
	Faults                    []electionFault
	Edits                     []electionEdit
}

type electionCandidate struct {
	Name    string
	StartMs int64
	StopMs  *int64
}

// electionFault concerns the requests that a candidate begins within a time.
type electionFault struct {
	Who, Verb, Do      string
	FromMs, ToMs, ByMs int64
}

// electionEdit is what somebody else does to the Lease.
type electionEdit struct {
	AtMs            int64
	Do, Holder      string
	DurationSeconds int32
}

type electionEvent struct {
	AtMs int64  `json:"atMs"`
	Who  string `json:"who"`
	What string `json:"what"`
}

type electionCall struct {
	AtMs   int64  `json:"atMs"`
	Who    string `json:"who"`
	Verb   string `json:"verb"`
	Result string `json:"result"`
}

type electionLease struct {
	Holder          string `json:"holder"`
	DurationSeconds int32  `json:"durationSeconds"`
	Transitions     int32  `json:"transitions"`
	AcquiredMs      int64  `json:"acquiredMs"`
	RenewedMs       int64  `json:"renewedMs"`
}

type electionAnswer struct {
	Events []electionEvent `json:"events"`
	Calls  []electionCall  `json:"calls"`
	Lease  *electionLease  `json:"lease"`
}

// election is the world of a case: one Lease, and the candidates for it.
type election struct {
	asked  electionQuestion
	answer *electionAnswer
	start  time.Time
	lock   sync.Mutex
	lease  *coordinationv1.Lease
	// version is the latest resource version.
	version int
}

// repetitionsOfElections show whether two things at the same time come in any order.
const repetitionsOfElections = 12

// answerElections lets several LeaderElectors of client-go run for one Lease, in virtual time.
func answerElections(t *testing.T, data json.RawMessage) (any, error) {
	answers, err := distinct(repetitionsOfElections, func() (any, error) { return playElection(t, data) })
	if err != nil {
		return nil, err
	}
	if len(answers) > 1 {
		return nil, ambiguous{len(answers)}
	}
	return answers[0], nil
}

func playElection(t *testing.T, data json.RawMessage) (any, error) {
	world := &election{answer: &electionAnswer{Events: []electionEvent{}, Calls: []electionCall{}}}
	if err := json.Unmarshal(data, &world.asked); err != nil {
		return nil, err
	}
	err := inBubble(t, world.play)
	slices.SortStableFunc(world.answer.Events, func(one, other electionEvent) int {
		return cmp.Or(cmp.Compare(one.AtMs, other.AtMs), cmp.Compare(one.Who, other.Who), cmp.Compare(one.What, other.What))
	})
	slices.SortStableFunc(world.answer.Calls, func(one, other electionCall) int {
		return cmp.Or(cmp.Compare(one.AtMs, other.AtMs), cmp.Compare(one.Who, other.Who))
	})
	return world.answer, err
}

func (w *election) play(t *testing.T) error {
	w.start = time.Now()
	// Of every period of these cases, this makes whole milliseconds.
	jitterRand = func() float64 { return float64(w.nowMs()*7919%25) / 24 }
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	failed := make(chan error, len(w.asked.Candidates))
	for _, edit := range w.asked.Edits {
		time.AfterFunc(time.Duration(edit.AtMs)*time.Millisecond, func() { w.edit(edit) })
	}
	for _, candidate := range w.asked.Candidates {
		running.Go(func() {
			time.Sleep(time.Duration(candidate.StartMs) * time.Millisecond)
			failed <- w.run(ctx, candidate)
		})
	}
	time.Sleep(time.Duration(w.asked.HorizonMs) * time.Millisecond)
	w.lock.Lock()
	if w.lease != nil {
		spec := w.lease.Spec
		w.answer.Lease = &electionLease{*spec.HolderIdentity, *spec.LeaseDurationSeconds, *spec.LeaseTransitions,
			w.milliseconds(spec.AcquireTime.Time), w.milliseconds(spec.RenewTime.Time)}
	}
	w.start = time.Time{} // What comes now is no part of the case.
	w.lock.Unlock()
	cancel()
	running.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *election) run(ctx context.Context, candidate electionCandidate) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if candidate.StopMs != nil {
		timer := time.AfterFunc(time.Duration(*candidate.StopMs-candidate.StartMs)*time.Millisecond, cancel)
		defer timer.Stop()
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "lease"},
			Client:     &electionClient{world: w, name: candidate.Name},
			LockConfig: resourcelock.ResourceLockConfig{Identity: candidate.Name},
		},
		LeaseDuration: time.Duration(w.asked.LeaseMs) * time.Millisecond,
		// Its timer is set before that of the retries: where both are due, it comes first.
		RenewDeadline:   time.Duration(w.asked.RenewMs)*time.Millisecond - time.Microsecond,
		RetryPeriod:     time.Duration(w.asked.RetryMs) * time.Millisecond,
		ReleaseOnCancel: w.asked.Release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { w.happened(candidate.Name, "leading") },
			OnStoppedLeading: func() { w.happened(candidate.Name, "stopped") },
			OnNewLeader: func(identity string) {
				if identity != "" && identity != candidate.Name {
					w.happened(candidate.Name, "sees "+identity)
				}
			},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}

func (w *election) nowMs() int64 { return w.milliseconds(time.Now()) }

// milliseconds since the start, rounded: what floats of jitter leave of a nanosecond is no difference.
func (w *election) milliseconds(at time.Time) int64 {
	return at.Sub(w.start).Round(time.Millisecond).Milliseconds()
}

func (w *election) happened(who, what string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if !w.start.IsZero() {
		w.answer.Events = append(w.answer.Events, electionEvent{w.nowMs(), who, what})
	}
}

func (w *election) edit(edit electionEdit) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.version++
	if edit.Do == "delete" {
		w.lease = nil
		return
	}
	transitions, now := int32(0), metav1.NewMicroTime(time.Now())
	if w.lease != nil {
		transitions = *w.lease.Spec.LeaseTransitions + 1
	}
	w.lease = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "lease", ResourceVersion: strconv.Itoa(w.version)},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &edit.Holder, LeaseDurationSeconds: &edit.DurationSeconds,
			LeaseTransitions: &transitions, AcquireTime: &now, RenewTime: &now},
	}
}

// electionClient is one candidate's way to the API server, with what goes wrong on it.
type electionClient struct {
	coordinationclient.LeaseInterface
	world *election
	name  string
}

func (c *electionClient) Leases(string) coordinationclient.LeaseInterface { return c }

var leaseResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (c *electionClient) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return c.ask(ctx, "get", func() error {
		if c.world.lease == nil {
			return apierrors.NewNotFound(leaseResource, name)
		}
		return nil
	})
}

func (c *electionClient) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	sent := lease.DeepCopy()
	return c.ask(ctx, "create", func() error {
		if c.world.lease != nil {
			return apierrors.NewAlreadyExists(leaseResource, sent.Name)
		}
		c.world.put(sent)
		return nil
	})
}

func (c *electionClient) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	sent := lease.DeepCopy()
	return c.ask(ctx, "update", func() error {
		if c.world.lease == nil {
			return apierrors.NewNotFound(leaseResource, sent.Name)
		}
		if c.world.lease.ResourceVersion != sent.ResourceVersion {
			return apierrors.NewConflict(leaseResource, sent.Name, errors.New("the object has been modified"))
		}
		c.world.put(sent)
		return nil
	})
}

func (w *election) put(lease *coordinationv1.Lease) {
	w.version++
	lease.ResourceVersion = strconv.Itoa(w.version)
	w.lease = lease
}

type electionReply struct {
	lease *coordinationv1.Lease
	err   error
}

// ask makes a request, as the client of a leader election does: it gives up after half of the renew deadline
// (resourcelock.NewFromKubeconfig). A request that the server has got is carried out, whoever waits for the answer.
func (c *electionClient) ask(ctx context.Context, verb string, carryOut func() error) (*coordinationv1.Lease, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	world, began := c.world, time.Now()
	fault := electionFault{}
	for _, one := range world.asked.Faults {
		at := world.milliseconds(began)
		if one.Who == c.name && (one.Verb == verb || one.Verb == "") && one.FromMs <= at && at < one.ToMs {
			fault = one
			break
		}
	}
	after := time.Duration(world.asked.LatencyMs) * time.Millisecond
	if fault.Do == "slow" {
		after = time.Duration(fault.ByMs) * time.Millisecond
	}
	replies := make(chan electionReply, 1)
	if fault.Do != "hang" {
		time.AfterFunc(after, func() {
			world.lock.Lock()
			defer world.lock.Unlock()
			if fault.Do == "error" {
				replies <- electionReply{err: apierrors.NewInternalError(errors.New("planned"))}
				return
			}
			reply := electionReply{err: carryOut()}
			if reply.err == nil {
				reply.lease = world.lease.DeepCopy()
			}
			if fault.Do != "lost" {
				replies <- reply
			}
		})
	}
	timeout := time.NewTimer(max(time.Second, time.Duration(world.asked.RenewMs)*time.Millisecond/2))
	defer timeout.Stop()
	reply := electionReply{err: context.DeadlineExceeded}
	select {
	case reply = <-replies:
	case <-ctx.Done():
	case <-timeout.C:
	}
	world.called(electionCall{world.milliseconds(began), c.name, verb, resultOf(reply.err)})
	return reply.lease, reply.err
}

func (w *election) called(call electionCall) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if !w.start.IsZero() {
		w.answer.Calls = append(w.answer.Calls, call)
	}
}

func resultOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case apierrors.IsConflict(err):
		return "conflict"
	case apierrors.IsNotFound(err):
		return "not found"
	case apierrors.IsAlreadyExists(err):
		return "exists"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer"
	}
	return "error"
}
