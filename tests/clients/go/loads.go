package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// loadProgram: what terminals such as k9s ask for: many watches, and tables of pods again and again; and one writer, whose
// creates must all reach every watch.
func loadProgram(ctx context.Context, s *Session) (Summary, error) {
	client, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(s.Config)
	if err != nil {
		return nil, err
	}
	get := func(ctx context.Context, path string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String()+path, nil)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Accept", table)
		return client.Do(request)
	}
	maps := s.Client.CoreV1().ConfigMaps(s.Namespace)
	path := "/api/v1/namespaces/" + s.Namespace + "/configmaps"
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	events := make([]atomic.Int64, s.Count)
	var wait sync.WaitGroup
	opened := make(chan error, s.Count)
	for n := range s.Count {
		wait.Add(1)
		go func() {
			defer wait.Done()
			response, err := get(watching, path+"?watch=true&resourceVersion="+list.ResourceVersion)
			if err == nil && response.StatusCode != http.StatusOK {
				err = fmt.Errorf("watch: %s", response.Status)
			}
			opened <- err
			if err != nil {
				return
			}
			defer response.Body.Close()
			decoder := json.NewDecoder(response.Body)
			for {
				var event struct{ Type string }
				if decoder.Decode(&event) != nil {
					return
				}
				if event.Type == "ADDED" {
					events[n].Add(1)
				}
			}
		}()
	}
	for range s.Count {
		if err := <-opened; err != nil {
			return nil, err
		}
	}
	lock := sync.Mutex{}
	latencies, statuses := []float64{}, map[string]int{}
	deadline := time.Now().Add(time.Duration(s.Seconds * float64(time.Second)))
	ticker := time.NewTicker(time.Duration(float64(time.Second) / s.Rate))
	defer ticker.Stop()
	creates, written := []float64{}, 0
	for time.Now().Before(deadline) {
		<-ticker.C
		wait.Add(1)
		go func() {
			defer wait.Done()
			start := time.Now()
			response, err := get(ctx, "/api/v1/pods?limit=500")
			answer := "failed"
			if err == nil {
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
				answer = fmt.Sprint(response.StatusCode)
			}
			lock.Lock()
			defer lock.Unlock()
			statuses[answer]++
			latencies = append(latencies, float64(time.Since(start).Microseconds())/1000)
		}()
		start := time.Now()
		if _, err := maps.Create(ctx, configMap(fmt.Sprintf("l-%04d", written), nil), metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		creates = append(creates, float64(time.Since(start).Microseconds())/1000)
		written++
	}
	err = eventually(ctx, "all events", func() (bool, error) {
		for n := range events {
			if int(events[n].Load()) < written {
				return false, nil
			}
		}
		return true, nil
	})
	stop()
	wait.Wait()
	s.Timings["list p50"], s.Timings["list p99"] = quantile(latencies, .5), quantile(latencies, .99)
	s.Timings["create p50"], s.Timings["create p99"] = quantile(creates, .5), quantile(creates, .99)
	s.Timings["lists"], s.Timings["creates"] = float64(len(latencies)), float64(written)
	least, most := events[0].Load(), events[0].Load()
	for n := range events {
		least, most = min(least, events[n].Load()), max(most, events[n].Load())
	}
	return Summary{"watches": s.Count, "all seen by all": int(least) == written && int(most) == written, "failed": len(latencies) - statuses["200"]}, err
}

func quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sort.Float64s(values)
	return values[min(len(values)-1, int(share*float64(len(values))))]
}
