// Programs as people write them against client-go and controller-runtime. Each works in a namespace of its own, does the
// same whatever server it meets, and prints one JSON object that says what it saw; `timings` holds what may differ from
// run to run. A test compares what a real kube-apiserver and kemu make of them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Summary is what a program prints: the same for the same behaviour of the server.
type Summary map[string]any

// Session is what every program gets.
type Session struct {
	Config    *rest.Config
	Client    kubernetes.Interface
	Namespace string
	Requests  *Requests
	Timings   map[string]float64
	Seconds   float64
	Rate      float64
	Count     int
}

var programs = map[string]func(context.Context, *Session) (Summary, error){
	"informers": informersProgram,
	"hold":      holdProgram,
	"expired":   expiredProgram,
	"typed":     typedProgram,
	"dynamic":   dynamicProgram,
	"metadata":  metadataProgram,
	"elections": electionsProgram,
	"workqueue": workqueueProgram,
	"manager":   managerProgram,
	"load":      loadProgram,
}

func main() {
	flags := flag.NewFlagSet("clients", flag.ExitOnError) // controller-runtime registers flags in the common one
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the server")
	content := flags.String("content", "json", "json or protobuf: what is sent, and asked for first")
	namespace := flags.String("namespace", "", "where to work; default: the name of the program")
	timeout := flags.Duration("timeout", time.Minute, "when to give up")
	seconds := flags.Float64("seconds", 5, "load: for how long")
	rate := flags.Float64("rate", 10, "load: lists a second")
	count := flags.Int("count", 20, "load: watches; others: objects")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(2)
	}
	if err := run(*kubeconfig, *content, *namespace, *timeout, flags.Arg(0), *seconds, *rate, *count); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, content, namespace string, timeout time.Duration, name string, seconds, rate float64, count int) error {
	program := programs[name]
	if program == nil {
		names := []string{}
		for one := range programs {
			names = append(names, one)
		}
		sort.Strings(names)
		return fmt.Errorf("which program? %s", strings.Join(names, ", "))
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json" // typed clients prefer protobuf
	if content == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	config.QPS, config.Burst = -1, -1
	config.UserAgent = "clients-" + name
	requests := &Requests{counts: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counting{next, requests} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if namespace == "" {
		namespace = "clients-" + name
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace: %w", err)
	}
	session := &Session{config, client, namespace, requests, map[string]float64{}, seconds, rate, count}
	summary, err := program(ctx, session)
	if summary == nil {
		summary = Summary{}
	}
	if err != nil {
		summary["error"] = err.Error()
	}
	summary["timings"] = session.Timings
	text, failure := json.Marshal(summary)
	if failure != nil {
		return failure
	}
	fmt.Println(string(text))
	return err
}

// Since notes how long something took, in milliseconds.
func (s *Session) Since(name string, start time.Time) {
	s.Timings[name] = float64(time.Since(start).Microseconds()) / 1000
}

// Requests counts what clients ask, by form: "list", "watch", "watchlist", and the verbs of HTTP for the rest.
type Requests struct {
	lock   sync.Mutex
	counts map[string]int
}

// Of says how many requests of a form there were.
func (r *Requests) Of(form string) int {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.counts[form]
}

type counting struct {
	next     http.RoundTripper
	requests *Requests
}

func (c *counting) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	form := request.Method
	switch {
	case query.Get("sendInitialEvents") == "true":
		form = "watchlist"
	case query.Get("watch") != "":
		form = "watch"
	case query.Has("limit"):
		form = "list"
	}
	response, err := c.next.RoundTrip(request)
	c.requests.lock.Lock()
	defer c.requests.lock.Unlock()
	c.requests.counts[form]++
	if err == nil {
		kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
		c.requests.counts[kind]++
	}
	return response, err
}

// reason is what client-go's programs branch on: the reason of a Status, or "ok".
func reason(err error) string {
	if err == nil {
		return "ok"
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Sprintf("%d %s", status.Status().Code, status.Status().Reason)
	}
	return "error: " + err.Error()
}

// eventually waits until a condition holds.
func eventually(ctx context.Context, what string, holds func() (bool, error)) error {
	for {
		done, err := holds()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
