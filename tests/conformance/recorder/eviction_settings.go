package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	_ "unsafe" // for go:linkname

	"k8s.io/apimachinery/pkg/api/resource"
	_ "k8s.io/kubernetes/cmd/kubelet/app"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
)

// loadConfigFile is linked because nothing exported applies the default thresholds: those of the kubelet's command are
// put in after the file was decoded.
//
//go:linkname loadConfigFile k8s.io/kubernetes/cmd/kubelet/app.loadConfigFile
func loadConfigFile(ctx context.Context, name string) (*kubeletconfig.KubeletConfiguration, error)

// errorsOfThresholds name the kinds of mistakes; the texts hold values and names.
var errorsOfThresholds = []struct {
	category string
	text     *regexp.Regexp
}{
	{"missing-grace-period", regexp.MustCompile(`^grace period must be specified`)},
	{"unsupported-signal", regexp.MustCompile(`^unsupported eviction signal`)},
	{"non-positive-minimum-reclaim-percentage", regexp.MustCompile(`^eviction percentage minimum reclaim .* must be positive`)},
	{"percentage-above-100", regexp.MustCompile(`must be <= 100%`)},
	{"negative-percentage", regexp.MustCompile(`must be >= 0%`)},
	{"bad-percentage", regexp.MustCompile(`^strconv\.ParseFloat`)},
	{"bad-quantity", regexp.MustCompile(`^(quantities must match|unable to parse (quantity|numeric part))`)},
	{"bad-duration", regexp.MustCompile(`^time: `)},
	{"negative-grace-period", regexp.MustCompile(`^invalid eviction grace period`)},
	{"negative-minimum-reclaim", regexp.MustCompile(`^negative eviction minimum reclaim`)},
	{"non-positive-threshold", regexp.MustCompile(`^eviction threshold .* must be positive`)},
}

func categoryOf(err error) (string, error) {
	for _, one := range errorsOfThresholds {
		if one.text.MatchString(err.Error()) {
			return one.category, nil
		}
	}
	return "", fmt.Errorf("an error of an unknown category: %w", err)
}

type evictionSettings struct {
	EvictionHard            map[string]string
	EvictionSoft            map[string]string
	EvictionSoftGracePeriod map[string]string
	EvictionMinimumReclaim  map[string]string
	EnforceNodeAllocatable  []string
}

func (s *evictionSettings) parse() ([]evictionapi.Threshold, error) {
	return eviction.ParseThresholdConfig(
		s.EnforceNodeAllocatable, s.EvictionHard, s.EvictionSoft, s.EvictionSoftGracePeriod, s.EvictionMinimumReclaim)
}

// layouts are the places of images and of the writable layers of containers: (dedicated imagefs, apart from containerfs).
var layouts = map[string][2]bool{
	"single":               {false, false},
	"dedicatedImageFs":     {true, false},
	"dedicatedContainerFs": {true, true},
}

func answerThresholds(data json.RawMessage) (any, error) {
	asked := struct {
		evictionSettings
		Capacities []int64
	}{}
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	outcomes, err := distinct(drawsOfMaps, func() (any, error) {
		parsed, err := asked.parse()
		if err != nil {
			category, unknown := categoryOf(err)
			return map[string]any{"error": err.Error(), "errorCategory": category, "thresholds": []any{}}, unknown
		}
		amounts := map[evictionapi.Signal][][]int64{}
		for _, threshold := range parsed {
			var row []int64
			for _, capacity := range asked.Capacities {
				amount := evictionapi.GetThresholdQuantity(threshold.Value, resource.NewQuantity(capacity, resource.BinarySI))
				row = append(row, amount.Value())
			}
			amounts[threshold.Signal] = append(amounts[threshold.Signal], row)
		}
		for _, rows := range amounts {
			slices.SortFunc(rows, func(one, other []int64) int { return cmp.Compare(fmt.Sprint(one), fmt.Sprint(other)) })
		}
		added := map[string]any{}
		for name, layout := range layouts {
			all, replaced := eviction.UpdateContainerFsThresholds(slices.Clone(parsed), layout[0], layout[1])
			one := map[string]any{"thresholds": thresholdsAsSet(all)}
			if replaced != nil {
				one["overridesConfigured"] = true
			}
			added[name] = one
		}
		return map[string]any{"thresholds": thresholdsAsSet(parsed), "amounts": amounts, "withContainerFs": added}, nil
	})
	return map[string]any{"outcomes": outcomes}, err
}

