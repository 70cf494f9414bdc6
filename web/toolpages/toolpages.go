// Package toolpages has the pages and the API with which owners administer tools:
// the policy (B-070 to B-074), custom tools (B-061 to B-069) and approvals.
package toolpages

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/store"
	"parley/tools/custom"
	"parley/tools/policy"
	"parley/web/layout"
)

// An Admin serves the pages and the API, of what its fields show and change.
type Admin struct {
	Policy *policy.Book // nil: there are no routes
	Custom *custom.Library
	// CustomOff reports whether custom tools are switched off: their pages and API say so.
	CustomOff func() bool
	// Test runs a custom tool for who, and returns what is shown of it (B-018).
	Test func(ctx context.Context, who chat.Sender, t custom.Trial) (any, error)

	// People lists who has talked to the agent. RoleOf returns the role of somebody in a chat.
	People func(context.Context) ([]Person, error)
	RoleOf func(ctx context.Context, at chat.Address, id string) (chat.Role, error)

	// Approvals lists what owners approved for a while. Revoke takes one back.
	Approvals func(context.Context) ([]chat.Approval, error)
	Revoke    func(context.Context, chat.Approval) error

	Audit func(kind, who, what string) // receives events for the audit log (R-S27)

	// Changes lists the latest of these events whose text begins with prefix, the newest first.
	Changes func(ctx context.Context, prefix string) ([]Change, error)

	Zone *time.Location // of times that people are shown
}

// A Person is somebody, or a group, whom a policy can be for.
type Person struct {
	ID    string // such as telegram:42
	About string // what an owner may know them by; may be empty
}

// A Change is something that the audit log says was changed.
type Change struct {
	Time      time.Time
	Who, What string
}

// Routes returns all routes.
func (a *Admin) Routes() []layout.Route {
	if a.Policy == nil {
		return nil
	}
	routes := []layout.Route{
		{Pattern: "GET /admin/policy", Handle: a.policyPage},
		{Pattern: "POST /admin/policy", Handle: a.savePolicyForm},
		{Pattern: "GET /admin/approvals", Handle: a.approvalsPage},
		{Pattern: "GET /api/admin/policy", Handle: a.getPolicy},
		{Pattern: "POST /api/admin/policy", Handle: a.setPolicy},
		{Pattern: "GET /api/admin/approvals", Handle: a.listApprovals},
		{Pattern: "POST /api/admin/approvals/revoke", Handle: a.revoke},
		{Pattern: "GET /api/effective-policy", Anybody: true, Handle: a.effectivePolicy},
		{Pattern: "GET /static/icons/{name}", Anybody: true, Handle: serveIcon},
		{Pattern: "/admin/", Handle: notFound},
		{Pattern: "/api/admin/", Handle: notFound},
	}
	for _, r := range a.customRoutes() {
		routes = append(routes, layout.Route{Pattern: r.Pattern, Handle: a.whenOn(r.Handle)})
	}
	return routes
}

// whenOn returns handle as long as custom tools are on. Otherwise it says that they are off.
func (a *Admin) whenOn(handle layout.Handler) layout.Handler {
	return func(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
		switch {
		case !a.CustomOff():
			return handle(w, r, who)
		case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/admin/"):
			return page(w, customTitle, g.Group{h.P(g.Text("Custom tools are switched off in the config " +
				"(tools.custom.enable)."))})
		}
		return response.Problem{Status: http.StatusNotFound, Text: custom.MsgOff}
	}
}

func notFound(http.ResponseWriter, *http.Request, chat.Sender) error { return store.ErrNotFound }

// answer answers with data in the form of this API.
func answer(w http.ResponseWriter, data any) error {
	response.JSON(w, http.StatusOK, map[string]any{"success": true, "data": data})
	return nil
}

// maxBody is how many bytes a request may have: four files and what is around them.
const maxBody = 2 << 20

// readLenient decodes the JSON body of r into v. Unknown fields are ignored, so that
// what this API returned can be sent back to it.
func readLenient(w http.ResponseWriter, r *http.Request, v any) error {
	var raw json.RawMessage
	if err := response.ReadJSON(w, r, maxBody, &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return response.JSONProblem(err, v)
	}
	return nil
}

func isRefusal(err error) bool {
	_, refused := errors.AsType[*custom.Refusal](err)
	return refused
}

// explain makes err a Problem if whoever asked can do something about it.
func explain(err error) error {
	refusal, refused := errors.AsType[*custom.Refusal](err)
	switch {
	case err == nil:
		return nil
	case refused:
		return response.BadRequest(refusal.Text)
	case errors.Is(err, custom.ErrNotFound):
		return response.Problem{Status: http.StatusNotFound, Text: err.Error()}
	case errors.Is(err, custom.ErrConflict), errors.Is(err, policy.ErrConflict):
		return response.Problem{Status: http.StatusConflict, Text: err.Error() + ": nothing was saved"}
	}
	if wrong, ok := errors.AsType[policy.UserError](err); ok {
		return response.BadRequest(wrong.Text)
	}
	return err
}

// formatTime returns t for people.
func (a *Admin) formatTime(t time.Time) string {
	zone := a.Zone
	if zone == nil {
		zone = time.Local
	}
	return t.In(zone).Format("2006-01-02 15:04")
}
