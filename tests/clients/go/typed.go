package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/retry"
)

type step struct {
	Step   string `json:"step"`
	Result string `json:"result"`
}

// Steps is the record of a program that does one thing after the other.
type Steps []step

func (s *Steps) add(name string, result string) { *s = append(*s, step{name, result}) }

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "typed"}},
		Spec: corev1.PodSpec{NodeName: node, SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "nginx",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}}}}},
	}
}

// typedProgram: one clientset, all verbs, the errors that programs branch on.
func typedProgram(ctx context.Context, s *Session) (Summary, error) {
	steps := Steps{}
	core, ns := s.Client.CoreV1(), s.Namespace
	pods := core.Pods(ns)

	made, err := pods.Create(ctx, pod("a", ""), metav1.CreateOptions{})
	steps.add("create pod", reason(err))
	if err != nil {
		return Summary{"steps": steps}, err
	}
	steps.add("defaults", fmt.Sprint(made.Spec.RestartPolicy, made.Spec.DNSPolicy, *made.Spec.TerminationGracePeriodSeconds, made.Status.Phase, made.Status.QOSClass, made.Generation))
	_, err = pods.Create(ctx, pod("a", ""), metav1.CreateOptions{})
	steps.add("create again", reason(err))
	_, err = pods.Create(ctx, pod("Not_A_Name", ""), metav1.CreateOptions{})
	steps.add("create invalid", reason(err))
	generated := pod("", "")
	generated.GenerateName = "gen-"
	created, err := pods.Create(ctx, generated, metav1.CreateOptions{})
	steps.add("generateName", reason(err)+fmt.Sprint(err == nil && len(created.Name) == 9))
	_, err = pods.Get(ctx, "nosuch", metav1.GetOptions{})
	steps.add("get missing", reason(err))
	_, err = core.Pods("no-such-namespace").Create(ctx, pod("a", ""), metav1.CreateOptions{})
	steps.add("create in a missing namespace", reason(err))

	stale := made.DeepCopy()
	fresh := made.DeepCopy()
	fresh.Labels["round"] = "1"
	fresh, err = pods.Update(ctx, fresh, metav1.UpdateOptions{})
	steps.add("update", reason(err))
	stale.Labels["round"] = "2"
	_, err = pods.Update(ctx, stale, metav1.UpdateOptions{})
	steps.add("stale update", reason(err))
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		one, err := pods.Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		one.Labels["round"] = "3"
		_, err = pods.Update(ctx, one, metav1.UpdateOptions{})
		return err
	})
	steps.add("retry on conflict", reason(err))
	if fresh, err = pods.Get(ctx, "a", metav1.GetOptions{}); err == nil {
		fresh.Spec.Containers[0].Name = "other"
		_, err = pods.Update(ctx, fresh, metav1.UpdateOptions{})
	}
	steps.add("update what cannot be", reason(err))

	patched, err := pods.Patch(ctx, "a", types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"c","image":"nginx:2"}]}}`), metav1.PatchOptions{})
	steps.add("strategic patch", reason(err)+fmt.Sprint(err == nil && patched.Spec.Containers[0].Image == "nginx:2" && patched.Generation == 2))
	before := patched.ResourceVersion
	patched, err = pods.Patch(ctx, "a", types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"c","image":"nginx:2"}]}}`), metav1.PatchOptions{})
	steps.add("patch without effect", reason(err)+fmt.Sprint(err == nil && patched.ResourceVersion == before))
	_, err = pods.Patch(ctx, "a", types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/labels/app","value":"x"}]`), metav1.PatchOptions{})
	steps.add("failing JSON patch", reason(err))
	_, err = pods.Patch(ctx, "nosuch", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	steps.add("patch missing", reason(err))
	status := fmt.Sprintf(`{"status":{"conditions":[{"type":"Example","status":"True","lastTransitionTime":%q}]}}`, "2026-01-01T00:00:00Z")
	patched, err = pods.Patch(ctx, "a", types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	steps.add("patch status", reason(err)+fmt.Sprint(conditions(patched)))
	dry, err := pods.Create(ctx, pod("dry", ""), metav1.CreateOptions{DryRun: []string{"All"}})
	_, gone := pods.Get(ctx, "dry", metav1.GetOptions{})
	steps.add("dry run", reason(err)+fmt.Sprint(dry.UID != "", " then ", reason(gone)))

	err = pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "wrong"}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}, metav1.CreateOptions{})
	steps.add("bind with a wrong uid", reason(err))
	err = pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: made.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}, metav1.CreateOptions{})
	steps.add("bind", reason(err))
	err = pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Target: corev1.ObjectReference{Kind: "Node", Name: "elsewhere"}}, metav1.CreateOptions{})
	steps.add("bind again", reason(err))
	_, err = pods.Create(ctx, pod("b", "nowhere"), metav1.CreateOptions{})
	steps.add("create bound", reason(err))
	for _, selector := range []string{"spec.nodeName=nowhere", "spec.nodeName!=nowhere", "status.phase=Pending,spec.schedulerName=nobody", "spec.nope=1"} {
		list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: selector})
		steps.add("list "+selector, reason(err)+fmt.Sprint(count(list)))
	}
	page, err := pods.List(ctx, metav1.ListOptions{Limit: 2})
	steps.add("first page", reason(err)+fmt.Sprint(count(page), page.RemainingItemCount != nil && *page.RemainingItemCount == 1))
	rest, err := pods.List(ctx, metav1.ListOptions{Limit: 2, Continue: page.Continue})
	steps.add("second page", reason(err)+fmt.Sprint(count(rest), rest.Continue == "", rest.ResourceVersion == page.ResourceVersion))

	wrong := types.UID("wrong")
	err = pods.Delete(ctx, created.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	steps.add("delete another of the name", reason(err))
	err = pods.Delete(ctx, created.Name, metav1.DeleteOptions{})
	steps.add("delete", reason(err))
	_, err = pods.Get(ctx, created.Name, metav1.GetOptions{})
	steps.add("is gone", reason(err))
	err = pods.Delete(ctx, "b", metav1.DeleteOptions{})
	dying, failure := pods.Get(ctx, "b", metav1.GetOptions{})
	steps.add("delete with grace", reason(err)+fmt.Sprint(failure == nil && dying.DeletionTimestamp != nil && *dying.DeletionGracePeriodSeconds == 30))
	zero := int64(0)
	err = pods.Delete(ctx, "b", metav1.DeleteOptions{GracePeriodSeconds: &zero})
	_, failure = pods.Get(ctx, "b", metav1.GetOptions{})
	steps.add("delete now", reason(err)+" then "+reason(failure))
	_, err = pods.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/held"]}}`), metav1.PatchOptions{})
	steps.add("finalizer", reason(err))
	err = pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{LabelSelector: "app=typed"})
	held, failure := pods.Get(ctx, "a", metav1.GetOptions{})
	steps.add("delete collection", reason(err)+fmt.Sprint(failure == nil && held.DeletionTimestamp != nil))
	_, err = pods.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	_, failure = pods.Get(ctx, "a", metav1.GetOptions{})
	steps.add("without finalizer", reason(err)+" then "+reason(failure))

	if err := workloadSteps(ctx, s, &steps); err != nil {
		return Summary{"steps": steps}, err
	}
	watched, err := watchSteps(ctx, s)
	return Summary{"steps": steps, "watched": watched}, err
}

