package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
)

const (
	permitName       = "ScriptedPermit"
	permitAnnotation = "kemu.dev/permit"
)

// scriptedPermit is a Permit plugin that does with a pod what its annotation says, in seconds:
//
//	reject              the pod is rejected at once
//	wait 10             it waits for 10 s and is then rejected
//	wait 10 allow 3     it is allowed after 3 s
//	wait 10 reject 3    it is rejected after 3 s
type scriptedPermit struct{ handle fwk.Handle }

func newScriptedPermit(_ context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	return &scriptedPermit{handle}, nil
}

func (*scriptedPermit) Name() string { return permitName }

// EventsToRegister: pods that were rejected are tried again when a pod goes. Without this method every event would wake
// them, also the update of their own status after the rejection.
func (*scriptedPermit) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete}}}, nil
}

func (p *scriptedPermit) Permit(
	_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string,
) (*fwk.Status, time.Duration) {
	words := strings.Fields(pod.Annotations[permitAnnotation])
	switch {
	case len(words) == 0:
		return nil, 0
	case words[0] == "reject":
		return fwk.NewStatus(fwk.Unschedulable, "not permitted"), 0
	case words[0] != "wait" || len(words)%2 != 0:
		return fwk.AsStatus(fmt.Errorf("annotation %s: %q", permitAnnotation, words)), 0
	}
	if len(words) == 4 {
		uid, what := pod.UID, words[2]
		time.AfterFunc(seconds(words[3]), func() {
			waiting := p.handle.GetWaitingPod(uid)
			if waiting == nil {
				return
			}
			if what == "allow" {
				waiting.Allow(permitName)
			} else {
				waiting.Reject(permitName, "permit denied")
			}
		})
	}
	return fwk.NewStatus(fwk.Wait), seconds(words[1])
}
