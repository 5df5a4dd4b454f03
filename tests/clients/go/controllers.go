package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// electionsProgram: two candidates for one lease; the first releases it, the second takes over.
func electionsProgram(ctx context.Context, s *Session) (Summary, error) {
	order := make(chan string, 8)
	candidate := func(ctx context.Context, name string) error {
		lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: "leader", Namespace: s.Namespace},
			Client: s.Client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: name}}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{Lock: lock, ReleaseOnCancel: true,
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 300 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { order <- name + " leads" },
				OnStoppedLeading: func() { order <- name + " stopped" },
			}})
		if err != nil {
			return err
		}
		go elector.Run(ctx)
		return nil
	}
	first, stop := context.WithCancel(ctx)
	defer stop()
	if err := candidate(first, "first"); err != nil {
		return nil, err
	}
	result := []string{<-order}
	second, stopSecond := context.WithCancel(ctx)
	defer stopSecond()
	if err := candidate(second, "second"); err != nil {
		return nil, err
	}
	time.Sleep(1500 * time.Millisecond) // a few renewals, while the second one tries
	leases := s.Client.CoordinationV1().Leases(s.Namespace)
	lease, err := leases.Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	held := fmt.Sprint(*lease.Spec.HolderIdentity, *lease.Spec.LeaseDurationSeconds, *lease.Spec.LeaseTransitions, lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time))
	start := time.Now()
	stop()
	result = append(result, <-order, <-order)
	s.Since("handover", start)
	lease, err = leases.Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return Summary{"order": result, "held": held, "then": fmt.Sprint(*lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)}, nil
}

// workqueueProgram: the controller of client-go's examples: informers, a work queue, events. It makes a secret for each config
// map, owned by it, as long as the map says so.
func workqueueProgram(ctx context.Context, s *Session) (Summary, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithNamespace(s.Namespace))
	maps, secrets := factory.Core().V1().ConfigMaps(), factory.Core().V1().Secrets()
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[string](), workqueue.TypedRateLimitingQueueConfig[string]{Name: "maps"})
	defer queue.ShutDown()
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) }, DeleteFunc: enqueue})
	secrets.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) }})
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: s.Client.CoreV1().Events(s.Namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "maps"})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	var made, removed, conflicts atomic.Int64
	reconcile := func(key string) error {
		_, name, err := cache.SplitMetaNamespaceKey(key)
		if err != nil {
			return err
		}
		source, err := maps.Lister().ConfigMaps(s.Namespace).Get(name)
		if apierrors.IsNotFound(err) {
			err = s.Client.CoreV1().Secrets(s.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
			if err == nil {
				removed.Add(1)
			}
			if apierrors.IsNotFound(err) {
				err = nil
			}
			return err
		}
		if err != nil {
			return err
		}
		wanted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(source, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}}, Data: map[string][]byte{"n": []byte(source.Data["n"])}}
		there, err := secrets.Lister().Secrets(s.Namespace).Get(name)
		if apierrors.IsNotFound(err) {
			_, err = s.Client.CoreV1().Secrets(s.Namespace).Create(ctx, wanted, metav1.CreateOptions{})
			if err == nil {
				made.Add(1)
				recorder.Eventf(source, corev1.EventTypeNormal, "Copied", "made secret %s", name)
			}
			return err
		}
		if err != nil || string(there.Data["n"]) == source.Data["n"] {
			return err
		}
		there = there.DeepCopy()
		there.Data = wanted.Data
		_, err = s.Client.CoreV1().Secrets(s.Namespace).Update(ctx, there, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			conflicts.Add(1)
		}
		return err
	}
	for range 3 {
		go func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				if err := reconcile(key); err != nil {
					queue.AddRateLimited(key)
				} else {
					queue.Forget(key)
				}
				queue.Done(key)
			}
		}()
	}

	client := s.Client.CoreV1().ConfigMaps(s.Namespace)
	for n := range s.Count {
		if _, err := client.Create(ctx, configMap(fmt.Sprintf("c-%02d", n), nil), metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	for n := range s.Count {
		if _, err := client.Patch(ctx, fmt.Sprintf("c-%02d", n), types.MergePatchType, []byte(`{"data":{"n":"7"}}`), metav1.PatchOptions{}); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	err := eventually(ctx, "all copied", func() (bool, error) {
		list, err := s.Client.CoreV1().Secrets(s.Namespace).List(ctx, metav1.ListOptions{})
		copied := 0
		if err == nil {
			for _, one := range list.Items {
				if string(one.Data["n"]) == "7" && len(one.OwnerReferences) == 1 && *one.OwnerReferences[0].Controller {
					copied++
				}
			}
		}
		return copied == s.Count, err
	})
	s.Since("copied", start)
	if err != nil {
		return nil, err
	}
	if err := s.Client.CoreV1().Secrets(s.Namespace).Delete(ctx, "c-00", metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	err = eventually(ctx, "made again", func() (bool, error) { return int(made.Load()) == s.Count+1, nil })
	if err != nil {
		return nil, err
	}
	if err := client.Delete(ctx, "c-01", metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	err = eventually(ctx, "removed", func() (bool, error) { return removed.Load() == 1, nil })
	if err != nil {
		return nil, err
	}
	events := 0
	err = eventually(ctx, "an event for each", func() (bool, error) {
		list, err := s.Client.CoreV1().Events(s.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=ConfigMap,reason=Copied"})
		if err == nil {
			events = 0
			for _, one := range list.Items {
				events += int(one.Count)
			}
		}
		return events >= s.Count+1, err
	})
	return Summary{"made": made.Load(), "removed": removed.Load(), "events": events}, err
}
