package main

import (
	"encoding/json"
	"slices"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
)

type (
	statsOfPod func(*v1.Pod) (statsapi.PodStats, bool)
	ranking    func([]*v1.Pod, statsOfPod)
)

// The functions that rank pods are reached from outside only through a whole eviction manager, which shows one pod of the
// order and does not rank for a signal that no threshold has.
//
//go:linkname buildSignalToRankFunc k8s.io/kubernetes/pkg/kubelet/eviction.buildSignalToRankFunc
func buildSignalToRankFunc(withImageFs bool, imageContainerSplitFs bool) map[evictionapi.Signal]ranking

//go:linkname cachedStatsFunc k8s.io/kubernetes/pkg/kubelet/eviction.cachedStatsFunc
func cachedStatsFunc(podStats []statsapi.PodStats) statsOfPod

type filesystem struct{ DedicatedImageFs, DedicatedContainerFs bool }

type rankedPods struct {
	Order  []string   `json:"order"`
	Groups [][]string `json:"groups"`
}

func answerRanking(data json.RawMessage) (any, error) {
	asked := struct {
		Filesystem filesystem
		Pods       []*v1.Pod
		Stats      []statsapi.PodStats
	}{}
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	stats := cachedStatsFunc(asked.Stats)
	found := map[evictionapi.Signal]rankedPods{}
	for signal, rank := range buildSignalToRankFunc(asked.Filesystem.DedicatedImageFs, asked.Filesystem.DedicatedContainerFs) {
		pods := slices.Clone(asked.Pods)
		rank(pods, stats)
		ranked := rankedPods{Order: []string{}, Groups: [][]string{}}
		for i, pod := range pods {
			ranked.Order = append(ranked.Order, pod.Name)
			if i > 0 && areEqual(rank, stats, pods[i-1], pod) {
				last := len(ranked.Groups) - 1
				ranked.Groups[last] = append(ranked.Groups[last], pod.Name)
			} else {
				ranked.Groups = append(ranked.Groups, []string{pod.Name})
			}
		}
		found[signal] = ranked
	}
	return map[string]any{"rankings": found}, nil
}

// areEqual tells whether two pods compare equal: then a ranking of the two leaves either order as it is.
func areEqual(rank ranking, stats statsOfPod, one, other *v1.Pod) bool {
	here, there := []*v1.Pod{one, other}, []*v1.Pod{other, one}
	rank(here, stats)
	rank(there, stats)
	return here[0] == one && there[0] == other
}
