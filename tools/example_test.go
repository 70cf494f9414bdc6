package tools_test

import (
	"context"
	"fmt"

	"parley/llm"
	"parley/tools"
)

// A-074, A-086, D-119: one declaration is a whole tool.
func ExampleNew() {
	type args struct {
		Name string `json:"name" jsonschema:"whom to greet" limit:"max=40"`
	}
	greet := tools.New("greet", "Greet somebody.", func(_ context.Context, _ tools.Call, in args) (tools.Result, error) {
		return tools.Result{Data: map[string]any{"greeting": "Hello, " + in.Name}}, nil
	})
	greet.Category, greet.JSON = "demo", true

	ctx := context.Background()
	kit, err := tools.NewKit(ctx, tools.Scope{}, []tools.Source{tools.Fixed{greet}}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		panic(err)
	}
	fmt.Println(kit.Call(ctx, tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "greet", Args: `{"name":"Ann"}`}}).Text)
	// Output: {"success":true,"data":{"greeting":"Hello, Ann"},"error":null}
}
