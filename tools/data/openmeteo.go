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

// maxWeather is how many bytes of an answer of the weather service are read.
const maxWeather = 1 << 20

// OpenMeteo returns a Config.Weather that asks open-meteo.com, which needs no
// key, or a server like it at base.
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
		if err == nil && len(found.Results) == 0 {
			err = errors.New("no such place is known")
		}
		if err != nil {
			return w, err
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
			"latitude": {
				at.Latitude.String(),
			}, "longitude": {at.Longitude.String()}, "current": {"temperature_2m,relative_humidity_2m,weather_code"},
		}, &now)
		if err == nil && now.Current == nil {
			err = errors.New("the weather service knows nothing of the weather there")
		}
		if err != nil {
			return w, err
		}
		return Weather{
			Temperature: now.Current.Temperature,
			Humidity:    now.Current.Humidity,
			Description: sky(now.Current.Code),
		}, nil
	}
}

// get reads what the weather service says to a query. An error names no address.
func get(ctx context.Context, client *http.Client, at string, q url.Values, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"?"+q.Encode(), nil)
	if err != nil {
		return errors.New("the weather service has no valid address")
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
		return errors.New("the answer of the weather service makes no sense")
	}
	return nil
}

// sky names a weather code of the WMO.
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
