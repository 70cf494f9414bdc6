package config

import "parley/tools/web"

// Lookups returns the config of the tools that look things up.
func (w WebTools) Lookups() (web.Config, error) {
	cfg := web.Config{Demo: w.Demo}
	for _, s := range append([]Search{w.Search}, w.SearchFallback...) {
		cfg.Search = append(cfg.Search, web.Provider{Name: s.Provider, Key: string(s.APIKey), BaseURL: s.BaseURL})
	}
	for _, network := range w.AllowPrivate {
		prefix, err := web.ParseNetwork(network)
		if err != nil {
			return cfg, err
		}
		cfg.AllowPrivate = append(cfg.AllowPrivate, prefix)
	}
	return cfg, nil
}
