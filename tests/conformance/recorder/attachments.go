package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller/volume/attachdetach"
	"k8s.io/kubernetes/pkg/volume/csi"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
)

const (
	attachingDriver     = "d.example.com"
	attachmentSync      = time.Minute // --attach-detach-reconcile-sync-period
	attacherFinalizer   = "external-attacher/d-example-com"
	uniqueVolumeOfNodes = "kubernetes.io/csi/" + attachingDriver + "^"
)

// attachingCase is a cluster in which volumes are used. Volumes in use by a node are named as PersistentVolumes.
type attachingCase struct {
	HorizonMs   int64
	AttachMs    int64
	DetachMs    int64
	Volumes     []attachedVolume
	Nodes       []attachingEvent
	Pods        []attachingEvent
	Attachments []initialAttachment
	Events      []attachingEvent
}

type attachedVolume struct{ Name, Mode string }

type initialAttachment struct {
	Volume, Node string
	Reported     bool
}

type attachingEvent struct {
	AtMs    int64
	Do      string
	Name    string
	Node    string
	Volumes []string
	Is      bool
}

type attachmentAction struct {
	AtMs   int64  `json:"atMs"`
	Do     string `json:"do"`
	Volume string `json:"volume"`
	Node   string `json:"node"`
}

type attachingOutcome struct {
	Actions []attachmentAction `json:"actions"`
	Events  []string           `json:"events"`
}

func answerAttachments(t *testing.T, data json.RawMessage) (any, error) {
	asked := &attachingCase{}
	if err := json.Unmarshal(data, asked); err != nil {
		return nil, err
	}
	w := &attachingWorld{asked: asked, client: fake.NewClientset(), outcome: &attachingOutcome{[]attachmentAction{}, []string{}}}
	return w.outcome, inBubble(t, func(t *testing.T) error { return w.play(t.Context()) })
}

type attachingWorld struct {
	asked   *attachingCase
	client  *fake.Clientset
	start   time.Time
	mu      sync.Mutex
	outcome *attachingOutcome
}

var attachmentsResource = storagev1.SchemeGroupVersion.WithResource("volumeattachments")

func (w *attachingWorld) play(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	w.client.PrependReactor("*", "volumeattachments", w.react)
	w.client.PrependReactor("create", "events", w.event)
	tracker := w.client.Tracker()
	var all []runtime.Object
	for _, one := range w.asked.Volumes {
		all = append(all, &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: one.Name, UID: types.UID("uid-" + one.Name)},
			Spec: v1.PersistentVolumeSpec{AccessModes: []v1.PersistentVolumeAccessMode{v1.PersistentVolumeAccessMode(one.Mode)},
				PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: attachingDriver, VolumeHandle: one.Name}},
				ClaimRef:               &v1.ObjectReference{Namespace: "default", Name: "c-" + one.Name, UID: types.UID("uid-c-" + one.Name)}}},
			&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c-" + one.Name, Namespace: "default", UID: types.UID("uid-c-" + one.Name),
				Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
				Spec: v1.PersistentVolumeClaimSpec{VolumeName: one.Name}, Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound}})
	}
	for _, one := range w.asked.Nodes {
		node := newAttachingNode(&one)
		for _, attached := range w.asked.Attachments {
			if attached.Node == one.Node && attached.Reported {
				node.Status.VolumesAttached = append(node.Status.VolumesAttached, v1.AttachedVolume{Name: uniqueVolume(attached.Volume)})
			}
		}
		all = append(all, node)
	}
	for _, one := range w.asked.Attachments {
		volume := one.Volume
		all = append(all, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachmentName(volume, one.Node), Finalizers: []string{attacherFinalizer}},
			Spec:   storagev1.VolumeAttachmentSpec{Attacher: attachingDriver, NodeName: one.Node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
			Status: storagev1.VolumeAttachmentStatus{Attached: one.Reported}})
	}
	for _, one := range w.asked.Pods {
		all = append(all, newAttachingPod(&one))
	}
	for _, one := range all {
		if err := tracker.Add(one); err != nil {
			return err
		}
	}
	factory := informers.NewSharedInformerFactory(w.client, 0)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	controller, err := attachdetach.NewAttachDetachController(ctx, w.client, core.Pods(), core.Nodes(), core.PersistentVolumeClaims(),
		core.PersistentVolumes(), storage.CSINodes(), storage.CSIDrivers(), storage.VolumeAttachments(), csi.ProbeVolumePlugins(), nil,
		false, attachmentSync, false, attachdetach.DefaultTimerConfig)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	synctest.Wait()
	w.start = time.Now()
	for _, one := range w.asked.Attachments {
		if !one.Reported {
			go w.attach(attachmentName(one.Volume, one.Node))
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(ctx)
	}()
	defer func() {
		cancel()
		factory.Shutdown()
		<-ended
		// Its operations do not know that it has ended.
		time.Sleep(time.Hour)
	}()
	for _, event := range w.asked.Events {
		w.until(event.AtMs)
		if err := w.happen(&event); err != nil {
			return fmt.Errorf("%s at %d: %w", event.Do, event.AtMs, err)
		}
		synctest.Wait()
	}
	w.until(w.asked.HorizonMs)
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.outcome.Events)
	w.outcome.Events = slices.Compact(w.outcome.Events)
	return nil
}

