package main

import (
	"bytes"
	"encoding/json"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

type roleRule struct {
	Verbs     []string `json:"verbs"`
	Groups    []string `json:"groups"`
	Resources []string `json:"resources"`
	Names     []string `json:"names,omitempty"`
}

type roleBinding struct {
	Role     string   `json:"role"`
	Subjects []string `json:"subjects"`
}

type allRoles struct {
	// ClusterRoles by name; those that are aggregated have the rules of their parts.
	ClusterRoles map[string][]roleRule `json:"clusterRoles"`
	// ClusterBindings bind them in all namespaces.
	ClusterBindings []roleBinding `json:"clusterBindings"`
	// Roles and Bindings by namespace.
	Roles    map[string]map[string][]roleRule `json:"roles"`
	Bindings map[string][]roleBinding         `json:"bindings"`
}

// writeRoles writes what kube-apiserver creates when a cluster begins (package bootstrappolicy), without rules for URLs.
func writeRoles(out io.Writer) error {
	found := allRoles{map[string][]roleRule{}, nil, map[string]map[string][]roleRule{}, map[string][]roleBinding{}}
	for _, role := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		found.ClusterRoles[role.Name] = rulesOf(role.Rules)
	}
	view := found.ClusterRoles["system:aggregate-to-view"]
	edit := append(append([]roleRule{}, view...), found.ClusterRoles["system:aggregate-to-edit"]...)
	found.ClusterRoles["view"], found.ClusterRoles["edit"] = view, edit
	found.ClusterRoles["admin"] = append(append([]roleRule{}, edit...), found.ClusterRoles["system:aggregate-to-admin"]...)
	for _, binding := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		if len(binding.Subjects) > 0 {
			found.ClusterBindings = append(found.ClusterBindings, roleBinding{binding.RoleRef.Name, subjectsOf(binding.Subjects)})
		}
	}
	for namespace, roles := range bootstrappolicy.NamespaceRoles() {
		found.Roles[namespace] = map[string][]roleRule{}
		for _, role := range roles {
			found.Roles[namespace][role.Name] = rulesOf(role.Rules)
		}
	}
	for namespace, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, binding := range bindings {
			found.Bindings[namespace] = append(found.Bindings[namespace], roleBinding{binding.RoleRef.Name, subjectsOf(binding.Subjects)})
		}
	}
	text, err := json.Marshal(found)
	if err != nil {
		return err
	}
	// A line for each role, so that a difference can be read.
	_, err = out.Write(append(bytes.ReplaceAll(text, []byte(`}],"`), []byte("}],\n\"")), '\n'))
	return err
}

func rulesOf(rules []rbacv1.PolicyRule) []roleRule {
	found := []roleRule{}
	for _, rule := range rules {
		if len(rule.Resources) > 0 {
			found = append(found, roleRule{rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames})
		}
	}
	return found
}

// subjectsOf names users and groups as they stand in an identity; a group begins with "group ".
func subjectsOf(subjects []rbacv1.Subject) []string {
	found := []string{}
	for _, subject := range subjects {
		switch subject.Kind {
		case rbacv1.GroupKind:
			found = append(found, "group "+subject.Name)
		case rbacv1.ServiceAccountKind:
			found = append(found, "system:serviceaccount:"+subject.Namespace+":"+subject.Name)
		default:
			found = append(found, subject.Name)
		}
	}
	return found
}
