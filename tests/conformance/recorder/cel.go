package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"

	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"context"
)

// celCase is an expression with what it may name: self and oldSelf of a schema, dynamic variables, libraries.
type celCase struct {
	Expression  string          `json:"expression"`
	Schema      json.RawMessage `json:"schema"`
	Root        bool            `json:"root"`
	Optional    bool            `json:"optionalOldSelf"`
	Self        any             `json:"self"`
	OldSelf     any             `json:"oldSelf"`
	Variables   map[string]any  `json:"variables"`
	Libraries   []string        `json:"libraries"`
	Limit       uint64          `json:"limit"`
	CompileOnly bool            `json:"compileOnly"`
}

type celAnswer struct {
	Issues  string  `json:"issues,omitempty"`
	Type    string  `json:"type,omitempty"`
	Program string  `json:"program,omitempty"`
	Low     uint64  `json:"low"`
	High    uint64  `json:"high"`
	Value   string  `json:"value,omitempty"`
	Error   string  `json:"error,omitempty"`
	Cost    *uint64 `json:"cost,omitempty"`
}

// declaredSizes bounds the sizes of what is reached from self, as the validation of custom resources does.
type declaredSizes struct{ root *apiservercel.DeclType }

func (d declaredSizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	at := d.root
	for _, step := range path[1:] {
		var next *apiservercel.DeclType
		switch step {
		case "@items", "@values":
			next = at.ElemType
		case "@keys":
			next = at.KeyType
		default:
			if field, found := at.Fields[step]; found {
				next = field.Type
			}
		}
		if next == nil {
			return nil
		}
		at = next
	}
	return &checker.SizeEstimate{Max: uint64(at.MaxElements)}
}

func (declaredSizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// celAuthorizer allows the verb get, fails for the verb fail, denies the verb deny and has no opinion of others.
type celAuthorizer struct{}

func (celAuthorizer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	reason := fmt.Sprintf("%s %s/%s/%s %s/%s %s %s", a.GetUser().GetName(), a.GetAPIGroup(), a.GetResource(), a.GetSubresource(), a.GetNamespace(), a.GetName(), a.GetPath(), a.GetVerb())
	switch a.GetVerb() {
	case "get":
		return authorizer.DecisionAllow, reason, nil
	case "deny":
		return authorizer.DecisionDeny, reason, nil
	case "fail":
		return authorizer.DecisionNoOpinion, "", fmt.Errorf("broken: %s", reason)
	}
	return authorizer.DecisionNoOpinion, reason, nil
}

// wholeNumbers makes int64 of numbers that JSON writes without a point, as Kubernetes' decoder does.
func wholeNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = wholeNumbers(v[k])
		}
	}
	return value
}

func celEnvironment(c celCase) (*cel.Env, *apiservercel.DeclType, common.Schema, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	options := environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0)}
	var declared *apiservercel.DeclType
	var schema common.Schema
	if c.Schema != nil {
		document := &spec.Schema{}
		if err := json.Unmarshal(c.Schema, document); err != nil {
			return nil, nil, nil, err
		}
		if c.Root {
			document = common.WithTypeAndObjectMeta(document)
		}
		schema = &openapi.Schema{Schema: document}
		declared = common.SchemaDeclType(schema, c.Root)
		if declared == nil {
			return nil, nil, nil, fmt.Errorf("nothing declared")
		}
		declared = declared.MaybeAssignTypeName("selfType")
		old := declared.CelType()
		if c.Optional {
			old = types.NewOptionalType(old)
		}
		options.EnvOptions = append(options.EnvOptions, cel.Variable("self", declared.CelType()), cel.Variable("oldSelf", old))
		options.DeclTypes = append(options.DeclTypes, declared)
	}
	names := make([]string, 0, len(c.Variables))
	for name := range c.Variables {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		options.EnvOptions = append(options.EnvOptions, cel.Variable(name, cel.DynType))
	}
	for _, name := range c.Libraries {
		switch name {
		case "bindings":
			options.EnvOptions = append(options.EnvOptions, ext.Bindings(ext.BindingsVersion(0)))
		case "jsonpatch":
			options.EnvOptions = append(options.EnvOptions, environment.UnversionedLib(library.JSONPatch))
		case "mutation":
			options.EnvOptions = append(options.EnvOptions, common.ResolverEnvOption(&mutation.DynamicTypeResolver{}))
		case "authorizer":
			options.EnvOptions = append(options.EnvOptions, cel.Variable("authorizer", library.AuthorizerType))
		default:
			return nil, nil, nil, fmt.Errorf("no library %q", name)
		}
	}
	extended, err := base.Extend(options)
	if err != nil {
		return nil, nil, nil, err
	}
	env, err := extended.Env(environment.NewExpressions)
	return env, declared, schema, err
}

