package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

const drawsBetweenEqualCandidates = 300

type rejection struct {
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
	Code    string   `json:"code"`
}

type decision struct {
	ID                string                      `json:"id"`
	Feasible          []string                    `json:"feasible"`
	Rejected          map[string]rejection        `json:"rejected"`
	PreFilter         map[string]any              `json:"prefilter,omitempty"`
	Scores            map[string]map[string]int64 `json:"scores,omitempty"`
	Totals            map[string]int64            `json:"totals,omitempty"`
	Best              []string                    `json:"best,omitempty"`
	NominatedNodeFits *bool                       `json:"nominatedNodeFits,omitempty"`
	Selectable        []string                    `json:"selectable,omitempty"`
	Message           string                      `json:"message,omitempty"`
	FullMessage       string                      `json:"fullMessage,omitempty"`
	Preemption        *making                     `json:"preemption,omitempty"`
	Error             string                      `json:"error,omitempty"`
}

// making is what preemption has to say: where it would make room, and at whose cost.
type making struct {
	Eligible          bool                 `json:"eligible"`
	Reason            string               `json:"reason,omitempty"`
	PotentialNodes    []string             `json:"potentialNodes"`
	Candidates        map[string]candidate `json:"candidates"`
	NotCandidates     map[string]rejection `json:"notCandidates"`
	Chosen            *string              `json:"chosen"`
	ChosenAnyOf       []string             `json:"chosenAnyOf,omitempty"`
	DecidedBy         string               `json:"decidedBy,omitempty"`
	PostFilterStatus  string               `json:"postFilterStatus"`
	PostFilterMessage string               `json:"postFilterMessage"`
}

type candidate struct {
	Victims       []string `json:"victims"`
	PDBViolations int64    `json:"pdbViolations"`
}

// answerScheduler answers a single decision, or a sequence of them where pods are "pending".
func answerScheduler(data json.RawMessage) (any, error) {
	asked := &question{}
	if err := json.Unmarshal(data, asked); err != nil {
		return nil, err
	}
	if asked.Pod == nil {
		return answerSequence(asked, data)
	}
	if asked.isAboutVolumes() {
		return answerRepeatedly(data)
	}
	return answerDecision(asked)
}

// answerRepeatedly leaves a decision out that depends on which of several equal volumes was met first.
func answerRepeatedly(data json.RawMessage) (any, error) {
	answers, err := distinct(repetitionsOfVolumes, func() (any, error) {
		asked := &question{}
		if err := json.Unmarshal(data, asked); err != nil {
			return nil, err
		}
		return answerDecision(asked)
	})
	if err != nil {
		return nil, err
	}
	if len(answers) > 1 {
		return nil, ambiguous{len(answers)}
	}
	return answers[0], nil
}

func answerDecision(asked *question) (any, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	given, err := configurationOfProfile(asked.Profile)
	if err != nil {
		return nil, err
	}
	s, err := stillScheduler(ctx, asked, given)
	if err != nil {
		return nil, err
	}
	if err := s.await(asked.Pod); err != nil {
		return nil, err
	}
	return s.decide(asked, given)
}

// decide asks the plugins about every node. That is findNodesThatFitPod without its end when enough are found.
func (s *still) decide(asked *question, given *config.KubeSchedulerConfiguration) (*decision, error) {
	pod := asked.Pod
	snapshot, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	found := &decision{ID: asked.ID, Feasible: []string{}, Rejected: map[string]rejection{}}
	state := framework.NewCycleState()
	s.state = state
	result, status, plugins := s.first.RunPreFilterPlugins(s.ctx, state, pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return found, s.broken(found, pod)
	}
	var feasible []fwk.NodeInfo
	nominated := pod.Status.NominatedNodeName
	if !status.IsSuccess() {
		found.PreFilter = map[string]any{
			"rejectedAll": true, "plugin": status.Plugin(), "reason": status.Message(), "code": status.Code().String(),
		}
		for _, node := range nodes {
			found.Rejected[node.Node().Name] = rejectionOf(status)
		}
	} else {
		statuses := map[string]*fwk.Status{}
		for _, node := range nodes {
			statuses[node.Node().Name] = s.first.RunFilterPluginsWithNominatedPods(s.ctx, state, pod, node)
		}
		own := statuses[nominated]
		if _, err := snapshot.NodeInfos().Get(nominated); err == nil {
			fits := own.IsSuccess()
			found.NominatedNodeFits = &fits
		}
		if !result.AllNodes() {
			found.PreFilter = map[string]any{
				"rejectedAll": false, "narrowedTo": sets.List(result.NodeNames), "narrowedBy": sets.List(plugins),
			}
			if found.NominatedNodeFits != nil && !*found.NominatedNodeFits {
				// The pod's own node is tried before, and whoever rejects it joins the plugins that are named.
				plugins = plugins.Clone().Insert(own.Plugin())
			}
		}
		for _, node := range nodes {
			name := node.Node().Name
			status := statuses[name]
			tried := found.NominatedNodeFits != nil && name == nominated
			if !result.AllNodes() && !result.NodeNames.Has(name) && !tried {
				status = fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
					fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(plugins)))
			}
			if status.IsSuccess() {
				feasible = append(feasible, node)
				found.Feasible = append(found.Feasible, name)
			} else if !status.IsRejected() {
				found.Feasible, found.Rejected = []string{}, map[string]rejection{}
				return found, s.broken(found, pod)
			} else {
				found.Rejected[name] = rejectionOf(status)
			}
		}
	}
	slices.Sort(found.Feasible)
	if len(feasible) > 0 {
		return found, s.score(found, state, pod, feasible)
	}
	return found, s.fail(found, pod, given)
}

