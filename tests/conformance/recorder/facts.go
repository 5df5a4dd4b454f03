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
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// factRoots are the kinds that kemu serves, by API version.
var factRoots = []struct {
	version string
	kinds   []any
}{
	{"v1", []any{v1.ComponentStatus{}, v1.ConfigMap{}, v1.Endpoints{}, v1.Event{}, v1.LimitRange{}, v1.Namespace{}, v1.Node{}, v1.PersistentVolume{},
		v1.PersistentVolumeClaim{}, v1.Pod{}, v1.PodTemplate{}, v1.ReplicationController{}, v1.ResourceQuota{}, v1.Secret{},
		v1.Service{}, v1.ServiceAccount{}}},
	{"admissionregistration.k8s.io/v1", []any{admissionregistrationv1.MutatingAdmissionPolicy{},
		admissionregistrationv1.MutatingAdmissionPolicyBinding{}, admissionregistrationv1.MutatingWebhookConfiguration{},
		admissionregistrationv1.ValidatingAdmissionPolicy{}, admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		admissionregistrationv1.ValidatingWebhookConfiguration{}}},
	{"apiextensions.k8s.io/v1", []any{apiextensionsv1.CustomResourceDefinition{}}},
	{"apiregistration.k8s.io/v1", []any{apiregistrationv1.APIService{}}},
	{"apps/v1", []any{appsv1.ControllerRevision{}, appsv1.DaemonSet{}, appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{}}},
	{"autoscaling/v1", []any{autoscalingv1.Scale{}, autoscalingv1.HorizontalPodAutoscaler{}}},
	{"autoscaling/v2", []any{autoscalingv2.HorizontalPodAutoscaler{}}},
	{"batch/v1", []any{batchv1.CronJob{}, batchv1.Job{}}},
	{"certificates.k8s.io/v1", []any{certificatesv1.CertificateSigningRequest{}}},
	{"coordination.k8s.io/v1", []any{coordinationv1.Lease{}}},
	{"discovery.k8s.io/v1", []any{discoveryv1.EndpointSlice{}}},
	{"events.k8s.io/v1", []any{eventsv1.Event{}}},
	{"flowcontrol.apiserver.k8s.io/v1", []any{flowcontrolv1.FlowSchema{}, flowcontrolv1.PriorityLevelConfiguration{}}},
	{"networking.k8s.io/v1", []any{networkingv1.Ingress{}, networkingv1.IngressClass{}, networkingv1.NetworkPolicy{},
		networkingv1.IPAddress{}, networkingv1.ServiceCIDR{}}},
	{"node.k8s.io/v1", []any{nodev1.RuntimeClass{}}},
	{"policy/v1", []any{policyv1.PodDisruptionBudget{}}},
	{"rbac.authorization.k8s.io/v1", []any{rbacv1.ClusterRole{}, rbacv1.ClusterRoleBinding{}, rbacv1.Role{}, rbacv1.RoleBinding{}}},
	{"resource.k8s.io/v1", []any{resourcev1.DeviceClass{}, resourcev1.ResourceClaim{}, resourcev1.ResourceClaimTemplate{},
		resourcev1.ResourceSlice{}}},
	{"scheduling.k8s.io/v1", []any{schedulingv1.PriorityClass{}}},
	{"scheduling.k8s.io/v1alpha2", []any{schedulingv1alpha2.Workload{}, schedulingv1alpha2.PodGroup{}}},
	{"storage.k8s.io/v1", []any{storagev1.CSIDriver{}, storagev1.CSINode{}, storagev1.CSIStorageCapacity{}, storagev1.StorageClass{},
		storagev1.VolumeAttachment{}, storagev1.VolumeAttributesClass{}}},
}

// otherRoots are types that clients send or get and that are no stored objects.
var otherRoots = []any{
	authenticationv1.SelfSubjectReview{}, authenticationv1.TokenRequest{}, authenticationv1.TokenReview{},
	authorizationv1.LocalSubjectAccessReview{}, authorizationv1.SelfSubjectAccessReview{},
	authorizationv1.SelfSubjectRulesReview{}, authorizationv1.SubjectAccessReview{}, v1.Binding{}, policyv1.Eviction{},
	metav1.DeleteOptions{}, metav1.ListMeta{}, metav1.Status{},
}

