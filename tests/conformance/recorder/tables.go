package main

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"
)

type tableQuestion struct {
	Object json.RawMessage
}

type tableResult struct {
	// Now is what the printer takes for the time, in seconds.
	Now        int64                      `json:"now"`
	Cells      []any                      `json:"cells"`
	Conditions []metav1.TableRowCondition `json:"conditions,omitempty"`
	// Columns are name, type, format, priority.
	Columns [][]any `json:"columns"`
}

var tableGenerator = printers.NewTableGenerator().With(internalversion.AddHandlers)

// answerTable prints an object as the API server does for kubectl get, defaults filled in.
func answerTable(t *testing.T, data json.RawMessage) (any, error) {
	var question tableQuestion
	if err := json.Unmarshal(data, &question); err != nil {
		return nil, err
	}
	object, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), question.Object)
	if err != nil {
		return nil, err
	}
	var table *metav1.Table
	var result tableResult
	synctest.Test(t, func(*testing.T) {
		result.Now = time.Now().Unix()
		table, err = tableGenerator.GenerateTable(object, printers.GenerateOptions{Wide: true})
	})
	if err != nil {
		return nil, err
	}
	result.Cells, result.Conditions = table.Rows[0].Cells, table.Rows[0].Conditions
	for _, column := range table.ColumnDefinitions {
		result.Columns = append(result.Columns, []any{column.Name, column.Type, column.Format, column.Priority})
	}
	return result, nil
}
