package toolpages

import (
	"fmt"
	"net/http"

	"parley/chat"
	"parley/response"
	"parley/tools/policy"
)

// getPolicy answers with the policy, and with what there is to choose from (B-015,
// B-071).
func (a *Admin) getPolicy(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	all, err := a.Policy.All(r.Context())
	if err != nil {
		return err
	}
	defaults, err := a.Policy.Defaults(r.Context())
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, map[string]any{"success": true, "data": all, "defaults": defaults})
	return nil
}

// setPolicy replaces what the policy says for one target (B-071), and answers with
// the whole policy.
func (a *Admin) setPolicy(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	var ask struct {
		TargetType  policy.TargetType `json:"target_type"`
		TargetValue string            `json:"target_value"`
		Config      policy.Config     `json:"config"`
	}
	if err := response.ReadJSON(w, r, maxBody, &ask); err != nil {
		return err
	}
	target := policy.Target{Type: ask.TargetType, Value: ask.TargetValue}
	if err := a.storePolicy(r, who, target, ask.Config); err != nil {
		return err
	}
	all, err := a.Policy.All(r.Context())
	if err != nil {
		return err
	}
	return answer(w, all)
}

// policyEvent begins the text of audit events about the policy.
const policyEvent = "policy for "

func (a *Admin) storePolicy(r *http.Request, who chat.Sender, t policy.Target, c policy.Config) error {
	t, c, err := a.Policy.Set(r.Context(), t, c)
	if err != nil {
		return explain(err)
	}
	a.Audit("config", who.ID, fmt.Sprintf(policyEvent+"%s: %s", t, c.Summary()))
	return nil
}

// effectivePolicy answers with what holds for who is signed in (B-074).
func (a *Admin) effectivePolicy(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	e, err := a.Policy.Effective(r.Context(), policy.PageScope(who))
	if err != nil {
		return err
	}
	return answer(w, e)
}
