package main

import (
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeletscheme "k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	schedulerscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

var stable = regexp.MustCompile(`^v\d+$`)

// writeDefaults writes what defaulting sets, a line for each field: in the objects of the API's stable versions, and in the
// configurations of the scheduler and the kubelet. Every kind is asked twice: with nothing but an element in each list, and
// with every struct that a pointer may name, so that what is set within it shows, too.
//
//	v1 Pod spec.restartPolicy "Always"
//	v1 Pod spec.containers[].terminationMessagePath "/dev/termination-log"
func writeDefaults(out io.Writer) error {
	for _, one := range []struct {
		scheme *runtime.Scheme
		all    bool
	}{{legacyscheme.Scheme, false}, {schedulerscheme.Scheme, true}} {
		if err := defaultsOf(out, one.scheme, one.all); err != nil {
			return err
		}
	}
	kubelet, _, err := kubeletscheme.NewSchemeAndCodecs()
	if err != nil {
		return err
	}
	return defaultsOf(out, kubelet, true)
}

func defaultsOf(out io.Writer, scheme *runtime.Scheme, all bool) error {
	found := map[string]bool{}
	for kind := range scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal || (!all && !stable.MatchString(kind.Version)) || isMeta(kind) {
			continue
		}
		for _, full := range []bool{false, true} {
			object, err := scheme.New(kind)
			if err != nil {
				return err
			}
			value := reflect.ValueOf(object).Elem()
			populate(value, full, nil)
			before := map[string]string{}
			leaves(value, "", before)
			scheme.Default(object)
			after := map[string]string{}
			leaves(value, "", after)
			for path, text := range after {
				if was, known := before[path]; !known || was != text {
					found[fmt.Sprintf("%s %s %s %s", kind.GroupVersion(), kind.Kind, path, text)] = true
				}
			}
		}
	}
	lines := []string{}
	for line := range found {
		lines = append(lines, line)
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	return nil
}

// isMeta is whether a kind belongs to every group: options of requests, lists, watch events.
func isMeta(kind schema.GroupVersionKind) bool {
	return strings.HasSuffix(kind.Kind, "Options") || strings.HasSuffix(kind.Kind, "List") || kind.Kind == "WatchEvent"
}

// populate gives each list one element, and with full each pointer a struct; above are the structs that it is within.
func populate(value reflect.Value, full bool, above []reflect.Type) {
	switch value.Kind() {
	case reflect.Struct:
		if slices.Contains(above, value.Type()) || value.Type() == reflect.TypeFor[metav1.ObjectMeta]() {
			return
		}
		above = append(slices.Clone(above), value.Type())
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				populate(value.Field(i), full, above)
			}
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Struct && !slices.Contains(above, value.Type().Elem()) {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			populate(value.Index(0), full, above)
		}
	case reflect.Pointer:
		if full && value.Type().Elem().Kind() == reflect.Struct && !slices.Contains(above, value.Type().Elem()) {
			value.Set(reflect.New(value.Type().Elem()))
			populate(value.Elem(), full, above)
		}
	}
}

// leaves notes the texts of all that is set, by the path of its JSON names.
func leaves(value reflect.Value, path string, found map[string]string) {
	if text, ok := value.Interface().(fmt.Stringer); ok && value.Kind() == reflect.Struct {
		found[path] = text.String()
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			at := strings.TrimPrefix(path+"."+name, ".")
			if name == "" || name == "-" {
				at = path
			}
			leaves(value.Field(i), at, found)
		}
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			if value.Elem().Kind() == reflect.Struct {
				found[path] = "{}"
			}
			leaves(value.Elem(), path, found)
		}
	case reflect.Slice:
		for i := range value.Len() {
			leaves(value.Index(i), path+"[]", found)
		}
		if value.Len() > 1 {
			found[path] = text(value.Interface())
		}
	case reflect.Map:
		if value.Len() > 0 {
			found[path] = text(value.Interface())
		}
	default:
		if !value.IsZero() || path == "" {
			found[path] = text(value.Interface())
		}
	}
}
