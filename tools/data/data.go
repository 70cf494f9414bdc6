// Package data has the tools that need nothing but their arguments: a calculator,
// operations on text and JSON, and the weather.
package data

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"parley/tools"
)

// Config configures the tools. Everything is optional.
type Config struct {
	Zone    *time.Location                                 // of query_time; nil is the machine's zone
	Weather func(context.Context, string) (Weather, error) // of a city; nil means simulated weather
}

// Weather is the result of get_weather.
type Weather struct {
	City        string  `json:"city"`
	Temperature float64 `json:"temperature"` // °C
	Humidity    float64 `json:"humidity"`    // percent
	Description string  `json:"description"`
	Time        string  `json:"query_time"` // always the real time (F20)
	Simulated   bool    `json:"simulated"`
}

// New returns calculator, text_process, json_process and get_weather.
func New(c Config) []tools.Tool {
	all := []tools.Tool{calculator(), textProcess(), jsonProcess(), weather(c)}
	for i := range all {
		all[i].Category = "data"
		all[i].Use = tools.Rare
		all[i].ReadOnly = true
		all[i].JSON = true
		all[i].Cacheable = true
	}
	all[3].Category = "weather"
	all[3].Cacheable = false
	return all
}

func weather(c Config) tools.Tool {
	description := "The current weather in a city."
	ask := c.Weather
	if ask == nil {
		description = "The weather in a city, made up (simulated). Say so when you pass it on."
		ask = simulated
	}
	type args struct {
		City string `json:"city" jsonschema:"name of the city, such as Berlin" limit:"min=1 max=100"`
	}
	t := tools.New("get_weather", description, func(ctx context.Context, _ tools.Call, in args) (tools.Result, error) {
		w, err := ask(ctx, in.City)
		if err != nil {
			return tools.Result{}, fmt.Errorf("weather of %s: %w", in.City, err)
		}
		w.City = in.City
		w.Time = time.Now().In(cmp.Or(c.Zone, time.Local)).Format(time.RFC3339)
		return tools.Result{Data: w}, nil
	})
	t.Aliases = map[string]string{"location": "city"}
	return t
}

// simulated makes up the weather of a city. It knows some cities by their
// English and Chinese names.
func simulated(_ context.Context, city string) (Weather, error) {
	w := Weather{Temperature: 22, Humidity: 65, Description: "sunny"}
	switch strings.ToLower(city) {
	case "beijing", "北京":
		w = Weather{Temperature: 25, Humidity: 60, Description: "sunny"}
	case "shanghai", "上海":
		w = Weather{Temperature: 28, Humidity: 75, Description: "cloudy"}
	case "guangzhou", "广州":
		w = Weather{Temperature: 32, Humidity: 85, Description: "thunderstorms"}
	case "shenzhen", "深圳":
		w = Weather{Temperature: 30, Humidity: 80, Description: "overcast"}
	}
	w.Simulated = true
	return w, nil
}
