package main

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// writePointers names the fields of the API's types that are pointers: what protobuf states of them counts even if it is
// zero or empty, while any other field with such a value is as good as absent.
//
//	apps.v1.DeploymentSpec replicas revisionHistoryLimit selector
func writePointers(out io.Writer) error {
	pointers := map[string][]string{}
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(one reflect.Type) {
		for one.Kind() == reflect.Pointer || one.Kind() == reflect.Slice || one.Kind() == reflect.Map {
			one = one.Elem()
		}
		if one.Kind() != reflect.Struct || seen[one] {
			return
		}
		seen[one] = true
		for i := range one.NumField() {
			field := one.Field(i)
			for _, option := range strings.Split(field.Tag.Get("protobuf"), ",") {
				name, found := strings.CutPrefix(option, "name=")
				if found && field.Type.Kind() == reflect.Pointer {
					key := protoPackage(one.PkgPath()) + "." + one.Name()
					pointers[key] = append(pointers[key], name)
				}
			}
			visit(field.Type)
		}
	}
	for _, one := range scheme.Scheme.AllKnownTypes() {
		visit(one)
	}
	visit(reflect.TypeFor[metav1.Status]())
	names := []string{}
	for name := range pointers {
		if strings.Contains(name, ".v1.") || strings.HasPrefix(name, "autoscaling.v2.") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintln(out, name, strings.Join(pointers[name], " "))
	}
	return nil
}

// protoPackage is the package of kemu's messages for one of Go's: the last two parts of its path.
func protoPackage(path string) string {
	parts := strings.Split(path, "/")
	return strings.Join(parts[max(0, len(parts)-2):], ".")
}
