package main

import (
	"context"
	"fmt"
	"sort"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const held = "example.com/held"

// replicator reconciles ReplicationControllers, which have no controller of their own in the clusters of this test: it owns
// one config map for each replica, counts them in the status, and keeps the object until they are gone.
type replicator struct {
	client.Client
	cleaned atomic.Int64
}

func (r *replicator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var set corev1.ReplicationController
	if err := r.Get(ctx, request.NamespacedName, &set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var parts corev1.ConfigMapList
	if err := r.List(ctx, &parts, client.InNamespace(set.Namespace), client.MatchingFields{"owner": set.Name}); err != nil {
		return ctrl.Result{}, err
	}
	if !set.DeletionTimestamp.IsZero() {
		for index := range parts.Items {
			if err := r.Delete(ctx, &parts.Items[index]); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
		}
		if len(parts.Items) > 0 {
			return ctrl.Result{}, nil // the deletions bring it back
		}
		if controllerutil.RemoveFinalizer(&set, held) {
			err := r.Update(ctx, &set)
			if err == nil {
				r.cleaned.Add(1)
			}
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&set, held) {
		return ctrl.Result{}, r.Update(ctx, &set)
	}
	there := map[string]bool{}
	for _, part := range parts.Items {
		there[part.Name] = true
	}
	for n := range int(*set.Spec.Replicas) {
		part := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", set.Name, n), Namespace: set.Namespace}}
		if there[part.Name] {
			delete(there, part.Name)
			continue
		}
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, part, func() error {
			part.Data = map[string]string{"of": set.Name}
			return controllerutil.SetControllerReference(&set, part, r.Scheme())
		})
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	for name := range there {
		part := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: set.Namespace}}
		if err := r.Delete(ctx, part); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	if int(set.Status.Replicas) != len(parts.Items) || set.Status.ObservedGeneration != set.Generation {
		before := set.DeepCopy()
		set.Status.Replicas = int32(len(parts.Items))
		set.Status.ObservedGeneration = set.Generation
		return ctrl.Result{}, r.Status().Patch(ctx, &set, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	return ctrl.Result{}, nil
}

// managerProgram: a manager of controller-runtime with leader election, cache, index, health checks and one reconciler.
func managerProgram(ctx context.Context, s *Session) (Summary, error) {
	log.SetLogger(logr.Discard())
	start := time.Now()
	lease, renew, retry := 3*time.Second, 2*time.Second, 300*time.Millisecond
	manager, err := ctrl.NewManager(s.Config, ctrl.Options{
		LeaderElection: true, LeaderElectionID: "manager", LeaderElectionNamespace: s.Namespace, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry,
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{s.Namespace: {}}},
	})
	if err != nil {
		return nil, err
	}
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	err = manager.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, "owner", func(object client.Object) []string {
		if owner := metav1.GetControllerOf(object); owner != nil {
			return []string{owner.Name}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	worker := &replicator{Client: manager.GetClient()}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.ReplicationController{}).Owns(&corev1.ConfigMap{}).Complete(worker); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- manager.Start(running) }()
	select {
	case <-manager.Elected():
	case err := <-failed:
		return nil, fmt.Errorf("manager: %w", err)
	}
	s.Since("elected", start)

	steps := Steps{}
	sets := s.Client.CoreV1().ReplicationControllers(s.Namespace)
	labels := map[string]string{"app": "x"}
	for n := range 3 {
		replicas := int32(n + 1)
		_, err := sets.Create(ctx, &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("set-%d", n)},
			Spec: corev1.ReplicationControllerSpec{Replicas: &replicas, Selector: labels, Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}}}}}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
	}
	settled := func(name string, replicas, generation int) error {
		return eventually(ctx, name, func() (bool, error) {
			one, err := sets.Get(ctx, name, metav1.GetOptions{})
			return err == nil && int(one.Status.Replicas) == replicas && int(one.Status.ObservedGeneration) >= generation, err
		})
	}
	start = time.Now()
	for n := range 3 {
		if err := settled(fmt.Sprintf("set-%d", n), n+1, 1); err != nil {
			return nil, err
		}
	}
	s.Since("settled", start)
	steps.add("settled", parts(ctx, s))
	if _, err := sets.Patch(ctx, "set-2", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{}); err != nil {
		return nil, err
	}
	if err := settled("set-2", 1, 2); err != nil {
		return nil, err
	}
	steps.add("scaled", parts(ctx, s))
	if err := s.Client.CoreV1().ConfigMaps(s.Namespace).Delete(ctx, "set-1-0", metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	err = eventually(ctx, "made again", func() (bool, error) {
		_, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Get(ctx, "set-1-0", metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, err
	}
	steps.add("made again", parts(ctx, s))
	background := metav1.DeletePropagationBackground // without it, ReplicationControllers orphan their dependents
	if err := sets.Delete(ctx, "set-1", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		return nil, err
	}
	err = eventually(ctx, "cleaned up", func() (bool, error) {
		_, err := sets.Get(ctx, "set-1", metav1.GetOptions{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, err
	}
	steps.add("cleaned up", parts(ctx, s)+fmt.Sprint(" ", worker.cleaned.Load()))
	stop()
	if err := <-failed; err != nil {
		return nil, err
	}
	lock, err := s.Client.CoordinationV1().Leases(s.Namespace).Get(ctx, "manager", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	steps.add("released", fmt.Sprintf("%q", *lock.Spec.HolderIdentity))
	return Summary{"steps": steps}, nil
}

func parts(ctx context.Context, s *Session) string {
	list, err := s.Client.CoreV1().ConfigMaps(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return reason(err)
	}
	names := []string{}
	for _, one := range list.Items {
		if len(one.OwnerReferences) == 1 {
			names = append(names, one.Name+" of "+one.OwnerReferences[0].Kind+"/"+one.OwnerReferences[0].Name)
		}
	}
	sort.Strings(names)
	return fmt.Sprint(names)
}
