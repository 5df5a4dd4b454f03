// A small controller with planted bugs, with controller-runtime: it runs a pod, with a claim, for each member of a Crew.
//
// --bug plants one mistake that real operators have made; with CAREFUL=1 in the environment it has none.
//
//   - early: the status says that the roster is there before it is created
//   - shrink: pods and claims that are too many are deleted by the size that the cache knows
//   - names: what it has done is remembered by the names of crews, and not by their identities
//   - impatient: pods that the cache does not show yet are created once more, under other names
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const label = "planted.example.com/crew"

var (
	kind = schema.GroupVersionKind{Group: "planted.example.com", Version: "v1", Kind: "Crew"}
	bugs = []string{"early", "shrink", "names", "impatient"}
)

type reconciler struct {
	client.Client               // reads from the cache
	fresh         client.Reader // reads from the API server
	bug           string
	done          map[string]bool // crews that have their pods: of names
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	crew := &unstructured.Unstructured{}
	crew.SetGroupVersionKind(kind)
	reader := r.fresh
	if r.bug == "shrink" {
		reader = r.Client
	}
	if err := reader.Get(ctx, request.NamespacedName, crew); err != nil {
		delete(r.done, request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if crew.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil // the garbage collector removes what it owns
	}
	if err := r.roster(ctx, crew); err != nil {
		return ctrl.Result{}, err
	}
	if r.bug != "names" || !r.done[crew.GetName()] {
		if err := r.members(ctx, crew); err != nil {
			return ctrl.Result{}, err
		}
		r.done[crew.GetName()] = true
	}
	return ctrl.Result{}, r.count(ctx, crew)
}

// roster is written once, and not changed by the controller afterwards.
func (r *reconciler) roster(ctx context.Context, crew *unstructured.Unstructured) error {
	if there, _, _ := unstructured.NestedBool(crew.Object, "status", "roster"); there {
		return nil
	}
	if r.bug == "early" {
		if err := r.state(ctx, crew, map[string]any{"roster": true}); err != nil {
			return err
		}
	}
	roster := &corev1.ConfigMap{ObjectMeta: owned(crew, crew.GetName()+"-roster"), Data: map[string]string{"captain": "nobody"}}
	if err := r.Create(ctx, roster); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if own, err := r.isOwn(ctx, crew, roster); err != nil || !own {
			return err // it goes, with another crew that had this name, and then this comes here again
		}
	}
	if r.bug == "early" {
		return nil
	}
	return r.state(ctx, crew, map[string]any{"roster": true})
}

func (r *reconciler) isOwn(ctx context.Context, crew, part client.Object) (bool, error) {
	if err := r.fresh.Get(ctx, client.ObjectKeyFromObject(part), part); err != nil {
		return false, err
	}
	return metav1.IsControlledBy(part, crew), nil
}

func (r *reconciler) members(ctx context.Context, crew *unstructured.Unstructured) error {
	size, _, _ := unstructured.NestedInt64(crew.Object, "spec", "size")
	pods, err := r.pods(ctx, crew)
	if err != nil {
		return err
	}
	if r.bug == "impatient" {
		for range int(size) - len(pods) {
			meta := owned(crew, "")
			meta.GenerateName = crew.GetName() + "-"
			if err := r.Create(ctx, pod(meta)); err != nil {
				return err
			}
		}
		return nil
	}
	wanted := map[string]bool{}
	for n := range int(size) {
		name := fmt.Sprintf("%s-%d", crew.GetName(), n)
		wanted[name] = true
		for _, one := range []client.Object{claim(owned(crew, name)), pod(owned(crew, name))} {
			if err := r.Create(ctx, one); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	}
	var claims corev1.PersistentVolumeClaimList
	if err := r.fresh.List(ctx, &claims, client.InNamespace(crew.GetNamespace()), client.MatchingLabels{label: crew.GetName()}); err != nil {
		return err
	}
	surplus := []client.Object{}
	for index := range pods {
		surplus = append(surplus, &pods[index])
	}
	for index := range claims.Items {
		surplus = append(surplus, &claims.Items[index])
	}
	for _, one := range surplus {
		if wanted[one.GetName()] || one.GetDeletionTimestamp() != nil || !metav1.IsControlledBy(one, crew) {
			continue
		}
		id := one.GetUID()
		if err := r.Delete(ctx, one, client.Preconditions{UID: &id}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) pods(ctx context.Context, crew *unstructured.Unstructured) ([]corev1.Pod, error) {
	reader := r.fresh
	if r.bug == "impatient" {
		reader = r.Client
	}
	var pods corev1.PodList
	err := reader.List(ctx, &pods, client.InNamespace(crew.GetNamespace()), client.MatchingLabels{label: crew.GetName()})
	return slices.DeleteFunc(pods.Items, func(one corev1.Pod) bool { return !metav1.IsControlledBy(&one, crew) }), err
}

// count writes how many pods are ready, where that has changed.
func (r *reconciler) count(ctx context.Context, crew *unstructured.Unstructured) error {
	pods, err := r.pods(ctx, crew)
	if err != nil {
		return err
	}
	ready := int64(0)
	for _, one := range pods {
		for _, condition := range one.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if told, _, _ := unstructured.NestedInt64(crew.Object, "status", "ready"); told == ready {
		return nil
	}
	return r.state(ctx, crew, map[string]any{"ready": ready})
}

func (r *reconciler) state(ctx context.Context, crew *unstructured.Unstructured, fields map[string]any) error {
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": crew.GetUID()}, "status": fields})
	if err != nil {
		return err
	}
	return r.Status().Patch(ctx, crew, client.RawPatch(types.MergePatchType, change))
}

func owned(crew *unstructured.Unstructured, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: crew.GetNamespace(), Labels: map[string]string{label: crew.GetName()},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(crew, kind)},
	}
}

func pod(meta metav1.ObjectMeta) *corev1.Pod {
	grace := int64(1)
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "main", Image: "member:1"}},
	}}
}

func claim(meta metav1.ObjectMeta) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

func run(bug string) error {
	log.SetLogger(funcr.New(func(prefix, words string) { fmt.Println(prefix, words) }, funcr.Options{}))
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	crew := &unstructured.Unstructured{}
	crew.SetGroupVersionKind(kind)
	err = ctrl.NewControllerManagedBy(manager).
		For(crew).Owns(&corev1.Pod{}).Owns(&corev1.ConfigMap{}).Owns(&corev1.PersistentVolumeClaim{}).
		Complete(&reconciler{Client: manager.GetClient(), fresh: manager.GetAPIReader(), bug: bug, done: map[string]bool{}})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	bug := flag.String("bug", "", fmt.Sprintf("one of %v", bugs))
	flag.Parse() // controller-runtime has defined --kubeconfig
	if !slices.Contains(bugs, *bug) {
		fmt.Fprintf(os.Stderr, "--bug has to be one of %v\n", bugs)
		os.Exit(2)
	}
	if os.Getenv("CAREFUL") == "1" {
		*bug = ""
	}
	if err := run(*bug); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
