package main

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// writeTypes describes the Go types of a pod template: their names and the order of their fields go into the hash of a
// template, their JSON tags into the data of a ControllerRevision.
//
//	struct v1.PodTemplateSpec
//	ObjectMeta metadata,omitempty v1.ObjectMeta
//	type v1.Protocol string
func writeTypes(out io.Writer) {
	known := map[string]reflect.Type{}
	collect(reflect.TypeFor[v1.PodTemplateSpec](), known)
	names := []string{}
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		described := known[name]
		if described.Kind() != reflect.Struct {
			fmt.Fprintf(out, "type %s %s\n", name, plainType(described))
			continue
		}
		fmt.Fprintf(out, "struct %s\n", name)
		for i := range described.NumField() {
			field := described.Field(i)
			tag := field.Tag.Get("json")
			if tag == "" {
				tag = "-"
			}
			fmt.Fprintf(out, "%s %s %s\n", field.Name, tag, field.Type)
		}
	}
}

// leaves are written by hand.
var leaves = []string{"resource.Quantity", "intstr.IntOrString", "v1.Time", "v1.FieldsV1"}

func collect(described reflect.Type, known map[string]reflect.Type) {
	switch described.Kind() {
	case reflect.Pointer, reflect.Slice:
		if described.Name() == "" {
			collect(described.Elem(), known)
			return
		}
	case reflect.Map:
		if described.Name() == "" {
			collect(described.Key(), known)
			collect(described.Elem(), known)
			return
		}
	}
	if described.PkgPath() == "" {
		return
	}
	name := described.String()
	if before, seen := known[name]; seen {
		if before != described {
			panic("two types have the name " + name)
		}
		return
	}
	if slices.Contains(leaves, name) {
		return
	}
	known[name] = described
	switch described.Kind() {
	case reflect.Struct:
		for i := range described.NumField() {
			collect(described.Field(i).Type, known)
		}
	case reflect.Map:
		collect(described.Key(), known)
		collect(described.Elem(), known)
	case reflect.Slice:
		collect(described.Elem(), known)
	}
}

func plainType(described reflect.Type) string {
	switch described.Kind() {
	case reflect.Map:
		return fmt.Sprintf("map[%s]%s", described.Key(), described.Elem())
	case reflect.Slice:
		return "[]" + described.Elem().String()
	}
	return strings.TrimSpace(described.Kind().String())
}