// writeFacts describes the types of the API, each fact once: the Go structs with their fields in order, how JSON and
// protobuf write them, how the API server merges them (its OpenAPI document, as structured-merge-diff reads it), how a
// strategic merge patch does (the tags patchStrategy and patchMergeKey), and which fields and values that document asks for.
//
//	kind apps/v1 Deployment apps.v1.Deployment
//	leaf meta.v1.Time untyped null
//	type core.v1.Protocol string enum=SCTP,TCP,UDP
//	struct core.v1.Container
//		ports []core.v1.ContainerPort list=containerPort,protocol patch=merge
//		tty bool name=TTY
//	struct core.v1.SecretKeySelector atomic
//		+ core.v1.LocalObjectReference
//		key string always
//		optional *bool
//
// A leaf has JSON of its own: how it merges, and its zero. A line with + is an embedded struct. A field has a name in JSON
// and a Go type. Its Go name begins with a capital letter (other names: name=). JSON leaves it out if it is empty, unless
// `always` is said; `omitzero`: a struct without values, too. Fields that are always there are required (else:
// `optional`; `required` for others), and if they are neither null nor leaves, a missing key counts as their zero (others:
// default=). Lists and maps merge as Go's types suggest, lists as a whole, unless list= has the keys of their elements, or
// `set`; `atomic` and `separable` are said of maps and references, is= of any other way. patchMergeKey is the first key of
// the list, unless key= is given.
func writeFacts(out io.Writer) error {
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
	writer := factWriter{out: out, schema: types, models: models, seen: map[string]reflect.Type{}, enums: map[string]string{}}
	for _, group := range factRoots {
		for _, kind := range group.kinds {
			root := reflect.TypeOf(kind)
			fmt.Fprintf(out, "kind %s %s %s\n", group.version, root.Name(), factName(root))
			writer.collect(root)
		}
	}
	for _, other := range otherRoots {
		writer.collect(reflect.TypeOf(other))
	}
	names := []string{}
	for name := range writer.seen {
		names = append(names, name)
	}
	slices.Sort(names)
	lines := []string{}
	for _, name := range names {
		lines = append(lines, writer.describe(name, writer.seen[name]))
	}
	for i, name := range names {
		fmt.Fprint(out, lines[i])
		if writer.seen[name].Kind() != reflect.Struct {
			fmt.Fprintln(out, writer.enums[name])
		}
	}
	return nil
}

type factWriter struct {
	out    io.Writer
	schema *schema.Schema
	models map[string]*spec.Schema
	seen   map[string]reflect.Type
	// enums are the values of the named string types, by name.
	enums map[string]string
}

func modelName(described reflect.Type) string {
	if named, ok := reflect.New(described).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	return ""
}

func shortName(name string) string {
	for _, prefix := range []string{"io.k8s.api.", "io.k8s.apiextensions-apiserver.pkg.apis.", "io.k8s.apimachinery.pkg.apis.",
		"io.k8s.apimachinery.pkg.", "io.k8s.kube-aggregator.pkg.apis."} {
		if rest, found := strings.CutPrefix(name, prefix); found {
			return rest
		}
	}
	return name
}

// factName is the name of a named type: core.v1.Pod, types.UID.
func factName(described reflect.Type) string {
	path := strings.ReplaceAll(described.PkgPath(), "/", ".") + "." + described.Name()
	for _, prefix := range []string{"k8s.io.api.", "k8s.io.apiextensions-apiserver.pkg.apis.", "k8s.io.apimachinery.pkg.apis.",
		"k8s.io.apimachinery.pkg.", "k8s.io.kube-aggregator.pkg.apis."} {
		if rest, found := strings.CutPrefix(path, prefix); found {
			return rest
		}
	}
	return path
}

// factType is a Go type with the names of factName.
func factType(described reflect.Type) string {
	if described.PkgPath() != "" {
		return factName(described)
	}
	switch described.Kind() {
	case reflect.Pointer:
		return "*" + factType(described.Elem())
	case reflect.Slice:
		return "[]" + factType(described.Elem())
	case reflect.Map:
		return "map[" + factType(described.Key()) + "]" + factType(described.Elem())
	}
	return described.String()
}

// isLeaf is whether a struct is described by its merging only, as its JSON is not that of its fields.
func (w *factWriter) isLeaf(described reflect.Type) bool {
	if described.Kind() != reflect.Struct {
		return false
	}
	name := modelName(described)
	atom, found := w.schema.Resolve(schema.TypeRef{NamedType: &name})
	return found && (atom.Map == nil || atom.Scalar != nil || (len(atom.Map.Fields) == 0 && described.NumField() > 0))
}

func (w *factWriter) collect(described reflect.Type) {
	if described.PkgPath() != "" {
		name := factName(described)
		if before, known := w.seen[name]; known {
			if before != described {
				panic("two types have the name " + name)
			}
			return
		}
		w.seen[name] = described
	}
	switch described.Kind() {
	case reflect.Map:
		w.collect(described.Key())
		w.collect(described.Elem())
	case reflect.Pointer, reflect.Slice:
		w.collect(described.Elem())
	case reflect.Struct:
		if w.isLeaf(described) {
			return
		}
		for i := range described.NumField() {
			w.collect(described.Field(i).Type)
		}
	}
}

func (w *factWriter) describe(name string, described reflect.Type) string {
	if described.Kind() != reflect.Struct {
		plain := described.Kind().String()
		switch described.Kind() {
		case reflect.Map:
			plain = "map[" + factType(described.Key()) + "]" + factType(described.Elem())
		case reflect.Slice:
			plain = "[]" + factType(described.Elem())
		}
		return fmt.Sprintf("type %s %s", name, plain)
	}
	model := modelName(described)
	atom, found := w.schema.Resolve(schema.TypeRef{NamedType: &model})
	if w.isLeaf(described) {
		return fmt.Sprintf("leaf %s %s %s\n", name, w.atom(atom), zeroText(described))
	}
	words := []string{"struct", name}
	ways := map[string]schema.StructField{}
	if found && atom.Map != nil {
		if atom.Map.ElementRelationship == schema.Atomic {
			words = append(words, "atomic")
		}
		for _, field := range atom.Map.Fields {
			ways[field.Name] = field
		}
	}
	lines := []string{strings.Join(words, " ")}
	for i := range described.NumField() {
		lines = append(lines, w.field(model, described.Field(i), ways))
	}
	return strings.Join(lines, "\n\t") + "\n"
}

