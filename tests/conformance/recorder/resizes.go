package main

import (
	"encoding/json"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

// resizeQuestion is a pod, and what it shall become through the subresource resize.
type resizeQuestion struct {
	Old *v1.Pod
	New *v1.Pod
}

// answerResize asks what the API server has against a resize: fields and messages, sorted.
func answerResize(data json.RawMessage) (any, error) {
	asked := resizeQuestion{}
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	var pods [2]core.Pod
	for i, one := range []*v1.Pod{asked.Old, asked.New} {
		corev1.SetObjectDefaults_Pod(one)
		if err := corev1.Convert_v1_Pod_To_core_Pod(one, &pods[i], nil); err != nil {
			return nil, err
		}
	}
	older, newer := &pods[0], &pods[1]
	options := pod.GetValidationOptionsFromPodSpecAndMeta(&newer.Spec, &older.Spec, &newer.ObjectMeta, &older.ObjectMeta)
	options.ResourceIsPod = true
	causes := [][2]string{}
	for _, one := range validation.ValidatePodResize(newer, older, options) {
		causes = append(causes, [2]string{one.Field, one.ErrorBody()})
	}
	sort.Slice(causes, func(i, j int) bool {
		return causes[i][0]+" "+causes[i][1] < causes[j][0]+" "+causes[j][1]
	})
	return map[string]any{"causes": causes}, nil
}
