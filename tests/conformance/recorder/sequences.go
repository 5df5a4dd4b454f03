package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const repetitionsOfSequences = 16

// sequence is what one scheduler decides about pods in turn: where the search starts depends on those before.
type sequence struct {
	ID        string `json:"id"`
	Decisions []turn `json:"decisions"`
}

type turn struct {
	Pod       string `json:"pod"`
	Node      string `json:"node,omitempty"`
	Evaluated int    `json:"evaluated"`
	Feasible  int    `json:"feasible"`
	Message   string `json:"message,omitempty"`
}

// answerSequence asks several times: what depends on the order of a map or on chance is no record.
func answerSequence(asked *question, data json.RawMessage) (any, error) {
	if len(asked.Pending) == 0 {
		return nil, errors.New(`neither "pod" nor "pending" in the case`)
	}
	first, err := playSequence(asked)
	if err != nil {
		return nil, err
	}
	for range repetitionsOfSequences - 1 {
		again := &question{}
		if err := json.Unmarshal(data, again); err != nil {
			return nil, err
		}
		if other, err := playSequence(again); err != nil {
			return nil, err
		} else if !reflect.DeepEqual(first, other) {
			return nil, ambiguous{2}
		}
	}
	return first, nil
}

// playSequence decides for each pod, and assumes those that find a node.
func playSequence(asked *question) (*sequence, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	given, err := configurationOf(asked.Configuration)
	if err != nil {
		return nil, err
	}
	s, err := stillScheduler(ctx, asked, given)
	if err != nil {
		return nil, err
	}
	for _, pod := range asked.Pending {
		if err := s.await(pod); err != nil {
			return nil, err
		}
		if asked.Popped && pod.Status.NominatedNodeName == "" {
			s.scheduler.SchedulingQueue.Add(s.ctx, pod)
		}
	}
	played := &sequence{ID: asked.ID}
	for _, pod := range asked.Pending {
		profile, ok := s.scheduler.Profiles[pod.Spec.SchedulerName]
		if !ok {
			return nil, fmt.Errorf("no profile is named %q", pod.Spec.SchedulerName)
		}
		if _, err := s.snapshot(); err != nil {
			return nil, err
		}
		queued, err := s.next(pod, asked.Popped)
		if err != nil {
			return nil, err
		}
		result, err := s.scheduler.SchedulePod(s.ctx, profile, framework.NewCycleState(), queued)
		one := turn{Pod: pod.Name, Node: result.SuggestedHost, Evaluated: result.EvaluatedNodes, Feasible: result.FeasibleNodes}
		unfit := &framework.FitError{}
		if errors.As(err, &unfit) {
			one.Message = unfit.Error()
			queued.UnschedulablePlugins = unfit.Diagnosis.UnschedulablePlugins
		} else if errors.Is(err, scheduler.ErrNoNodesAvailable) {
			one.Message = err.Error()
		} else if err != nil {
			return nil, err
		}
		played.Decisions = append(played.Decisions, one)
		if one.Node == "" {
			if asked.Popped {
				// Back in the queue: of a nominated pod that is nowhere, only the name would count.
				cycle := s.scheduler.SchedulingQueue.SchedulingCycle()
				if err := s.scheduler.SchedulingQueue.AddUnschedulableIfNotPresent(s.logger, queued, cycle); err != nil {
					return nil, err
				}
			}
			continue
		}
		s.scheduler.SchedulingQueue.Done(pod.UID)
		s.scheduler.SchedulingQueue.Delete(pod)
		placed := pod.DeepCopy()
		placed.Spec.NodeName = one.Node
		if err := s.scheduler.Cache.AssumePod(s.logger, placed); err != nil {
			return nil, err
		}
	}
	return played, nil
}

// next is the pod as the queue hands it out. Only a pod that was popped begins a scheduling cycle of its own, without
// which no results are reused (OpportunisticBatching).
func (s *still) next(pod *v1.Pod, popped bool) (*framework.QueuedPodInfo, error) {
	if !popped {
		return s.queued(pod)
	}
	queued, err := s.scheduler.SchedulingQueue.Pop(s.logger)
	if err != nil {
		return nil, err
	}
	if queued.Pod.Name != pod.Name {
		return nil, fmt.Errorf("the queue hands out %s before %s", queued.Pod.Name, pod.Name)
	}
	return queued, nil
}