func (w *attachingWorld) until(atMs int64) {
	time.Sleep(time.Until(w.start.Add(milliseconds(atMs))))
	synctest.Wait()
}

func uniqueVolume(name string) v1.UniqueVolumeName {
	return v1.UniqueVolumeName(uniqueVolumeOfNodes + name)
}

func newAttachingNode(one *attachingEvent) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: one.Node, Annotations: map[string]string{volumeutil.ControllerManagedAttachAnnotation: "true"}}}
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	setInUse(node, one.Volumes)
	return node
}

func setInUse(node *v1.Node, volumes []string) {
	node.Status.VolumesInUse = nil
	for _, one := range volumes {
		node.Status.VolumesInUse = append(node.Status.VolumesInUse, uniqueVolume(one))
	}
}

func newAttachingPod(one *attachingEvent) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: one.Name, Namespace: "default", UID: types.UID("uid-" + one.Name)}, Spec: v1.PodSpec{NodeName: one.Node}}
	for _, volume := range one.Volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: volume, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c-" + volume}}})
	}
	return pod
}

func (w *attachingWorld) act(do string, spec *storagev1.VolumeAttachmentSpec) {
	w.outcome.Actions = append(w.outcome.Actions, attachmentAction{time.Since(w.start).Milliseconds(), do, *spec.Source.PersistentVolumeName, spec.NodeName})
}

// react is the API server with an external-attacher, which takes its time.
func (w *attachingWorld) react(action clienttesting.Action) (bool, runtime.Object, error) {
	tracker := w.client.Tracker()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		given := action.GetObject().(*storagev1.VolumeAttachment).DeepCopy()
		given.Finalizers = []string{attacherFinalizer}
		if err := tracker.Create(attachmentsResource, given, ""); err != nil {
			return true, nil, err
		}
		w.act("attach", &given.Spec)
		go w.attach(given.Name)
		return true, given, nil
	case clienttesting.DeleteActionImpl:
		now, err := tracker.Get(attachmentsResource, "", action.GetName())
		if err != nil {
			return true, nil, err
		}
		leaving := now.(*storagev1.VolumeAttachment).DeepCopy()
		if leaving.DeletionTimestamp == nil {
			at := metav1.Now()
			leaving.DeletionTimestamp = &at
			w.act("detach", &leaving.Spec)
			go func() {
				time.Sleep(milliseconds(w.asked.DetachMs))
				_ = tracker.Delete(attachmentsResource, "", leaving.Name)
			}()
			return true, nil, tracker.Update(attachmentsResource, leaving, "")
		}
		return true, nil, nil
	}
	return false, nil, nil
}

// attach is what the external-attacher does to a new attachment.
func (w *attachingWorld) attach(name string) {
	time.Sleep(milliseconds(w.asked.AttachMs))
	if now, err := w.client.Tracker().Get(attachmentsResource, "", name); err == nil {
		attached := now.(*storagev1.VolumeAttachment).DeepCopy()
		attached.Status.Attached = true
		must(w.client.Tracker().Update(attachmentsResource, attached, ""))
	}
}

func (w *attachingWorld) event(action clienttesting.Action) (bool, runtime.Object, error) {
	one := action.(clienttesting.CreateAction).GetObject().(*v1.Event)
	if strings.Contains(one.Message, "Multi-Attach") {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outcome.Events = append(w.outcome.Events, one.InvolvedObject.Name+" "+one.Type+" "+one.Reason+": "+one.Message)
	}
	return true, one, nil
}

func (w *attachingWorld) happen(event *attachingEvent) error {
	tracker := w.client.Tracker()
	switch event.Do {
	case "pod":
		return tracker.Create(podsResource, newAttachingPod(event), "default")
	case "gone":
		return tracker.Delete(podsResource, "default", event.Name)
	case "finish":
		old, err := tracker.Get(podsResource, "default", event.Name)
		if err != nil {
			return err
		}
		pod := old.(*v1.Pod).DeepCopy()
		pod.Status.Phase = v1.PodSucceeded
		return tracker.Update(podsResource, pod, "default")
	case "remove":
		return tracker.Delete(nodesResource, "", event.Node)
	case "add":
		return tracker.Create(nodesResource, newAttachingNode(event), "")
	}
	old, err := tracker.Get(nodesResource, "", event.Node)
	if err != nil {
		return err
	}
	node := old.(*v1.Node).DeepCopy()
	switch event.Do {
	case "use":
		setInUse(node, event.Volumes)
	case "ready":
		node.Status.Conditions[0].Status = v1.ConditionUnknown
		if event.Is {
			node.Status.Conditions[0].Status = v1.ConditionTrue
		}
	case "taint":
		node.Spec.Taints = nil
		if event.Is {
			node.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeOutOfService, Effect: v1.TaintEffectNoExecute}}
		}
	default:
		return fmt.Errorf("the event is unknown")
	}
	return tracker.Update(nodesResource, node, "")
}

// attachmentName is that of the CSI plugin (getAttachmentName).
func attachmentName(volume, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(volume+attachingDriver+node)))
}
