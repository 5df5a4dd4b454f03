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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
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
	makeUneven(w.client, asked.unevenness, "update", "*")
	core := w.factory.Core().V1()
	controller, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient: w.client, SyncPeriod: syncPeriod, EnableDynamicProvisioning: true,
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

// makeUneven lets requests take a little time, each another: which worker of a controller comes first is chance.
func makeUneven(client *fake.Clientset, most time.Duration, verb, resource string) {
	if most == 0 {
		return
	}
	client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		client.Fake.Unlock() // it holds one request at a time
		defer client.Fake.Lock()
		time.Sleep(time.Duration(rand.Int63n(int64(most))))
		return false, nil, nil
	})
}
