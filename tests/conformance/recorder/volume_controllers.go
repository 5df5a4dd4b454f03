package main

import (
	"context"
	"math"
	"math/rand"
	"slices"
	"strconv"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
)

// syncPeriod is that of kube-controller-manager (pvClaimBinderSyncPeriod).
const syncPeriod = 15 * time.Second

var everything = labels.Everything()

type storageMoment struct {
	AtS     float64        `json:"atS"`
	Volumes map[string]any `json:"volumes"`
	Claims  map[string]any `json:"claims"`
}

type controllerOutcome struct {
	Moments []storageMoment `json:"moments"`
	Events  []string        `json:"events"`
}

// playVolumeController runs the PersistentVolume controller and notes how objects stand before each event and at the end.
func playVolumeController(parent context.Context, asked *storageCase) (any, error) {
	ctx, cancel := context.WithCancel(parent)
	w, err := newStorageWorld(asked)
	if err != nil {
		cancel()
		return nil, err
	}
	core := w.factory.Core().V1()
	controller, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient: unevenClient{w.client, asked.unevenness}, SyncPeriod: syncPeriod, EnableDynamicProvisioning: true,
		VolumeInformer: core.PersistentVolumes(), ClaimInformer: core.PersistentVolumeClaims(),
		ClassInformer: w.factory.Storage().V1().StorageClasses(), PodInformer: core.Pods(), NodeInformer: core.Nodes(),
	})
	if err != nil {
		cancel()
		return nil, err
	}
	w.factory.Start(ctx.Done())
	w.factory.WaitForCacheSync(ctx.Done())
	ended := make(chan struct{})
	w.start = time.Now()
	outcome := &controllerOutcome{Events: []string{}}
	w.client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		// Two events of one instant get one name, and the tracker has only one of them.
		one := action.(clienttesting.CreateAction).GetObject().(*v1.Event)
		text := one.InvolvedObject.Name + " " + one.Type + " " + one.Reason + ": " + one.Message
		w.mu.Lock()
		defer w.mu.Unlock()
		if !slices.Contains(outcome.Events, text) {
			outcome.Events = append(outcome.Events, text)
		}
		return true, one, nil
	})
	go func() {
		defer close(ended)
		controller.Run(ctx)
	}()
	defer func() {
		cancel()
		w.factory.Shutdown()
		<-ended
	}()
	err = w.run(func(atS float64) (err error) {
		synctest.Wait()
		moment := storageMoment{AtS: atS}
		if moment.Volumes, err = w.volumesNow(ctx); err != nil {
			return err
		}
		moment.Claims, err = w.claimsNow(ctx)
		outcome.Moments = append(outcome.Moments, moment)
		return err
	})
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(outcome.Events)
	return outcome, nil
}

func formatted(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

func rounded(duration time.Duration) float64 { return math.Round(duration.Seconds()*1000) / 1000 }

// unevenClient lets writes of claims and volumes take a little time, each another: which worker of the controller comes
// first is chance.
type unevenClient struct {
	kubernetes.Interface
	most time.Duration
}

func (c unevenClient) CoreV1() corev1client.CoreV1Interface {
	return unevenCore{c.Interface.CoreV1(), c.most}
}

type unevenCore struct {
	corev1client.CoreV1Interface
	most time.Duration
}

func (c unevenCore) PersistentVolumes() corev1client.PersistentVolumeInterface {
	return unevenVolumes{c.CoreV1Interface.PersistentVolumes(), c.most}
}

func (c unevenCore) PersistentVolumeClaims(space string) corev1client.PersistentVolumeClaimInterface {
	return unevenClaims{c.CoreV1Interface.PersistentVolumeClaims(space), c.most}
}

func pause(most time.Duration) {
	if most > 0 {
		time.Sleep(time.Duration(rand.Int63n(int64(most))))
	}
}

type unevenVolumes struct {
	corev1client.PersistentVolumeInterface
	most time.Duration
}

func (v unevenVolumes) Update(
	ctx context.Context, volume *v1.PersistentVolume, options metav1.UpdateOptions,
) (*v1.PersistentVolume, error) {
	pause(v.most)
	return v.PersistentVolumeInterface.Update(ctx, volume, options)
}

func (v unevenVolumes) UpdateStatus(
	ctx context.Context, volume *v1.PersistentVolume, options metav1.UpdateOptions,
) (*v1.PersistentVolume, error) {
	pause(v.most)
	return v.PersistentVolumeInterface.UpdateStatus(ctx, volume, options)
}

type unevenClaims struct {
	corev1client.PersistentVolumeClaimInterface
	most time.Duration
}

func (c unevenClaims) Update(
	ctx context.Context, claim *v1.PersistentVolumeClaim, options metav1.UpdateOptions,
) (*v1.PersistentVolumeClaim, error) {
	pause(c.most)
	return c.PersistentVolumeClaimInterface.Update(ctx, claim, options)
}

func (c unevenClaims) UpdateStatus(
	ctx context.Context, claim *v1.PersistentVolumeClaim, options metav1.UpdateOptions,
) (*v1.PersistentVolumeClaim, error) {
	pause(c.most)
	return c.PersistentVolumeClaimInterface.UpdateStatus(ctx, claim, options)
}
