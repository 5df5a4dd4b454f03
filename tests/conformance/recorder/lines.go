package main

// What a recorder of any module needs: it reads cases and writes answers, in virtual time where they ask for that.

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"unsafe"
)

type line struct {
	Case   json.RawMessage `json:"case"`
	Expect any             `json:"expect,omitempty"`
}

// ambiguous is the error of a case to which the same code gave several answers.
type ambiguous struct{ answers int }

func (a ambiguous) Error() string { return fmt.Sprintf("%d different answers: left out", a.answers) }

// recordAll answers the cases of all files; the process ends with 1 where one cannot be read or answered.
func recordAll(files []string, answer func(json.RawMessage) (any, error), stdout io.Writer) {
	out := bufio.NewWriter(stdout)
	failed := false
	for _, name := range files {
		if err := record(name, answer, out); err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
	}
	if err := out.Flush(); err != nil || failed {
		os.Exit(1)
	}
}

// record answers each case of a file.
func record(name string, answer func(json.RawMessage) (any, error), out io.Writer) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var reader io.Reader = bytes.NewReader(content)
	if bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
		if reader, err = gzip.NewReader(reader); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	lines := bufio.NewScanner(reader)
	lines.Buffer(nil, 1<<28)
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var one line
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return fmt.Errorf("%s:%d: %w", name, number, err)
		}
		given, err := answer(one.Case)
		if _, left := err.(ambiguous); left {
			fmt.Fprintf(os.Stderr, "%s:%d: %v\n", name, number, err)
			continue
		} else if err != nil {
			return fmt.Errorf("%s:%d: %w", name, number, err)
		}
		if err := write(out, line{Case: one.Case, Expect: given}); err != nil {
			return err
		}
	}
	return lines.Err()
}

func write(out io.Writer, one line) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(one)
}

// distinct asks again and again and returns all different answers, in the order in which they first came.
func distinct(draws int, ask func() (any, error)) ([]json.RawMessage, error) {
	var answers []json.RawMessage
	seen := map[string]bool{}
	for range draws {
		given, err := ask()
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(given)
		if err != nil {
			return nil, err
		}
		if !seen[string(text)] {
			seen[string(text)] = true
			answers = append(answers, text)
		}
	}
	return answers, nil
}

// mostRepetitions is how often a case is asked whose answers are too many, or one of them too rare.
const mostRepetitions = 1000

// answersOf asks so often as is the least, and then until each different answer has come up so many times: where one came
// up only once, there may be others that did not yet. A case with more answers than the most is left out.
func answersOf[T any](least, each, most int, same func(T, T) bool, ask func(repetition int) (T, error)) ([]T, error) {
	var answers []T
	var times []int
	for repetition := 0; repetition < least || slices.Min(times) < each; repetition++ {
		one, err := ask(repetition)
		if err != nil {
			return nil, err
		}
		known := slices.IndexFunc(answers, func(other T) bool { return same(one, other) })
		if known < 0 {
			known, answers, times = len(times), append(answers, one), append(times, 0)
		}
		times[known]++
		if len(times) > most || repetition == mostRepetitions {
			return nil, ambiguous{len(times)}
		}
	}
	return answers, nil
}

// inBubble calls work in a bubble of testing/synctest and returns when all goroutines that it started have ended.
func inBubble(t *testing.T, work func(*testing.T) error) error {
	var err error
	if ok := t.Run("case", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { err = work(t) })
	}); err == nil && !ok {
		err = errors.New("the case could not be played")
	}
	return err
}

// fieldOf reads an unexported field.
func fieldOf(pointer any, name string) any {
	field := reflect.ValueOf(pointer).Elem().FieldByName(name)
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Interface()
}

// runTest calls work with a test, which the bubbles of testing/synctest ask for, and ends the process.
func runTest(work func(*testing.T)) {
	// The loop of os/signal must not begin within a bubble: it would hold its clock.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, os.Interrupt)
	signal.Stop(ignored)
	os.Args = os.Args[:1]
	os.Stdout = os.Stderr
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "record", F: work}}, nil, nil)
}
