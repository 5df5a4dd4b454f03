package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

type counts struct{ adds, updates, deletes, initial atomic.Int64 }

func (c *counts) handler() cache.ResourceEventHandlerDetailedFuncs {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if initial {
				c.initial.Add(1)
			} else {
				c.adds.Add(1)
			}
		},
		UpdateFunc: func(any, any) { c.updates.Add(1) },
		DeleteFunc: func(any) { c.deletes.Add(1) },
	}
}

func (c *counts) summary() Summary {
	return Summary{"adds": c.adds.Load(), "updates": c.updates.Load(), "deletes": c.deletes.Load(), "initial": c.initial.Load()}
}

func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"n": "0"}}
}

// informersProgram: a shared informer factory, one with a label selector, and writes that both have to see.
func informersProgram(ctx context.Context, s *Session) (Summary, error) {
	maps := s.Client.CoreV1().ConfigMaps(s.Namespace)
	for n := range 5 {
		if _, err := maps.Create(ctx, configMap(fmt.Sprintf("old-%d", n), map[string]string{"side": "left"}), metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithNamespace(s.Namespace))
	everything, pods, services := factory.Core().V1().ConfigMaps(), factory.Core().V1().Pods(), factory.Core().V1().Services()
	var seen, matching counts
	everything.Informer().AddEventHandler(seen.handler())
	pods.Informer()
	services.Informer()
	factory.Core().V1().Nodes().Informer()
	left := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithNamespace(s.Namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "side=left" }))
	leftMaps := left.Core().V1().ConfigMaps()
	leftMaps.Informer().AddEventHandler(matching.handler())
	factory.Start(ctx.Done())
	left.Start(ctx.Done())
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil, fmt.Errorf("no sync: %v", kind)
		}
	}
	left.WaitForCacheSync(ctx.Done())
	s.Since("sync", start)

	for n := range 20 {
		if _, err := maps.Create(ctx, configMap(fmt.Sprintf("new-%02d", n), nil), metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	for n := range 10 { // starts to match
		patch := []byte(`{"metadata":{"labels":{"side":"left"}}}`)
		if _, err := maps.Patch(ctx, fmt.Sprintf("new-%02d", n), types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return nil, err
		}
	}
	for n := range 5 { // matches no more
		patch := []byte(`{"metadata":{"labels":null}}`)
		if _, err := maps.Patch(ctx, fmt.Sprintf("new-%02d", n), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return nil, err
		}
	}
	for n := range 8 { // two of each half of those that match, and four of the others
		if err := maps.Delete(ctx, fmt.Sprintf("new-%02d", n*2), metav1.DeleteOptions{}); err != nil {
			return nil, err
		}
	}
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	start = time.Now()
	err = eventually(ctx, "the caches as the list", func() (bool, error) {
		wholly, err := everything.Lister().List(labels.Everything())
		return err == nil && versions(wholly) == versions(pointers(list.Items)) && seen.deletes.Load() == 8 && matching.deletes.Load() >= 7, err
	})
	s.Since("caught up", start)
	if err != nil {
		return Summary{"seen": seen.summary(), "matching": matching.summary()}, err
	}
	kept, err := leftMaps.Lister().List(labels.Everything())
	names := []string{}
	for _, one := range kept {
		names = append(names, one.Name)
	}
	sort.Strings(names)
	return Summary{"seen": seen.summary(), "matching": matching.summary(), "left": names, "objects": len(list.Items),
		"lists": s.Requests.Of("list"), "watchlists": s.Requests.Of("watchlist")}, err
}

func pointers(items []corev1.ConfigMap) []*corev1.ConfigMap {
	result := []*corev1.ConfigMap{}
	for index := range items {
		result = append(result, &items[index])
	}
	return result
}

func versions(items []*corev1.ConfigMap) string {
	result := []string{}
	for _, one := range items {
		result = append(result, one.Name+"="+one.ResourceVersion)
	}
	sort.Strings(result)
	return fmt.Sprint(result)
}

// holdProgram: an informer that says when it has synced, follows the server until a line comes on standard input, and
// compares its cache with a list. Whoever runs it breaks connections in between.
func holdProgram(ctx context.Context, s *Session) (Summary, error) {
	start := time.Now()
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithNamespace(s.Namespace))
	maps := factory.Core().V1().ConfigMaps()
	var seen counts
	maps.Informer().AddEventHandler(seen.handler())
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), maps.Informer().HasSynced) {
		return nil, fmt.Errorf("no sync")
	}
	s.Since("sync", start)
	fmt.Println(`{"synced":true}`)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return nil, err
	}
	list, err := s.Client.CoreV1().ConfigMaps(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	start = time.Now()
	err = eventually(ctx, "the cache as the list", func() (bool, error) {
		kept, err := maps.Lister().List(labels.Everything())
		return versions(kept) == versions(pointers(list.Items)), err
	})
	s.Since("caught up", start)
	return Summary{"seen": seen.summary(), "objects": len(list.Items), "watches": s.Requests.Of("watch"),
		"watchlists": s.Requests.Of("watchlist"), "lists": s.Requests.Of("list")}, err
}

// expiredProgram: what a watch and a list from a resource version answer that was compacted long ago.
func expiredProgram(ctx context.Context, s *Session) (Summary, error) {
	maps := s.Client.CoreV1().ConfigMaps(s.Namespace)
	watcher, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: "1"})
	result := Summary{"watch": reason(err)}
	if err == nil {
		defer watcher.Stop()
		select {
		case event := <-watcher.ResultChan():
			result["event"] = event.Type
			if status, ok := event.Object.(*metav1.Status); ok {
				result["reason"] = status.Reason
				result["code"] = status.Code
			}
		case <-time.After(3 * time.Second):
			result["event"] = "none"
		}
	}
	_, err = maps.List(ctx, metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	result["list"] = reason(err)
	return result, nil
}
