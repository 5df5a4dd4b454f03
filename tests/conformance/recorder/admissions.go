package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	clientevents "k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/preemption"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type admissionQuestion struct {
	Mode        string
	Node        *v1.Node
	FreshNode   *v1.Node
	Pods        []*v1.Pod
	Pod         *v1.Pod
	NodeError   string
	PluginError string
	Reasons     []admissionReason
	KillErrors  []string
}

// admissionReason is why a pod is refused: a lack of a resource, or the name of a predicate.
type admissionReason struct {
	Resource  v1.ResourceName `json:"resource,omitempty"`
	Requested *int64          `json:"requested,omitempty"`
	Used      *int64          `json:"used,omitempty"`
	Capacity  *int64          `json:"capacity,omitempty"`
	Predicate string          `json:"predicate,omitempty"`
	Desc      string          `json:"desc,omitempty"`
}

func reasonsOf(given []lifecycle.PredicateFailureReason) []admissionReason {
	found := []admissionReason{}
	for _, reason := range given {
		switch one := reason.(type) {
		case *lifecycle.InsufficientResourceError:
			found = append(found, admissionReason{
				Resource: one.ResourceName, Requested: &one.Requested, Used: &one.Used, Capacity: &one.Capacity})
		case *lifecycle.PredicateFailureError:
			found = append(found, admissionReason{Predicate: one.PredicateName, Desc: one.PredicateDesc})
		}
	}
	return found
}

func (r *admissionReason) failure() lifecycle.PredicateFailureReason {
	if r.Resource == "" {
		return &lifecycle.PredicateFailureError{PredicateName: r.Predicate, PredicateDesc: r.Desc}
	}
	amount := func(given *int64) int64 {
		if given == nil {
			return 0
		}
		return *given
	}
	return &lifecycle.InsufficientResourceError{
		ResourceName: r.Resource, Requested: amount(r.Requested), Used: amount(r.Used), Capacity: amount(r.Capacity)}
}

// admissionAnswer is what the predicates said, or what the handler of critical pods alone made of given reasons.
type admissionAnswer struct {
	Admit            *bool             `json:"admit,omitempty"`
	Reason           string            `json:"reason"`
	Message          string            `json:"message"`
	FailureReasons   []admissionReason `json:"failureReasons"`
	RemainingReasons []admissionReason `json:"remainingReasons,omitempty"`
	Error            string            `json:"error,omitempty"`
	Preempted        []kill            `json:"preempted"`
}

// kill is a call of the function with which the kubelet kills a pod.
type kill struct {
	Pod                 string        `json:"pod"`
	IsEvicted           bool          `json:"isEvicted"`
	GracePeriodOverride *int64        `json:"gracePeriodOverride"`
	Phase               v1.PodPhase   `json:"phase"`
	Reason              string        `json:"reason"`
	Message             string        `json:"message"`
	Condition           *podCondition `json:"condition,omitempty"`
}

type podCondition struct {
	Type               v1.PodConditionType `json:"type"`
	Status             v1.ConditionStatus  `json:"status"`
	Reason             string              `json:"reason"`
	Message            string              `json:"message"`
	ObservedGeneration int64               `json:"observedGeneration,omitempty"`
}

func killOf(pod *v1.Pod, isEvicted bool, gracePeriod *int64, change func(*v1.PodStatus)) kill {
	status := pod.Status.DeepCopy()
	change(status)
	killed := kill{
		Pod: pod.Name, IsEvicted: isEvicted, Phase: status.Phase, Reason: status.Reason, Message: status.Message}
	if gracePeriod != nil {
		override := *gracePeriod
		killed.GracePeriodOverride = &override
	}
	for _, one := range status.Conditions {
		if one.Type == v1.DisruptionTarget {
			killed.Condition = &podCondition{
				Type: one.Type, Status: one.Status, Reason: one.Reason, Message: one.Message,
				ObservedGeneration: one.ObservedGeneration}
		}
	}
	return killed
}

// noted hands the reasons on to the real handler and keeps what was handed over.
type noted struct {
	lifecycle.AdmissionFailureHandler
	reasons []admissionReason
}

func (n *noted) HandleAdmissionFailure(
	ctx context.Context, pod *v1.Pod, reasons []lifecycle.PredicateFailureReason,
) ([]lifecycle.PredicateFailureReason, error) {
	n.reasons = reasonsOf(reasons)
	return n.AdmissionFailureHandler.HandleAdmissionFailure(ctx, pod, reasons)
}

// answerAdmission asks the predicates, with the handler of critical pods behind them, or that handler alone.
func answerAdmission(data json.RawMessage) (any, error) {
	outcomes, err := distinct(drawsOfMaps, func() (any, error) {
		// The real code changes labels of the node it is given.
		asked := &admissionQuestion{}
		if err := json.Unmarshal(data, asked); err != nil {
			return nil, err
		}
		return asked.ask(), nil
	})
	return map[string]any{"outcomes": outcomes}, err
}

func (q *admissionQuestion) ask() *admissionAnswer {
	answer := &admissionAnswer{Preempted: []kill{}, FailureReasons: []admissionReason{}}
	killPod := func(pod *v1.Pod, isEvicted bool, gracePeriod *int64, change func(*v1.PodStatus)) error {
		answer.Preempted = append(answer.Preempted, killOf(pod, isEvicted, gracePeriod, change))
		if slices.Contains(q.KillErrors, pod.Name) {
			return errors.New("the pod cannot be killed")
		}
		return nil
	}
	pods := func() []*v1.Pod { return slices.Clone(q.Pods) }
	handler := preemption.NewCriticalPodAdmissionHandler(pods, killPod, &clientevents.FakeRecorder{})
	if q.Mode == "direct" {
		var reasons []lifecycle.PredicateFailureReason
		for i := range q.Reasons {
			reasons = append(reasons, q.Reasons[i].failure())
		}
		answer.FailureReasons = q.Reasons
		remaining, err := handler.HandleAdmissionFailure(context.Background(), q.Pod, reasons)
		answer.RemainingReasons = reasonsOf(remaining)
		if err != nil {
			answer.Error = err.Error()
		}
		return answer
	}
	node := func(_ context.Context, useCache bool) (*v1.Node, error) {
		if q.NodeError != "" {
			return nil, errors.New(q.NodeError)
		}
		if useCache {
			return q.Node, nil
		}
		return q.FreshNode, nil
	}
	plugins := func(*framework.NodeInfo, *lifecycle.PodAdmitAttributes) error {
		if q.PluginError != "" {
			return errors.New(q.PluginError)
		}
		return nil
	}
	if q.FreshNode == nil {
		q.FreshNode = q.Node.DeepCopy()
	}
	between := &noted{AdmissionFailureHandler: handler, reasons: []admissionReason{}}
	result := lifecycle.NewPredicateAdmitHandler(node, between, plugins).Admit(
		&lifecycle.PodAdmitAttributes{Pod: q.Pod, OtherPods: pods()})
	answer.Admit, answer.Reason, answer.Message = &result.Admit, result.Reason, result.Message
	answer.FailureReasons = between.reasons
	return answer
}
