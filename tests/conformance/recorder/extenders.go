package main

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// extenderCase is an extender of a case: how the scheduler is configured for it, and what it does.
type extenderCase struct {
	Configuration map[string]any `json:"configuration"`
	Script        extenderScript `json:"script"`
}

type extenderScript struct {
	// Refuses has the reason why a node is refused; Hopeless: preemption could not help there.
	Refuses  map[string]string `json:"refuses"`
	Hopeless bool              `json:"hopeless"`
	Scores   map[string]int64  `json:"scores"`
	// Objects are nodes where nobody may be preempted.
	Objects []string `json:"objects"`
}

// serveExtenders serves scripts over HTTP, as the scheduler asks extenders: http://…/<number>/<verb>. It must not begin
// in a bubble of virtual time, and connections must not outlive a call: one that waits would hold the clock.
func serveExtenders(scripts func() []extenderCase) (address string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		number, verb, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
		script := scripts()[number[0]-'0'].Script
		var answer any
		switch verb {
		case "filter", "prioritize":
			arguments := extenderv1.ExtenderArgs{}
			must(json.NewDecoder(request.Body).Decode(&arguments))
			answer = script.filter(arguments.Nodes)
			if verb == "prioritize" {
				answer = script.prioritize(arguments.Nodes)
			}
		case "preempt":
			arguments := extenderv1.ExtenderPreemptionArgs{}
			must(json.NewDecoder(request.Body).Decode(&arguments))
			answer = script.preempt(arguments.NodeNameToVictims)
		}
		must(json.NewEncoder(out).Encode(answer))
	})}
	server.SetKeepAlivesEnabled(false)
	go func() { must(server.Serve(listener)) }()
	return listener.Addr().String(), nil
}

func (s extenderScript) filter(nodes *v1.NodeList) extenderv1.ExtenderFilterResult {
	kept := &v1.NodeList{}
	refused := extenderv1.FailedNodesMap{}
	for _, node := range nodes.Items {
		if reason, ok := s.Refuses[node.Name]; ok {
			refused[node.Name] = reason
		} else {
			kept.Items = append(kept.Items, node)
		}
	}
	if s.Hopeless {
		return extenderv1.ExtenderFilterResult{Nodes: kept, FailedAndUnresolvableNodes: refused}
	}
	return extenderv1.ExtenderFilterResult{Nodes: kept, FailedNodes: refused}
}

func (s extenderScript) prioritize(nodes *v1.NodeList) extenderv1.HostPriorityList {
	scores := extenderv1.HostPriorityList{}
	for _, node := range nodes.Items {
		scores = append(scores, extenderv1.HostPriority{Host: node.Name, Score: s.Scores[node.Name]})
	}
	return scores
}

func (s extenderScript) preempt(victims map[string]*extenderv1.Victims) extenderv1.ExtenderPreemptionResult {
	kept := map[string]*extenderv1.MetaVictims{}
	for node, those := range victims {
		if slices.Contains(s.Objects, node) {
			continue
		}
		meta := &extenderv1.MetaVictims{NumPDBViolations: those.NumPDBViolations}
		for _, pod := range those.Pods {
			meta.Pods = append(meta.Pods, &extenderv1.MetaPod{UID: string(pod.UID)})
		}
		kept[node] = meta
	}
	return extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: kept}
}