func answerCEL(_ *testing.T, data json.RawMessage) (any, error) {
	first, err := answerCELOnce(data)
	if err != nil {
		return nil, err
	}
	for range 4 {
		again, err := answerCELOnce(data)
		if err != nil || !reflect.DeepEqual(first, again) {
			return nil, ambiguous{2}
		}
	}
	return first, nil
}

func answerCELOnce(data json.RawMessage) (any, error) {
	var c celCase
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(&c); err != nil {
		return nil, err
	}
	env, declared, schema, err := celEnvironment(c)
	if err != nil {
		return nil, err
	}
	var answer celAnswer
	ast, issues := env.Compile(c.Expression)
	if issues != nil {
		answer.Issues = strings.ReplaceAll(issues.String(), "selfType", "self")
		return answer, nil
	}
	answer.Type = ast.OutputType().String()
	estimator := &library.CostEstimator{}
	if declared != nil {
		estimator.SizeEstimator = declaredSizes{declared}
	}
	limit := c.Limit
	if limit == 0 {
		limit = celconfig.PerCallLimit
	}
	program, err := env.Program(ast, cel.CostLimit(limit), cel.CostTracking(estimator), cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		answer.Program = err.Error()
		return answer, nil
	}
	estimate, err := env.EstimateCost(ast, estimator)
	if err != nil {
		return nil, err
	}
	answer.Low, answer.High = estimate.Min, estimate.Max
	if c.CompileOnly {
		return answer, nil
	}
	input := map[string]any{}
	if schema != nil {
		input["self"] = common.UnstructuredToVal(wholeNumbers(c.Self), schema)
		switch {
		case c.Optional && c.OldSelf == nil:
			input["oldSelf"] = types.OptionalNone
		case c.Optional:
			input["oldSelf"] = types.OptionalOf(common.UnstructuredToVal(wholeNumbers(c.OldSelf), schema))
		case c.OldSelf != nil:
			input["oldSelf"] = common.UnstructuredToVal(wholeNumbers(c.OldSelf), schema)
		}
	}
	for name, value := range c.Variables {
		input[name] = wholeNumbers(value)
	}
	for _, name := range c.Libraries {
		if name == "authorizer" {
			input["authorizer"] = library.NewAuthorizerVal(&user.DefaultInfo{Name: "alice"}, celAuthorizer{})
		}
	}
	value, details, err := program.ContextEval(context.Background(), input)
	if details != nil && details.ActualCost() != nil {
		answer.Cost = details.ActualCost()
	}
	if err != nil {
		answer.Error = err.Error()
	} else {
		answer.Value = showCEL(value)
	}
	return answer, nil
}

// showCEL writes a value so that its type is seen; entries of maps are sorted.
func showCEL(value ref.Val) string {
	switch v := value.(type) {
	case types.Int:
		return strconv.FormatInt(int64(v), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(v), 10) + "u"
	case types.Double:
		return "double " + strconv.FormatFloat(float64(v), 'g', -1, 64)
	case types.String:
		return strconv.QuoteToASCII(string(v))
	case types.Bytes:
		return fmt.Sprintf("bytes %x", []byte(v))
	case types.Duration:
		return fmt.Sprintf("duration %d", v.Duration.Nanoseconds())
	case types.Timestamp:
		return fmt.Sprintf("timestamp %d.%09d", v.Unix(), v.Nanosecond())
	case *types.Optional:
		if !v.HasValue() {
			return "optional.none()"
		}
		return "optional.of(" + showCEL(v.GetValue()) + ")"
	case apiservercel.Quantity:
		return "quantity " + v.Quantity.String()
	case apiservercel.Semver:
		return "semver " + v.Version.String()
	case apiservercel.IP:
		return "ip " + v.Addr.String()
	case apiservercel.CIDR:
		return "cidr " + v.Prefix.String()
	case apiservercel.URL:
		return "url " + v.URL.String()
	case *mutation.JSONPatchVal:
		shown := "none"
		if v.Val != nil {
			shown = showCEL(v.Val)
		}
		return fmt.Sprintf("patch %q %q %q %s", v.Op, v.Path, v.From, shown)
	case traits.Lister:
		items := []string{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			items = append(items, showCEL(it.Next()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case traits.Mapper:
		entries := []string{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			entries = append(entries, showCEL(key)+": "+showCEL(v.Get(key)))
		}
		sort.Strings(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	case *types.Type:
		return "type " + v.TypeName()
	}
	switch value.Type() {
	case types.BoolType, types.NullType:
		return fmt.Sprint(value.Value())
	}
	if content, ok := value.Value().(map[string]any); ok {
		return value.Type().TypeName() + " " + showCEL(types.DefaultTypeAdapter.NativeToValue(content))
	}
	return value.Type().TypeName()
}