// score fills in what the score plugins give each feasible node.
func (s *still) score(found *decision, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo) error {
	if status := s.first.RunPreScorePlugins(s.ctx, state, pod, feasible); !status.IsSuccess() {
		return status.AsError()
	}
	scored, status := s.first.RunScorePlugins(s.ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return status.AsError()
	}
	found.Scores, found.Totals = map[string]map[string]int64{}, map[string]int64{}
	highest := scored[0].TotalScore
	for _, node := range scored {
		plugins := map[string]int64{}
		for _, one := range node.Scores {
			if one.Name == dynamicresources.Name && one.Score == 0 {
				continue // of all pods without claims
			}
			if one.Name != "VolumeBinding" {
				plugins[one.Name] = one.Score
			}
		}
		found.Scores[node.Name], found.Totals[node.Name] = plugins, node.TotalScore
		highest = max(highest, node.TotalScore)
	}
	for name, total := range found.Totals {
		if total == highest {
			found.Best = append(found.Best, name)
		}
	}
	slices.Sort(found.Best)
	if found.NominatedNodeFits != nil {
		found.Selectable = found.Best
		if *found.NominatedNodeFits {
			found.Selectable = []string{pod.Status.NominatedNodeName}
		}
	}
	return nil
}

// broken asks the scheduler itself for the error with which a plugin ends the attempt.
func (s *still) broken(found *decision, pod *v1.Pod) error {
	queued, err := s.queued(pod)
	if err != nil {
		return err
	}
	_, err = s.scheduler.SchedulePod(s.ctx, s.first, framework.NewCycleState(), queued)
	unfit := &framework.FitError{}
	if err == nil || errors.As(err, &unfit) {
		return fmt.Errorf("a plugin fails, but the scheduler says: %v", err)
	}
	found.Error = err.Error()
	return nil
}

// fail asks the scheduler itself for its message, and preemption for what it would do.
func (s *still) fail(found *decision, pod *v1.Pod, given *config.KubeSchedulerConfiguration) error {
	state := framework.NewCycleState()
	queued, err := s.queued(pod)
	if err != nil {
		return err
	}
	_, err = s.scheduler.SchedulePod(s.ctx, s.first, state, queued)
	unfit := &framework.FitError{}
	if !errors.As(err, &unfit) {
		return fmt.Errorf("no node passes the filters one by one, but the scheduler says: %v", err)
	}
	found.Message = unfit.Error()
	if !s.first.HasPostFilterPlugins() {
		return nil
	}
	apart := state
	if s.hasDevices {
		// What Filter says of further nodes in the dry run would be news for PostFilter.
		apart = framework.NewCycleState()
		if _, err = s.scheduler.SchedulePod(s.ctx, s.first, apart, queued); !errors.As(err, &unfit) {
			return fmt.Errorf("the scheduler fails once, and then says: %v", err)
		}
	}
	if found.Preemption, err = s.preempt(apart, pod, given, unfit); err != nil {
		return err
	}
	_, status := s.first.RunPostFilterPlugins(s.ctx, state, pod, unfit.Diagnosis.NodeToStatus)
	found.Preemption.PostFilterStatus = status.Code().String()
	found.Preemption.PostFilterMessage = status.Message()
	unfit.Diagnosis.PostFilterMsg = status.Message()
	found.FullMessage = unfit.Error()
	return nil
}

