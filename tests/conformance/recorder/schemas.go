package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// schemaRoots are the kinds that kemu serves, by API version.
var schemaRoots = []struct {
	version string
	kinds   []any
}{
	{"v1", []any{v1.ConfigMap{}, v1.Endpoints{}, v1.Event{}, v1.LimitRange{}, v1.Namespace{}, v1.Node{}, v1.PersistentVolume{},
		v1.PersistentVolumeClaim{}, v1.Pod{}, v1.PodTemplate{}, v1.ReplicationController{}, v1.ResourceQuota{}, v1.Secret{},
		v1.Service{}, v1.ServiceAccount{}}},
	{"admissionregistration.k8s.io/v1", []any{admissionregistrationv1.ValidatingAdmissionPolicy{}}},
	{"apps/v1", []any{appsv1.ControllerRevision{}, appsv1.DaemonSet{}, appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{}}},
	{"autoscaling/v1", []any{autoscalingv1.Scale{}}},
	{"autoscaling/v2", []any{autoscalingv2.HorizontalPodAutoscaler{}}},
	{"batch/v1", []any{batchv1.CronJob{}, batchv1.Job{}}},
	{"certificates.k8s.io/v1", []any{certificatesv1.CertificateSigningRequest{}}},
	{"coordination.k8s.io/v1", []any{coordinationv1.Lease{}}},
	{"discovery.k8s.io/v1", []any{discoveryv1.EndpointSlice{}}},
	{"events.k8s.io/v1", []any{eventsv1.Event{}}},
	{"networking.k8s.io/v1", []any{networkingv1.Ingress{}, networkingv1.IngressClass{}, networkingv1.NetworkPolicy{},
		networkingv1.IPAddress{}, networkingv1.ServiceCIDR{}}},
	{"node.k8s.io/v1", []any{nodev1.RuntimeClass{}}},
	{"policy/v1", []any{policyv1.PodDisruptionBudget{}}},
	{"rbac.authorization.k8s.io/v1", []any{rbacv1.ClusterRole{}, rbacv1.ClusterRoleBinding{}, rbacv1.Role{}, rbacv1.RoleBinding{}}},
	{"resource.k8s.io/v1", []any{resourcev1.DeviceClass{}, resourcev1.ResourceClaim{}, resourcev1.ResourceClaimTemplate{},
		resourcev1.ResourceSlice{}}},
	{"scheduling.k8s.io/v1", []any{schedulingv1.PriorityClass{}}},
	{"storage.k8s.io/v1", []any{storagev1.CSIDriver{}, storagev1.CSINode{}, storagev1.CSIStorageCapacity{}, storagev1.StorageClass{},
		storagev1.VolumeAttachment{}, storagev1.VolumeAttributesClass{}}},
}

// writeSchemas describes the fields of the API types: how the API server merges them (its OpenAPI document, as
// structured-merge-diff reads it), how a strategic merge patch does (the tags patchStrategy and patchMergeKey), and
// what JSON has for a field that is not set (zero=), or does not have though the field is set, to something empty (omit);
// which fields the document calls required; and
// which values it lists.
//
//	kind apps/v1 Deployment apps.v1.Deployment
//	type core.v1.ContainerPort struct
//		protocol string default="TCP"
//	type core.v1.Container struct
//		ports [containerPort,protocol]core.v1.ContainerPort omit patch=merge key=containerPort go=[]v1.ContainerPort
//		resources core.v1.ResourceRequirements default={} zero={}
//
// A type is a scalar (string, numeric, boolean, untyped), a list ([] atomic, [=] a set, [keys] a map by these), a map ({}
// separable, {atomic}), `any`, or the name of another type, with ! where the reference makes it atomic and ~ where it makes it separable.
func writeSchemas(out io.Writer) error {
	models := map[string]*spec.Schema{}
	for name, definition := range generatedopenapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef("#/components/schemas/" + name)
	}) {
		model := definition.Schema
		models[name] = &model
	}
	types, err := schemaconv.ToSchemaFromOpenAPI(models, false)
	if err != nil {
		return err
	}
	writer := schemaWriter{out: out, schema: types, models: models, seen: map[string]reflect.Type{}}
	for _, group := range schemaRoots {
		for _, kind := range group.kinds {
			root := reflect.TypeOf(kind)
			fmt.Fprintf(out, "kind %s %s %s\n", group.version, root.Name(), shortName(modelName(root)))
			writer.collectModels(root)
		}
	}
	names := []string{}
	for name := range writer.seen {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		writer.write(name, writer.seen[name])
	}
	return nil
}

type schemaWriter struct {
	out    io.Writer
	schema *schema.Schema
	models map[string]*spec.Schema
	seen   map[string]reflect.Type
}

func modelName(described reflect.Type) string {
	if named, ok := reflect.New(described).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	return ""
}

func shortName(name string) string {
	for _, prefix := range []string{"io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apimachinery.pkg."} {
		if rest, found := strings.CutPrefix(name, prefix); found {
			return rest
		}
	}
	return name
}

