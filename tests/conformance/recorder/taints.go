package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
)

// getMinTolerationTime is linked: the controller asks it only about the tolerations that match a taint.
//
//go:linkname getMinTolerationTime k8s.io/kubernetes/pkg/controller/tainteviction.getMinTolerationTime
func getMinTolerationTime(tolerations []v1.Toleration) time.Duration

type taintQuestion struct {
	Nodes     []*v1.Node
	Pods      []*v1.Pod
	Events    []taintEvent
	HorizonMs int64
}

type taintEvent struct {
	AtMs        int64
	Do          string
	Node        string
	Pod         string
	Taints      []v1.Taint
	Tolerations []v1.Toleration
	NewPod      *v1.Pod
}

type podDeletion struct {
	AtMs int64  `json:"atMs"`
	Pod  string `json:"pod"`
}

type taintAnswer struct {
	Deletions            []podDeletion    `json:"deletions"`
	Remaining            []string         `json:"remaining"`
	MinTolerationSeconds map[string]int64 `json:"minTolerationSeconds"`
}

// answerTaintEviction runs the taint eviction controller in virtual time on a tracker of objects.
func answerTaintEviction(t *testing.T, data json.RawMessage) (any, error) {
	asked := &taintQuestion{}
	if err := json.Unmarshal(data, asked); err != nil {
		return nil, err
	}
	answer := &taintAnswer{Deletions: []podDeletion{}, Remaining: []string{}, MinTolerationSeconds: map[string]int64{}}
	for _, pod := range asked.Pods {
		// Less than nothing stands for ever.
		least := getMinTolerationTime(pod.Spec.Tolerations)
		answer.MinTolerationSeconds[pod.Name] = int64(least / time.Second)
		if least < 0 {
			answer.MinTolerationSeconds[pod.Name] = -1
		}
	}
	return answer, inBubble(t, func(t *testing.T) error { return asked.play(t.Context(), answer) })
}

func (q *taintQuestion) play(parent context.Context, answer *taintAnswer) error {
	ctx, cancel := context.WithCancel(parent)
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	byNode := func(object any) ([]string, error) { return []string{object.(*v1.Pod).Spec.NodeName}, nil }
	if err := pods.Informer().AddIndexers(cache.Indexers{"spec.nodeName": byNode}); err != nil {
		cancel()
		return err
	}
	controller, err := tainteviction.New(ctx, client, pods, nodes, "taint-eviction-controller")
	if err != nil {
		cancel()
		return err
	}
	factory.Start(ctx.Done())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(ctx)
	}()
	defer func() {
		cancel()
		factory.Shutdown()
		<-ended
	}()
	// Until the caches are filled.
	time.Sleep(time.Minute)
	start := time.Now()
	client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		name := action.(clienttesting.DeleteAction).GetName()
		answer.Deletions = append(answer.Deletions, podDeletion{time.Since(start).Milliseconds(), name})
		return false, nil, nil
	})
	for _, node := range q.Nodes {
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	synctest.Wait()
	for _, pod := range q.Pods {
		if _, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, event := range q.Events {
		time.Sleep(time.Until(start.Add(time.Duration(event.AtMs) * time.Millisecond)))
		synctest.Wait()
		if err := q.happen(ctx, client, event); err != nil {
			return err
		}
		synctest.Wait()
	}
	time.Sleep(time.Until(start.Add(time.Duration(q.HorizonMs) * time.Millisecond)))
	synctest.Wait()
	left, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pod := range left.Items {
		answer.Remaining = append(answer.Remaining, pod.Name)
	}
	slices.Sort(answer.Remaining)
	slices.SortFunc(answer.Deletions, func(one, other podDeletion) int {
		return cmp.Or(cmp.Compare(one.AtMs, other.AtMs), cmp.Compare(one.Pod, other.Pod))
	})
	return nil
}

// happen changes what there still is. Objects that a person deletes go past the client, whose deletions are the controller's.
func (q *taintQuestion) happen(ctx context.Context, client *fake.Clientset, event taintEvent) error {
	podsOfAll, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	nodesOfAll, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if event.Do == "addPod" {
		_, err := client.CoreV1().Pods(event.NewPod.Namespace).Create(ctx, event.NewPod, metav1.CreateOptions{})
		return err
	}
	for _, pod := range podsOfAll.Items {
		if pod.Name != event.Pod {
			continue
		}
		switch event.Do {
		case "setTolerations":
			pod.Spec.Tolerations = event.Tolerations
			_, err = client.CoreV1().Pods(pod.Namespace).Update(ctx, &pod, metav1.UpdateOptions{})
		case "deletePod":
			err = client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), pod.Namespace, pod.Name)
		}
		return err
	}
	for _, node := range nodesOfAll.Items {
		if node.Name != event.Node {
			continue
		}
		switch event.Do {
		case "setTaints":
			node.Spec.Taints = event.Taints
			_, err = client.CoreV1().Nodes().Update(ctx, &node, metav1.UpdateOptions{})
		case "deleteNode":
			err = client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})
		}
		return err
	}
	return nil
}
