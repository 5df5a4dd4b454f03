package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// dynamicProgram: kinds found by discovery, objects as maps.
func dynamicProgram(ctx context.Context, s *Session) (Summary, error) {
	steps := Steps{}
	discovery := memory.NewMemCacheClient(s.Client.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(discovery)
	for _, kind := range []schema.GroupKind{{Kind: "Pod"}, {Group: "apps", Kind: "Deployment"}, {Group: "batch", Kind: "Job"},
		{Group: "policy", Kind: "PodDisruptionBudget"}, {Group: "coordination.k8s.io", Kind: "Lease"}, {Group: "example.com", Kind: "Nothing"}} {
		mapping, err := mapper.RESTMapping(kind)
		if err != nil {
			steps.add("map "+kind.String(), fmt.Sprint("no match: ", meta.IsNoMatchError(err)))
			continue
		}
		steps.add("map "+kind.String(), fmt.Sprint(mapping.Resource.String(), " ", mapping.Scope.Name()))
	}
	resource, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "deployments"})
	steps.add("resource for deployments", reason(err)+" "+resource.String())
	version, err := discovery.ServerVersion()
	steps.add("version", reason(err)+fmt.Sprint(err == nil && version.Major == "1"))

	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		return nil, err
	}
	maps := client.Resource(configMaps).Namespace(s.Namespace)
	informers := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, s.Namespace, nil)
	informer := informers.ForResource(configMaps)
	var seen counts
	informer.Informer().AddEventHandler(seen.handler())
	start := time.Now()
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	s.Since("sync", start)

	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a"}, "data": map[string]any{"n": "0"}}}
	made, err := maps.Create(ctx, object, metav1.CreateOptions{})
	steps.add("create", reason(err))
	if err != nil {
		return Summary{"steps": steps}, err
	}
	unstructured.SetNestedField(made.Object, "1", "data", "n")
	_, err = maps.Update(ctx, made, metav1.UpdateOptions{})
	steps.add("update", reason(err))
	_, err = maps.Update(ctx, made, metav1.UpdateOptions{})
	steps.add("stale update", reason(err))
	patched, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"m":"1","n":null}}`), metav1.PatchOptions{})
	steps.add("merge patch", reason(err)+fmt.Sprint(data(patched)))
	patched, err = maps.Patch(ctx, "a", types.JSONPatchType, []byte(`[{"op":"add","path":"/data/k","value":"2"}]`), metav1.PatchOptions{})
	steps.add("JSON patch", reason(err)+fmt.Sprint(data(patched)))
	object.Object["data"] = map[string]any{"k": "3"}
	_, err = maps.Apply(ctx, "a", object, metav1.ApplyOptions{FieldManager: "dynamic"})
	steps.add("apply against another", reason(err))
	patched, err = maps.Apply(ctx, "a", object, metav1.ApplyOptions{FieldManager: "dynamic", Force: true})
	steps.add("apply with force", reason(err)+fmt.Sprint(data(patched)))
	object.SetName("b")
	_, err = maps.Apply(ctx, "b", object, metav1.ApplyOptions{FieldManager: "dynamic"})
	steps.add("apply creates", reason(err))
	object.SetName("c")
	unstructured.SetNestedField(object.Object, "x", "wrong")
	_, err = maps.Create(ctx, object, metav1.CreateOptions{FieldValidation: "Strict"})
	steps.add("create with a wrong field", reason(err))
	list, err := maps.List(ctx, metav1.ListOptions{})
	kinds := map[string]bool{}
	if err == nil {
		for _, item := range list.Items {
			kinds[item.GetAPIVersion()+" "+item.GetKind()] = true
		}
	}
	steps.add("list", fmt.Sprint(reason(err), len(list.Items), list.GetKind(), kinds))
	err = maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=b"})
	steps.add("delete collection", reason(err))
	err = maps.Delete(ctx, "b", metav1.DeleteOptions{})
	steps.add("delete", reason(err))
	err = client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "nosuch"}).Namespace(s.Namespace).Delete(ctx, "b", metav1.DeleteOptions{})
	steps.add("unknown resource", reason(err))
	err = eventually(ctx, "all deleted", func() (bool, error) { return seen.deletes.Load() >= seen.adds.Load()+seen.initial.Load(), nil })
	return Summary{"steps": steps, "seen": seen.summary()}, err
}

func data(object *unstructured.Unstructured) any {
	if object == nil {
		return nil
	}
	return object.Object["data"]
}

// metadataProgram: objects of which only the metadata travels, as the garbage collector asks for them.
func metadataProgram(ctx context.Context, s *Session) (Summary, error) {
	steps := Steps{}
	client, err := metadata.NewForConfig(s.Config)
	if err != nil {
		return nil, err
	}
	maps := s.Client.CoreV1().ConfigMaps(s.Namespace)
	for n := range 5 {
		if _, err := maps.Create(ctx, configMap(fmt.Sprintf("m-%d", n), map[string]string{"n": fmt.Sprint(n)}), metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	rows := client.Resource(configMaps).Namespace(s.Namespace)
	list, err := rows.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	sort.Strings(names)
	steps.add("list", fmt.Sprint(names))
	one, err := rows.Get(ctx, "m-1", metav1.GetOptions{})
	steps.add("get", fmt.Sprint(reason(err), err == nil && one.Labels["n"] == "1", one.GetObjectKind().GroupVersionKind().Kind))
	_, err = rows.Get(ctx, "nosuch", metav1.GetOptions{})
	steps.add("get missing", reason(err))

	informers := metadatainformer.NewFilteredSharedInformerFactory(client, 0, s.Namespace, nil)
	informer := informers.ForResource(configMaps)
	var seen counts
	informer.Informer().AddEventHandler(seen.handler())
	start := time.Now()
	informers.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return nil, fmt.Errorf("no sync")
	}
	s.Since("sync", start)
	watcher, err := rows.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, err
	}
	defer watcher.Stop()
	patched, err := rows.Patch(ctx, "m-1", types.MergePatchType, []byte(`{"metadata":{"labels":{"n":"one"}}}`), metav1.PatchOptions{})
	steps.add("patch", reason(err)+fmt.Sprint(err == nil && patched.Labels["n"] == "one"))
	if err := rows.Delete(ctx, "m-2", metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	for range 2 {
		event := <-watcher.ResultChan()
		item, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			return Summary{"steps": steps}, fmt.Errorf("%v: %T", event.Type, event.Object)
		}
		steps.add("watch", fmt.Sprint(event.Type, " ", item.Name, " ", item.Labels["n"], " ", event.Type != watch.Bookmark))
	}
	err = eventually(ctx, "the cache as the list", func() (bool, error) {
		return seen.deletes.Load() == 1 && seen.updates.Load() == 1, nil
	})
	return Summary{"steps": steps, "seen": seen.summary()}, err
}
