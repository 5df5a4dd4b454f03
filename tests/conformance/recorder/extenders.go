package main

import "encoding/json"

// extenderScript is an extender that does what it is told.
type extenderScript struct {
	Configuration json.RawMessage `json:"configuration"`
}
