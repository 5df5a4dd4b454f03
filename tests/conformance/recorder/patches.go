package main

import (
	"encoding/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patchCase is a patch of a document; kind says which Go type that is the JSON of.
type patchCase struct {
	Kind     string          `json:"kind"`
	Type     string          `json:"type"`
	Original json.RawMessage `json:"original"`
	Patch    json.RawMessage `json:"patch"`
}

var patchedTypes = map[string]any{
	"Pod": v1.Pod{}, "Node": v1.Node{}, "Service": v1.Service{}, "Deployment": appsv1.Deployment{},
	"PodDisruptionBudget": policyv1.PodDisruptionBudget{}, "ServiceAccount": v1.ServiceAccount{},
}

// patchRepeats is how often a patch is applied: Go walks maps in a different order each time.
const patchRepeats = 12

func answerPatches(data json.RawMessage) (any, error) {
	var asked patchCase
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	answers := map[string]any{}
	for range patchRepeats {
		answer := answerPatch(asked)
		answers[text(answer)] = answer
	}
	if len(answers) > 1 {
		return nil, ambiguous{len(answers)}
	}
	for _, answer := range answers {
		if answer == nil {
			// The packages panic, and the server answers 500.
			return nil, ambiguous{0}
		}
		return answer, nil
	}
	return nil, nil
}

func answerPatch(asked patchCase) (answer any) {
	var result []byte
	var err error
	defer func() {
		if problem := recover(); problem != nil {
			answer = nil
		}
	}()
	switch asked.Type {
	case "strategic":
		result, err = strategicpatch.StrategicMergePatch(asked.Original, asked.Patch, patchedTypes[asked.Kind])
	case "merge":
		result, err = jsonpatch.MergePatch(asked.Original, asked.Patch)
	case "json":
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(asked.Patch); err == nil {
			result, err = patch.Apply(asked.Original)
		}
	}
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return map[string]any{"result": json.RawMessage(result)}
}