func (w *factWriter) field(model string, field reflect.StructField, ways map[string]schema.StructField) string {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	typed := factType(field.Type)
	if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
		if field.Name != field.Type.Name() {
			panic("an embedded struct with a name: " + model + "." + field.Name)
		}
		return "+ " + typed
	}
	if name == "-" || name == "" {
		panic("a field without JSON: " + model + "." + field.Name)
	}
	way, known := ways[name]
	if !known {
		panic("the document lacks " + model + "." + name)
	}
	words := []string{name, typed}
	if strings.ToUpper(name[:1])+name[1:] != field.Name {
		words = append(words, "name="+field.Name)
	}
	always := !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")
	for _, one := range []struct {
		word string
		said bool
	}{{"always", always}, {"omitzero", strings.Contains(options, "omitzero")},
		{"omitempty", strings.Contains(options, "omitzero") && strings.Contains(options, "omitempty")}} {
		if one.said {
			words = append(words, one.word)
		}
	}
	required := slices.Contains(w.models[model].Required, name)
	if required != always {
		words = append(words, map[bool]string{true: "required", false: "optional"}[required])
	}
	merges, derived := w.reference(way.Type), w.derived(field.Type)
	keys := ""
	if merges != derived {
		how, element, _ := strings.Cut(strings.TrimPrefix(merges, "["), "]")
		switch {
		case "[]"+element == derived && strings.HasPrefix(merges, "["):
			if how == "=" {
				how = "set"
			}
			keys = how
			words = append(words, "list="+how)
		case "{atomic}"+strings.TrimPrefix(derived, "{}") == merges, derived+"!" == merges:
			words = append(words, "atomic")
		case derived+"~" == merges:
			words = append(words, "separable")
		default:
			words = append(words, "is="+merges)
		}
	}
	strategy, key := field.Tag.Get("patchStrategy"), field.Tag.Get("patchMergeKey")
	if strategy != "" {
		words = append(words, "patch="+strategy)
	}
	if first, _, _ := strings.Cut(keys, ","); key != "" && key != first {
		words = append(words, "key="+key)
	} else if key == "" && keys != "" && keys != "set" && strategy != "" {
		panic("a keyed list that is patched without a key: " + model + "." + name)
	}
	zero, written := zeroOf(field)
	implied := written && zero != "null" && !w.isLeaf(field.Type)
	switch {
	case way.Default == nil && implied:
		panic("no default: " + model + "." + name)
	case way.Default != nil && !(implied && text(way.Default) == zero):
		words = append(words, "default="+text(way.Default))
	}
	w.noteEnum(model, name, field.Type)
	return strings.Join(words, " ")
}

// noteEnum keeps the values that the document has for the type of a field, or of its elements.
func (w *factWriter) noteEnum(model, field string, described reflect.Type) {
	values := w.enum(model, field)
	if len(values) == 0 {
		return
	}
	for described.PkgPath() == "" {
		described = described.Elem()
	}
	found := " enum=" + strings.Join(values, ",")
	if before, known := w.enums[factName(described)]; known && before != found {
		panic("two enums for " + factName(described))
	}
	w.enums[factName(described)] = found
}

// derived is how a Go type merges unless the document says otherwise.
func (w *factWriter) derived(described reflect.Type) string {
	switch described.Kind() {
	case reflect.Pointer:
		return w.derived(described.Elem())
	case reflect.Slice:
		if described.Elem().Kind() == reflect.Uint8 {
			return "string"
		}
		return "[]" + w.derived(described.Elem())
	case reflect.Map:
		return "{}" + w.derived(described.Elem())
	case reflect.Struct:
		return factName(described)
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	}
	return "numeric"
}

// enum is which texts a field, or an element of it, may have.
func (w *factWriter) enum(model, field string) []string {
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

// zeroOf is what encoding/json writes for a field without a value, unless it leaves it out.
func zeroOf(field reflect.StructField) (string, bool) {
	_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	omitEmpty, omitZero := strings.Contains(options, "omitempty"), strings.Contains(options, "omitzero")
	if omitZero || (omitEmpty && field.Type.Kind() != reflect.Struct) {
		return "", false
	}
	return zeroText(field.Type), true
}

func zeroText(described reflect.Type) string {
	if described.Kind() != reflect.Struct {
		return text(reflect.Zero(described).Interface())
	}
	written, err := json.Marshal(reflect.Zero(described).Interface())
	if err != nil {
		panic(err)
	}
	if written[0] != '{' {
		return string(written)
	}
	return "{}"
}

func (w *factWriter) reference(ref schema.TypeRef) string {
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

func (w *factWriter) atom(atom schema.Atom) string {
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