// preempt dry-runs preemption on every potential node, which PostFilter does only until it has enough candidates.
func (s *still) preempt(
	state fwk.CycleState, pod *v1.Pod, given *config.KubeSchedulerConfiguration, unfit *framework.FitError,
) (*making, error) {
	arguments := &config.DefaultPreemptionArgs{}
	for _, one := range given.Profiles[0].PluginConfig {
		if one.Name == defaultpreemption.Name {
			arguments = one.Args.(*config.DefaultPreemptionArgs)
		}
	}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	plugin, err := defaultpreemption.New(s.ctx, arguments, s.first, features)
	if err != nil {
		return nil, err
	}
	found := &making{PotentialNodes: []string{}, Candidates: map[string]candidate{}}
	statuses := unfit.Diagnosis.NodeToStatus
	eligible, reason := plugin.PodEligibleToPreemptOthers(s.ctx, pod, statuses.Get(pod.Status.NominatedNodeName))
	found.Eligible, found.Reason = eligible, reason
	if !eligible {
		return found, nil
	}
	potential, err := statuses.NodesForStatusCode(s.first.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	if err != nil || len(potential) == 0 {
		return found, err
	}
	for _, node := range potential {
		found.PotentialNodes = append(found.PotentialNodes, node.Node().Name)
	}
	slices.Sort(found.PotentialNodes)
	budgets, err := s.factory.Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
	if err != nil {
		return nil, err
	}
	evaluator := plugin.Evaluator
	candidates, without, err := evaluator.DryRunPreemption(
		s.ctx, state, pod, potential, budgets, 0, int32(len(potential))+1)
	if err != nil {
		return nil, err
	}
	found.NotCandidates = map[string]rejection{}
	without.ForEachExplicitNode(func(name string, status *fwk.Status) {
		found.NotCandidates[name] = rejectionOf(status)
	})
	for _, one := range candidates {
		victims := candidate{Victims: []string{}, PDBViolations: one.Victims().NumPDBViolations}
		for _, victim := range one.Victims().Pods {
			victims.Victims = append(victims.Victims, victim.Name)
		}
		found.Candidates[one.Name()] = victims
	}
	found.DecidedBy = decidedBy(candidates)
	found.ChosenAnyOf = s.draws(evaluator, candidates)
	if len(found.ChosenAnyOf) == 1 {
		found.Chosen = &found.ChosenAnyOf[0]
	}
	return found, nil
}

// criteria are those of pickOneNodeForPreemption, in its order; the lowest value wins.
var criteria = []struct {
	name  string
	value func(victims *extenderv1.Victims) int64
}{
	{"pdbViolations", func(victims *extenderv1.Victims) int64 { return victims.NumPDBViolations }},
	{"highestPriority", func(victims *extenderv1.Victims) int64 { return int64(corev1helpers.PodPriority(victims.Pods[0])) }},
	{"sumPriorities", func(victims *extenderv1.Victims) (sum int64) {
		for _, pod := range victims.Pods {
			sum += int64(corev1helpers.PodPriority(pod)) + int64(math.MaxInt32+1)
		}
		return sum
	}},
	{"numVictims", func(victims *extenderv1.Victims) int64 { return int64(len(victims.Pods)) }},
	{"latestStart", func(victims *extenderv1.Victims) int64 { return -util.GetEarliestPodStartTime(victims).UnixNano() }},
}

// decidedBy names the criterion by which one candidate was left.
func decidedBy(candidates []preemption.Candidate) string {
	if len(candidates) < 2 {
		return [...]string{"", "onlyCandidate"}[len(candidates)]
	}
	left := candidates
	for _, criterion := range criteria {
		lowest := int64(math.MaxInt64)
		for _, one := range left {
			lowest = min(lowest, criterion.value(one.Victims()))
		}
		left = slices.DeleteFunc(slices.Clone(left), func(one preemption.Candidate) bool {
			return criterion.value(one.Victims()) != lowest
		})
		if len(left) == 1 {
			return criterion.name
		}
	}
	return "tie"
}

// draws lets the scheduler choose again and again: the order of a map decides between equal candidates.
func (s *still) draws(evaluator *preemption.Evaluator, candidates []preemption.Candidate) []string {
	chosen := sets.New[string]()
	for range drawsBetweenEqualCandidates {
		if best := evaluator.SelectCandidate(s.ctx, candidates); best != nil {
			chosen.Insert(best.Name())
		}
	}
	return sets.List(chosen)
}

func (s *still) queued(pod *v1.Pod) (*framework.QueuedPodInfo, error) {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, err
	}
	profile := s.first
	if named, ok := s.scheduler.Profiles[pod.Spec.SchedulerName]; ok {
		profile = named
	}
	return &framework.QueuedPodInfo{PodInfo: info, PodSignature: profile.SignPod(s.ctx, pod)}, nil
}

func rejectionOf(status *fwk.Status) rejection {
	reasons := slices.Clone(status.Reasons())
	slices.Sort(reasons)
	return rejection{Plugin: status.Plugin(), Reasons: reasons, Code: status.Code().String()}
}
