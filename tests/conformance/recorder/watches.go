package main

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// lateWatches shows everything so much later than the tracker has it, and kinds that are named so much later still.
func (w *world) lateWatches(byS float64, moreS map[string]float64) clienttesting.WatchReactionFunc {
	return func(action clienttesting.Action) (bool, watch.Interface, error) {
		by := time.Duration(math.Round((byS + moreS[action.GetResource().Resource]) * float64(time.Second)))
		asked := action.(clienttesting.WatchActionImpl)
		inner, err := w.tracker.Watch(action.GetResource(), action.GetNamespace(), asked.ListOptions)
		if err != nil {
			return true, nil, err
		}
		return true, newLateWatch(inner, by, w.wake), nil
	}
}

type lateWatch struct {
	watch.Interface
	shown chan watch.Event
}

func (l *lateWatch) ResultChan() <-chan watch.Event { return l.shown }

type lateEvent struct {
	event watch.Event
	due   time.Time
}

func newLateWatch(inner watch.Interface, by time.Duration, wake func()) *lateWatch {
	l := &lateWatch{inner, make(chan watch.Event, mostEvents)}
	waiting := make(chan lateEvent, mostEvents)
	go func() {
		defer close(waiting)
		for event := range inner.ResultChan() {
			waiting <- lateEvent{event, time.Now().Add(by)}
		}
	}()
	go func() {
		defer close(l.shown)
		for one := range waiting {
			time.Sleep(time.Until(one.due))
			l.shown <- one.event
			wake()
		}
	}()
	return l
}

// mostEvents of one watch; a channel that holds all of them never blocks.
const mostEvents = 10000