func (w *schemaWriter) collectModels(described reflect.Type) {
	switch described.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		w.collectModels(described.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	name := modelName(described)
	if name != "" {
		if _, known := w.seen[name]; known {
			return
		}
		w.seen[name] = described
	}
	for i := range described.NumField() {
		w.collectModels(described.Field(i).Type)
	}
}

func (w *schemaWriter) write(name string, described reflect.Type) {
	atom, found := w.schema.Resolve(schema.TypeRef{NamedType: &name})
	if !found {
		return
	}
	if atom.Map == nil || atom.Scalar != nil || len(atom.Map.Fields) == 0 {
		fmt.Fprintf(w.out, "type %s %s\n", shortName(name), w.atom(atom))
		return
	}
	relationship := ""
	if atom.Map.ElementRelationship == schema.Atomic {
		relationship = " atomic"
	}
	fmt.Fprintf(w.out, "type %s struct%s\n", shortName(name), relationship)
	tags := map[string]reflect.StructField{}
	fieldsByJSON(described, tags)
	slices.SortFunc(atom.Map.Fields, func(a, b schema.StructField) int { return strings.Compare(a.Name, b.Name) })
	for _, field := range atom.Map.Fields {
		words := []string{field.Name, w.reference(field.Type)}
		if field.Default != nil {
			words = append(words, "default="+text(field.Default))
		}
		if tagged, known := tags[field.Name]; known {
			if zero, always := zeroOf(tagged); always {
				words = append(words, "zero="+zero)
			} else if omitsEmpty(tagged) {
				words = append(words, "omit")
			}
			if strategy := tagged.Tag.Get("patchStrategy"); strategy != "" {
				words = append(words, "patch="+strategy)
			}
			if key := tagged.Tag.Get("patchMergeKey"); key != "" {
				words = append(words, "key="+key)
			}
			if way, _ := embeddingOf(described, field.Name); way != "" {
				words = append(words, "in="+way)
			}
			words = append(words, "go="+goType(tagged.Type))
		}
		if model, known := w.models[name]; known && slices.Contains(model.Required, field.Name) {
			words = append(words, "required")
		}
		if values := w.enum(name, field.Name); len(values) > 0 {
			words = append(words, "enum="+strings.Join(values, ","))
		}
		fmt.Fprintln(w.out, "\t"+strings.Join(words, " "))
	}
}

// enum is which texts a field, or an element of it, may have.
func (w *schemaWriter) enum(model, field string) []string {
	described, known := w.models[model]
	if !known {
		return nil
	}
	property := described.Properties[field]
	found := property.Enum
	if property.Items != nil && property.Items.Schema != nil {
		found = property.Items.Schema.Enum
	}
	values := []string{}
	for _, value := range found {
		values = append(values, fmt.Sprint(value))
	}
	return values
}

func fieldsByJSON(described reflect.Type, into map[string]reflect.StructField) {
	for i := range described.NumField() {
		field := described.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
			fieldsByJSON(field.Type, into)
		} else if name != "-" {
			into[name] = field
		}
	}
}

// embeddingOf is the way to a field that stands in an embedded struct: decoders of JSON name these structs.
func embeddingOf(described reflect.Type, wanted string) (string, bool) {
	for i := range described.NumField() {
		field := described.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
			if rest, found := embeddingOf(field.Type, wanted); found {
				return strings.TrimSuffix(field.Name+"."+rest, "."), true
			}
		} else if name == wanted {
			return "", true
		}
	}
	return "", false
}

// zeroOf is what encoding/json writes for a field without a value, unless it leaves it out.
func zeroOf(field reflect.StructField) (string, bool) {
	_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	omitEmpty, omitZero := strings.Contains(options, "omitempty"), strings.Contains(options, "omitzero")
	if omitZero || (omitEmpty && field.Type.Kind() != reflect.Struct) {
		return "", false
	}
	if field.Type.Kind() == reflect.Struct {
		written, err := json.Marshal(reflect.Zero(field.Type).Interface())
		if err != nil {
			panic(err)
		}
		if written[0] != '{' {
			return string(written), true
		}
		return "{}", true
	}
	return text(reflect.Zero(field.Type).Interface()), true
}

// goType is what the decoders of JSON call the type of a field.
func goType(described reflect.Type) string {
	if described.Kind() == reflect.Pointer {
		described = described.Elem()
	}
	return described.String()
}

// omitsEmpty is whether a field that is set to an empty value is left out of JSON as well.
func omitsEmpty(field reflect.StructField) bool {
	_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	return strings.Contains(options, "omitempty") && field.Type.Kind() != reflect.Pointer && field.Type.Kind() != reflect.Struct
}

func (w *schemaWriter) reference(ref schema.TypeRef) string {
	if ref.NamedType == nil {
		return w.atom(ref.Inlined)
	}
	name := shortName(*ref.NamedType)
	if strings.HasPrefix(name, "__untyped_") {
		name = "any"
	}
	if ref.ElementRelationship != nil {
		name += map[schema.ElementRelationship]string{schema.Atomic: "!", schema.Separable: "~"}[*ref.ElementRelationship]
	}
	return name
}

func (w *schemaWriter) atom(atom schema.Atom) string {
	switch {
	case atom.Scalar != nil && (atom.Map != nil || atom.List != nil):
		return "any"
	case atom.Scalar != nil:
		return string(*atom.Scalar)
	case atom.List != nil:
		element := w.reference(atom.List.ElementType)
		switch {
		case atom.List.ElementRelationship == schema.Atomic:
			return "[]" + element
		case len(atom.List.Keys) == 0:
			return "[=]" + element
		}
		return "[" + strings.Join(atom.List.Keys, ",") + "]" + element
	case atom.Map != nil:
		if len(atom.Map.Fields) > 0 {
			panic("an inlined struct")
		}
		if atom.Map.ElementType == (schema.TypeRef{}) {
			return "struct"
		}
		element := w.reference(atom.Map.ElementType)
		if atom.Map.ElementRelationship == schema.Atomic {
			return "{atomic}" + element
		}
		return "{}" + element
	}
	return "none"
}
