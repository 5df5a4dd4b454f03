package main

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// claimant is a pod for which the plugin VolumeBinding binds volumes from that second on. It goes to the first of its
// nodes that passes.
type claimant struct {
	AtS   float64  `json:"atS"`
	Pod   *v1.Pod  `json:"pod"`
	Nodes []string `json:"nodes"`
}

type boundOutcome struct {
	Pods    []*boundPod    `json:"pods"`
	Volumes map[string]any `json:"volumes"`
	Claims  map[string]any `json:"claims"`
}

type boundPod struct {
	Pod       string                 `json:"pod"`
	PreFilter *answered              `json:"preFilter,omitempty"`
	Nodes     map[string]*nodeAnswer `json:"nodes,omitempty"`
	Node      string                 `json:"node,omitempty"`
	Reserve   *answered              `json:"reserve,omitempty"`
	AllBound  bool                   `json:"allBound,omitempty"`
	PreBind   *answered              `json:"preBind,omitempty"`
	EndedAtS  float64                `json:"endedAtS,omitempty"`
}

// answered is a status other than success.
type answered struct {
	Code    string   `json:"code"`
	Reasons []string `json:"reasons,omitempty"`
}

// nodeAnswer is a status, or what the plugin would bind and have provisioned on the node.
type nodeAnswer struct {
	*answered
	Static    map[string]string `json:"static,omitempty"`
	Provision []string          `json:"provision,omitempty"`
}

func answeredBy(status *fwk.Status) *answered {
	if status.IsSuccess() {
		return nil
	}
	return &answered{status.Code().String(), status.Reasons()}
}

// playBinding asks the plugin VolumeBinding in the order of a scheduling and binding cycle for each pod.
func playBinding(parent context.Context, asked *storageCase) (any, error) {
	ctx, cancel := context.WithCancel(parent)
	w, err := newStorageWorld(asked)
	if err != nil {
		cancel()
		return nil, err
	}
	defer func() {
		cancel()
		w.factory.Shutdown()
		time.Sleep(untilAllEnded)
	}()
	handle, err := frameworkruntime.NewFramework(ctx, nil, nil,
		frameworkruntime.WithClientSet(w.client), frameworkruntime.WithInformerFactory(w.factory))
	if err != nil {
		return nil, err
	}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	made, err := volumebinding.New(ctx, &config.VolumeBindingArgs{BindTimeoutSeconds: asked.BindTimeoutSeconds}, handle, features)
	if err != nil {
		return nil, err
	}
	plugin := made.(*volumebinding.VolumeBinding)
	w.factory.Start(ctx.Done())
	w.factory.WaitForCacheSync(ctx.Done())
	time.Sleep(untilSynced)
	w.start = time.Now()
	outcome := &boundOutcome{}
	for _, one := range asked.Pending {
		pod := &boundPod{Pod: one.Pod.Name}
		outcome.Pods = append(outcome.Pods, pod)
		time.AfterFunc(seconds(formatted(one.AtS)), func() { w.place(ctx, plugin, one, pod) })
	}
	err = w.run(func(float64) error { return nil })
	if err != nil {
		return nil, err
	}
	if outcome.Volumes, err = w.volumesNow(ctx); err != nil {
		return nil, err
	}
	outcome.Claims, err = w.claimsNow(ctx)
	return outcome, err
}

// place is a scheduling cycle and a binding cycle of one pod, as far as the plugin takes part in it.
func (w *storageWorld) place(ctx context.Context, plugin *volumebinding.VolumeBinding, one claimant, found *boundPod) {
	pod := one.Pod.DeepCopy()
	state := framework.NewCycleState()
	_, status := plugin.PreFilter(ctx, state, pod, nil)
	if found.PreFilter = answeredBy(status); found.PreFilter != nil {
		return
	}
	found.Nodes = map[string]*nodeAnswer{}
	nodes, err := w.factory.Core().V1().Nodes().Lister().List(everything)
	must(err)
	for _, node := range nodes {
		info := framework.NewNodeInfo()
		info.SetNode(node)
		status := plugin.Filter(ctx, state, pod, info)
		answer := &nodeAnswer{answered: answeredBy(status)}
		if answer.answered == nil {
			answer.Static, answer.Provision = plannedOn(state, node.Name)
		}
		found.Nodes[node.Name] = answer
	}
	for _, name := range one.Nodes {
		if answer := found.Nodes[name]; answer != nil && answer.answered == nil {
			found.Node = name
			break
		}
	}
	if found.Node == "" {
		return
	}
	pod.Spec.NodeName = found.Node
	status = plugin.Reserve(ctx, state, pod, found.Node)
	if found.Reserve = answeredBy(status); found.Reserve != nil {
		plugin.Unreserve(ctx, state, pod, found.Node)
		return
	}
	kept, err := state.Read(fwk.StateKey(volumebinding.Name))
	must(err)
	found.AllBound = privateField(kept, "allBound").Bool()
	if _, status = plugin.PreBindPreFlight(ctx, state, pod, found.Node); status.Code() == fwk.Skip {
		return
	}
	go func() {
		status := plugin.PreBind(ctx, state, pod, found.Node)
		if ctx.Err() != nil {
			return
		}
		found.PreBind, found.EndedAtS = answeredBy(status), rounded(time.Since(w.start))
		if found.PreBind != nil {
			plugin.Unreserve(ctx, state, pod, found.Node)
		}
	}()
}

// plannedOn reads what Filter found for a node.
func plannedOn(state fwk.CycleState, node string) (map[string]string, []string) {
	kept, err := state.Read(fwk.StateKey(volumebinding.Name))
	must(err)
	static := map[string]string{}
	var provisions []string
	byNode := privateField(kept, "podVolumesByNode")
	for _, key := range byNode.MapKeys() {
		if key.String() != node {
			continue
		}
		volumes := byNode.MapIndex(key)
		bindings := volumes.Elem().FieldByName("StaticBindings")
		for place := range bindings.Len() {
			binding := bindings.Index(place).Elem()
			static[binding.FieldByName("pvc").Elem().FieldByName("Name").String()] =
				binding.FieldByName("pv").Elem().FieldByName("Name").String()
		}
		dynamic := volumes.Elem().FieldByName("DynamicProvisions")
		for place := range dynamic.Len() {
			provisions = append(provisions, dynamic.Index(place).Elem().FieldByName("PVC").Elem().FieldByName("Name").String())
		}
	}
	slices.Sort(provisions)
	return static, provisions
}
