// Command recorder puts conformance cases to the packages of Kubernetes itself and writes down what they answer.
//
//	recorder scheduler [file …]    single decisions, and sequences of decisions of one scheduler
//	recorder timeline [file …]     the whole scheduler over minutes, in virtual time
//	recorder kubelet [file …]      decisions of the kubelet, and of the controllers that evict pods
//	recorder quota [file …]        admission by quotas and limit ranges, and the quota controller
//	recorder jobs [file …]         the controllers of Jobs and CronJobs, and cron expressions
//	recorder elections [file …]    candidates for a leader's lease, in virtual time
//	recorder workloads [file …]    syncs of the controllers of Deployments, ReplicaSets, StatefulSets and DaemonSets
//	recorder autoscaling [file …]  looks of the HorizontalPodAutoscaler controller, in virtual time
//	recorder volumes [file …]      the volume binder of the scheduler and the PersistentVolume controller, in virtual time
//	recorder claims [file …]       the controllers of ResourceClaims and of taints of devices, in virtual time
//	recorder namespaces [file …]   the namespace controller, in virtual time
//	recorder attachments [file …]  the attach-detach controller, in virtual time
//	recorder devices [file …]      decisions about pods with ResourceClaims, and what their binding writes
//	recorder tables [file …]       rows of kubectl get, as the API server prints them
//	recorder cel [file …]          expressions: messages, types, costs, values
//	recorder patches [file …]      strategic merge, merge and JSON patches of single documents
//	recorder facts                 the types of the API and how their fields merge, for kemu/emulated/objects/facts
//	recorder roles                 the roles and bindings of a new cluster, for kemu/emulated/apiserver/authorization
//	recorder defaults              what defaulting sets, in objects and in the configurations of scheduler and kubelet
//
// A file holds one JSON object a line, plain or gzipped: {"case": …}, or a recorded {"case": …, "expect": …}, whose
// answer is asked anew. Without files it reads standard input. It writes {"case": …, "expect": …} lines to standard
// output and names each case that has no single answer, and is therefore left out, on standard error.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"testing"

	"k8s.io/klog/v2"
)

// kind of the cases that are asked for; empty if nothing is.
func kind(args []string) string {
	if len(args) < 2 {
		return ""
	}
	return args[1]
}

func main() {
	klog.InitFlags(nil)
	_ = flag.Set("logtostderr", "false")
	_ = flag.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
	// Each case leaves much garbage and keeps little: half of the time went into its collection.
	debug.SetGCPercent(800)
	// Kinds of cases that are answered in virtual time.
	answers := map[string]func(*testing.T, json.RawMessage) (any, error){
		"timeline": answerTimeline, "kubelet": answerKubelet, "jobs": answerJobs, "elections": answerElections,
		"workloads": answerWorkloads, "autoscaling": answerAutoscaling, "quota": answerQuota, "volumes": answerVolumes,
		"claims": answerClaims, "namespaces": answerNamespaces, "attachments": answerAttachments,
		"devices": answerDevices,
		"tables":  answerTable,
		"cel":     answerCEL,
		"patches": func(_ *testing.T, data json.RawMessage) (any, error) { return answerPatches(data) },
	}
	answer, inTime := answers[kind(os.Args)]
	tables := map[string]func(io.Writer) error{"facts": writeFacts, "roles": writeRoles, "defaults": writeDefaults}
	if write, found := tables[kind(os.Args)]; found {
		if err := write(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if !inTime && kind(os.Args) != "scheduler" {
		fmt.Fprintln(os.Stderr, "usage: recorder scheduler|timeline|kubelet|jobs|elections|workloads|autoscaling|volumes|claims|namespaces|attachments|devices|quota|tables|patches|cel [file …] > recorded.jsonl")
		os.Exit(2)
	}
	files := os.Args[2:]
	if len(files) == 0 {
		files = []string{"/dev/stdin"}
	}
	stdout := os.Stdout
	if !inTime {
		recordAll(files, answerScheduler, stdout)
		return
	}
	inVirtualTime(func(t *testing.T) {
		recordAll(files, func(data json.RawMessage) (any, error) { return answer(t, data) }, stdout)
	})
}