func count(list *corev1.PodList) int {
	if list == nil {
		return -1
	}
	return len(list.Items)
}

func conditions(one *corev1.Pod) []string {
	result := []string{}
	if one != nil {
		for _, condition := range one.Status.Conditions {
			result = append(result, string(condition.Type)+"="+string(condition.Status))
		}
	}
	sort.Strings(result)
	return result
}

// workloadSteps: status, scale, apply and eviction of what has those.
func workloadSteps(ctx context.Context, s *Session, steps *Steps) error {
	ns := s.Namespace
	sets := s.Client.AppsV1().ReplicaSets(ns)
	zero := int32(0)
	labels := map[string]string{"app": "set"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}}}
	set, err := sets.Create(ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "set"},
		Spec: appsv1.ReplicaSetSpec{Replicas: &zero, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}, metav1.CreateOptions{})
	steps.add("create replica set", reason(err))
	if err != nil {
		return err
	}
	scale, err := sets.GetScale(ctx, "set", metav1.GetOptions{})
	steps.add("get scale", reason(err)+fmt.Sprint(err == nil && scale.Spec.Replicas == 0 && scale.Status.Selector == "app=set"))
	set, err = sets.Get(ctx, "set", metav1.GetOptions{})
	if err != nil {
		return err
	}
	set.Spec.Template.Spec.Containers[0].Image = "ignored"
	set.Status.ObservedGeneration = 1
	set, err = sets.UpdateStatus(ctx, set, metav1.UpdateOptions{})
	steps.add("update status", reason(err)+fmt.Sprint(err == nil && set.Spec.Template.Spec.Containers[0].Image == "nginx"))

	apply := appsapply.Deployment("applied", ns).WithLabels(map[string]string{"a": "1", "b": "2"}).WithSpec(appsapply.DeploymentSpec().WithReplicas(0).
		WithPaused(true).WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).
		WithSpec(coreapply.PodSpec().WithContainers(coreapply.Container().WithName("c").WithImage("nginx")))))
	deployments := s.Client.AppsV1().Deployments(ns)
	applied, err := deployments.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "one"})
	steps.add("apply", reason(err)+fmt.Sprint(err == nil && applied.Labels["b"] == "2"))
	apply.Labels = map[string]string{"a": "1"}
	applied, err = deployments.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "one"})
	steps.add("apply less", reason(err)+fmt.Sprint(err == nil && applied.Labels["b"] == ""))
	other := appsapply.Deployment("applied", ns).WithLabels(map[string]string{"a": "2"})
	_, err = deployments.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "two"})
	steps.add("apply against another", reason(err))
	applied, err = deployments.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "two", Force: true})
	steps.add("apply with force", reason(err)+fmt.Sprint(err == nil && applied.Labels["a"] == "2"))

	err = s.Client.PolicyV1().Evictions(ns).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "nosuch", Namespace: ns}})
	steps.add("evict missing", reason(err))
	if _, err = s.Client.CoreV1().Pods(ns).Create(ctx, pod("evicted", ""), metav1.CreateOptions{}); err == nil {
		err = s.Client.PolicyV1().Evictions(ns).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "evicted", Namespace: ns}})
	}
	steps.add("evict", reason(err))
	return nil
}

