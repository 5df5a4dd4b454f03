package main

import (
	"encoding/json"
	"fmt"
	"testing"
)

// jobFamilies are the controllers of Jobs and CronJobs, and what cron expressions mean.
var jobFamilies = map[string]func(*testing.T, json.RawMessage) (any, error){
	"jobs":      answerJob,
	"cronjobs":  answerCronJob,
	"schedules": func(_ *testing.T, data json.RawMessage) (any, error) { return answerSchedule(data) },
}

// answerJobs answers a case of a family.
func answerJobs(t *testing.T, data json.RawMessage) (any, error) {
	asked := struct{ ID, Family string }{}
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	answer, known := jobFamilies[asked.Family]
	if !known {
		return nil, fmt.Errorf("%s: the recorder cannot ask the family %q", asked.ID, asked.Family)
	}
	return answer(t, data)
}
