// Asks Kubernetes' priority and fairness: go run ./flows < cases.json > recorded.json, in tests/conformance/recorder.
// A case is a set of queues with requests, or a division of seats among priority levels; the answer goes beside it.
package main

import (
	"container/heap"
	"context"
	"encoding/json"
	"os"
	"time"
	_ "unsafe"

	_ "k8s.io/apiserver/pkg/util/flowcontrol"
	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/eventclock"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset"
	"k8s.io/apiserver/pkg/util/flowcontrol/metrics"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

type claim struct{ Target, Least, Most float64 }

//go:linkname computeConcurrencyAllocation k8s.io/apiserver/pkg/util/flowcontrol.computeConcurrencyAllocation
func computeConcurrencyAllocation(sum int, claims []claim) ([]float64, float64, error)

type request struct {
	AtUs, ForUs, LingerUs int64
	Hash                  uint64
	Seats, FinalSeats     uint64
	Begins                int64 // in µs; -1: refused
	number                int
}

type oneCase struct {
	Kind                                  string // queues or shares
	Limit, Later, Queues, Hand, QueueLimit int
	LaterUs                               int64
	Requests                              []*request `json:",omitempty"`
	Claims                                []claim    `json:",omitempty"`
	Shares                                []float64  `json:",omitempty"`
}

type event struct {
	at    time.Time
	order int
	do    func()
}

type clock struct {
	now    time.Time
	order  int
	events []event
}

func (c *clock) Len() int { return len(c.events) }
func (c *clock) Less(i, j int) bool {
	a, b := c.events[i], c.events[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.order < b.order
}
func (c *clock) Swap(i, j int) { c.events[i], c.events[j] = c.events[j], c.events[i] }
func (c *clock) Push(x any)    { c.events = append(c.events, x.(event)) }
func (c *clock) Pop() any {
	last := c.events[len(c.events)-1]
	c.events = c.events[:len(c.events)-1]
	return last
}
func (c *clock) at(when time.Time, do func()) {
	c.order++
	heap.Push(c, event{when, c.order, do})
}
func (c *clock) Now() time.Time                  { return c.now }
func (c *clock) Since(t time.Time) time.Duration { return c.now.Sub(t) }
func (c *clock) Sleep(time.Duration)             {}
func (c *clock) EventAfterDuration(f eventclock.EventFunc, d time.Duration) {
	c.EventAfterTime(f, c.now.Add(d))
}
func (c *clock) EventAfterTime(f eventclock.EventFunc, t time.Time) {
	c.at(t, func() { f(c.now) })
}

type gauge struct{}

func (gauge) Set(float64)            {}
func (gauge) Add(float64)            {}
func (gauge) Inc()                   {}
func (gauge) Dec()                   {}
func (gauge) SetToCurrentTime()      {}
func (gauge) SetDenominator(float64) {}

func must[T any](found T, err error) T {
	if err != nil {
		panic(err)
	}
	return found
}

func play(one *oneCase) {
	start := time.Unix(1000, 0)
	c := &clock{now: start}
	config := fq.QueuingConfig{Name: "level", DesiredNumQueues: one.Queues, HandSize: one.Hand, QueueLengthLimit: one.QueueLimit}
	pair := metrics.RatioedGaugePair{RequestsWaiting: gauge{}, RequestsExecuting: gauge{}}
	set := must(queueset.NewQueueSetFactory(c).BeginConstruction(config, pair, gauge{}, gauge{})).
		Complete(fq.DispatchingConfig{ConcurrencyLimit: one.Limit, ConcurrencyDenominator: one.Limit})
	if one.LaterUs > 0 {
		c.at(start.Add(time.Duration(one.LaterUs)*time.Microsecond), func() {
			must(set.BeginConfigChange(config)).Complete(fq.DispatchingConfig{ConcurrencyLimit: one.Later, ConcurrencyDenominator: one.Later})
		})
	}
	for number, r := range one.Requests {
		r.Begins, r.number = -1, number
		c.at(start.Add(time.Duration(r.AtUs)*time.Microsecond), func() {
			var made fq.Request
			begin := func() {
				r.Begins = c.now.Sub(start).Microseconds()
				c.at(c.now.Add(time.Duration(r.ForUs)*time.Microsecond), func() { made.Finish(func() {}) })
			}
			estimate := &fcrequest.WorkEstimate{InitialSeats: r.Seats, FinalSeats: r.FinalSeats, AdditionalLatency: time.Duration(r.LingerUs) * time.Microsecond}
			made, _ = set.StartRequest(context.Background(), estimate, r.Hash, "", "schema", nil, nil, func(inQueue bool) {
				if !inQueue {
					begin()
				}
			})
			if made != nil && one.Queues < 1 {
				begin()
			}
		})
	}
	for c.Len() > 0 {
		next := heap.Pop(c).(event)
		c.now = next.at
		next.do()
	}
}

func main() {
	metrics.Register()
	var cases []*oneCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	for _, one := range cases {
		if one.Kind == "shares" {
			one.Shares, _, _ = computeConcurrencyAllocation(one.Limit, one.Claims)
		} else {
			play(one)
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	if err := encoder.Encode(cases); err != nil {
		panic(err)
	}
}