// watchSteps: what a plain watch of a selector sees.
func watchSteps(ctx context.Context, s *Session) ([]string, error) {
	maps := s.Client.CoreV1().ConfigMaps(s.Namespace)
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	watcher, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "on=yes"})
	if err != nil {
		return nil, err
	}
	defer watcher.Stop()
	if _, err = maps.Create(ctx, configMap("seen", map[string]string{"on": "yes"}), metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	for _, patch := range []string{`{"data":{"n":"1"}}`, `{"metadata":{"labels":{"on":"no"}}}`, `{"data":{"n":"2"}}`, `{"metadata":{"labels":{"on":"yes"}}}`} {
		if _, err = maps.Patch(ctx, "seen", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return nil, err
		}
	}
	if err = maps.Delete(ctx, "seen", metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	result := []string{}
	for len(result) < 5 {
		select {
		case event := <-watcher.ResultChan():
			if event.Type == watch.Bookmark {
				continue
			}
			one, ok := event.Object.(*corev1.ConfigMap)
			if !ok {
				return result, fmt.Errorf("%v: %T", event.Type, event.Object)
			}
			result = append(result, fmt.Sprint(event.Type, " ", one.Data["n"], " ", one.Labels["on"]))
		case <-time.After(10 * time.Second):
			return result, fmt.Errorf("no more events")
		}
	}
	return result, nil
}
