package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// jobFamilies are the controllers of Jobs and CronJobs, and what cron expressions mean.
var jobFamilies = map[string]func(*testing.T, json.RawMessage) (any, error){
	"jobs":      answerJob,
	"cronjobs":  answerCronJob,
	"schedules": func(_ *testing.T, data json.RawMessage) (any, error) { return answerSchedule(data) },
}

// answerJobs answers a case of the family with which its id begins.
func answerJobs(t *testing.T, data json.RawMessage) (any, error) {
	asked := struct{ ID string }{}
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	family, _, _ := strings.Cut(asked.ID, "-")
	answer, known := jobFamilies[family]
	if !known {
		return nil, fmt.Errorf("%s: the recorder cannot ask the family %q", asked.ID, family)
	}
	return answer(t, data)
}