type amount struct {
	Quantity   *int64 `json:"quantity,omitempty"`
	Percentage string `json:"percentage,omitempty"`
}

type threshold struct {
	Signal             evictionapi.Signal `json:"signal"`
	GracePeriodSeconds float64            `json:"gracePeriodSeconds"`
	FirstObservedAt    *float64           `json:"firstObservedAt,omitempty"`
	amount
	MinReclaim *amount `json:"minReclaim,omitempty"`
	Inactive   bool    `json:"inactive,omitempty"`
}

func amountOf(value evictionapi.ThresholdValue) amount {
	if value.Quantity != nil {
		quantity := value.Quantity.Value()
		return amount{Quantity: &quantity}
	}
	return amount{Percentage: strconv.FormatFloat(float64(value.Percentage), 'g', -1, 32)}
}

func thresholdOf(given evictionapi.Threshold) threshold {
	found := threshold{
		Signal:             given.Signal,
		GracePeriodSeconds: given.GracePeriod.Seconds(),
		amount:             amountOf(given.Value),
		Inactive:           given.Operator == "",
	}
	if given.MinReclaim != nil {
		reclaim := amountOf(*given.MinReclaim)
		found.MinReclaim = &reclaim
	}
	return found
}

// thresholdsAsSet are thresholds in the order of their texts: the real ones come from maps, in any order.
func thresholdsAsSet(given []evictionapi.Threshold) []json.RawMessage {
	var found []threshold
	for _, one := range given {
		found = append(found, thresholdOf(one))
	}
	return inOrderOfText(found)
}

func inOrderOfText(given []threshold) []json.RawMessage {
	texts := []json.RawMessage{}
	for _, one := range given {
		text, err := json.Marshal(one)
		must(err)
		texts = append(texts, text)
	}
	sort.Slice(texts, func(i, j int) bool { return string(texts[i]) < string(texts[j]) })
	return texts
}

// answerConfigDefaults lets the kubelet's command load a file of settings, and parses the thresholds of the result.
func answerConfigDefaults(data json.RawMessage) (any, error) {
	asked := struct{ KubeletConfiguration json.RawMessage }{}
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "kubelet-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(asked.KubeletConfiguration); err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	loaded, err := loadConfigFile(context.Background(), file.Name())
	if err != nil {
		return nil, err
	}
	present := func(settings map[string]string) map[string]string {
		if settings == nil {
			return map[string]string{}
		}
		return maps.Clone(settings)
	}
	config := map[string]any{
		"enforceNodeAllocatable":                  loaded.EnforceNodeAllocatable,
		"evictionHard":                            present(loaded.EvictionHard),
		"evictionSoft":                            present(loaded.EvictionSoft),
		"evictionSoftGracePeriod":                 present(loaded.EvictionSoftGracePeriod),
		"evictionMinimumReclaim":                  present(loaded.EvictionMinimumReclaim),
		"evictionMaxPodGracePeriod":               loaded.EvictionMaxPodGracePeriod,
		"evictionPressureTransitionPeriodSeconds": loaded.EvictionPressureTransitionPeriod.Seconds(),
		"localStorageCapacityIsolation":           loaded.LocalStorageCapacityIsolation,
		"maxPods":                                 loaded.MaxPods,
	}
	settings := &evictionSettings{
		EvictionHard:            loaded.EvictionHard,
		EvictionSoft:            loaded.EvictionSoft,
		EvictionSoftGracePeriod: loaded.EvictionSoftGracePeriod,
		EvictionMinimumReclaim:  loaded.EvictionMinimumReclaim,
		EnforceNodeAllocatable:  loaded.EnforceNodeAllocatable,
	}
	if parsed, err := settings.parse(); err == nil {
		config["thresholds"] = thresholdsAsSet(parsed)
	} else if config["error"], err = categoryOf(err); err != nil {
		return nil, err
	}
	return map[string]any{"config": config}, nil
}
