package data

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"parley/llm"
	"parley/tools"
)

// with a provider the weather is real, and not said to be simulated.
func TestOpenMeteo(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		switch name := r.FormValue("name"); {
		case name == "Nowhere":
			fmt.Fprint(w, `{"generationtime_ms":0.1}`)
		case name == "Down":
			w.WriteHeader(http.StatusServiceUnavailable)
		case name == "Odd":
			fmt.Fprint(w, `<html>`)
		case name != "":
			fmt.Fprint(w, `{"results":[{"name":"Berlin","latitude":52.52437,"longitude":13.41053}]}`)
		default:
			fmt.Fprint(w, `{"current":{"time":"2026-11-21T12:00","temperature_2m":7.5,"relative_humidity_2m":81,"weather_code":61}}`)
		}
	}))
	defer s.Close()
	kit, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed(New(Config{Weather: OpenMeteo(s.Client(), s.URL)}))}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	weather := func(city string) tools.Result {
		return kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: city, Name: "get_weather", Args: fmt.Sprintf(`{"city":%q}`, city)}})
	}
	r := weather("Berlin")
	w, _ := r.Data.(Weather)
	if w.Temperature != 7.5 || w.Humidity != 81 || w.Description != "rain" || w.Simulated || w.City != "Berlin" || w.Time == "" {
		t.Errorf("%+v", r)
	}
	if len(asked) != 2 || asked[0] != "/v1/search?count=1&name=Berlin" ||
		asked[1] != "/v1/forecast?current=temperature_2m%2Crelative_humidity_2m%2Cweather_code&latitude=52.52437&longitude=13.41053" {
		t.Errorf("asked %q", asked)
	}
	for city, want := range map[string]string{
		"Nowhere": "the place is unknown",
		"Down":    "the weather service answered 503 Service Unavailable",
		"Odd":     "the response of the weather service cannot be parsed",
	} {
		if r := weather(city); r.Text != fmt.Sprintf(`{"success":false,"data":null,"error":"weather of %s: %s"}`, city, want) {
			t.Errorf("%s: %s", city, r.Text)
		}
	}
	s.Close()
	if r := weather("Berlin"); r.Text != `{"success":false,"data":null,"error":"weather of Berlin: the weather service cannot be reached"}` {
		t.Error(r.Text)
	}
	for code, want := range map[int]string{0: "clear sky", 3: "overcast", 45: "fog", 75: "snow", 95: "thunderstorm", 100: "unknown"} {
		if got := sky(code); got != want {
			t.Errorf("%d is %s", code, got)
		}
	}
}
