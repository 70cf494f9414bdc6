package data

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// maxWeather is the maximum size of a response of the weather service, in bytes.
const maxWeather = 1 << 20

// OpenMeteo returns a Config.Weather that asks open-meteo.com, which needs no key,
// or a compatible server at base.
func OpenMeteo(client *http.Client, base string) func(context.Context, string) (Weather, error) {
	return func(ctx context.Context, city string) (w Weather, err error) {
		var found struct {
			Results []struct {
				Latitude, Longitude json.Number
			}
		}
		err = get(
			ctx,
			client,
			cmp.Or(base, "https://geocoding-api.open-meteo.com")+"/v1/search",
			url.Values{"name": {city}, "count": {"1"}},
			&found,
		)
		if err != nil {
			return w, err
		}
		if len(found.Results) == 0 {
			return w, errors.New("the place is unknown")
		}
		at := found.Results[0]
		var now struct {
			Current *struct {
				Temperature float64 `json:"temperature_2m"`
				Humidity    float64 `json:"relative_humidity_2m"`
				Code        int     `json:"weather_code"`
			}
		}
		err = get(ctx, client, cmp.Or(base, "https://api.open-meteo.com")+"/v1/forecast", url.Values{
			"latitude":  {at.Latitude.String()},
			"longitude": {at.Longitude.String()},
			"current":   {"temperature_2m,relative_humidity_2m,weather_code"},
		}, &now)
		if err != nil {
			return w, err
		}
		if now.Current == nil {
			return w, errors.New("the weather service has no weather for this place")
		}
		return Weather{
			Temperature: now.Current.Temperature,
			Humidity:    now.Current.Humidity,
			Description: sky(now.Current.Code),
		}, nil
	}
}

// get decodes the weather service's response to a query. Its errors name no
// address.
func get(ctx context.Context, client *http.Client, at string, q url.Values, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"?"+q.Encode(), nil)
	if err != nil {
		return errors.New("the address of the weather service is invalid")
	}
	resp, err := client.Do(req)
	if err != nil {
		return errors.New("the weather service cannot be reached")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the weather service answered %s", resp.Status)
	}
	if json.NewDecoder(io.LimitReader(resp.Body, maxWeather)).Decode(v) != nil {
		return errors.New("the response of the weather service cannot be parsed")
	}
	return nil
}

// sky returns the description of a WMO weather code.
func sky(code int) string {
	for _, s := range []struct {
		upTo int
		name string
	}{
		{0, "clear sky"}, {2, "partly cloudy"}, {3, "overcast"}, {48, "fog"}, {57, "drizzle"}, {67, "rain"},
		{77, "snow"}, {82, "rain showers"}, {86, "snow showers"}, {99, "thunderstorm"},
	} {
		if code <= s.upTo {
			return s.name
		}
	}
	return "unknown"
}
